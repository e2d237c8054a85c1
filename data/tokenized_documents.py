"""Documents as piece ids, with word starts, sentence offsets and a key for their randomness.

D: documents, S: sentences of one, M: pieces of all, V: pieces of the vocabulary.
"""

import dataclasses
import functools
import hashlib
import re

import numpy as np

from data import text_normalization

# Scripts that put no blanks between words: Han; kana; Thai, Lao, Burmese and Khmer.
UNSPACED_RANGES = (
    *text_normalization.CJK_RANGES,
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0xFF66, 0xFF9D),
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
)
UNSPACED = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in UNSPACED_RANGES) + "]+")
UNSPACED_WORDS = ("blanks", "pieces")
# Characters: segmented Chinese has 1.7 between blanks and signs on average, other Chinese 8.
LONGEST_MEAN_WORD = 4


@dataclasses.dataclass(frozen=True)
class Documents:
    """Some documents in one array of ids; those without any piece are left out.

    Attributes:
        ids: int32[M].
        starts_word: bool[M].
        offsets: D lists of S + 1 rising offsets: a document's sentences and its end.
        keys: D ints of 64 bits, by a document's text and its line in its file.
    """

    ids: np.ndarray
    starts_word: np.ndarray
    offsets: list[list[int]]
    keys: list[int]


def tokenize(documents, tokenizer, unspaced_words="pieces"):
    """Turns documents into ids.

    Args:
        documents: list of corpus.Document.
        tokenizer: a Tokenizer.
        unspaced_words: what a word is in scripts that put no blanks between words:
            "pieces": each piece; "blanks": what stands between the blanks of a text
            whose words were separated beforehand.

    Returns:
        Documents.
    """
    lines = [line for document in documents for line in document.lines]
    if unspaced_words == "blanks":
        ids, starts_word, places = encode_words(lines, tokenizer)
    else:
        ids, places = tokenizer.encode_lines(lines)
        is_unspaced = unspaced_pieces(tokenizer)[ids]
        starts_word = tokenizer.word_starts[ids] | is_unspaced
        starts_word[1:] |= is_unspaced[:-1]
    places, offsets, keys, start = places.tolist(), [], [], 0
    for document in documents:
        end = start + len(document.lines)
        sentences = sorted(set(places[start : end + 1]))  # Without those of no pieces.
        if len(sentences) > 1:
            offsets.append(sentences)
            keys.append(document_key(document))
        start = end
    return Documents(ids, starts_word, offsets, keys)


def document_key(document):
    """Returns 64 bits that depend on a document's text and its place in its file alone."""
    text = "\n".join([str(document.first_line), *document.lines])
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@functools.lru_cache(maxsize=2)
def unspaced_pieces(tokenizer):
    """Returns bool[V]: whether a piece has only characters of scripts without blanks."""
    texts = (piece.removeprefix("##").removeprefix("\u2581") for piece in tokenizer.pieces)
    return np.array([not text.isascii() and bool(UNSPACED.fullmatch(text)) for text in texts])


def encode_words(lines, tokenizer):
    """Turns lines whose words are separated by blanks in every script into ids.

    SentencePiece marks the blanks. A WordPiece vocabulary has no mark inside Chinese: its
    characters stand alone, and belong together here where no blank or sign comes between.

    Args:
        lines: list[str].
        tokenizer: a Tokenizer.

    Returns:
        (int32[M], bool[M], int64[len(lines) + 1]): ids, word starts, where lines start.
    """
    if tokenizer.kind == "sentencepiece":
        ids, places = tokenizer.encode_lines(lines)
        return ids, tokenizer.word_starts[ids], places
    runs = [text_normalization.split_at_blanks(line) for line in lines]
    ids, run_places = tokenizer.encode_lines([run for line in runs for run in line])
    is_unspaced = unspaced_pieces(tokenizer)[ids]
    goes_on = np.zeros(len(ids), bool)
    goes_on[1:] = is_unspaced[1:] & is_unspaced[:-1]
    goes_on[run_places[run_places < len(ids)]] = False
    places = run_places[np.cumsum([0, *map(len, runs)])]
    return ids, tokenizer.word_starts[ids] & ~goes_on, places


def mean_unspaced_run(lines):
    """Returns how many characters of scripts without blanks stand together on average.

    Args:
        lines: list[str], a sample of a text.

    Returns:
        float; 0 where there are none.
    """
    runs = [run for line in lines for run in UNSPACED.findall(line)]
    return sum(map(len, runs)) / max(1, len(runs))
