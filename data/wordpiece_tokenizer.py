"""WordPiece as BERT and the original have it: basic tokens, then the greedy longest match.

M: pieces of a list of lines.
"""

import functools
import itertools

import numpy as np

from data import character_offsets, text_normalization
from data.tokenizer_base import Tokenizer

CONTINUATION = "##"
WORD_START = "\u2581"  # SentencePiece's; no WordPiece has it.
LONGEST_WORD = 200  # Characters; a longer word is unknown (tokenization.py: WordpieceTokenizer).
LONGEST_CACHED_RUN = 32  # Characters; a line of Chinese is one run and does not come again.
NUM_CACHED_RUNS = 1 << 17


def read_vocabulary(text):
    """Reads the pieces of a `vocab.txt` (tokenization.py: load_vocab).

    The first column of a line is its piece, a blank line is the piece " ", and a
    repeated piece takes no id of its own.

    Args:
        text: str, what the file holds.

    Returns:
        list[str], pieces by id.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    return list(dict.fromkeys((line.split() or [" "])[0] for line in lines))


def longest_matches(word, ids, unknown):
    """Cuts a word into the longest pieces of a vocabulary, from its start.

    Args:
        word: str, without blanks.
        ids: dict, piece -> id; pieces inside a word begin with "##".
        unknown: str, the piece of a word that is too long or cannot be cut.

    Returns:
        list[str].
    """
    if len(word) > LONGEST_WORD:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        mark, end = CONTINUATION if start else "", len(word)
        while end > start and mark + word[start:end] not in ids:
            end -= 1
        if end == start:
            return [unknown]
        pieces.append(mark + word[start:end])
        start = end
    return pieces


class WordPieceTokenizer(Tokenizer):
    """Pieces by a list of them.

    Brackets stand alone before pieces are looked up, so no text gives a special piece.

    Args:
        model_bytes: bytes of a `vocab.txt`, UTF-8.
        settings: dict of lower and keep_accents, bool; others are of no use here.

    Raises:
        ValueError: `model_bytes` is not such a list, or lacks a special piece.
    """

    kind = "wordpiece"

    def __init__(self, model_bytes, settings):
        try:
            pieces = read_vocabulary(model_bytes.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"a word list must be UTF-8. Received: {error}.") from None
        if any(p.startswith(WORD_START) for p in pieces) and not any(
            p.startswith(CONTINUATION) for p in pieces
        ):
            raise ValueError(
                f"a WordPiece list must mark continuations with `{CONTINUATION}`. Received: the "
                f"list of a SentencePiece model, with `{WORD_START}`. Give its `.model` file."
            )
        super().__init__(model_bytes, pieces, {**settings, "digit_comma_split": False})
        self._cached_run_ids = functools.lru_cache(NUM_CACHED_RUNS)(self._run_ids)

    def normalize(self, text):
        """Returns the words and signs of the text, with a blank between them."""
        runs = text_normalization.split_at_blanks(text)
        return " ".join(token for run in runs for token in self._basic_tokens(run))

    def split(self, text):
        """Cuts text that is normalised already into pieces."""
        return [piece for word in text.split() for piece in self._word_pieces(word)]

    def encode_lines(self, lines, num_threads=1):
        """Turns many lines into ids; the ids are those that `encode` gives.

        Args:
            lines: list[str].
            num_threads: int, of no effect: Python's threads would not be faster.

        Returns:
            (int32[M], int64[len(lines) + 1]): all ids, and the places where lines start.
        """
        lists = [self._encode(line) for line in lines]
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return np.fromiter(itertools.chain.from_iterable(lists), np.int32, offsets[-1]), offsets

    def encode_with_offsets(self, text):
        """As `Tokenizer.encode_with_offsets`; an unknown word covers all its characters."""
        lower, keep_accents = self.settings["lower"], self.settings["keep_accents"]
        words = character_offsets.basic_tokens(text, lower=lower, keep_accents=keep_accents)
        unknown = self.pieces[self.unk_id]
        ids, firsts, lasts = [], [], []
        for word, starts, ends in words:
            place = 0
            for piece in self._word_pieces(word):
                length = len(piece.removeprefix(CONTINUATION)) if place else len(piece)
                length = len(word) if piece == unknown else length
                ids.append(self._ids[piece])
                firsts.append(starts[place])
                place += length
                lasts.append(ends[place - 1])
        return ids, np.array(firsts, np.int32), np.array(lasts, np.int32)

    def _encode(self, text):
        ids = []
        for run in text_normalization.split_at_blanks(text):
            is_cached = len(run) <= LONGEST_CACHED_RUN
            ids += self._cached_run_ids(run) if is_cached else self._run_ids(run)
        return ids

    def _run_ids(self, run):
        words = self._basic_tokens(run)
        return [self._ids[piece] for word in words for piece in self._word_pieces(word)]

    def _word_pieces(self, word):
        return longest_matches(word, self._ids, self.pieces[self.unk_id])

    def _basic_tokens(self, run):
        lower, keep_accents = self.settings["lower"], self.settings["keep_accents"]
        return text_normalization.basic_tokens(run, lower=lower, keep_accents=keep_accents)

    def _starts_word(self, piece):
        return not piece.startswith(CONTINUATION)

    def _join(self, ids):
        return " ".join(self.ids_to_pieces(ids)).replace(f" {CONTINUATION}", "")
