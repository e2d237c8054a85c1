"""From record files to batches: shuffled and endless to train, each example once to evaluate.

The order of the training examples is a function of the files, the seed and the shuffle
buffer alone, so a run that goes on after `skip_examples` sees what an unbroken one would.
B: batch, T: tokens, P: masked positions, n: records (n <= B).
"""

import tensorflow as tf

from data import record_checks, record_reading
from data.records import LARGEST_INTEGER

FILES_AT_ONCE = 16  # Fixed, not tuned: the order of the examples depends on it.
SHUFFLE_BUFFER = 10_000  # Records, unparsed: 25 MB at 512 tokens.
BATCH_FEATURES = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
)
EPOCHS = 2**31 - 1  # Without end, in effect.


def pretraining_dataset(
    files,
    *,
    batch_size,
    max_seq_length,
    max_predictions_per_seq,
    training,
    seed=0,
    skip_examples=0,
    shuffle_buffer=SHUFFLE_BUFFER,
    vocab_size=LARGEST_INTEGER + 1,
):
    """Makes the batches of pretraining or of its evaluation.

    Under `tf.distribute` give `batch_size` of all replicas together and pass the dataset
    to `strategy.experimental_distribute_dataset`: it splits each batch, so one replica
    and several see the same examples in a step.

    Args:
        files: list of paths of record files, ours or the original's.
        batch_size: B, examples a batch, of all replicas together.
        max_seq_length: T of the records.
        max_predictions_per_seq: P of the records.
        training: True: repeats for ever; files and examples are shuffled anew in each epoch,
            and a batch may go over its end. False: the files' order, each example once;
            the last batch is filled up with rows of zeros, weights included.
        seed: int of 0 or more; the order of the training examples.
        skip_examples: for training, the examples consumed before.
        shuffle_buffer: records from which the next one is drawn.
        vocab_size: of the model; a record's id that is not less is an error while reading.

    Returns:
        A tf.data.Dataset of dicts: int32[B, T] `input_ids`, `input_mask`, `segment_ids`;
        int32[B, P] `masked_lm_positions`, `masked_lm_ids`; float32[B, P]
        `masked_lm_weights`; int32[B] `next_sentence_labels`; float32[B]
        `example_weights`, 0 for rows that only fill up. A bad record raises a
        tf.errors.OpError when it is met; `record_verification.describe_data_error` tells
        which file it is in.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: no file, a file with other lengths, or an argument out of range.
    """
    check_arguments(batch_size, seed, skip_examples, shuffle_buffer)
    record_checks.check(
        files,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        vocab_size=vocab_size,
    )
    if training:
        records = endless_records(files, seed, skip_examples, shuffle_buffer)
    else:
        records = record_reading.read(files)

    def to_batch(serialized):
        parsed = record_reading.parse(serialized, max_seq_length, max_predictions_per_seq)
        check_ids(parsed, vocab_size)
        return filled_batch(parsed, batch_size)

    batches = records.batch(batch_size, drop_remainder=training)
    batches = batches.map(to_batch, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE).with_options(reading_options())


def check_arguments(batch_size, seed, skip_examples, shuffle_buffer):
    """Raises ValueError unless each number is large enough."""
    smallest = {
        "batch_size": (batch_size, 1),
        "seed": (seed, 0),
        "skip_examples": (skip_examples, 0),
        "shuffle_buffer": (shuffle_buffer, 1),
    }
    for name, (value, least) in smallest.items():
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}. Received: {value}.")


def endless_records(files, seed, skip_examples, shuffle_buffer):
    """Returns raw records, epoch after epoch, each in an order drawn from (seed, epoch).

    Whole epochs are skipped by arithmetic; the rest of `skip_examples` is read and dropped
    after the shuffle, unparsed, so that the shuffle buffer is what it was.

    Returns:
        A tf.data.Dataset of string[].
    """
    first_epoch, num_dropped = 0, 0
    if skip_examples:
        first_epoch, num_dropped = divmod(skip_examples, record_checks.count_examples(files))

    def epoch_records(epoch):  # epoch: int64[]
        # Inside this function the seed is that of its own graph. Unset, it would be the
        # caller's `tf.random.set_seed`; 0 is no seed to tf.data.
        tf.random.set_seed(seed + 1)
        paths = tf.data.Dataset.from_tensor_slices(files).shuffle(len(files), seed=epoch)
        records = paths.interleave(
            record_reading.read, cycle_length=FILES_AT_ONCE, num_parallel_calls=tf.data.AUTOTUNE
        )
        return records.shuffle(shuffle_buffer, seed=epoch)

    return tf.data.Dataset.range(first_epoch, EPOCHS).flat_map(epoch_records).skip(num_dropped)


def check_ids(parsed, vocab_size):
    """Makes reading fail where a parsed batch holds an id that the model has no row for."""
    for name in ("input_ids", "masked_lm_ids"):
        words = f"`{name}` must lie in [0, {vocab_size}), the vocabulary."
        tf.debugging.assert_non_negative(parsed[name], words)
        tf.debugging.assert_less(parsed[name], tf.constant(vocab_size, tf.int64), words)


def filled_batch(parsed, batch_size):
    """Turns parsed records into a batch of the model's types, filled up with rows of zeros.

    Args:
        parsed: dict as `record_reading.parse` returns it, of n <= B rows.
        batch_size: B.

    Returns:
        The batch, as `pretraining_dataset` describes it.
    """
    num_missing = batch_size - tf.shape(parsed["input_ids"])[0]
    batch = {name: parsed[name] for name in BATCH_FEATURES}
    batch["next_sentence_labels"] = tf.squeeze(parsed["next_sentence_labels"], axis=1)  # [n]
    batch["example_weights"] = tf.ones_like(batch["next_sentence_labels"], tf.float32)  # [n]
    for name, values in batch.items():
        if values.dtype == tf.int64:
            values = tf.cast(values, tf.int32)
        filling = [[0, num_missing]] + [[0, 0]] * (values.shape.rank - 1)
        batch[name] = tf.ensure_shape(tf.pad(values, filling), [batch_size, *values.shape[1:]])
    return batch


def reading_options():
    """Returns options under which the stream is one and the same for any number of replicas."""
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
