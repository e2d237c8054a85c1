"""One training or evaluation step on every replica, and many of them on the device.

The step knows neither the model nor the data. `forward(batch, dropout_seed)` runs the
model and its losses on one replica's part of the batch and returns a dict of name to
(sum, count), both float32[]; `dropout_seed` is int32[2] in training, None otherwise.
Sums and counts travel apart, so that a mean is that of the whole batch on any number of
replicas. `objectives` are the names whose means add up to the loss.
"""

import time

import tensorflow as tf

from training import schedules
from training.gradients import LossGradients


def dropout_seed(seed, step, replica):
    """Derives the seed of one step on one replica, so that a resumed run draws what it would have.

    Args:
        seed: int, seed of the run.
        step: int64[], steps already done.
        replica: int32[], number of the replica.

    Returns:
        int32[2].
    """
    run_seed = tf.constant([seed & 0x7FFFFFFF, seed >> 31 & 0x7FFFFFFF], tf.int32)
    step_seed = tf.random.experimental.stateless_fold_in(run_seed, step)
    return tf.random.experimental.stateless_fold_in(step_seed, replica)


def means(totals, objectives):
    """Turns summed (sum, count) pairs into means, and adds the objectives' up to `loss`.

    Args:
        totals: dict of name to (sum, count), numbers or float[].
        objectives: names whose means add up to the loss.

    Returns:
        dict of name to float; 0 where nothing was counted, like the original's masked-LM loss.
    """
    pairs = {name: (float(total), float(count)) for name, (total, count) in totals.items()}
    result = {name: total / count if count else 0.0 for name, (total, count) in pairs.items()}
    return {"loss": sum(result[name] for name in objectives), **result}


class TrainingState:
    """All that changes while training: weights, slots and counters, each with its saved name.

    Read a counter by its `.numpy()`: mirrored over replicas, it is no number for `int`.

    Attributes:
        optimizer: the `optimizers.Optimizer` of the weights.
        loss_scale: `loss_scaling.LossScale`, or None: nothing is scaled.
        step: int64[], batches taken, applied or skipped: the schedule's clock.
        examples_seen: int64[], examples taken, so where the data goes on after a restart.
        skipped_steps: int64[], steps skipped for a non-finite loss or gradient.
        skipped_in_a_row: int64[], those since the last step that was applied.
    """

    def __init__(self, named_variables, optimizer, loss_scale=None):
        """Creates the counters; call it within the scope of the strategy."""
        self.named_variables, self.optimizer = dict(named_variables), optimizer
        self.loss_scale = loss_scale
        self.step, self.examples_seen, self.skipped_steps, self.skipped_in_a_row = (
            tf.Variable(tf.zeros([], tf.int64), trainable=False) for _ in range(4)
        )

    def variables(self):
        """Returns everything a checkpoint holds: a dict of saved name to tf.Variable."""
        return {
            **self.named_variables,
            **self.optimizer.slots,
            **(self.loss_scale.variables() if self.loss_scale else {}),
            "global_step": self.step,
            "examples_seen": self.examples_seen,
            "skipped_steps": self.skipped_steps,
            "skipped_in_a_row": self.skipped_in_a_row,
        }


