"""The tokenizers inside a TensorFlow graph, for models that are served: strings in, ids out.

They give the ids that those of `data.tokenization` give, from the same model and settings. A
graph that holds them needs tensorflow_text where it is loaded.

n: texts, M: pieces of all texts.
"""

import functools
import unicodedata

import numpy as np
import tensorflow as tf
import tensorflow_text

from data import graph_characters, graph_offsets, text_normalization
from data.wordpiece_tokenizer import CONTINUATION, LONGEST_WORD

LONGEST_CHARACTER = 4  # Bytes.


def of_tokenizer(tokenizer):
    """Returns the twin of a `data.tokenization` tokenizer."""
    kinds = {"sentencepiece": SentencePieceGraph, "wordpiece": WordPieceGraph}
    return kinds[tokenizer.kind](tokenizer)


class TokenizerGraph(tf.Module):
    """What the twins share. A text is UTF-8; bytes that are not are read as U+FFFD.

    Args:
        tokenizer: Tokenizer.
        null: str, what has the same effect as U+0000, which ends a text for some operations.

    Attributes:
        special_ids: dict of pad, unk, cls, sep, mask to int.
    """

    def __init__(self, tokenizer, null):
        super().__init__()
        roles = ("pad", "unk", "cls", "sep", "mask")
        self.special_ids = {role: getattr(tokenizer, f"{role}_id") for role in roles}
        self._null = null
        self._markers = {tokenizer.pieces[i]: i for i in sorted(tokenizer.special_ids)}
        self._marker_pattern = tokenizer.markers.pattern

    def encode(self, texts, allow_markers=False):
        """Turns texts into piece ids, as `Tokenizer.encode`.

        Args:
            texts: string[n].
            allow_markers: bool, whether "[MASK]" and the other special pieces in a text stand
                for themselves.

        Returns:
            RaggedTensor int32[n, (pieces)].
        """
        texts = self._without_nulls(texts)
        if not allow_markers:
            return self._encode(texts)
        parts = tensorflow_text.regex_split(texts, self._marker_pattern, self._marker_pattern)
        names, numbers = zip(*self._markers.items(), strict=True)
        is_name = parts.values[:, tf.newaxis] == tf.constant(names)  # bool[parts, 5]
        is_marker = tf.reduce_any(is_name, axis=1)
        markers = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tf.gather(numbers, tf.argmax(is_name, axis=1)), is_marker),
            tf.cast(is_marker, tf.int64),
        )
        others = self._encode(tf.where(is_marker, "", parts.values))
        ids = tf.concat([markers, others], axis=1)
        return tf.RaggedTensor.from_row_splits(
            ids.values, tf.gather(ids.row_splits, parts.row_splits)
        )

    def encode_with_offsets(self, texts):
        """Turns texts into piece ids and the characters they stand for.

        Args:
            texts: string[n].

        Returns:
            Three RaggedTensor int32[n, (pieces)]: ids, starts and ends, as of
            `Tokenizer.encode_with_offsets`.
        """
        ids, *bounds = self._encode_with_offsets(self._without_nulls(texts))
        return ids, *(ids.with_values(values) for values in bounds)

    def _without_nulls(self, texts):
        return tf.strings.regex_replace(texts, r"\x00", self._null)


