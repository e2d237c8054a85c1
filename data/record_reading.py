"""Reads pretraining records back: a batch of them, a file's lengths, their number.

The records of the original are read like ours. T: tokens, P: masked positions, n: records.
"""

import re

import tensorflow as tf
from google.protobuf.message import DecodeError

from data.records import FEATURES, FLOAT_FEATURES, MASKED_FEATURES, TOKEN_FEATURES

READ_BUFFER_BYTES = 1 << 20  # A request to remote storage is dear.
COUNTED_AT_ONCE = 1024  # Records; seven times as fast as one by one.


def read(files):
    """Returns the dataset of the raw records (string[]) of one file or several, in order."""
    return tf.data.TFRecordDataset(files, buffer_size=READ_BUFFER_BYTES)


def parse(serialized, max_seq_length, max_predictions_per_seq):
    """Parses a batch of records; one of other lengths is an InvalidArgumentError.

    Parsing the batch at once takes a third of the time of parsing one by one.

    Args:
        serialized: string[n].

    Returns:
        A dict by FEATURES of int64[n, T] or [n, P] (float32 for the weights) and, for
        `next_sentence_labels`, int64[n, 1].
    """
    lengths = feature_lengths(max_seq_length, max_predictions_per_seq)
    types = {name: tf.float32 if name in FLOAT_FEATURES else tf.int64 for name in FEATURES}
    spec = {name: tf.io.FixedLenFeature([lengths[name]], types[name]) for name in FEATURES}
    return tf.io.parse_example(serialized, spec)


def feature_lengths(max_seq_length, max_predictions_per_seq):
    """Returns the number of values of each feature, by name."""
    return {
        **dict.fromkeys(TOKEN_FEATURES, max_seq_length),
        **dict.fromkeys(MASKED_FEATURES, max_predictions_per_seq),
        "next_sentence_labels": 1,
    }


def stored_lengths(record):
    """Returns the numbers of values that a record holds, by feature; {} if it is no example.

    Args:
        record: bytes.
    """
    try:
        features = tf.train.Example.FromString(record).features.feature
    except DecodeError:
        return {}
    return {
        name: len(feature.float_list.value if name in FLOAT_FEATURES else feature.int64_list.value)
        for name, feature in features.items()
    }


def file_lengths(path):
    """Reads the lengths that a file's records have from its first record.

    Args:
        path: a record file.

    Returns:
        (max_seq_length, max_predictions_per_seq).

    Raises:
        ValueError: the file holds no record, or the first is no pretraining example.
    """
    try:
        first = next(read(path).take(1).as_numpy_iterator(), None)
    except tf.errors.DataLossError as error:
        raise ValueError(f"{path} must hold TFRecords. Received: {reason(error)}.") from error
    if first is None:
        raise ValueError(f"{path} must hold records. Received: an empty file.")
    lengths = stored_lengths(first)
    max_seq_length = lengths.get(TOKEN_FEATURES[0], 0)
    max_predictions = lengths.get(MASKED_FEATURES[0], 0)
    expected = feature_lengths(max_seq_length, max_predictions)
    if {name: lengths.get(name, 0) for name in FEATURES} != expected or not max_seq_length:
        raise ValueError(
            f"{path} must hold pretraining examples with the features {FEATURES}. Received: "
            f"a first record with the lengths {lengths}."
        )
    return max_seq_length, max_predictions


def count(path):
    """Counts the records of a file by reading it once."""
    return int(
        read(path)
        .batch(COUNTED_AT_ONCE)
        .reduce(tf.constant(0, tf.int64), lambda total, records: total + tf.size(records, tf.int64))
    )


def reason(error):
    """Returns what a TensorFlow error says, without the names of graph nodes."""
    return re.sub(r"\{\{.*?\}\} *|\[Op:.*", "", error.message, flags=re.DOTALL).strip()
