"""The gradients of a whole batch, of which each replica and each micro-batch sees a part.

The loss is the sum of total/count over the objectives, with the counts of the whole batch. So
each part's sums are differentiated with weight 1/count, and the gradients are added up: over
micro-batches, then over replicas. Any split gives the same numbers, but for rounding.
"""

import tensorflow as tf


def over_replicas(values):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)


def counts_of(pairs, objectives):
    return [pairs[name][1] for name in objectives]


def loss_weights(counts):
    """Returns what each objective's sum counts in the loss: 1/count, 0 where nothing counts."""
    return [tf.math.reciprocal_no_nan(count) for count in counts]


def differentiate(forward, objectives, variables, *, weights, batch, seed):
    """Runs forward and backward on one part of a batch.

    Args:
        forward: function of (batch, seed) to a dict of name to (sum, count), float32[] each.
        objectives: names whose sums are differentiated.
        variables: dict of name to tf.Variable.
        weights: function of the dict of pairs that returns a float32[] for each objective.
        batch: what `forward` takes.
        seed: int32[2].

    Returns:
        (dict of pairs; dict of name to dense float[...], without what the losses do not need).
    """
    with tf.GradientTape() as tape:
        pairs = forward(batch, seed)
    sums = [pairs[name][0] for name in objectives]
    gradients = tape.gradient(sums, variables, output_gradients=weights(pairs))
    # Dense before the sum: the norm must be that of summed rows (original: of loose ones).
    return pairs, {n: tf.convert_to_tensor(g) for n, g in gradients.items() if g is not None}


def of_batch(forward, objectives, variables, *, batch, seed):
    """Differentiates the loss at once; call it in replica context.

    Args: as of `differentiate`; `batch` is this replica's part.

    Returns:
        (dict of name to (sum, count), dict of name to gradient), both over all replicas.
    """
    totals = {}

    def weights(pairs):
        totals.update(over_replicas(pairs))
        return loss_weights(counts_of(totals, objectives))

    _, gradients = differentiate(
        forward, objectives, variables, weights=weights, batch=batch, seed=seed
    )
    return totals, over_replicas(gradients)


def of_micro_batches(forward, objectives, variables, *, batch, seed, num_micro_batches):
    """Differentiates the loss part after part, so that one part's activations are held at a time.

    A loop on the device, whose turns do not overlap. The counts of the whole batch come first:
    they depend on no weight, so of the forward pass that they are taken from TensorFlow keeps
    nothing else in the graph.

    Args: as of `of_batch`; the batch's first dimension is divisible by `num_micro_batches`.

    Returns:
        As `of_batch`.
    """
    pairs = forward(batch, seed)
    weights = loss_weights(over_replicas(counts_of(pairs, objectives)))
    parts = tf.nest.map_structure(lambda x: tf.stack(tf.split(x, num_micro_batches)), batch)
    needed = set()  # Variables that have a gradient: known when the loop's body is traced.

    def body(index, totals, sums):
        part = tf.nest.map_structure(lambda x: x[index], parts)
        found, gradients = differentiate(
            forward,
            objectives,
            variables,
            weights=lambda _: weights,
            batch=part,
            seed=tf.random.experimental.stateless_fold_in(seed, index),
        )
        needed.update(gradients)
        sums = {n: total + gradients[n] if n in gradients else total for n, total in sums.items()}
        return index + 1, tf.nest.map_structure(tf.add, totals, found), sums

    _, totals, sums = tf.while_loop(
        lambda index, *_: index < num_micro_batches,
        body,
        (
            tf.constant(0),
            tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), pairs),
            {name: tf.zeros(v.shape, v.dtype) for name, v in variables.items()},
        ),
        parallel_iterations=1,
        maximum_iterations=num_micro_batches,
    )
    return over_replicas(totals), over_replicas(
        {name: sums[name] for name in variables if name in needed}
    )
