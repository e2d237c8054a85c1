"""A set of record files that one run of data creation writes: for training, or held out."""

import contextlib
import dataclasses
import importlib
import os

from data import creation_report, files, metadata, tokenization
from data.pretraining_examples import ExampleCounts
from data.records import ShardWriter
from data.tokenizer_base import MODEL_FILES, SETTINGS_FILE, kind_of_folder

TOKENIZER_FOLDER = "tokenizer"  # Beside the records, so that training can keep it.
VERSIONED = ("tensorflow", "sentencepiece", "numpy")  # Modules that made the data.
TRAINING, HELDOUT = "training", "held-out"  # The sets of a run.


def check_folders(paths, tokenizer):
    """Refuses to write where records would mix with others, or a tokenizer be lost.

    Args:
        paths: list of the files that will be written.
        tokenizer: the Tokenizer.

    Raises:
        ValueError: a folder holds a malformed `metadata.json`, files of the sets that are
            replaced which would stay, or a tokenizer that is not these sets' alone.
    """
    for folder in sorted({os.path.dirname(path) for path in paths}):
        names = [os.path.basename(path) for path in paths if os.path.dirname(path) == folder]
        sets = metadata.read_folder(folder) or []
        replaced = metadata.replaced_sets(sets, names)
        check_left_files(folder, names, sets, replaced)
        check_tokenizer(os.path.join(folder, TOKENIZER_FOLDER), tokenizer, sets, replaced)


def check_left_files(folder, names, sets, replaced):
    """Refuses a folder where files of a replaced run, training or held out, would stay."""
    runs = [old.settings for old in replaced]
    rows = [row for old in sets if old.settings in runs for row in old.shards]
    left = [row["file"] for row in rows if row["file"] not in names]
    left = [name for name in left if files.exists(os.path.join(folder, name))]
    if left:
        raise ValueError(
            "records of an earlier run to the same `output_file` must be gone before new ones are "
            f"made: they might hold text that is now held out. Received: {len(left)} files in "
            f"{folder or '.'}: {', '.join(left[:5])}{', ...' * (len(left) > 5)}. Remove them, or "
            "use another folder."
        )


def check_tokenizer(path, tokenizer, sets, replaced):
    """Refuses a tokenizer's folder that holds another one, unless the replaced sets' alone."""
    present = {
        name: files.read_bytes(os.path.join(path, name))
        for name in (*MODEL_FILES.values(), SETTINGS_FILE)
        if files.exists(os.path.join(path, name))
    }
    contents = tokenizer.contents()
    if all(content == contents.get(name) for name, content in present.items()):
        return
    held = tokenization.load(path).fingerprint if kind_of_folder(path) else None
    if held == tokenizer.fingerprint:
        return
    users = [old for old in sets if old.tokenizer_sha256 == held]
    is_copy = set(files.names_in(path)) == present.keys()  # Where it was trained is more.
    if not (users and is_copy) or any(old not in replaced for old in users):
        raise ValueError(
            f"`{TOKENIZER_FOLDER}` beside `output_file` must be free for the records' tokenizer. "
            f"Received: {path}, which holds another one. Use another folder for the records, or "
            "move that one away."
        )


@dataclasses.dataclass(frozen=True)
class WrittenSet:
    """A set of record files as they were written.

    Attributes:
        name: TRAINING or HELDOUT.
        counts: ExampleCounts.
        shards: list of {"file", "num_examples", "num_bytes"}, by name of the file.
    """

    name: str
    counts: ExampleCounts
    shards: list[dict]

    def check(self, corpus_counts):
        """Raises ValueError, with the reason, where a file would be empty."""
        if not self.counts.num_examples:
            raise ValueError(creation_report.nothing_made(self.name, corpus_counts, self.counts))
        if any(not shard["num_examples"] for shard in self.shards):
            raise ValueError(
                f"each file must get at least one {self.name} example. Received: "
                f"{self.counts.num_examples} examples for {len(self.shards)} files."
            )

    def write_metadata(self, flags, settings, tokenizer, corpus_counts):
        """Writes `metadata.json` and the tokenizer's folder, `tokenizer/`, beside the files.

        Args:
            flags: dict of every setting of the run.
            settings: ExampleSettings.
            tokenizer: the Tokenizer.
            corpus_counts: CorpusCounts of the whole text.
        """
        for folder in {os.path.dirname(shard["file"]) for shard in self.shards}:
            tokenizer.save(os.path.join(folder, TOKENIZER_FOLDER))
        metadata.write(
            metadata.Metadata(
                settings=flags,
                max_seq_length=settings.max_seq_length,
                max_predictions_per_seq=settings.max_predictions,
                sentence_objective=settings.sentence_objective,
                vocab_size=tokenizer.vocab_size,
                tokenizer_sha256=tokenizer.fingerprint,
                counts={
                    **dataclasses.asdict(self.counts),
                    "text": dataclasses.asdict(corpus_counts),
                },
                shards=self.shards,
                versions={name: importlib.import_module(name).__version__ for name in VERSIONED},
            )
        )


class RecordSet:
    """Some files of records, with what was counted for them; a context manager.

    As `records.ShardWriter`, of which it may hold several: where there are as many files
    as passes or more, each pass has files of its own, so that reading files in random
    order mixes the passes.

    Attributes:
        name: TRAINING or HELDOUT.
        counts: ExampleCounts.
    """

    def __init__(self, name, paths, num_passes):
        """Takes the set's name, list[str] of its files, and how many passes come."""
        num_writers = min(len(paths), num_passes)
        self.name, self.counts = name, ExampleCounts()
        self._writers = [ShardWriter(paths[index::num_writers]) for index in range(num_writers)]
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        """Opens the files under temporary names; raises OSError where one cannot be."""
        with contextlib.ExitStack() as stack:
            for writer in self._writers:
                stack.enter_context(writer)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind, error, traceback):
        return self._stack.__exit__(kind, error, traceback)

    def write(self, result):
        """Writes a record_making.Result."""
        for number, records in zip(result.task.passes, result.records, strict=True):
            self._writers[number % len(self._writers)].write(records)
        self.counts.add(result.example_counts)

    @property
    def written(self):
        """The WrittenSet of what was written so far."""
        shards = [shard for writer in self._writers for shard in writer.shards]
        shards.sort(key=lambda shard: shard["file"])
        return WrittenSet(self.name, self.counts, shards)
