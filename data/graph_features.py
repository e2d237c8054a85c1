"""Lays pieces out as sequences inside a TensorFlow graph, as `data.sequence_pairs` does.

n: sequences, T: tokens. Ragged ids are RaggedTensor int32[n, (pieces)].
"""

import numpy as np
import tensorflow as tf

from data import race

BLANKS = "[" + "".join(rf"\x{{{code:x}}}" for code in range(0x3001) if chr(code).isspace()) + "]"
OPTION = "\ufdd0"  # No character: nothing else that stands in a question.


def single_or_pair(first, second, special_ids, max_seq_length):
    """Lays out [CLS] A [SEP] or [CLS] A [SEP] B [SEP], as `data.classification` does.

    Args:
        first, second: ragged ids of A and B; where B has none, A stands alone.
        special_ids: dict of `graph_tokenization.TokenizerGraph`.
        max_seq_length: int; of a pair, whichever text is longer is cut at its end.

    Returns:
        dict of `input_ids`, `input_mask`, `segment_ids`, int32[n, T].
    """
    lengths_a, lengths_b = first.row_lengths(), second.row_lengths()
    is_pair = lengths_b > 0
    room = max_seq_length - 3
    kept_a = tf.minimum(lengths_a, tf.maximum(room - lengths_b, (room + 1) // 2))
    kept_b = tf.minimum(lengths_b, room - kept_a)
    kept_a = tf.where(is_pair, kept_a, tf.minimum(lengths_a, max_seq_length - 2))
    return laid_out(first_pieces(first, kept_a), first_pieces(second, kept_b), is_pair, special_ids)


def in_windows(first, second, special_ids, max_seq_length):
    """Lays out what is too long as several sequences, as `data.classification` does.

    Args: as of `single_or_pair`.

    Returns:
        (dict, as of `single_or_pair`; int64[windows], whose text each sequence is).
    """
    lengths_a, lengths_b = first.row_lengths(), second.row_lengths()
    is_pair = lengths_b > 0
    room = max_seq_length - tf.where(is_pair, np.int64(3), np.int64(2))
    fits = lengths_a + lengths_b <= room
    kept_b = tf.where(fits, lengths_b, tf.minimum(lengths_b, room // 2))
    kept_a = tf.minimum(lengths_a, room - kept_b)
    stride = tf.maximum((room - kept_b) // 2, 1)
    number = tf.ragged.range(1 - (-(lengths_a - kept_a) // stride))
    row = number.value_rowids()
    begins = tf.minimum(number.values * tf.gather(stride, row), tf.gather(lengths_a - kept_a, row))
    first = stretches(first, row, begins, tf.gather(kept_a, row))
    second = tf.gather(first_pieces(second, kept_b), row)
    return laid_out(first, second, tf.gather(is_pair, row), special_ids), row


def stretches(ids, rows, begins, lengths):
    """Takes stretches out of rows of ragged ids: int64 each, one for each stretch."""
    begins = tf.gather(ids.row_starts(), rows) + begins
    places = tf.ragged.range(begins, begins + lengths)
    return places.with_values(tf.gather(ids.values, places.values))


def laid_out(first, second, is_pair, special_ids, is_there=None):
    """Puts special pieces around ragged ids, and pads.

    Args:
        first, second: ragged ids of A and B, short enough.
        is_pair: bool[n], whether B and its [SEP] come behind A.
        special_ids: as of `single_or_pair`.
        is_there: bool[n], False for a sequence that is left empty; None: all are there.

    Returns:
        dict, as of `single_or_pair`.
    """
    is_there = tf.ones_like(is_pair) if is_there is None else is_there
    cls, middle = (pieces_where(is_there, special_ids[role]) for role in ("cls", "sep"))
    end = pieces_where(is_pair & is_there, special_ids["sep"])
    input_ids = tf.concat([cls, first, middle, second, end], axis=1)
    num_first = first.row_lengths() + 2  # [CLS] and [SEP] among them.
    lengths = input_ids.row_lengths()
    longest = tf.maximum(tf.reduce_max(lengths), 1)
    mask = tf.sequence_mask(lengths, longest, tf.int32)
    return {
        "input_ids": input_ids.to_tensor(shape=tf.stack([-1, longest])),
        "input_mask": mask,
        "segment_ids": mask * (1 - tf.sequence_mask(num_first, longest, tf.int32)),
    }


def pieces_where(is_there, piece):
    """Returns ragged ids: one piece in rows where bool[n] is True, none in others."""
    lengths = tf.cast(is_there, tf.int64)
    return tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(lengths)], piece), lengths)


def first_pieces(ids, lengths):
    """Keeps the first pieces of each row of ragged ids: as many as int64[n] says."""
    place = tf.ragged.range(ids.row_lengths()).values
    is_kept = place < tf.repeat(lengths, ids.row_lengths())
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(ids.values, is_kept), lengths)


def last_pieces(ids, lengths):
    """Keeps the last pieces of each row."""
    place = tf.ragged.range(ids.row_lengths()).values
    is_kept = place >= tf.repeat(ids.row_lengths() - lengths, ids.row_lengths())
    return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(ids.values, is_kept), lengths)


def endings(questions, options):
    """Puts options into the blanks of questions, or behind them, as `race.ending`.

    Args:
        questions: string[n].
        options: string[n, C].

    Returns:
        (string[n * C], string[n * C], bool[n]): questions with their options; with the options
        behind them, blanks and all; whether a question has a blank.
    """
    num_choices = tf.shape(options)[1]
    questions = tf.repeat(questions, num_choices)  # string[n * C]
    left = tf.strings.join([questions, tf.reshape(options, [-1])], " ")
    questions, options = stripped(questions), stripped(tf.reshape(options, [-1]))
    filled = tf.strings.regex_replace(questions, race.BLANK.pattern, OPTION)
    behind = tf.strings.join([questions, options], " ")
    parts = tf.strings.split(filled, OPTION)
    # The option goes before each part but the first.
    place = tf.ragged.range(parts.row_lengths()).values
    before = tf.where(place > 0, tf.repeat(options, parts.row_lengths()), "")
    filled = tf.strings.reduce_join(
        parts.with_values(tf.strings.join([before, parts.values])), axis=1
    )
    has_blank = parts.row_lengths() > 1
    return tf.where(has_blank, filled, behind), left, has_blank[::num_choices]


def told_apart(filled, behind, is_there, has_blank, room):
    """Puts options behind their question where those in its blanks would be cut off.

    As `multiple_choice.tokenize_endings`: where some options differ in nothing that is kept.

    Args:
        filled, behind: ragged ids of n * C endings, of `endings`.
        is_there: bool[n, C], False for an option that a question lacks.
        has_blank: bool[n].
        room: int, pieces that are kept, the last ones.

    Returns:
        ragged ids of n * C endings.
    """
    num_questions, num_choices = tf.unstack(tf.shape(is_there))

    def is_same(ids):
        dense = ids.to_tensor(-1)
        rows = tf.reshape(dense, [num_questions, num_choices, tf.shape(dense)[1]])
        return tf.reduce_all(rows[:, :, tf.newaxis] == rows[:, tf.newaxis], axis=-1)

    kept = last_pieces(filled, tf.minimum(filled.row_lengths(), room))
    is_lost = is_same(kept) & ~is_same(filled)  # bool[n, C, C]
    is_lost &= is_there[:, :, tf.newaxis] & is_there[:, tf.newaxis]
    is_hidden = has_blank & tf.reduce_any(is_lost, axis=[1, 2])
    number = tf.range(filled.nrows()) + tf.where(
        tf.repeat(is_hidden, num_choices), filled.nrows(), np.int64(0)
    )
    return tf.gather(tf.concat([filled, behind], axis=0), number)


def stripped(texts):
    """Does `str.strip`: string[n] to string[n]."""
    return tf.strings.regex_replace(texts, rf"\A{BLANKS}+|{BLANKS}+\z", "")


def choices(contexts, endings, is_there, special_ids, lengths):
    """Lays out [CLS] context [SEP] question option [SEP], as `data.multiple_choice` does.

    Args:
        contexts: ragged ids of n contexts.
        endings: ragged ids of n * C endings.
        is_there: bool[n, C], False for an option that a question lacks.
        special_ids: as of `single_or_pair`.
        lengths: (max_seq_length, max_qa_length); an ending keeps its last pieces, and the
            context its first.

    Returns:
        dict of `input_ids`, `input_mask`, `segment_ids`, int32[n, C, T], and `choice_mask`,
        float32[n, C].
    """
    max_seq_length, max_qa_length = lengths
    num_choices = tf.shape(is_there)[1]
    flat = tf.reshape(is_there, [-1])
    contexts = tf.gather(contexts, tf.repeat(tf.range(contexts.nrows()), num_choices))
    kept_b = tf.minimum(endings.row_lengths(), min(max_qa_length, max_seq_length - 3))
    kept_b = tf.where(flat, kept_b, 0)
    kept_a = tf.where(flat, tf.minimum(contexts.row_lengths(), max_seq_length - 3 - kept_b), 0)
    made = laid_out(
        first_pieces(contexts, kept_a), last_pieces(endings, kept_b), flat, special_ids, flat
    )
    made = {
        name: tf.reshape(values, [-1, num_choices, tf.shape(values)[1]])
        for name, values in made.items()
    }
    return {**made, "choice_mask": tf.cast(is_there, tf.float32)}
