"""From features to batches of a few static lengths, so that a short text costs what it is.

Examples of like length share a batch, which is padded to the next of `static_lengths.LENGTHS`:
T differs from batch to batch. The order of the training batches is a function of the features,
the seed and the batch size alone, so a run that goes on after `skip_batches` sees what an
unbroken one would.

B: batch, C: choices, T: tokens, n: examples, S: sequences of a batch (B * C).
"""

import itertools

import numpy as np
import tensorflow as tf

from data import input_pipeline, static_lengths

# Batches that are sorted by length together, after a full shuffle. With 50 as elsewhere, rows of a
# batch are so alike that CoLA's scores spread and fall (docs/fine_tuning.md); 8 pad 5 % more.
WINDOW = 8
FILLERS = {"p_mask": 1}  # What padding holds; 0 in all others.


def num_batches(num_examples, batch_size):
    """Returns the batches in one epoch; the last may be filled up."""
    return -(-num_examples // batch_size)


def training_batches(features, *, batch_size, max_seq_length, seed=0, skip_batches=0):
    """Makes batches without end: each epoch has every example once, in a new order.

    An epoch shuffles all the examples, sorts by length within windows of WINDOW batches, and
    shuffles the batches. Differs from the original: it shuffles 100 rows at a time after
    repeating them, so that a file sorted by label trains one class first.

    Args:
        features: `features.Features`, labelled.
        batch_size: B, examples a batch, of all replicas together.
        max_seq_length: longest T.
        seed: int of 0 or more.
        skip_batches: batches taken before.

    Returns:
        A tf.data.Dataset of dicts: the features' sequences, int32[B, T], or [B, C, T] for
        several choices; their `input_mask`; `choice_mask` float32[B, C] for several
        choices, 0 on one that is not there; the columns, [B, ...]; `example_weights`
        float32[B] and `example_index` int32[B], 0 and -1 on rows that fill up.

    Raises:
        ValueError: there is no example, or an argument is out of range.
    """
    check(features, batch_size, max_seq_length)
    per_epoch = num_batches(len(features), batch_size)
    epoch, skipped = divmod(skip_batches, per_epoch)

    def batches():
        for number in itertools.count(epoch):
            order = epoch_order(features.lengths(), batch_size, (seed, number))
            yield from order[skipped:] if number == epoch else order

    return dataset(features, batches, batch_size, max_seq_length)


def prediction_batches(features, *, batch_size, max_seq_length):
    """Makes batches that hold each example once, the longest first; as `training_batches`.

    The longest come first so that what does not fit into memory fails at once. `loop.predict`
    puts the results back into the features' order.
    """
    check(features, batch_size, max_seq_length)
    order = longest_first(features, batch_size)
    return dataset(features, lambda: iter(order), batch_size, max_seq_length)


def longest_first(features, batch_size):
    """Returns which examples each batch of a prediction holds: list of int64[at most B]."""
    return split(np.argsort(-features.lengths(), kind="stable"), batch_size)


def check(features, batch_size, max_seq_length):
    """Raises ValueError unless batches can be made."""
    if not len(features):
        raise ValueError("A data set must have at least one example. Received: none.")
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Received: {batch_size}.")
    if features.lengths().max() > max_seq_length:
        raise ValueError(
            "A sequence must have at most `max_seq_length` pieces. Received: "
            f"{features.lengths().max()} pieces, max_seq_length={max_seq_length}."
        )


def epoch_order(lengths, batch_size, key):
    """Draws the batches of one epoch.

    Args:
        lengths: int64[n].
        batch_size: B.
        key: tuple of ints, what the draw depends on.

    Returns:
        A list of int64[B] (one of them may be shorter): which examples each batch holds.
    """
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))
    order = generator.permutation(len(lengths))
    windows = [
        window[np.argsort(lengths[window], kind="stable")]
        for window in split(order, WINDOW * batch_size)
    ]
    batches = [batch for window in windows for batch in split(window, batch_size)]
    return [batches[place] for place in generator.permutation(len(batches))]


def split(array, size):
    return [array[start : start + size] for start in range(0, len(array), size)]


def dataset(features, batches, batch_size, max_seq_length):
    """Makes a tf.data.Dataset of what `batches()` yields: the examples of each batch."""

    def padded():
        for examples in batches():
            yield pad(features, examples, batch_size, max_seq_length)

    first = pad(features, np.arange(1), batch_size, max_seq_length)
    signature = {
        name: tf.TensorSpec(
            [
                None
                if name in (*features.sequences, "input_mask") and axis == array.ndim - 1
                else s
                for axis, s in enumerate(array.shape)
            ],
            array.dtype,
        )
        for name, array in first.items()
    }
    return (
        tf.data.Dataset.from_generator(padded, output_signature=signature)
        .prefetch(input_pipeline.PREFETCHED)
        .with_options(input_pipeline.reading_options())
    )


def pad(features, examples, batch_size, max_seq_length):
    """Pads some examples to one batch.

    Args:
        features: `features.Features`.
        examples: int64[at most B], which examples.
        batch_size: B.
        max_seq_length: longest T.

    Returns:
        dict of name to array, as of `training_batches`.
    """
    num_choices, num_missing = features.num_choices, batch_size - len(examples)
    rows = (examples[:, np.newaxis] * num_choices + np.arange(num_choices)).reshape(-1)
    starts = features.offsets[rows]
    lengths = features.offsets[rows + 1] - starts
    length = static_lengths.padded_length(lengths.max(initial=1), max_seq_length)
    is_real = np.arange(length) < lengths[:, np.newaxis]  # bool[S, T]
    places = np.where(is_real, starts[:, np.newaxis] + np.arange(length), 0)

    def shaped(rows, filler=0):
        filled = np.pad(rows, [(0, num_missing * num_choices), (0, 0)], constant_values=filler)
        choices = [num_choices] if num_choices > 1 else []
        return filled.astype(np.int32).reshape(batch_size, *choices, length)

    batch = {
        name: shaped(np.where(is_real, values[places], FILLERS.get(name, 0)), FILLERS.get(name, 0))
        for name, values in features.sequences.items()
    }
    batch["input_mask"] = shaped(is_real)
    if num_choices > 1:
        batch["choice_mask"] = filled_up((lengths > 0).reshape(-1, num_choices), num_missing)
    for name, values in features.columns.items():
        batch[name] = filled_up(values[examples], num_missing, values.dtype)
    batch["example_weights"] = filled_up(np.ones(len(examples)), num_missing)
    batch["example_index"] = filled_up(examples, num_missing, np.int32, filler=-1)
    return batch


def filled_up(values, num_missing, dtype=np.float32, filler=0):
    """Appends rows of a filler."""
    widths = [(0, num_missing)] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values, widths, constant_values=filler).astype(dtype)
