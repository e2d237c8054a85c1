"""Reads every record of files and names the bad ones.

T: tokens, P: masked positions, n: records.
"""

import numpy as np
import tensorflow as tf

from data import metadata, record_reading
from data.records import LARGEST_INTEGER

BLOCK = 256  # Records read and parsed at once.


def is_binary(values):
    return (values == 0) | (values == 1)


def is_in_text(positions, input_mask, weights):
    """Says whether masked positions lie on real pieces: bool[n, P]; fillers have weight 0."""
    is_inside = (positions >= 0) & (positions < input_mask.shape[1])
    on_piece = np.take_along_axis(input_mask, np.where(is_inside, positions, 0), axis=1) == 1
    return is_inside & (on_piece | (weights == 0))


# What each record must have, and a function of n parsed records and the vocabulary's size
# that says where it holds: bool[n, length].
RULES = (
    ("`input_ids` in the vocabulary", lambda x, v: (x["input_ids"] >= 0) & (x["input_ids"] < v)),
    (
        "`masked_lm_ids` in the vocabulary",
        lambda x, v: (x["masked_lm_ids"] >= 0) & (x["masked_lm_ids"] < v),
    ),
    ("0 or 1 as `input_mask`", lambda x, v: is_binary(x["input_mask"])),
    ("0 or 1 as `segment_ids`", lambda x, v: is_binary(x["segment_ids"])),
    ("0 or 1 as `token_boundary`", lambda x, v: is_binary(x["token_boundary"])),
    ("0 or 1 as `next_sentence_labels`", lambda x, v: is_binary(x["next_sentence_labels"])),
    ("0 or 1 as `masked_lm_weights`", lambda x, v: is_binary(x["masked_lm_weights"])),
    (
        "`masked_lm_positions` inside the text",
        lambda x, v: is_in_text(x["masked_lm_positions"], x["input_mask"], x["masked_lm_weights"]),
    ),
)


def verify(files, vocab_size=LARGEST_INTEGER + 1):
    """Reads every record and finds the files that hold a bad one, or not as many as they should.

    Args:
        files: list of paths.
        vocab_size: ids must be less; also less than a file's own, where its metadata says it.

    Returns:
        A list of (path, problem), one for each bad file, with the first problem in it.
        Records are numbered from 0.

    Raises:
        ValueError: a folder's `metadata.json` is malformed or does not list a file.
    """
    problems = (
        (path, file_problem(path, known, vocab_size))
        for path, known in zip(files, metadata.read(files), strict=True)
    )
    return [(path, problem) for path, problem in problems if problem]


def describe_data_error(files, error, vocab_size=LARGEST_INTEGER + 1):
    """Says which file made reading fail, by verifying them; TensorFlow's error names none.

    Args:
        files: list of the record files that were being read.
        error: the tf.errors.OpError that reading raised.
        vocab_size: the model's.

    Returns:
        A sentence; where every file is sound now, with the error's own words.
    """
    for path, known in zip(files, metadata.read(files), strict=True):
        problem = file_problem(path, known, vocab_size)
        if problem:
            return f"{path} must hold sound records. Received: {problem}. Create the data again."
    return f"Reading records failed, though all are sound: {record_reading.reason(error)}"


def file_problem(path, known, vocab_size):
    """Returns the first problem of a file, or None.

    Args:
        path: a record file.
        known: its Metadata or None; without one, the first record's lengths count.
        vocab_size: as of `verify`.
    """
    if not tf.io.gfile.exists(path):
        return "no such file"
    try:
        lengths = known_lengths(known) if known else record_reading.file_lengths(path)
    except ValueError as error:
        return str(error)
    if known:
        vocab_size = min(vocab_size, known.vocab_size)
    num_records = 0
    for block, damage in blocks(path):
        problem = block_problem(block, lengths, vocab_size)
        if problem:
            index, words = problem
            return f"record {num_records + index} {words}"
        num_records += len(block)
        if damage:
            return f"record {num_records} cannot be read: {damage}"
    expected = known.shard(path)["num_examples"] if known else num_records
    if num_records != expected:
        return f"{num_records} records where {metadata.FILE_NAME} says {expected}"
    return None


def known_lengths(known):
    return known.max_seq_length, known.max_predictions_per_seq


def blocks(path):
    """Yields (list of up to BLOCK records, None), and at damage (the records before it, reason)."""
    num_records = 0
    try:
        for block in record_reading.read(path).batch(BLOCK).as_numpy_iterator():
            yield block.tolist(), None
            num_records += len(block)
    except tf.errors.OpError as error:
        damage = record_reading.reason(error)
    else:
        return
    sound = []
    try:
        for record in record_reading.read(path).skip(num_records).as_numpy_iterator():
            sound.append(record)
    except tf.errors.OpError:
        yield sound, damage


def block_problem(block, lengths, vocab_size):
    """Finds the first bad record of a block.

    Args:
        block: list of n serialized examples.
        lengths: (max_seq_length, max_predictions_per_seq).
        vocab_size: every id must be less.

    Returns:
        (index, what is wrong), or None.
    """
    if not block:
        return None
    try:
        examples = record_reading.parse(tf.constant(block), *lengths)
    except tf.errors.InvalidArgumentError:
        return unparsed_record(block, lengths)
    examples = {name: values.numpy() for name, values in examples.items()}
    for words, rule in RULES:
        is_good = rule(examples, vocab_size).all(axis=1)  # bool[n]
        if not is_good.all():
            return int(np.argmin(is_good)), f"must have {words}"
    return None


def unparsed_record(block, lengths):
    """Returns the first record of a block that does not parse, and what it holds instead."""
    for index, record in enumerate(block):
        try:
            record_reading.parse(tf.constant([record]), *lengths)
        except tf.errors.InvalidArgumentError:
            wanted = record_reading.feature_lengths(*lengths)
            stored = record_reading.stored_lengths(record)
            differing = {n: stored.get(n, 0) for n in wanted if stored.get(n, 0) != wanted[n]}
            return index, f"must have the lengths {wanted}; it has {differing or 'other types'}"
    raise AssertionError("a block that does not parse must hold a record that does not")
