"""Reads raw text: one sentence a line, a blank line between documents.

The text is read in blocks of a bounded size that end where a document ends, so
memory does not grow with a file. Paths may be local or remote (`gs://`); a file
whose name ends in `.gz` is unpacked. No TensorFlow for local files.
"""

import dataclasses
import glob
import gzip
import io
import os
import re
import zlib

from data.files import is_remote

BLOCK_BYTES = 1 << 19  # Some 110,000 pieces of English: 220 sequences of 512.
LONG_LINE_CHARACTERS = 2_000  # Longer than nearly any sentence: a paragraph or worse.
NUM_PLACES_KEPT = 10  # Places of bad bytes named in a report.
UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UP_TO_LAST_BLANK_LINE = re.compile(rb".*\n[ \t\r\f\v]*\n", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Document:
    """A run of lines without a blank one among them.

    `lines` are stripped and never empty; `first_line` is the number of the first
    of them in its file, from 1.
    """

    lines: list[str]
    first_line: int


@dataclasses.dataclass(frozen=True)
class Block:
    """Whole documents of one file as bytes. `first_line` counts from 1."""

    path: str
    first_line: int
    data: bytes


@dataclasses.dataclass
class CorpusCounts:
    """What was met in the text. `places` names the first lines with bad bytes."""

    num_bytes: int = 0
    num_documents: int = 0
    num_lines: int = 0  # Blank ones apart.
    num_long_lines: int = 0
    num_bad_bytes: int = 0
    num_cut_documents: int = 0  # Cut because they did not fit into a block.
    places: list[str] = dataclasses.field(default_factory=list)

    def add(self, other):
        """Adds the counts of another part of the text."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        del self.places[NUM_PLACES_KEPT:]


def expand_patterns(patterns):
    """Lists the files that a comma-separated list of paths and glob patterns names.

    The result is sorted and without repetitions, so that the order in which files
    are named has no effect.

    Args:
        patterns: str, such as "a.txt,books/*.txt,gs://bucket/*.txt".

    Returns:
        list[str] of paths.

    Raises:
        FileNotFoundError: a path or pattern matches no file.
        ValueError: `patterns` names nothing.
    """
    paths = set()
    names = [name.strip() for name in patterns.split(",") if name.strip()]
    if not names:
        raise ValueError(f"a file or pattern must be given. Received: {patterns!r}.")
    for name in names:
        if is_remote(name):
            import tensorflow as tf

            found = tf.io.gfile.glob(name)
        else:
            name = os.path.expanduser(name)
            found = [name] if os.path.isfile(name) else glob.glob(name, recursive=True)
            found = [path for path in found if os.path.isfile(path)]
        if not found:
            raise FileNotFoundError(f"no file matches `{name}`.")
        paths.update(found)
    return sorted(paths)


def open_text(path):
    """Opens a file for reading bytes: local or remote, packed (`.gz`) or not."""
    packed = path.endswith(".gz")
    if not is_remote(path):
        return gzip.open(path, "rb") if packed else open(path, "rb")
    import tensorflow as tf

    file = tf.io.gfile.GFile(path, "rb")
    return gzip.GzipFile(fileobj=file) if packed else file


def num_text_bytes(path):
    """Counts the bytes of text in a file; a packed file is read for it."""
    with open_text(path) as file:
        if path.endswith(".gz"):
            return sum(len(data) for data in iter(lambda: _read(file, path, BLOCK_BYTES), b""))
        if is_remote(path):
            return file.size()
        return file.seek(0, io.SEEK_END)


def num_mark_bytes(path):
    """Returns how many bytes of a file are a byte order mark, which is no text: 3 or 0."""
    with open_text(path) as file:
        return len(UTF8_MARK) if _read(file, path, len(UTF8_MARK)) == UTF8_MARK else 0


def _read(file, path, num_bytes):
    """Reads some bytes; damage in a packed file becomes an error that names the file."""
    try:
        return file.read(num_bytes)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"`{path}` is not a whole gzip file: {error}.") from error


def _without_mark(data, path):
    """Takes the byte order mark off the first bytes of a file."""
    if data.startswith(UTF16_MARKS):
        raise ValueError(
            f"text must be UTF-8. Received: UTF-16, `{path}`. `iconv -f UTF-16 -t UTF-8` mends it."
        )
    return data.removeprefix(UTF8_MARK)


def _place_to_cut(buffer, block_bytes):
    """Returns where a document that is too long is cut: a line's end, else a blank."""
    for mark in (b"\n", b" "):
        end = buffer.rfind(mark, 0, block_bytes) + 1
        if end:
            return end
    end = block_bytes
    while buffer[end] & 0xC0 == 0x80:  # Inside a character.
        end -= 1
    return end


def read_blocks(path, counts, block_bytes=BLOCK_BYTES):
    """Yields a file in blocks of whole documents, each shorter than three `block_bytes`.

    A document that would be longer is cut at the end of a line and counted; at least
    `block_bytes` of it follow the cut, so no single sentence is left over.

    Args:
        path: str.
        counts: CorpusCounts; `num_bytes` and `num_cut_documents` grow.
        block_bytes: int, bytes read at a time.

    Yields:
        Block.

    Raises:
        ValueError: the file is UTF-16, or is named `.gz` and is not a whole gzip file.
    """
    with open_text(path) as file:
        rest, first_line = _without_mark(_read(file, path, block_bytes), path), 1
        counts.num_bytes += len(rest)
        while data := _read(file, path, block_bytes):
            counts.num_bytes += len(data)
            rest += data
            match = UP_TO_LAST_BLANK_LINE.match(rest)
            if match or len(rest) >= 2 * block_bytes:
                end = match.end() if match else _place_to_cut(rest, block_bytes)
                counts.num_cut_documents += not match
                yield Block(path, first_line, rest[:end])
                first_line += rest.count(b"\n", 0, end)
                rest = rest[end:]
        if rest:
            yield Block(path, first_line, rest)


def _decode(block, counts, fail_on_bad_bytes):
    """Decodes UTF-8; bad bytes become U+FFFD and are counted with their places."""
    try:
        return block.data.decode("utf-8")
    except UnicodeDecodeError:
        lines = block.data.split(b"\n")
    for number, line in enumerate(lines, block.first_line):
        decoded = line.decode("utf-8", "replace")
        num_bad = decoded.count("\ufffd") - line.count("\ufffd".encode())
        if num_bad and fail_on_bad_bytes:
            raise ValueError(
                f"text must be UTF-8. Received: {line[:80]!r}, {block.path} line {number}."
            )
        if num_bad and len(counts.places) < NUM_PLACES_KEPT:
            counts.places.append(f"{block.path} line {number}")
        counts.num_bad_bytes += num_bad
    return block.data.decode("utf-8", "replace")


def documents_of(block, counts, fail_on_bad_bytes=False):
    """Splits a block of a file into its documents.

    Args:
        block: Block.
        counts: CorpusCounts, all of which grow but those of `read_blocks`.
        fail_on_bad_bytes: bool, whether bytes that are not UTF-8 are an error.

    Returns:
        list[Document].

    Raises:
        ValueError: there are bytes that are not UTF-8 and `fail_on_bad_bytes`.
    """
    documents, lines = [], []
    text = _decode(block, counts, fail_on_bad_bytes)
    for number, line in enumerate(text.split("\n") + [""], block.first_line):
        line = line.strip()
        if line:
            lines.append(line)
        elif lines:
            documents.append(Document(lines, number - len(lines)))
            lines = []
    counts.num_documents += len(documents)
    lengths = [len(line) for document in documents for line in document.lines]
    counts.num_lines += len(lengths)
    counts.num_long_lines += sum(length > LONG_LINE_CHARACTERS for length in lengths)
    return documents


def read_documents(path, counts=None, fail_on_bad_bytes=False):
    """Yields the documents of a file, one after the other.

    Args:
        path: str, a local or remote file.
        counts: CorpusCounts to add to, or None.
        fail_on_bad_bytes: bool, whether bytes that are not UTF-8 are an error.

    Yields:
        Document.

    Raises:
        ValueError: as `read_blocks` and `documents_of`.
    """
    counts = CorpusCounts() if counts is None else counts
    for block in read_blocks(path, counts):
        yield from documents_of(block, counts, fail_on_bad_bytes)
