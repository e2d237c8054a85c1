"""SentencePiece as ALBERT uses it: the original's normalisation, its digit and comma rule.

V: pieces of the vocabulary, M: pieces of a list of lines.
"""

import itertools

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_pb2

from data import character_offsets, text_normalization
from data.tokenizer_base import Tokenizer

WORD_START = "\u2581"


class SentencePieceTokenizer(Tokenizer):
    """Pieces by a SentencePiece model; some of them are replaced by several others.

    A piece that ends in a digit and a comma is split, so that "2,013" and "2010," share
    their pieces with other numbers (tokenization.py: encode_pieces, from XLNet). Differs
    from the original: there a comparison of text with bytes leaves a stray word-start
    mark in a piece that has none; here a number of word-start marks is the number
    of words. And a special piece that the model could read in the text, because it
    was trained as a symbol of the text, is split into its characters.

    What replaces a piece depends on the piece alone, so it is found once.

    Attributes:
        replacements: dict of str to list of str, the pieces in the place of another.
        replacement_widths, replacement_table: int64[V], how many ids stand for each id, and
            int32[V, longest], which.

    Args:
        model_bytes: bytes of the model file.
        settings: dict of lower, keep_accents, digit_comma_split; all bool.

    Raises:
        ValueError: `model_bytes` is no SentencePiece model, or lacks a special piece.
    """

    kind = "sentencepiece"

    def __init__(self, model_bytes, settings):
        try:
            self._model = sentencepiece.SentencePieceProcessor(model_proto=model_bytes)
        except RuntimeError:
            raise ValueError(
                f"a SentencePiece model must be given. Received: {len(model_bytes)} bytes that "
                f"begin with {model_bytes[:20]!r}."
            ) from None
        pieces = self._model.id_to_piece(list(range(self._model.get_piece_size())))
        super().__init__(model_bytes, pieces, settings)
        self.replacements = self._find_replacements()
        self._id_replacements = {
            self._ids[piece]: self.pieces_to_ids(parts)
            for piece, parts in self.replacements.items()
            if len(parts) > 1
        }
        self.replacement_widths, self.replacement_table = self._find_replacement_table()

    def normalize(self, text):
        """Returns the text that the model is shown."""
        lower, keep_accents = self.settings["lower"], self.settings["keep_accents"]
        return text_normalization.normalize(text, lower=lower, keep_accents=keep_accents)

    def split(self, text):
        """Cuts text that is normalised already into pieces."""
        pieces = self._model.encode(text_normalization.without_surrogates(text), out_type=str)
        return [part for piece in pieces for part in self.replacements.get(piece, (piece,))]

    def scores(self):
        """Returns (piece, its log probability in nats) for each id."""
        scores = self._model.get_score(list(range(self.vocab_size)))
        return list(zip(self.pieces, scores, strict=True))

    def encode_lines(self, lines, num_threads=1):
        """Turns many lines into ids at once; the ids are those that `encode` gives.

        Args:
            lines: list[str].
            num_threads: int, threads that SentencePiece runs.

        Returns:
            (int32[M], int64[len(lines) + 1]): all ids, and the places where lines start.
        """
        texts = [self.normalize(line) for line in lines]
        lists = self._model.encode(texts, out_type=int, num_threads=num_threads)
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        ids = np.fromiter(itertools.chain.from_iterable(lists), np.int32, offsets[-1])
        return self._replace(ids, offsets)

    def encode_with_offsets(self, text):
        """As `Tokenizer.encode_with_offsets`; SentencePiece itself tells what a piece covers.

        Characters that the model takes for blanks, as U+200B, belong to no piece.
        """
        normalized = self.normalize(text)
        lower, keep_accents = self.settings["lower"], self.settings["keep_accents"]
        offsets = character_offsets.normalized(text, lower=lower, keep_accents=keep_accents)
        encoded = self._model.encode(normalized, out_type="serialized_proto")
        is_first = np.frombuffer(normalized.encode(), np.int8) >= -0x40  # Of a character's bytes.
        characters = np.concatenate([[0], np.cumsum(is_first)]).tolist()  # [bytes + 1]
        ids, bounds = [], []
        for piece in sentencepiece_pb2.SentencePieceText.FromString(encoded).pieces:
            begin, end = characters[piece.begin], characters[piece.end]
            parts = self.replacements.get(self.pieces[piece.id], (piece.piece,))
            ids += self._id_replacements.get(piece.id, (piece.id,))
            bounds += _part_bounds(parts, piece.surface, begin, end)
        bounds = np.array(bounds, np.int64).reshape(-1, 2)
        return ids, *character_offsets.covered(bounds, *offsets)

    def _replace(self, ids, offsets):
        """Puts replacements into the ids of many lines. Args and returns: as of `encode_lines`."""
        widths = self.replacement_widths[ids]  # int64[M]
        ends = np.concatenate([[0], np.cumsum(widths)])
        if ends[-1] == len(ids):  # A replacement is never a single piece.
            return ids, offsets
        columns = np.arange(ends[-1]) - np.repeat(ends[:-1], widths)
        return self.replacement_table[np.repeat(ids, widths), columns], ends[offsets]

    def _find_replacement_table(self):
        """Returns how many ids stand for each id, int64[V], and which, int32[V, longest]."""
        longest = max(map(len, self._id_replacements.values()), default=1)
        widths = np.ones(self.vocab_size, np.int64)
        table = np.repeat(np.arange(self.vocab_size, dtype=np.int32)[:, None], longest, axis=1)
        for number, parts in self._id_replacements.items():
            widths[number] = len(parts)
            table[number, : len(parts)] = parts
        return widths, table

    def _find_replacements(self):
        """Returns a dict from each piece that never stands as it is to the pieces in its place."""
        replacements = {}
        if self.settings["digit_comma_split"]:
            for piece in filter(_ends_in_digit_comma, self.pieces):
                replacements[piece] = self._without_digit_comma(piece)
        for number in self.special_ids - {self.unk_id}:
            # A control piece is never found in a text, but an unknown stretch can spell its name.
            piece = self.pieces[number]
            is_found = not self._model.is_control(number)
            replacements[piece] = list(piece) if is_found else [self.pieces[self.unk_id]]
        return replacements

    def _without_digit_comma(self, piece):
        """Cuts a piece that ends in digit and comma so that no part of it does."""
        parts = self._model.encode(piece[:-1].replace(WORD_START, " "), out_type=str)
        if not piece.startswith(WORD_START) and parts[0].startswith(WORD_START):
            first = parts[0].removeprefix(WORD_START)
            parts[:1] = [first] if first in self._ids else list(first)
        split = []
        for part in parts:
            split += self._without_digit_comma(part) if _ends_in_digit_comma(part) else [part]
        return [*split, ","]

    def _encode(self, text):
        ids = self._model.encode(self.normalize(text), out_type=int)
        return [part for number in ids for part in self._id_replacements.get(number, (number,))]

    def _starts_word(self, piece):
        return piece.startswith(WORD_START)

    def _join(self, ids):
        apart = dict.fromkeys(self.special_ids, WORD_START)
        pieces = zip(ids, self.ids_to_pieces(ids), strict=True)
        text = "".join(apart.get(number, "") + piece for number, piece in pieces)
        return text.replace(WORD_START, " ").strip()


def _part_bounds(parts, surface, begin, end):
    """Shares the characters [begin, end) that a piece covers among the parts it stands as.

    The mark of a word stands for one blank, the last before it, or for none. Where the
    model's own normalisation changed the characters, each part has them all.

    Args:
        parts: sequence of str, which make the piece.
        surface: str, the characters.
        begin, end: int, where they are.

    Returns:
        list of (begin, end).
    """
    piece = "".join(parts)
    marks = len(piece) - len(piece.lstrip(WORD_START))
    if not surface.endswith(piece[marks:]):
        return [(begin, end)] * len(parts)
    ends = np.cumsum([0, *map(len, parts)]) + end - len(piece)
    return list(itertools.pairwise(np.maximum(ends, begin).tolist()))


def _ends_in_digit_comma(piece):
    return len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()
