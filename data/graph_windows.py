"""Reads paragraphs through windows inside a TensorFlow graph, as `data.span_windows` does.

B: questions, n: windows, T: tokens of the longest. Ragged ids are RaggedTensor int32[B, (pieces)].
"""

import typing

import tensorflow as tf

from data import graph_features


class GraphWindows(typing.NamedTuple):
    """What decoding needs to know of n windows, as `span_windows.Windows`, padded to T.

    question_index: int64[n]; character_starts, character_ends: int32[n, T], -1 where no piece of
    the paragraph stands; is_max_context: bool[n, T].
    """

    question_index: tf.Tensor
    character_starts: tf.Tensor
    character_ends: tf.Tensor
    is_max_context: tf.Tensor


def make_windows(queries, paragraphs, special_ids, settings):
    """Lays out [CLS] question [SEP] a window of the paragraph [SEP].

    Args:
        queries: ragged ids; only the first `max_query_length` are read.
        paragraphs: (ids, starts, ends), ragged, of `TokenizerGraph.encode_with_offsets`.
        special_ids: dict of `graph_tokenization.TokenizerGraph`.
        settings: span_windows.WindowSettings.

    Returns:
        (dict of `input_ids`, `input_mask`, `segment_ids`, `p_mask`, int32[n, T]; GraphWindows).
    """
    kept = tf.minimum(queries.row_lengths(), settings.max_query_length)
    queries, (ids, starts, ends) = graph_features.first_pieces(queries, kept), paragraphs
    room = settings.max_seq_length - kept - 3  # int64[B]
    step = tf.minimum(room, settings.doc_stride)
    num_steps = tf.maximum(-((room - ids.row_lengths()) // step), 0)
    number = tf.ragged.range(num_steps + 1)
    question = number.value_rowids()  # int64[n]
    first = number.values * tf.gather(step, question)
    length = tf.minimum(tf.gather(ids.row_lengths(), question) - first, tf.gather(room, question))
    shown = graph_features.stretches(ids, question, first, length)
    queries, is_pair = tf.gather(queries, question), tf.ones_like(question, tf.bool)
    batch = graph_features.laid_out(queries, shown, is_pair, special_ids)
    place = tf.range(tf.shape(batch["input_ids"], tf.int64)[1])
    place -= queries.row_lengths()[:, tf.newaxis] + 2  # int64[n, T], in the window's paragraph.
    is_shown = (place >= 0) & (place < length[:, tf.newaxis])
    begin = tf.gather(ids.row_starts(), question) + first
    piece = tf.where(is_shown, begin[:, tf.newaxis] + place, 0)
    is_cls = tf.range(tf.shape(piece)[1]) == 0
    batch["p_mask"] = tf.cast(~(is_shown | is_cls), tf.int32)
    # Of no paragraph is anything shown, and of none is anything looked up.
    starts, ends = (
        tf.where(is_shown, tf.gather(tf.concat([bound.values, [0]], 0), piece), -1)
        for bound in (starts, ends)
    )
    ends = tf.where(is_shown, tf.maximum(ends, starts + 1), -1)  # A piece of no characters
    is_max = max_contexts(place, length, piece, is_shown)
    return batch, GraphWindows(question, starts, ends, is_max)


def max_contexts(place, length, piece, is_shown):
    """Says where no other window shows more on both sides of a piece, as `spans_with_contexts`.

    Args:
        place: int64[n, T], of a piece among those of its window.
        length: int64[n], how many there are.
        piece: int64[n, T], which one of all paragraphs it is.
        is_shown: bool[n, T], whether there is one.

    Returns:
        bool[n, T].
    """
    length = length[:, tf.newaxis]
    context = tf.cast(tf.minimum(place, length - 1 - place), tf.float64)
    context += 0.01 * tf.cast(length, tf.float64)
    window = tf.zeros_like(place) + tf.range(tf.shape(place, tf.int64)[0])[:, tf.newaxis]
    num_pieces = tf.maximum(tf.reduce_max(piece), 0) + 1
    of_shown = (tf.boolean_mask(values, is_shown) for values in (piece, context, window))
    piece_shown, context_shown, window_shown = of_shown
    best = tf.math.unsorted_segment_max(context_shown, piece_shown, num_pieces)
    is_best = context_shown == tf.gather(best, piece_shown)
    winner = tf.math.unsorted_segment_min(
        tf.boolean_mask(window_shown, is_best), tf.boolean_mask(piece_shown, is_best), num_pieces
    )
    return is_shown & (tf.gather(winner, piece) == window)
