"""Lays pieces out as sequences inside a TensorFlow graph, as `data.sequence_pairs` does.

n: sequences, T: tokens. Ragged ids are RaggedTensor int32[n, (pieces)].
"""

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
        string[n, C].
    """
    num_choices = tf.shape(options)[1]
    questions = tf.repeat(stripped(questions), num_choices)  # string[n * C]
    options = stripped(tf.reshape(options, [-1]))
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
    return tf.reshape(tf.where(has_blank, filled, behind), [-1, num_choices])


def stripped(texts):
    """Does `str.strip`: string[n] to string[n]."""
    return tf.strings.regex_replace(texts, rf"\A{BLANKS}+|{BLANKS}+\z", "")


def choices(contexts, endings, is_there, special_ids, lengths):
    """Lays out [CLS] context [SEP] question option [SEP], as `data.multiple_choice` does.

    But for one thing: an option whose blank is cut off is not put behind its question here.

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
