"""The outer loop, on the host: run steps on the device, report, evaluate, save, until done."""

import time

import numpy as np

from training import distribution, step


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
    if done >= config.num_train_steps:
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
