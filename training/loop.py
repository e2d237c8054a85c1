"""The outer loop, on the host: run steps on the device, report, evaluate, save, until done."""

import time

import numpy as np

from training import distribution, step

UNREACHED = -1e30  # A score beyond the end of a batch: nothing is there to be chosen.


class Diverged(ValueError):
    """The loss or its gradient stayed non-finite; one line for the user, not a traceback."""


def steps_to_run(done, config):
    """Returns how many steps the device runs before the host must look up again.

    Every multiple of `iterations_per_loop` and `save_checkpoints_steps` is such a place, so
    that a resumed run reports and saves where an unbroken one does.
    """
    stops = [
        config.iterations_per_loop - done % config.iterations_per_loop,
        config.save_checkpoints_steps - done % config.save_checkpoints_steps,
        config.num_train_steps - done,
    ]
    return min(stops)


def train(train_step, dataset, *, checkpoints, reporter, evaluate=None, best=None):
    """Trains to `num_train_steps`, evaluating and saving every `save_checkpoints_steps`.

    Evaluation comes before the checkpoint of the same step: a run killed in between does
    both again, so that none is lost.

    Args:
        train_step: `step.TrainStep`; it holds the state, settings and strategy.
        dataset: tf.data.Dataset of global batches, endless, beginning with the first example
            that the state has not seen.
        checkpoints: `checkpoints.Checkpoints` to save to.
        reporter: `reporting.Reporter`.
        evaluate: function that returns a dict of float, or None.
        best: `checkpoints.BestCheckpoint` that is offered each evaluation, or None.

    Raises:
        Diverged: `max_skipped_steps` steps in a row had a non-finite loss or gradient.
        ValueError: a weight that was to be saved is not finite. Either way the last good
            checkpoint is kept.
    """
    state, config = train_step.state, train_step.config
    writes = distribution.is_chief(train_step.strategy)
    done = int(state.step.numpy())
    if done >= config.num_train_steps or stops_early(done, best, config):
        return
    iterator = iter(distribution.distribute(dataset, train_step.strategy))
    while done < config.num_train_steps:
        started, before = time.monotonic(), done
        metrics = train_step.run(iterator, steps_to_run(done, config))
        done = int(state.step.numpy())
        metrics["skipped_steps"] = int(state.skipped_steps.numpy())
        seconds = time.monotonic() - started
        reporter.train(done, metrics, num_steps=done - before, seconds=seconds)
        stop_if_diverged(state, config, checkpoints)
        ends = done == config.num_train_steps
        if done % config.save_checkpoints_steps and not ends:
            continue
        evaluation = evaluate() if evaluate else None
        if evaluation:
            reporter.evaluation(done, evaluation)
        if writes and evaluation and best:
            best.offer(done, evaluation)
        # Weights from which the last step came out non-finite are not known to be good.
        if writes and (ends or not state.skipped_in_a_row.numpy()):
            checkpoints.save(done)
        if stops_early(done, best, config):
            reporter.message(
                f"stopped early at step {done:,}: {config.early_stopping_patience} evaluation(s) "
                f"without a better {best.metric} than {best.value:.4f}, of step {best.step:,}"
            )
            return


def stops_early(done, best, config):
    """Says whether `early_stopping_patience` evaluations have passed since the best one."""
    if not (config.early_stopping_patience and best and best.step):
        return False
    return done - best.step >= config.early_stopping_patience * config.save_checkpoints_steps


def stop_if_diverged(state, config, checkpoints):
    """Raises `Diverged` after too many skipped steps in a row; names the step and the remedy."""
    skipped = int(state.skipped_in_a_row.numpy())
    if skipped < config.max_skipped_steps:
        return
    kept = checkpoints.steps()
    raise Diverged(
        f"Stopped at step {state.step.numpy()}: the loss or gradient of the last {skipped} steps "
        "was not finite (`max_skipped_steps`). "
        + (f"The last checkpoint is {checkpoints.path(kept[-1])}. " if kept else "")
        + "Lower `learning_rate` or lengthen the warm-up."
    )


def evaluate(evaluation_step, dataset, max_steps=0):
    """Takes each example of a dataset once and returns the means over all of them.

    Args:
        evaluation_step: `step.EvaluationStep`.
        dataset: tf.data.Dataset of global batches, finite.
        max_steps: batches at most; 0 takes all.

    Returns:
        dict of float: `loss` and what `forward` counts.

    Raises:
        ValueError: the dataset is empty.
    """
    if max_steps:
        dataset = dataset.take(max_steps)
    totals = {}
    for batch in distribution.distribute(dataset, evaluation_step.strategy):
        for name, pair in evaluation_step.run(batch).items():
            # Summed in float64: a float32 sum over a long data set would drop its small terms.
            totals[name] = totals.get(name, 0) + np.array([float(part) for part in pair])
    if not totals:
        raise ValueError("Evaluation must have at least one batch. Received: an empty dataset.")
    return step.means(totals, evaluation_step.objectives)


def predict(prediction_step, dataset):
    """Takes each example of a dataset once and returns what the model gives for it, in order.

    Args:
        prediction_step: `step.PredictionStep`.
        dataset: tf.data.Dataset of global batches, finite, whose `example_index` numbers
            the examples from 0; -1 marks rows that fill up.

    Returns:
        dict of name to array, [n, ...]: row i is the example with index i. Where batches differ
        in length, the shorter rows end in UNREACHED.

    Raises:
        ValueError: the dataset is empty, or does not hold each example once.
    """
    strategy, parts, indices = prediction_step.strategy, {}, []
    for batch in distribution.distribute(dataset, strategy):
        outputs, index = prediction_step.run(batch)
        indices.append(strategy.gather(index, axis=0).numpy())
        for name, output in outputs.items():
            parts.setdefault(name, []).append(strategy.gather(output, axis=0).numpy())
    if not indices:
        raise ValueError("Prediction must have at least one batch. Received: an empty dataset.")
    index = np.concatenate(indices)
    order = np.argsort(index, kind="stable")[np.sum(index < 0) :]
    if not np.array_equal(index[order], np.arange(len(order))):
        raise ValueError("Prediction must have each example once. Received: gaps or doubles.")
    return {name: as_long(arrays)[order] for name, arrays in parts.items()}


def as_long(arrays):
    """Joins arrays, [B, ...], of different lengths; the shorter ones end in UNREACHED."""
    longest = np.max([array.shape for array in arrays], axis=0)[1:]
    return np.concatenate(
        [
            np.pad(
                array,
                [
                    (0, 0),
                    *(
                        (0, most - size)
                        for most, size in zip(longest, array.shape[1:], strict=True)
                    ),
                ],
                constant_values=UNREACHED if array.dtype.kind == "f" else 0,
            )
            for array in arrays
        ]
    )