class SentencePieceGraph(TokenizerGraph):
    """The twin of `data.sentencepiece_tokenizer`.

    Args:
        tokenizer: SentencePieceTokenizer.
    """

    def __init__(self, tokenizer):
        super().__init__(tokenizer, character_in_no_piece(tokenizer.pieces))
        self._settings = tokenizer.settings
        self._widths, self._table = tokenizer.replacement_widths, tokenizer.replacement_table
        parts = [tokenizer.replacements.get(piece, ()) for piece in tokenizer.pieces]
        self._joined = ["".join(of_piece) for of_piece in parts]
        self._before = np.zeros(self._table.shape, np.int64)  # Characters before each part.
        for number, of_piece in enumerate(parts):
            self._before[number, : len(of_piece)] = np.cumsum([0, *map(len, of_piece)])[:-1]
        self._model = tensorflow_text.SentencepieceTokenizer(tokenizer.model_bytes, tf.int32)

    def _normalize(self, characters):
        characters = graph_characters.collapse_blanks(characters)
        if not self._settings["keep_accents"]:
            characters = decomposition().apply(characters)
        if self._settings["lower"]:
            characters = graph_characters.with_final_sigmas(characters)
            characters = graph_characters.lower_case().apply(characters)
        return characters

    def _encode(self, texts):
        characters = self._normalize(graph_characters.of_texts(texts))
        texts = graph_characters.to_texts(characters, tf.size(texts, tf.int64))
        return self._replace(self._tokenize(texts, tf.int32)[0])[0]

    def _encode_with_offsets(self, texts):
        came = graph_characters.of_texts(texts)
        characters = self._normalize(came)
        is_apart = graph_characters.blanks().look_up(came.codes) == 1
        stretches = graph_offsets.stretches(came, characters.sources, is_apart)
        normal = graph_characters.to_texts(characters, tf.size(texts, tf.int64))
        ids, begins, ends = self._tokenize(normal, tf.int32)
        pieces, _, _ = self._tokenize(normal, tf.string)  # An unknown one's id does not tell it.
        surfaces = tf.strings.substr(
            tf.gather(normal, begins.value_rowids()), begins.values, (ends - begins).values
        )
        bounds = [graph_offsets.characters_before(characters, places) for places in (begins, ends)]
        replaced, whole, place = self._replace(ids)
        bounds = self._part_bounds(ids, pieces.values, surfaces, bounds, whole, place)
        rows = replaced.value_rowids()
        return replaced, *graph_offsets.covered(bounds, rows, characters, stretches)

    def _tokenize(self, texts, out_type):
        """Returns pieces or ids, and the first and last (exclusive) bytes that they cover."""
        self._model.out_type = out_type
        return self._model.tokenize_with_offsets(texts)

    def _part_bounds(self, ids, pieces, surfaces, bounds, whole, place):
        """Returns what the parts of pieces cover; `whole`, `place` as of `_replace`."""
        has_parts = tf.gather(self._widths, ids.values) > 1
        pieces = tf.where(has_parts, tf.gather(self._joined, ids.values), pieces)
        lengths = tf.cast(tf.strings.length(pieces, "UTF8_CHAR"), tf.int64)
        number = tf.cast(tf.gather(ids.values, whole), tf.int64)
        before = tf.gather_nd(self._before, tf.stack([number, place], axis=1))
        is_last = place + 1 == tf.gather(self._widths, number)
        after = tf.where(is_last, tf.gather(lengths, whole), tf.concat([before[1:], [0]], 0))
        of_whole = [tf.gather(values, whole) for values in (pieces, surfaces, *bounds)]
        return graph_offsets.part_bounds(*of_whole[:2], of_whole[2:], before, after)

    def _replace(self, ids):
        """Puts replacements into ids.

        Args:
            ids: RaggedTensor int32[n, (pieces)].

        Returns:
            RaggedTensor int32[n, (parts)], and of each part int64: which of the pieces it is
            of, and its place among that piece's parts.
        """
        widths = tf.gather(self._widths, ids.values)  # int64[M]
        ends = tf.concat([[np.int64(0)], tf.cumsum(widths)], 0)
        whole = tf.repeat(tf.range(tf.size(widths, tf.int64)), widths)
        place = tf.range(ends[-1]) - tf.gather(ends, whole)
        rows = tf.cast(tf.gather(ids.values, whole), tf.int64)
        values = tf.gather_nd(self._table, tf.stack([rows, place], axis=1))
        replaced = tf.RaggedTensor.from_row_splits(values, tf.gather(ends, ids.row_splits))
        return replaced, whole, place


