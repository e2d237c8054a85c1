"""Trains a vocabulary: text -> a bounded sample of its lines -> a SentencePiece unigram model."""

import dataclasses
import heapq
import io
import itertools
import json
import os
import platform
import re
import string
import sys

import numpy as np
import sentencepiece

from data import corpus, files, text_normalization
from data.sentencepiece_tokenizer import SentencePieceTokenizer

CONTROL_SYMBOLS = ["[CLS]", "[SEP]", "[MASK]"]  # Ids 2, 3, 4, after <pad> and <unk>.
USER_DEFINED_SYMBOLS = ["(", ")", '"', "-", ".", "\u2013", "\xa3", "\u20ac"]  # Ids 5 to 12.
NEVER_UNKNOWN = string.digits + ","  # Wherever the text has them; coverage may leave them out.
NUM_FIXED_PIECES = 2 + len(CONTROL_SYMBOLS) + len(USER_DEFINED_SYMBOLS)
LONGEST_GROWTH = 32  # Of a text's bytes when it is normalised; U+FDFA's grow 11 times.
MOST_BAD_BYTES = 0.1  # A larger share that is not UTF-8 means another encoding, or no text.
TOO_LARGE = re.compile(r"Vocabulary size too high.*<= (\d+)")
TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
REPORT_FILE = "vocabulary.json"


def setting(default, help):
    return dataclasses.field(default=default, metadata={"help": help})


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """Settings of a vocabulary; the names are spm_train's where it has them."""

    input_file: str = setting("", "Text: comma-separated files or patterns, one sentence a line.")
    output_dir: str = setting("", "Folder for the tokenizer: spm.model, settings.json and more.")
    vocab_size: int = setting(30_000, "Number of pieces, the special ones included.")
    soft_vocab_limit: bool = setting(
        False, "Whether to take a smaller vocabulary when the text cannot supply `vocab_size`."
    )
    lower: bool = setting(True, "Whether text is lower-cased, here and wherever it is used.")
    keep_accents: bool = setting(False, "Whether accents are kept, here and wherever it is used.")
    digit_comma_split: bool = setting(
        True, "Whether a piece that ends in a digit and a comma is split where it is used."
    )
    character_coverage: float = setting(
        0.99995, "Share of the text's characters that get a piece; the rest is unknown."
    )
    input_sentence_size: int = setting(10_000_000, "Most lines that are kept as a sample.")
    max_sample_megabytes: int = setting(
        100, "Most memory for the sample, megabytes. Training takes about 17 times as much."
    )
    max_sentence_length: int = setting(4_192, "Bytes; a longer line is split, at a blank.")
    random_seed: int = setting(12_345, "Seed of the sample.")

    def __post_init__(self):
        for name in ("input_file", "output_dir"):
            if not getattr(self, name):
                raise ValueError(f"`{name}` must be given.")
        if self.vocab_size <= NUM_FIXED_PIECES:
            raise ValueError(
                f"`vocab_size` must be more than the {NUM_FIXED_PIECES} special pieces and signs "
                f"that every vocabulary has. Received: {self.vocab_size}."
            )
        if not 0 < self.character_coverage <= 1:
            raise ValueError(
                f"`character_coverage` must lie in (0, 1]. Received: {self.character_coverage}."
            )
        for name in ("input_sentence_size", "max_sample_megabytes", "max_sentence_length"):
            smallest = 8 if name == "max_sentence_length" else 1
            if getattr(self, name) < smallest:
                raise ValueError(
                    f"`{name}` must be at least {smallest}. Received: {getattr(self, name)}."
                )


@dataclasses.dataclass
class SampleCounts(corpus.CorpusCounts):
    """What was met in the text, and what came of it."""

    num_split_lines: int = 0
    num_sampled_lines: int = 0


def split_line(line, max_bytes):
    """Splits a line that is too long, at blanks where it has them.

    SentencePiece skips long lines without a word.

    Args:
        line: str.
        max_bytes: int, of UTF-8 in each part; at least 4.

    Returns:
        list[str]; `[line]` for a line that is short enough.
    """
    rest = line.encode()
    parts = []
    while len(rest) > max_bytes:
        end = rest.rfind(b" ", 1, max_bytes + 1)
        if end < 0:
            end = max_bytes
            while rest[end] & 0xC0 == 0x80:  # Inside a character.
                end -= 1
        parts.append(rest[:end].decode())
        rest = rest[end:].lstrip(b" ")
    return [*parts, rest.decode()] if rest else parts


def read_lines(paths, max_bytes, counts):
    """Yields the lines of text files, long ones split.

    Args:
        paths: list[str].
        max_bytes: int, as of `split_line`.
        counts: SampleCounts to add to.

    Yields:
        str, not empty.
    """
    for path in paths:
        for document in corpus.read_documents(path, counts):
            for line in document.lines:
                parts = split_line(line, max_bytes) if len(line) * 4 > max_bytes else [line]
                counts.num_split_lines += len(parts) > 1
                yield from parts


