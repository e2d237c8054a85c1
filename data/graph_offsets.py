"""Which characters of a text stand behind its pieces, inside a TensorFlow graph.

As `data.character_offsets` and the tokenizers' `encode_with_offsets` find them on the host.

n: texts, K: characters of all texts as they came, N: those that they became, M: pieces of all.
"""

import tensorflow as tf

from data import graph_characters

WORD_STARTS = "^\u2581+"


def stretches(came, sources, is_apart):
    """Shares the characters of texts among those they became, as `character_offsets.stretches`.

    Args:
        came: graph_characters.Characters of `of_texts`.
        sources: int64[N], of what they became.
        is_apart: bool[K], which characters stand between words.

    Returns:
        (int32[N], int32[N]): where in its text the stretch begins that a character stands for,
        and where it ends (exclusive).
    """
    places = tf.range(tf.size(came.codes, tf.int64))
    text_starts = tf.searchsorted(came.rows, came.rows, out_type=tf.int64)
    num_made = tf.math.unsorted_segment_sum(tf.ones_like(sources), sources, tf.size(places))
    is_first = num_made > 0
    is_new = (
        is_first
        | is_apart
        | graph_characters.shifted(is_apart)
        | ~graph_characters.continues(came.rows)
    )
    stretch = tf.cumsum(tf.cast(is_new, tf.int64)) - 1
    is_owned = is_first | (graph_characters.marks().look_up(came.codes) == 1)
    reach = tf.where(is_owned, places - text_starts + 1, 0)
    ends = tf.math.unsorted_segment_max(reach, stretch, tf.size(places))
    bounds = places - text_starts, tf.gather(ends, stretch)
    return tuple(tf.cast(tf.gather(bound, sources), tf.int32) for bound in bounds)


def characters_before(characters, places):
    """Turns places in UTF-8 into places among characters.

    Args:
        characters: graph_characters.Characters of n texts.
        places: RaggedTensor int32[n, (pieces)], bytes before a place in its text.

    Returns:
        int64[M], how many of the text's characters begin before it.
    """
    codes = characters.codes
    num_bytes = 1 + sum(tf.cast(codes > last, tf.int64) for last in (0x7F, 0x7FF, 0xFFFF))
    starts = tf.cumsum(num_bytes, exclusive=True)  # int64[N], in all texts together.
    num_texts = places.nrows()
    text_bytes = tf.math.unsorted_segment_sum(num_bytes, characters.rows, num_texts)
    text_starts = tf.gather(tf.cumsum(text_bytes, exclusive=True), places.value_rowids())
    found = tf.searchsorted(starts, text_starts + tf.cast(places.values, tf.int64))
    before = tf.searchsorted(characters.rows, places.value_rowids(), out_type=tf.int64)
    return tf.cast(found, tf.int64) - before


def part_bounds(pieces, surfaces, bounds, before, after):
    """Shares what pieces cover among the parts they stand as, as SentencePieceTokenizer does.

    Args:
        pieces: string[M], which the parts make.
        surfaces: string[M], the text that they cover.
        bounds: (int64[M], int64[M]), the characters that they cover.
        before, after: int64[M], characters of the piece before this part of it, and up to its
            end.

    Returns:
        (int64[M], int64[M]): the characters that the parts cover.
    """
    begin, end = bounds
    visible = tf.strings.regex_replace(pieces, WORD_STARTS, "")
    num_bytes = tf.strings.length(visible)
    place = tf.maximum(tf.strings.length(surfaces) - num_bytes, 0)
    is_alike = tf.strings.substr(surfaces, place, num_bytes) == visible
    start = end - tf.cast(tf.strings.length(pieces, "UTF8_CHAR"), tf.int64)
    shared = (tf.maximum(start + edge, begin) for edge in (before, after))
    return tuple(
        tf.where(is_alike, part, whole) for part, whole in zip(shared, bounds, strict=True)
    )


def covered(bounds, rows, characters, stretches):
    """Finds what pieces cover in texts from what they cover after normalisation.

    Args:
        bounds: (int64[M], int64[M]), as of `character_offsets.covered`, in their own texts.
        rows: int64[M], whose text each piece is in.
        characters: graph_characters.Characters after normalisation.
        stretches: (int32[N], int32[N]), theirs, of `stretches`.

    Returns:
        (int32[M], int32[M]), as of `character_offsets.covered`.
    """
    text_starts, text_ends = (
        tf.searchsorted(characters.rows, rows, side, out_type=tf.int64)
        for side in ("left", "right")
    )
    begin, end = (text_starts + bound for bound in bounds)
    starts, ends = (tf.concat([values, [0]], 0) for values in stretches)  # For no characters.
    last = tf.where(text_ends > text_starts, tf.gather(ends, tf.maximum(text_ends - 1, 0)), 0)
    after = tf.where(begin < text_ends, tf.gather(starts, begin), last)
    return after, tf.where(end > begin, tf.gather(ends, tf.maximum(end - 1, 0)), after)