class WordPieceGraph(TokenizerGraph):
    """The twin of `data.wordpiece_tokenizer`.

    Args:
        tokenizer: WordPieceTokenizer.
    """

    def __init__(self, tokenizer):
        super().__init__(tokenizer, "\ufffd")  # Dropped like it.
        lower, keep_accents = tokenizer.settings["lower"], tokenizer.settings["keep_accents"]
        self._lowers, self._drops_accents = lower, lower and not keep_accents
        pieces = tf.lookup.KeyValueTensorInitializer(
            tokenizer.pieces, np.arange(tokenizer.vocab_size)
        )
        self._unknown = tokenizer.pieces[tokenizer.unk_id]
        self._lengths = np.array([len(piece) for piece in tokenizer.pieces])
        self._lengths_inside = np.array(
            [len(piece.removeprefix(CONTINUATION)) for piece in tokenizer.pieces]
        )
        self._model = tensorflow_text.WordpieceTokenizer(
            tf.lookup.StaticHashTable(pieces, -1),
            CONTINUATION,
            max_bytes_per_word=LONGEST_WORD * LONGEST_CHARACTER,
            token_out_type=tf.int32,
            unknown_token=self._unknown,
        )

    def _basic(self, characters):
        """Returns the characters of words and signs, with blanks between them."""
        characters = cleaning().apply(characters)
        if self._lowers:
            characters = graph_characters.with_final_sigmas(characters)
        return finish(self._lowers, self._drops_accents).apply(characters)

    def _words(self, texts):
        """Returns the words and signs of texts: RaggedTensor string[n, (words)]."""
        characters = self._basic(graph_characters.of_texts(texts))
        return tf.strings.split(graph_characters.to_texts(characters, tf.size(texts, tf.int64)))

    def _pieces(self, words):
        """Returns the ids of each word's pieces, and the words' lengths in characters."""
        lengths = tf.strings.length(words.values, "UTF8_CHAR")
        known = tf.where(lengths > LONGEST_WORD, self._unknown, words.values)
        return self._model.tokenize(words.with_values(known)), lengths

    def _encode(self, texts):
        return self._pieces(self._words(texts))[0].merge_dims(1, 2)

    def _encode_with_offsets(self, texts):
        came = graph_characters.of_texts(texts)
        characters = self._basic(came)
        is_blank = graph_characters.blanks().look_up(characters.codes) == 1
        is_apart = separators().look_up(came.codes) == 1
        sources = characters.keep(~is_blank).sources
        starts, ends = graph_offsets.stretches(came, sources, is_apart)
        words = graph_characters.to_texts(characters, tf.size(texts, tf.int64))
        ids, lengths = self._pieces(tf.strings.split(words))
        of_words = ids.values  # RaggedTensor int32[words, (pieces)]
        is_first = tf.ragged.range(of_words.row_lengths()).values == 0
        tables = self._lengths, self._lengths_inside
        widths = tf.where(is_first, *(tf.gather(table, of_words.values) for table in tables))
        of_word = tf.cast(tf.gather(lengths, of_words.value_rowids()), tf.int64)
        # One piece after another, the pieces are all characters that are no blanks.
        after = tf.cumsum(tf.where(of_words.values == self.special_ids["unk"], of_word, widths))
        before = tf.concat([[np.int64(0)], after[:-1]], 0)[: tf.size(after)]
        return ids.merge_dims(1, 2), tf.gather(starts, before), tf.gather(ends, after - 1)


def character_in_no_piece(pieces):
    """Returns a character for private use, which SentencePiece's normalisation leaves alone."""
    used = set("".join(pieces))
    return next(c for c in map(chr, range(0xE000, 0xF8FF)) if c not in used)


@functools.cache
def decomposition():
    """Returns the Replacements of `text_normalization.normalize`, but for blanks and case.

    The marks that canonical order could move are just those that are dropped, so it has
    nothing to do.
    """

    def without_marks(character):
        decomposed = unicodedata.normalize("NFKD", character)
        return "".join(part for part in decomposed if not unicodedata.combining(part))

    return graph_characters.Replacements(without_marks)


@functools.cache
def cleaning():
    """Returns the Replacements that `text_normalization.basic_tokens` begins with."""

    def visible(character):
        if text_normalization.CONTROL_BLANKS.match(character):
            return ""
        return " " if character.isspace() else text_normalization.cleaned(character)

    return graph_characters.Replacements(visible)


@functools.cache
def separators():
    """Returns the Classes of what stands between the runs of `text_normalization`: 1, others 0."""
    is_control = text_normalization.CONTROL_BLANKS.match
    return graph_characters.Classes(lambda c: c.isspace() and not is_control(c))


@functools.cache
def finish(lowers, drops_accents):
    """Returns the Replacements that it ends with: case, accents, signs apart."""

    def finished(character):
        character = character.lower() if lowers else character
        if drops_accents:
            decomposed = unicodedata.normalize("NFD", character)
            character = "".join(c for c in decomposed if not text_normalization.is_accent(c))
        return "".join(map(text_normalization.with_signs_apart, character))

    return graph_characters.Replacements(finished)
