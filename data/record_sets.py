"""A set of record files that one run of data creation writes: for training, or held out."""

import contextlib
import dataclasses
import importlib.metadata
import os

from data import creation_report, metadata
from data.pretraining_examples import ExampleCounts
from data.records import ShardWriter

TOKENIZER_FOLDER = "tokenizer"  # Beside the records, so that training can keep it.
VERSIONED = ("tensorflow", "sentencepiece", "numpy")  # What made the data.
TRAINING, HELDOUT = "training", "held-out"  # The sets of a run.


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
                versions={name: importlib.metadata.version(name) for name in VERSIONED},
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

    def __init__(self, name, files, num_passes):
        """Takes the set's name, list[str] of paths, and how many passes come."""
        num_writers = min(len(files), num_passes)
        self.name, self.counts = name, ExampleCounts()
        self._writers = [ShardWriter(files[index::num_writers]) for index in range(num_writers)]
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
