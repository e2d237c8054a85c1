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

from data import graph_characters, text_normalization
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
        texts = tf.strings.regex_replace(texts, r"\x00", self._null)
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


class SentencePieceGraph(TokenizerGraph):
    """The twin of `data.sentencepiece_tokenizer`.

    Args:
        tokenizer: SentencePieceTokenizer.
    """

    def __init__(self, tokenizer):
        super().__init__(tokenizer, character_in_no_piece(tokenizer.pieces))
        self._settings = tokenizer.settings
        self._widths, self._table = tokenizer.replacement_widths, tokenizer.replacement_table
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
        return self._replace(self._model.tokenize(texts))

    def _replace(self, ids):
        """Puts replacements into the ids: RaggedTensor int32[n, (pieces)] to another."""
        widths = tf.gather(self._widths, ids.values)  # int64[M]
        ends = tf.concat([[np.int64(0)], tf.cumsum(widths)], 0)
        place = tf.range(ends[-1]) - tf.repeat(ends[:-1], widths)
        rows = tf.cast(tf.repeat(ids.values, widths), tf.int64)
        values = tf.gather_nd(self._table, tf.stack([rows, place], axis=1))
        return tf.RaggedTensor.from_row_splits(values, tf.gather(ends, ids.row_splits))


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
        self._model = tensorflow_text.WordpieceTokenizer(
            tf.lookup.StaticHashTable(pieces, -1),
            CONTINUATION,
            max_bytes_per_word=LONGEST_WORD * LONGEST_CHARACTER,
            token_out_type=tf.int32,
            unknown_token=self._unknown,
        )

    def _words(self, texts):
        """Returns the words and signs of texts: RaggedTensor string[n, (words)]."""
        characters = cleaning().apply(graph_characters.of_texts(texts))
        if self._lowers:
            characters = graph_characters.with_final_sigmas(characters)
        characters = finish(self._lowers, self._drops_accents).apply(characters)
        return tf.strings.split(graph_characters.to_texts(characters, tf.size(texts, tf.int64)))

    def _encode(self, texts):
        words = self._words(texts)
        is_long = tf.strings.length(words.values, "UTF8_CHAR") > LONGEST_WORD
        words = words.with_values(tf.where(is_long, self._unknown, words.values))
        return self._model.tokenize(words).merge_dims(1, 2)


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
def finish(lowers, drops_accents):
    """Returns the Replacements that it ends with: case, accents, signs apart."""

    def finished(character):
        character = character.lower() if lowers else character
        if drops_accents:
            decomposed = unicodedata.normalize("NFD", character)
            character = "".join(c for c in decomposed if not text_normalization.is_accent(c))
        return "".join(map(text_normalization.with_signs_apart, character))

    return graph_characters.Replacements(finished)
