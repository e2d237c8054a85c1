"""Record files of random examples for the tests that read and write records."""

import numpy as np
import tensorflow as tf

from data import metadata, records

T, P, V = 16, 4, 1000  # Tokens, masked positions, vocabulary.


def random_examples(num_examples, seed=0, max_seq_length=T, max_predictions_per_seq=P):
    """Returns sound examples; the first of `masked_lm_ids` numbers them: 0, 1, 2, ..."""
    rng = np.random.default_rng(seed)
    tokens, masked = (num_examples, max_seq_length), (num_examples, max_predictions_per_seq)
    examples = {
        "input_ids": rng.integers(0, V, tokens),
        "input_mask": np.ones(tokens, int),
        "segment_ids": rng.integers(0, 2, tokens),
        "token_boundary": rng.integers(0, 2, tokens),
        "masked_lm_positions": rng.integers(0, max_seq_length, masked),
        "masked_lm_ids": rng.integers(0, V, masked),
        "masked_lm_weights": rng.integers(0, 2, masked).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, num_examples),
    }
    examples["masked_lm_ids"][:, 0] = np.arange(num_examples)
    return examples


def write_shards(folder, num_examples, num_shards=1, with_metadata=False, **lengths):
    """Writes `random_examples` to `folder/train-<i>.tfrecord` and returns the paths."""
    files = [str(folder / f"train-{i}.tfrecord") for i in range(num_shards)]
    with records.ShardWriter(files) as writer:
        writer.write(records.serialize(random_examples(num_examples, **lengths)))
    if with_metadata:
        metadata.write(made_metadata(writer.shards))
    return files


def made_metadata(shards, **changes):
    """Returns the metadata of `random_examples`, with a few values changed."""
    values = {
        "settings": {"random_seed": 12345},
        "max_seq_length": T,
        "max_predictions_per_seq": P,
        "sentence_objective": "sop",
        "vocab_size": V,
        "tokenizer_sha256": "a" * 64,
        "counts": {"num_documents": 3},
        "shards": shards,
        "versions": {"numpy": np.__version__},
    }
    return metadata.Metadata(**{**values, **changes})


def original_record(row):
    """Serializes one example as create_pretraining_data.py:156-189 of the original does.

    Args:
        row: dict by feature of lists.
    """
    features = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=values))
        if name == "masked_lm_weights"
        else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        for name, values in row.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def write_raw(path, serialized):
    """Writes a list of bytes as one record file, without any metadata."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in serialized:
            writer.write(record)
    return str(path)


def flip_byte(path, offset):
    """Changes one byte of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))
