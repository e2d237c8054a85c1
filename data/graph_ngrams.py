"""Cuts texts into n-grams of whole words and takes some of them, as `ngrams`, inside a graph.

Sorting is dear there, so n-grams are taken by random keys and histograms of these. What is
known of words stands in as many columns as there are tokens, by a word's number in its example.
n: examples, T: tokens.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from data import counted_randomness, ngrams
from data.graph_rows import between, placed, row_sums

BIN_BITS = 7  # Of a histogram's bins; two histograms tell 16,384 keys apart.
NUM_BINS = 1 << BIN_BITS
NO_KEY = 2**30  # Larger than any key.
LEAST_FAVOR = 0.1  # Of a length that would come out too often; for budgets of an n-gram or two.


@dataclasses.dataclass(frozen=True)
class Words:
    """The words of n examples, by their numbers from 0. There are T - 2 at most.

    Attributes:
        of_token: int32[n, T], the word of each piece of text; T - 1, which is none, on
            special pieces and padding.
        num_pieces: int32[n, T]; 0 where there is no such word.
        ngram: int32[n, T], the number of the n-gram that each belongs to, from 1.
    """

    of_token: tf.Tensor
    num_pieces: tf.Tensor
    ngram: tf.Tensor


def find_words(starts_word, middle, end, policy, streams):
    """Finds the words of examples, and cuts each segment into n-grams of random lengths.

    Args:
        starts_word: int32[n, T], 0 or 1; a segment's first piece starts a word in any case.
        middle, end: int32[n, 1], where the [SEP] stand; the same for a single segment.
        policy: masking.MaskPolicy.
        streams: iterator, of `counted_randomness.streams`.

    Returns:
        Words.
    """
    num_columns = starts_word.shape[1]
    in_first, in_second = between(0, middle, num_columns), between(middle, end, num_columns)
    is_text = in_first + in_second
    starts = is_text
    if policy.whole_words:
        columns = tf.range(num_columns)
        starts_segment = tf.cast((columns == 1) | (columns == middle + 1), tf.int32)
        starts *= tf.maximum(starts_word, starts_segment)
    of_token = (tf.cumsum(starts, axis=1) - 1) * is_text + (num_columns - 1) * (1 - is_text)
    num_pieces = placed(is_text, of_token, num_columns)
    num_words = tf.concat([row_sums(starts * in_first), row_sums(starts * in_second)], axis=1)
    return Words(of_token, num_pieces, cut(num_words, num_columns, policy, streams))


def cut(num_words, num_columns, policy, streams):
    """Cuts the words of two segments into n-grams, none of which is part of both.

    Args:
        num_words: int32[n, 2], of each segment.
        num_columns: int, T.
        policy, streams: as of `find_words`.

    Returns:
        int32[n, T], the number of the n-gram that each word belongs to, from 1.
    """
    num_first, num_second = tf.split(num_words, 2, axis=1)
    columns = tf.range(num_columns)
    # As many lengths are drawn for a segment as it has words, so the first ones are enough.
    in_second = tf.cast(columns >= num_first, tf.int32)
    length = draw_lengths(num_words, in_second, policy, streams)
    start = tf.cumsum(length, axis=1, exclusive=True)  # In words.
    start += in_second * (num_first - row_sums(length * (1 - in_second)))
    is_within = tf.cast(start < num_first + in_second * num_second, tf.int32)
    return tf.cumsum(placed(is_within, start, num_columns), axis=1)


def draw_lengths(num_words, in_second, policy, streams):
    """Draws lengths of n-grams by `ngrams.length_tables`.

    Args:
        num_words, policy, streams: as of `cut`.
        in_second: int32[n, T], 1 for those of the second segment.

    Returns:
        int32[n, T], in words.
    """
    num_columns = in_second.shape[1]
    columns = tf.range(num_columns)
    draws = counted_randomness.uniform(next(streams), columns)
    first_draws = counted_randomness.uniform(next(streams), [0, 1])  # float32[n, 2]
    is_second = tf.cast(in_second, tf.float32)
    length, first_lengths = tf.ones_like(in_second), tf.ones_like(num_words)
    tables = ngrams.length_tables(policy.ngram, policy.favor_shorter_ngram, num_columns)
    for shown, drawn in zip(*(table.T[:-1] for table in tables), strict=True):
        limits = tf.gather(tf.constant(drawn, tf.float32), num_words)  # float32[n, 2]
        limit = limits[:, :1] + is_second * (limits[:, 1:] - limits[:, :1])
        length += tf.cast(draws >= limit, tf.int32)
        limits = tf.gather(tf.constant(shown, tf.float32), num_words)
        first_lengths += tf.cast(first_draws >= limits, tf.int32)
    starts = tf.cast(columns == 0, tf.int32), tf.cast(columns == num_words[:, :1], tf.int32)
    for i, is_start in enumerate(starts):
        length += is_start * (first_lengths[:, i : i + 1] - length)
    return length


def take(words, room, policy, streams):
    """Takes n-grams in random order until the budget is used up, of the last one some words.

    Whole n-grams are taken up to the one that the budget cuts. From there on words are taken
    one by one, in the same order, where they fit.

    Args:
        words: Words.
        room: int32[n, 1], pieces to take.
        policy, streams: as of `find_words`.

    Returns:
        int32[n, T], 1 for the words taken.
    """
    keys = draw_keys(words, room, policy, next(streams))
    high, low = tf.bitwise.right_shift(keys, BIN_BITS), keys & (NUM_BINS - 1)
    num_high, filled = bins_that_fit(high, words.num_pieces, room)
    room -= filled
    is_cut = tf.cast(high == num_high, tf.int32)
    num_low, filled = bins_that_fit(low, words.num_pieces * is_cut, room)
    room -= filled
    taken = tf.cast(keys < num_high * NUM_BINS + num_low, tf.int32)
    taken *= tf.minimum(words.num_pieces, 1)
    return fill(taken, keys, words.num_pieces, room)


def draw_keys(words, room, policy, stream):
    """Draws the order in which n-grams are taken: int32[n, T], the key of each word's n-gram.

    In an even order the lengths accepted would not quite be as p(n): with a mean length of m
    the budget cuts an n-gram of l words with probability l p(l) / m, and leaves it l words with
    (p(l) + p(l+1) + ...) / m. So of the M n-grams that are taken as many more, or fewer, must
    be of l words. `ngrams.take` has another remedy.

    Args:
        words, room, policy: as of `take`.
        stream: uint32[n, 1], of `counted_randomness.streams`.
    """
    num_columns = words.ngram.shape[1]
    num_words = placed(tf.minimum(words.num_pieces, 1), words.ngram, num_columns)  # By n-gram.
    share = room / tf.maximum(1, row_sums(words.num_pieces))  # float64[n, 1]
    num_taken = tf.cast(share, tf.float32) * tf.cast(words.ngram[:, -1:], tf.float32)
    wanted = ngrams.probabilities(policy.ngram, policy.favor_shorter_ngram)
    at_least = np.cumsum(wanted[::-1])[::-1]
    lengths = np.arange(1, policy.ngram + 1)
    missing = (lengths - at_least / wanted) / (wanted @ lengths)  # As shares of p(l).
    steps = np.diff(missing, prepend=0)
    missing = sum(
        step * tf.cast(num_words >= length, tf.float32)
        for length, step in zip(lengths, steps, strict=True)
    )  # float32[n, T]
    keys = counted_randomness.uniform(stream, tf.range(num_columns))
    keys /= tf.maximum(LEAST_FAVOR, 1 + missing / tf.maximum(1.0, num_taken))
    largest = NUM_BINS * NUM_BINS
    keys = tf.minimum(tf.cast(keys * largest, tf.int32), largest - 1)
    return tf.gather(keys, words.ngram, batch_dims=1)


def bins_that_fit(bins, num_pieces, room):
    """Finds how many bins, from the first on, have no more pieces than there is room for.

    Args:
        bins: int32[n, T], the bin of each word.
        num_pieces: int32[n, T], of each word.
        room: int32[n, 1], pieces.

    Returns:
        (int32[n, 1], int32[n, 1]): the number of bins, the pieces in them.
    """
    filled = tf.cumsum(placed(num_pieces, bins, NUM_BINS), axis=1)
    fits = tf.cast(filled <= room, tf.int32)
    return row_sums(fits), tf.reduce_max(filled * fits, axis=1, keepdims=True)


def fill(taken, keys, num_pieces, room):
    """Takes words by rising key while they fit.

    Args:
        taken: int32[n, T], 1 for the words taken before.
        keys, num_pieces: int32[n, T], of the words.
        room: int32[n, 1], pieces left.

    Returns:
        int32[n, T], 1 for the words taken.
    """
    columns = tf.range(keys.shape[1])

    def without(is_out, keys):
        return tf.maximum(keys, tf.cast(is_out, tf.int32) * NO_KEY)

    def is_any_left(keys, room, taken):
        return tf.reduce_any(keys < NO_KEY)

    def take_one(keys, room, taken):
        best = tf.argmin(keys, axis=1, output_type=tf.int32)[:, tf.newaxis]  # int32[n, 1]
        is_best = (columns == best) & (keys < NO_KEY)
        now_taken = tf.cast(is_best, tf.int32)
        room -= row_sums(now_taken * num_pieces)
        return without(is_best | (num_pieces > room), keys), room, taken + now_taken

    keys = without((taken > 0) | (num_pieces == 0) | (num_pieces > room), keys)
    return tf.while_loop(is_any_left, take_one, (keys, room, taken))[2]
