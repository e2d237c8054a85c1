"""Masks records anew, and swaps their segments anew, each time that they are read.

TensorFlow, for a whole batch at once inside tf.data. The masks are distributed as those of
`masking`, which are made once. n: records, T: tokens, P: masked positions, V: vocabulary.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from data import counted_randomness, graph_ngrams, masking
from data.graph_rows import between, placed, row_sums

STARTS, NEXT_STARTS = 1, 2  # Bits of a piece's marks.


@dataclasses.dataclass(frozen=True)
class DynamicMasking:
    """How records are masked anew.

    Attributes:
        policy: masking.MaskPolicy; its `max_predictions`, P, need not be the records'.
        swaps: bool, whether the order of the segments is drawn anew: for "sop" alone.
        marks: int32[V], of `word_marks`, or None: the records' `token_boundary` says where
            words start. The original's does not always (create_pretraining_data.py:393-407).
        seed: int of 0 or more, the run's.
    """

    policy: masking.MaskPolicy
    swaps: bool
    marks: np.ndarray | None
    seed: int


def word_marks(word_starts, is_unspaced):
    """Returns marks of pieces, int32[V]: STARTS where a word begins, NEXT_STARTS where one ends.

    Args:
        word_starts: bool[V], of a Tokenizer.
        is_unspaced: bool[V], whether each is a word, as in scripts without blanks.
    """
    return STARTS * (word_starts | is_unspaced).astype(np.int32) + NEXT_STARTS * is_unspaced


def draw_anew(parsed, numbers, settings):
    """Replaces the masks, and the order of the segments, of some records.

    Args:
        parsed: dict as `record_reading.parse` returns it, of records masked or not.
        numbers: int64[n], which record of the endless stream each is, so that a record
            gets other masks in another epoch.
        settings: DynamicMasking.

    Returns:
        The same features but `token_boundary`, integers as int32 or int64; those of masked
        positions have the P of the policy.
    """
    names = ("input_ids", "input_mask", "segment_ids", "token_boundary")
    ids, input_mask, segment_ids, starts_word = (tf.cast(parsed[n], tf.int32) for n in names)
    ids = with_labels(ids, parsed)
    if settings.marks is not None:
        marks = tf.gather(tf.constant(settings.marks, tf.int32), ids)
        is_after = tf.pad(marks[:, :-1], [[0, 0], [1, 0]]) // NEXT_STARTS
        starts_word = tf.maximum(marks & STARTS, is_after)
    length, in_second = row_sums(input_mask), row_sums(segment_ids)
    middle, end = length - in_second - 1, length - 1  # int32[n, 1], where the [SEP] stand.
    streams = counted_randomness.streams(settings.seed, numbers)
    labels = parsed["next_sentence_labels"]  # int64[n, 1]
    if settings.swaps:
        drawn = tf.cast(counted_randomness.below(2, next(streams), [0]), tf.int64)
        is_swapped = tf.cast(drawn != labels, tf.int32)
        ids, starts_word, middle = swap(ids, starts_word, middle, end, is_swapped)
        labels, segment_ids = drawn, between(middle, end + 1, ids.shape[1])
    policy = settings.policy
    words = graph_ngrams.find_words(starts_word, middle, end, policy, streams)
    taken = graph_ngrams.take(words, budgets(length, policy), policy, streams)
    kept = {"input_mask": input_mask, "segment_ids": segment_ids, "next_sentence_labels": labels}
    return kept | mask(ids, words, taken, policy, streams)


def replaced(ids, positions, values, weights):
    """Returns int32[n, T] ids with int32[n, P] values at the positions whose weight is not 0."""
    change = (values - tf.gather(ids, positions, batch_dims=1)) * tf.cast(weights > 0, tf.int32)
    return ids + placed(change, positions, ids.shape[1])


def with_labels(ids, parsed):
    """Returns int32[n, T] ids with the labels of parsed records put back in place of masks."""
    names = ("masked_lm_positions", "masked_lm_ids")
    positions, labels = (tf.cast(parsed[name], tf.int32) for name in names)
    return replaced(ids, positions, labels, parsed["masked_lm_weights"])


def swap(ids, starts_word, middle, end, is_swapped):
    """Puts the second segment before the first.

    Args:
        ids, starts_word: int32[n, T]; `starts_word` is 0 or 1.
        middle, end: int32[n, 1], where the [SEP] stand.
        is_swapped: int32[n, 1], 1 for the examples where it is done.

    Returns:
        (ids, starts_word, middle) of the examples as they are then.
    """
    num_columns = ids.shape[1]
    new_middle = middle + is_swapped * (end - 2 * middle)
    # Into the first segment pieces come from behind the old [SEP], into the second from the front.
    shift = between(0, new_middle, num_columns) * middle
    shift -= between(new_middle, end, num_columns) * new_middle
    shift += between(new_middle - 1, new_middle + 1, num_columns) * (middle - new_middle)
    sources = tf.range(num_columns) + is_swapped * shift
    both = tf.gather(2 * ids + starts_word, sources, batch_dims=1)  # One gathering for two.
    return tf.bitwise.right_shift(both, 1), both & 1, new_middle


def budgets(length, policy):
    """Returns how many pieces to mask, int32[n, 1], as `masking.num_to_predict`.

    Args:
        length: int32[n, 1], pieces of an example, special ones included.
        policy: masking.MaskPolicy.
    """
    if not policy.masked_lm_prob:
        return tf.zeros_like(length)
    wanted = tf.round(tf.cast(length, tf.float64) * policy.masked_lm_prob)  # Halves to even.
    return tf.clip_by_value(tf.cast(wanted, tf.int32), 1, policy.max_predictions)


def mask(ids, words, taken, policy, streams):
    """Puts [MASK], the same piece or a random one in place of words, as `masking.replace`.

    Args:
        ids: int32[n, T].
        words: graph_ngrams.Words.
        taken: int32[n, T], 1 for the words to mask, of P pieces together at most.
        policy: masking.MaskPolicy.
        streams: iterator, of `counted_randomness.streams`.

    Returns:
        dict of input_ids int32[n, T], int32[n, P] masked_lm_positions (rising) and
        masked_lm_ids, float32[n, P] masked_lm_weights; all 0 beyond the masked ones.
    """
    is_masked = tf.gather(taken, words.of_token, batch_dims=1)  # int32[n, T]
    count = tf.cumsum(is_masked, axis=1)
    columns = tf.range(ids.shape[1])
    positions = placed(columns * is_masked, count - is_masked, policy.max_predictions)
    is_used = tf.cast(tf.range(policy.max_predictions) < count[:, -1:], tf.int32)
    labels = tf.gather(ids, positions, batch_dims=1) * is_used
    unit = positions
    if policy.replacement_unit == "ngram":
        word = tf.gather(words.of_token, positions, batch_dims=1)
        unit = tf.gather(words.ngram, word, batch_dims=1)
    draws = counted_randomness.uniform(next(streams), unit)  # float32[n, P]
    choice = counted_randomness.below(len(policy.ordinary_ids), next(streams), positions)
    others = tf.gather(tf.constant(policy.ordinary_ids, tf.int32), choice)
    others = tf.where(draws < masking.RANDOM, labels, others)
    others = tf.where(draws < masking.KEPT, policy.mask_id, others)
    return {
        "input_ids": replaced(ids, positions, others, is_used),
        "masked_lm_positions": positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": tf.cast(is_used, tf.float32),
    }