def sample_lines(lines, *, max_lines, max_bytes, seed):
    """Samples lines evenly, in bounded memory whatever their number.

    Each line draws a number; the lines with the smallest are kept, as many as fit.

    Args:
        lines: iterable of str.
        max_lines: int.
        max_bytes: int, of memory for the lines kept.
        seed: int.

    Returns:
        list[str], in the order of the text.
    """
    generator = np.random.Generator(np.random.Philox(seed))
    draws = itertools.chain.from_iterable(
        generator.random(4096).tolist() for _ in itertools.count()
    )
    heap, num_bytes, bound = [], 0, 1.0  # The largest draw is on top of the heap.
    for number, (draw, line) in enumerate(zip(draws, lines, strict=False)):
        if draw >= bound:
            continue
        heapq.heappush(heap, (-draw, number, line))
        num_bytes += sys.getsizeof(line)
        while len(heap) > max_lines or num_bytes > max_bytes:
            largest, _, dropped = heapq.heappop(heap)
            bound = -largest
            num_bytes -= sys.getsizeof(dropped)
    return [line for _, _, line in sorted(heap, key=lambda kept: kept[1])]


def read_sample(config):
    """Reads the text once and samples its lines.

    Args:
        config: VocabularyConfig.

    Returns:
        (list[str], SampleCounts).

    Raises:
        FileNotFoundError: a file or pattern matches nothing.
        ValueError: the files hold no text.
    """
    paths = corpus.expand_patterns(config.input_file)
    counts = SampleCounts()
    sample = sample_lines(
        read_lines(paths, config.max_sentence_length, counts),
        max_lines=config.input_sentence_size,
        max_bytes=config.max_sample_megabytes * 1_000_000,
        seed=config.random_seed,
    )
    counts.num_sampled_lines = len(sample)
    if not sample:
        raise ValueError(
            f"the text must have lines that are not blank. Received: {config.input_file}, "
            f"{counts.num_bytes} bytes."
        )
    if counts.num_bad_bytes > MOST_BAD_BYTES * counts.num_bytes:
        raise ValueError(
            f"text must be UTF-8. Received: {config.input_file}, where {counts.num_bad_bytes:,} of "
            f"{counts.num_bytes:,} bytes are not, first in {counts.places[0]}."
        )
    return sample, counts


def train(lines, config):
    """Trains a tokenizer with the original's options (its README, "SentencePiece").

    Differs from the original: a digit or comma of the text always gets a piece, however
    rare. In 52 MB of novels `character_coverage` leaves out 6, 7 and 9.

    Args:
        lines: list[str].
        config: VocabularyConfig.

    Returns:
        SentencePieceTokenizer.

    Raises:
        ValueError: the text cannot supply `vocab_size` pieces, or its characters alone
            need more.
    """
    present = "".join(c for c in NEVER_UNKNOWN if any(c in line for line in lines))
    normalized = (
        text_normalization.normalize(line, lower=config.lower, keep_accents=config.keep_accents)
        for line in lines
    )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=normalized,
            model_writer=model,
            model_type="unigram",
            vocab_size=config.vocab_size,
            hard_vocab_limit=not config.soft_vocab_limit,
            character_coverage=config.character_coverage,
            required_chars=present,
            max_sentence_length=LONGEST_GROWTH * config.max_sentence_length,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=CONTROL_SYMBOLS,
            user_defined_symbols=USER_DEFINED_SYMBOLS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(reason(str(error), config)) from None
    names = ("lower", "keep_accents", "digit_comma_split")
    settings = {name: getattr(config, name) for name in names}
    return SentencePieceTokenizer(model.getvalue(), settings)


def reason(message, config):
    """Says what SentencePiece's error means in the words of the settings."""
    if match := TOO_LARGE.search(message):
        return (
            f"`vocab_size` must be at most {match[1]}, the largest size that this text can supply. "
            f"Received: {config.vocab_size}. More text, that size, or `--soft_vocab_limit`."
        )
    if match := TOO_SMALL.search(message):
        return (
            f"`vocab_size` must be at least {match[1]}, for this text's characters and the "
            f"{NUM_FIXED_PIECES} fixed pieces. Received: {config.vocab_size}. That size, or a "
            "smaller `character_coverage`."
        )
    return f"the text must be one that SentencePiece can train on. Received: {message.strip()}"


def save(tokenizer, config, counts):
    """Writes the tokenizer folder, the list of its pieces, and a report of how it was made."""
    tokenizer.save(config.output_dir)
    report = {
        "settings": dataclasses.asdict(config),
        "vocab_size": tokenizer.vocab_size,
        "tokenizer_sha256": tokenizer.fingerprint,
        "counts": dataclasses.asdict(counts),
        "versions": {
            "python": platform.python_version(),
            "sentencepiece": sentencepiece.__version__,
        },
    }
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    files.write_bytes(os.path.join(config.output_dir, REPORT_FILE), text.encode())
    pieces = "".join(f"{piece}\t{score:g}\n" for piece, score in tokenizer.scores())
    files.write_bytes(os.path.join(config.output_dir, "spm.vocab"), pieces.encode())
