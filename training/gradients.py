"""The gradients of a whole batch, of which each replica and each micro-batch sees a part.

The loss is the sum of total/count over the objectives, with the counts of the whole batch. So
each part's sums are differentiated with weight 1/count, and the gradients are added up: over
micro-batches, then over replicas. Any split gives the same numbers, but for rounding.
"""

import tensorflow as tf


def over_replicas(values):
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, values)


class LossGradients:
    """Differentiates the loss of a batch, at once or in micro-batches."""

    def __init__(self, forward, objectives, *, variables, num_micro_batches=1):
        """Binds the parts.

        Args:
            forward: function of (batch, seed) to a dict of name to (sum, count), float32[] each.
            objectives: names in its result whose means add up to the loss.
            variables: dict of name to tf.Variable.
            num_micro_batches: parts of a replica's batch, whose number of examples they divide.
        """
        self.forward, self.objectives, self.variables = forward, tuple(objectives), variables
        self.num_micro_batches = num_micro_batches

    def of(self, batch, seed, loss_scale=None):
        """Runs forward and backward; call it in replica context.

        Args:
            batch: this replica's part of a batch, as `forward` takes it.
            seed: int32[2].
            loss_scale: float32[], by which all is multiplied on its way through the model, so
                that half precision does not round it to 0; None: by nothing.

        Returns:
            (dict of name to (sum, count); dict of name to dense float32[...], without the
            variables that the loss does not need), both over all replicas.
        """
        compute = self._in_parts if self.num_micro_batches > 1 else self._at_once
        totals, gradients = compute(batch, seed, loss_scale)
        gradients = over_replicas(gradients)
        if loss_scale is not None:
            gradients = {name: gradient / loss_scale for name, gradient in gradients.items()}
        return totals, gradients

    def _weights(self, counts, loss_scale):
        """Returns what each objective's sum counts in the loss: 1/count, 0 where nothing counts."""
        weights = [tf.math.reciprocal_no_nan(count) for count in counts]
        return weights if loss_scale is None else [weight * loss_scale for weight in weights]

    def _counts(self, pairs):
        return [pairs[name][1] for name in self.objectives]

    def _differentiate(self, batch, seed, weights):
        """Returns one part's pairs and gradients; `weights` is a function of the pairs."""
        with tf.GradientTape() as tape:
            pairs = self.forward(batch, seed)
        sums = [pairs[name][0] for name in self.objectives]
        gradients = tape.gradient(sums, self.variables, output_gradients=weights(pairs))
        # Dense before the sum: the norm must be that of summed rows (original: of loose ones).
        return pairs, {n: tf.convert_to_tensor(g) for n, g in gradients.items() if g is not None}

    def _at_once(self, batch, seed, loss_scale):
        totals = {}

        def weights(pairs):
            totals.update(over_replicas(pairs))
            return self._weights(self._counts(totals), loss_scale)

        _, gradients = self._differentiate(batch, seed, weights)
        return totals, gradients

    def _in_parts(self, batch, seed, loss_scale):
        """Differentiates part after part, so that one part's activations are held at a time.

        A loop on the device, whose turns do not overlap. The counts of the whole batch come
        first: they depend on no weight, so of the forward pass that they are taken from
        TensorFlow keeps nothing else in the graph.
        """
        number = self.num_micro_batches
        pairs = self.forward(batch, seed)
        weights = self._weights(over_replicas(self._counts(pairs)), loss_scale)
        parts = tf.nest.map_structure(lambda x: tf.stack(tf.split(x, number)), batch)
        needed = set()  # Variables that have a gradient: known when the loop's body is traced.

        def body(index, totals, sums):
            part = tf.nest.map_structure(lambda x: x[index], parts)
            part_seed = tf.random.experimental.stateless_fold_in(seed, index)
            found, gradients = self._differentiate(part, part_seed, lambda _: weights)
            needed.update(gradients)
            sums = {name: sums[name] + gradients.get(name, 0.0) for name in sums}
            return index + 1, tf.nest.map_structure(tf.add, totals, found), sums

        _, totals, sums = tf.while_loop(
            lambda index, *_: index < number,
            body,
            (
                tf.constant(0),
                tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), pairs),
                {name: tf.zeros(v.shape, v.dtype) for name, v in self.variables.items()},
            ),
            parallel_iterations=1,
            maximum_iterations=number,
        )
        return over_replicas(totals), {n: sums[n] for n in self.variables if n in needed}
