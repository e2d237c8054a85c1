"""The settings of data creation that say what is read, written and refused."""

import dataclasses
import os

from data import tokenized_documents
from data.corpus import expand_patterns
from data.pretraining_examples import setting


@dataclasses.dataclass(frozen=True)
class CreationSettings:
    """What data creation reads and writes. Each field is a command-line flag too."""

    input_file: str = setting(
        "", "Text files, or patterns that name them, separated by commas; `.gz` is unpacked."
    )
    output_file: str = setting("", "TFRecord files to write, separated by commas.")
    num_shards: int = setting(
        1,
        "Files to write for one --output_file: x.tfrecord gives x-00000-of-00008.tfrecord and so "
        "on. With dupe_factor files or more each pass over the text has files of its own. "
        "Training mixes the text best where a file holds some 20,000 examples or fewer.",
    )
    heldout_file: str = setting(
        "", "TFRecord files for the text held out; it is passed over once. Empty: none is."
    )
    heldout_fraction: float = setting(
        0.03,
        "Share of the text, in bytes, that --heldout_file holds out: the last documents, so that "
        "whole books are held out where a document is a chapter.",
    )
    tokenizer: str = setting("", "Tokenizer folder, as `python -m data.train_vocabulary` makes it.")
    spm_model_file: str = setting("", "SentencePiece model, instead of --tokenizer.")
    vocab_file: str = setting(
        "", "WordPiece vocabulary, instead of --tokenizer; ignored beside --spm_model_file."
    )
    do_lower_case: bool | None = setting(
        None, "Lower-case the text; by default as the tokenizer folder says, else true."
    )
    random_next_sentence: bool = setting(False, "The original's name for --sentence_objective=nsp.")
    unspaced_words: str = setting(
        "auto",
        "Words of scripts without blanks, such as Chinese: each of the pieces, or what stands "
        "between blanks in a text whose words were separated beforehand; auto: as a sample says.",
        ("auto", *tokenized_documents.UNSPACED_WORDS),
    )
    max_unknown_rate: float = setting(
        0.05, "Share of unknown pieces in a sample of the text above which the program stops."
    )
    fail_on_bad_bytes: bool = setting(
        False, "Stop at bytes that are not UTF-8; else they are replaced and counted."
    )
    num_workers: int = setting(
        os.cpu_count() or 1,
        "Processes; fewer for a text too small for them. No effect on the examples.",
    )
    runner: str = setting(
        "local",
        "Where the work is done: by --num_workers processes of this machine, or by Apache Beam "
        "(requirements-beam.txt), which spreads it over a cluster. The examples are the same.",
        ("local", "beam"),
    )
    beam_options: str = setting(
        "",
        "Options of Beam in one string, such as '--runner=DataflowRunner --project=...'; without a "
        "runner, this machine: '--direct_num_workers=0 --direct_running_mode=multi_processing'.",
    )
    verify: bool = setting(False, "Check the records of --output_file instead of making any.")

    def __post_init__(self):
        limits = {
            "num_shards": (1, 10**5),
            "heldout_fraction": (0, 1),
            "max_unknown_rate": (0, 1),
            "num_workers": (1, 10**4),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(
                    f"`{name}` must lie in [{low}, {high}]. Received: {getattr(self, name)}."
                )
        if self.beam_options and self.runner != "beam":
            raise ValueError(
                f"`beam_options` are for --runner=beam. Received: them and --runner={self.runner}."
            )
        for name in ("output_file", "heldout_file"):
            if self.runner == "beam" and len(split_names(getattr(self, name))) > 1:
                raise ValueError(
                    f"`{name}` must be one name for --runner=beam; `num_shards` is the number of "
                    f"files of `output_file`. Received: {getattr(self, name)}."
                )
        if not self.output_file:
            raise ValueError("`output_file` must name the files to write. Received: none.")
        if not (self.input_file or self.verify):
            raise ValueError("`input_file` must name the text to read. Received: none.")

    def tokenizer_path(self):
        """Returns the path to load the tokenizer from.

        Raises:
            ValueError: none is given, or two that contradict each other.
        """
        files = [name for name in (self.spm_model_file, self.vocab_file) if name]
        if bool(self.tokenizer) == bool(files):
            raise ValueError(
                "`tokenizer` must be given, or else `spm_model_file` or `vocab_file`. Received: "
                f"tokenizer={self.tokenizer!r}, spm_model_file={self.spm_model_file!r}, "
                f"vocab_file={self.vocab_file!r}."
            )
        return self.tokenizer or files[0]

    def output_files(self):
        """Returns the paths of the training records, list[str].

        Raises:
            ValueError: `num_shards` is given beside several files, or a file is named twice.
        """
        names = split_names(self.output_file)
        if self.num_shards > 1:
            if len(names) > 1:
                raise ValueError(
                    "`num_shards` must be 1 where `output_file` names several files. Received: "
                    f"num_shards={self.num_shards}, output_file={self.output_file}."
                )
            stem, ending = os.path.splitext(names[0])
            names = [
                f"{stem}-{shard:05d}-of-{self.num_shards:05d}{ending}"
                for shard in range(self.num_shards)
            ]
        written = names + self.heldout_files()
        if len(set(written)) < len(written):
            raise ValueError(
                "`output_file` and `heldout_file` must name different files. Received: "
                f"{', '.join(written)}."
            )
        return names

    def heldout_files(self):
        """Returns the paths of the held-out records, list[str]."""
        return split_names(self.heldout_file)

    def num_training_bytes(self, num_bytes):
        """Returns how many of a text's bytes are not held out, or None where none are."""
        return round(num_bytes * (1 - self.heldout_fraction)) if self.heldout_file else None

    def files_to_verify(self):
        """Returns the record files that exist under the names or patterns of `output_file`.

        Raises:
            FileNotFoundError: one does not.
        """
        return expand_patterns(",".join(self.output_files() + self.heldout_files()))


def split_names(names):
    return [name.strip() for name in names.split(",") if name.strip()]