class TrainStep:
    """Runs training steps: forward, backward, all-reduce, clip, update.

    Gradients are summed over replicas first and clipped by the norm of the sum after, so
    that 1, 2 and 8 replicas take the same step. Differs from the original: it clips each
    core's gradients before they are summed (optimization.py:106).
    """

    def __init__(self, forward, objectives, *, state, config, strategy):
        """Binds the parts of a step.

        Args:
            forward: see the module's docstring.
            objectives: names in its result whose means add up to the loss.
            state: `TrainingState` made in the strategy's scope.
            config: `TrainConfig` with a learning rate.
            strategy: tf.distribute.Strategy.

        Raises:
            ValueError: `config.learning_rate` is None, or replicas would get unequal micro-batches.
        """
        if config.learning_rate is None:
            raise ValueError("`learning_rate` must be a number. Received: None.")
        parts = strategy.num_replicas_in_sync, config.gradient_accumulation_steps
        if config.train_batch_size % (parts[0] * parts[1]):
            raise ValueError(
                "`train_batch_size` must be divisible by the number of replicas times "
                "`gradient_accumulation_steps`. Received: train_batch_size="
                f"{config.train_batch_size}, {parts[0]} replica(s), {parts[1]} micro-batches."
            )
        self.forward, self.objectives = forward, tuple(objectives)
        self.state, self.config, self.strategy = state, config, strategy
        self._gradients = LossGradients(
            forward,
            objectives,
            variables=state.named_variables,
            num_micro_batches=config.gradient_accumulation_steps,
        )
        # Batches of several lengths: one graph for all of them, but on a TPU, where every shape
        # must be known.
        is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        self._one_step = tf.function(self._distributed_step, reduce_retracing=not is_tpu)
        self._many_steps = tf.function(self._loop)

    def learning_rate(self, step):
        """Returns the rate, float32[], of the step that follows `step` steps."""
        return schedules.learning_rate(
            step,
            init=self.config.learning_rate,
            num_train_steps=self.config.num_train_steps,
            num_warmup_steps=self.config.num_warmup_steps,
            start_warmup_step=self.config.start_warmup_step,
            power=self.config.poly_power,
        )

    def run(self, iterator, num_steps):
        """Takes steps and returns `metrics` of them; the arguments are those of `add_steps`."""
        totals, _ = self.add_steps(iterator, num_steps)
        return self.metrics(totals)

    def add_steps(self, iterator, num_steps, totals=None):
        """Takes `num_steps` steps; fewer if `max_skipped_steps` in a row are skipped.

        They run on the device without a look back, if all batches have one shape; otherwise
        the host starts each. However many calls the steps are spread over, the totals come
        out the same to the bit.

        Args:
            iterator: iterator over the strategy's distributed dataset.
            num_steps: int, at least 1.
            totals: what the call before returned, to be added to; None begins at 0.

        Returns:
            (dict of name to (sum, count), both float32[], over the steps that were applied:
            what `forward` counts and `gradient_norm` before clipping; float, seconds that the
            steps waited for their batches).
        """
        specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
        if not all(spec.shape.is_fully_defined() for spec in specs):
            return self._host_loop(iterator, num_steps, totals)
        outputs = self._one_step.get_concrete_function(iterator.element_spec).structured_outputs
        if totals is None:
            totals = tf.nest.map_structure(lambda o: tf.zeros(o.shape, o.dtype), outputs)
        totals, waited = self._many_steps(iterator, tf.constant(num_steps, tf.int64), totals)
        return totals, float(waited)

    def metrics(self, totals):
        """Turns totals of `add_steps` into what is reported.

        Returns:
            dict of float: `loss`, the means that `forward` counts and `gradient_norm`, NaN if
            no step was applied; `learning_rate` of the last step; under float16 the next
            `loss_scale`.
        """
        result = means(totals, self.objectives)
        if not totals["gradient_norm"][1]:
            result = dict.fromkeys(result, float("nan"))
        if self.state.loss_scale:
            result["loss_scale"] = float(self.state.loss_scale.value.numpy())
        return {**result, "learning_rate": float(self.learning_rate(self.state.step - 1))}

    def _loop(self, iterator, num_steps, totals):
        most, waited = self.config.max_skipped_steps, tf.zeros([], tf.float64)
        while num_steps > 0 and self.state.skipped_in_a_row < most:
            batch, seconds = self._next_batch(iterator)
            waited += seconds
            totals = tf.nest.map_structure(tf.add, totals, self._one_step(batch))
            num_steps -= 1
        return totals, waited

    def _next_batch(self, iterator):
        """Returns (batch, float64[]: seconds it was waited for; 0 under `deterministic`)."""
        if self.config.deterministic:  # TensorFlow has no clock then.
            return next(iterator), tf.zeros([], tf.float64)
        before = tf.timestamp()
        with tf.control_dependencies([before]):
            batch = next(iterator)
        with tf.control_dependencies(tf.nest.flatten(batch, expand_composites=True)):
            return batch, tf.timestamp() - before

    def _host_loop(self, iterator, num_steps, totals):
        waited = 0.0
        for _ in range(num_steps):
            if int(self.state.skipped_in_a_row.numpy()) >= self.config.max_skipped_steps:
                break
            before = time.monotonic()
            batch = next(iterator)
            waited += time.monotonic() - before
            step = self._one_step(batch)
            totals = step if totals is None else tf.nest.map_structure(tf.add, totals, step)
        return totals, waited

    def _distributed_step(self, batch):
        """Runs a step on every replica and counts it."""
        per_replica = self.strategy.run(self.replica_step, args=(batch,))
        # Every replica holds the same sums over all of them; the first one's will do.
        totals, finite = tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], per_replica
        )
        skipped = 1 - tf.cast(finite, tf.int64)
        state = self.state
        if state.loss_scale:
            state.loss_scale.update(finite)
        state.step.assign_add(1)
        state.examples_seen.assign_add(self.config.train_batch_size)
        state.skipped_steps.assign_add(skipped)
        state.skipped_in_a_row.assign((state.skipped_in_a_row + 1) * skipped)
        return totals

    def replica_step(self, batch):
        """Runs one replica's part of a step; call it in replica context.

        Args:
            batch: the replica's part of a batch, as `forward` takes it.

        Returns:
            (dict of name to (sum, count) over all replicas, 0 where the step is skipped;
            bool[], whether it is applied).
        """
        replica = tf.distribute.get_replica_context()
        seed = dropout_seed(
            self.config.seed, self.state.step.read_value(), replica.replica_id_in_sync_group
        )
        scale = self.state.loss_scale and self.state.loss_scale.value.read_value()
        totals, gradients = self._gradients.of(batch, seed, scale)
        norm = tf.linalg.global_norm(list(gradients.values()))
        losses = [totals[name][0] for name in self.objectives]
        finite = tf.reduce_all(tf.math.is_finite(tf.stack([norm, *losses])))
        # `tf.clip_by_global_norm` takes 1 / `clip_norm`, and makes NaN of infinity.
        scale = tf.minimum(1.0, self.config.clip_norm / norm)
        self.state.optimizer.apply(
            {name: gradient * scale for name, gradient in gradients.items()},
            self.learning_rate(self.state.step.read_value()),
            finite,
        )
        totals = {**totals, "gradient_norm": (norm, tf.ones([]))}
        return tf.nest.map_structure(lambda t: tf.where(finite, t, 0.0), totals), finite


class EvaluationStep:
    """Runs the forward pass on every replica and sums its (sum, count) pairs."""

    def __init__(self, forward, objectives, strategy):
        """Binds the parts; the arguments are those of `TrainStep`."""
        self.forward, self.objectives, self.strategy = forward, tuple(objectives), strategy
        self.run = tf.function(self._distributed_step)

    def _distributed_step(self, batch):
        per_replica = self.strategy.run(self._replica_step, args=(batch,))
        return tf.nest.map_structure(
            lambda value: self.strategy.experimental_local_results(value)[0], per_replica
        )

    def _replica_step(self, batch):
        pairs = self.forward(batch, None)
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, pairs)


class PredictionStep:
    """Runs the forward pass on every replica and leaves each replica's outputs as they are."""

    def __init__(self, forward, strategy):
        """Binds the parts.

        Args:
            forward: function of a batch that returns a dict of tensors, [B, ...].
            strategy: tf.distribute.Strategy.
        """
        self.forward, self.strategy = forward, strategy
        is_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        self.run = tf.function(self._distributed_step, reduce_retracing=not is_tpu)

    def _distributed_step(self, batch):
        outputs = self.strategy.run(self.forward, args=(batch,))
        return outputs, batch["example_index"]
