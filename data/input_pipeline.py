"""From record files to batches: shuffled and endless to train, each example once to evaluate.

The order of the training examples is a function of the list of files, the seed and the shuffle
buffer alone, so a run that goes on after `skip_examples` sees what an unbroken one would.
B: batch, T: tokens, P: masked positions, n: records (n <= B).
"""

import tensorflow as tf

from data import dynamic_masking, length_windows, record_checks, record_reading
from data.records import LARGEST_INTEGER

FILES_AT_ONCE = 4  # Few: each of our files is a sample of all the text, passed over once by it.
PREFETCHED = 4  # Batches that are made ready while the device computes.
SHUFFLE_BUFFER = 20_000  # Records, unparsed: 70 MB at 512 tokens.
BATCH_FEATURES = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "next_sentence_labels",
)
GROUPS = 2**31 - 1  # Of files; without end, in effect.


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
    by_length=False,
    masking=None,
    part=(0, 1),
):
    """Makes the batches of pretraining or of its evaluation.

    Under `tf.distribute` give `batch_size` of all replicas together. Each worker takes one
    `part` of each batch, so one replica and several see the same examples in a step. It reads
    all the records, for it must shuffle as all do, and parses those of its part.

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
        by_length: for training, whether examples of like length share a batch, which is as long
            as they ask (`length_windows`).
        masking: dynamic_masking.DynamicMasking, by which a record gets other masks and
            another order each time it is read; None: those that it holds.
        part: (number, number of parts), which rows of each batch are made; B below is that
            of the part.

    Returns:
        A tf.data.Dataset of dicts: int32[B, T] `input_ids`, `input_mask`, `segment_ids`;
        int32[B, P] `masked_lm_positions`, `masked_lm_ids`; float32[B, P]
        `masked_lm_weights`; int32[B] `next_sentence_labels`; float32[B]
        `example_weights`, 0 for rows that only fill up. P is that of `masking`, where it is
        given. A bad record raises a tf.errors.OpError when it is met;
        `record_verification.describe_data_error` tells which file it is in.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: no file, a file with other lengths, or an argument out of range.
    """
    check_arguments(batch_size, seed, skip_examples, shuffle_buffer)
    if batch_size % part[1]:
        raise ValueError(
            f"`batch_size` must be divisible by the number of parts. Received: {batch_size} and "
            f"{part[1]} parts."
        )
    record_checks.check(
        files,
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        vocab_size=vocab_size,
    )
    window = batch_size * (length_windows.WINDOW if by_length else 1)
    begin = skip_examples - skip_examples % window if by_length else skip_examples

    def parse(numbers, serialized):
        parsed = record_reading.parse(serialized, max_seq_length, max_predictions_per_seq)
        check_ids(parsed, vocab_size)
        return dynamic_masking.draw_anew(parsed, numbers, masking) if masking else parsed

    if not training:
        batches = batched(record_reading.read(files).enumerate(), batch_size, parse, part)
        return batches.prefetch(PREFETCHED).with_options(reading_options())
    records = endless_records(files, seed, begin, shuffle_buffer).enumerate(begin)
    if by_length:
        windows = batched(records, window, parse)
        batches = length_windows.cut_by_length(
            windows, batch_size, seed=seed, first_window=begin // window, part=part
        ).skip(-((begin - skip_examples) // batch_size))
    else:
        batches = batched(records, batch_size, parse, part)
    # Told, workers need not ask one another at each step whether there is more.
    batches = batches.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return batches.prefetch(PREFETCHED).with_options(reading_options())


def batched(records, batch_size, parse, part=(0, 1)):
    """Batches numbered records and makes the examples of one part of each batch.

    Args:
        records: tf.data.Dataset of (int64[], string[]).
        batch_size: int; a last batch of fewer is filled up.
        parse: function of (int64[n], string[n]) that returns a dict of tensors [n, ...].
        part: (number, number of parts).
    """
    num_rows = batch_size // part[1]
    rows = slice(part[0] * num_rows, (part[0] + 1) * num_rows)

    def to_batch(numbers, serialized):
        return filled_batch(parse(numbers[rows], serialized[rows]), num_rows)

    return records.batch(batch_size).map(to_batch, num_parallel_calls=tf.data.AUTOTUNE)


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
    """Returns raw records without end, in an order drawn from the seed anew in each epoch.

    An epoch reads the files in groups of FILES_AT_ONCE, each mixed and shuffled by itself.
    So epochs and groups are skipped by arithmetic, and only in the group where training
    goes on are records read and dropped, unparsed, to bring its shuffle buffer where it was.

    Returns:
        A tf.data.Dataset of string[].
    """
    num_groups = -(-len(files) // FILES_AT_ONCE)  # In an epoch.
    first_group, num_dropped = 0, 0
    if skip_examples:
        first_group, num_dropped = position(files, seed, skip_examples)

    def group_records(group):  # int64[], counted on from epoch to epoch
        # Inside this function the seed is that of its own graph. Unset, it would be the
        # caller's `tf.random.set_seed`. tf.data takes it modulo 2**31 - 1, and 0 is no seed.
        tf.random.set_seed(1 + seed % (2**31 - 2))
        first_file = group % num_groups * FILES_AT_ONCE
        paths = file_order(files, seed, group // num_groups)[first_file:][:FILES_AT_ONCE]
        records = tf.data.Dataset.from_tensor_slices(paths).interleave(
            record_reading.read, cycle_length=FILES_AT_ONCE, num_parallel_calls=tf.data.AUTOTUNE
        )
        return records.shuffle(shuffle_buffer, seed=group)

    return tf.data.Dataset.range(first_group, GROUPS).flat_map(group_records).skip(num_dropped)


def position(files, seed, skip_examples):
    """Finds where the stream of training examples stands after `skip_examples`.

    Returns:
        (int, int): the group of files, counted on from epoch to epoch, and the examples
        that it has given.
    """
    num_examples = record_checks.count_examples(files)
    epoch, rest = divmod(skip_examples, sum(num_examples.values()))
    order = [path.decode() for path in file_order(files, seed, epoch).numpy()]
    groups = [order[i : i + FILES_AT_ONCE] for i in range(0, len(order), FILES_AT_ONCE)]
    sizes = [sum(num_examples[path] for path in group) for group in groups]
    index = 0
    while rest >= sizes[index]:
        rest -= sizes[index]
        index += 1
    return epoch * len(groups) + index, rest


def file_order(files, seed, epoch):
    """Returns the files, string[number of files], in the order of an epoch (int or int64[])."""
    key = tf.stack([tf.constant(seed, tf.int64), tf.cast(epoch, tf.int64)])
    with tf.device("CPU:0"):
        return tf.random.experimental.stateless_shuffle(files, key, alg="philox")


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
    """Returns options of every stream: the same for any number of replicas, and let go at once.

    Without the tuner, "AUTOTUNE" is the number of cores. Its thread sleeps for longer and longer,
    and what drops an iterator waits for it: seconds after every evaluation.
    """
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    return options
