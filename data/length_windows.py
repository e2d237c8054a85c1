"""Pretraining batches of examples of like length, so that short ones cost what they are.

A window of some batches is sorted by length and cut into batches again, each as long as its
longest example asks. T_w: the records' length, T: a batch's, one of `static_lengths.LENGTHS`;
W batches a window, B batch.
"""

import tensorflow as tf

from data import static_lengths

WINDOW = 16  # Batches; of 16, the longest and the shortest are whole batches almost always.
SEQUENCES = ("input_ids", "input_mask", "segment_ids")


def cut_by_length(windows, batch_size, *, seed, first_window, part=(0, 1)):
    """Cuts windows of examples into batches of like length, in an order of their own.

    Args:
        windows: tf.data.Dataset of dicts of tensors [W * B, ...], among them int32[W * B, T_w]
            under SEQUENCES.
        batch_size: B.
        seed: int of 0 or more; the order of a window's batches.
        first_window: number of the first window, counted from the beginning of training.
        part: (number, number of parts), which rows of each batch are given; B below is that of
            the part, and T is as long as these rows ask.

    Returns:
        A tf.data.Dataset of dicts of tensors [B, ...]; T is not known when the graph is built.
    """

    def batches(number, window):
        num_batches = tf.shape(window["input_mask"])[0] // batch_size
        lengths = tf.reduce_sum(window["input_mask"], axis=1)
        rows = tf.reshape(tf.argsort(lengths, stable=True), [num_batches, batch_size])
        key = tf.stack([tf.constant(seed, tf.int64), number])
        rows = tf.random.experimental.stateless_shuffle(rows, seed=key)
        rows = tf.split(rows, part[1], axis=1)[part[0]]
        return tf.data.Dataset.from_tensor_slices(rows).map(lambda some: trimmed(window, some))

    return windows.enumerate(first_window).flat_map(batches)


def trimmed(examples, rows):
    """Picks rows of a dict of tensors, and cuts sequences to a length that the longest fits in."""
    batch = {name: tf.gather(values, rows) for name, values in examples.items()}
    full_length = batch["input_mask"].shape[1]
    shorter = [length for length in static_lengths.LENGTHS if length < full_length]
    lengths = tf.constant([*shorter, full_length])
    longest = tf.reduce_max(tf.reduce_sum(batch["input_mask"], axis=1))
    length = lengths[tf.searchsorted(lengths, longest[tf.newaxis])[0]]
    return batch | {name: batch[name][:, :length] for name in SEQUENCES}
