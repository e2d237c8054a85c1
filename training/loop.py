"""The outer loop, on the host: run steps on the device, report, evaluate, save, until done."""

import itertools

import numpy as np

from training import distribution, signals, step, supervision

UNREACHED = -1e30  # A score beyond the end of a batch: nothing is there to be chosen.


def train(train_step, dataset, *, checkpoints, reporter, evaluate=None, best=None, note=None):
    """Trains to `num_train_steps`, evaluating and saving every `save_checkpoints_steps`.

    Evaluation comes before the checkpoint of the same step: a run killed in between does
    both again, so that none is lost.

    Args:
        train_step: `step.TrainStep`; it holds the state, settings and strategy.
        dataset: as of `distribution.distribute`, endless, beginning with the first example that
            the state has not seen.
        checkpoints: `checkpoints.Checkpoints` to save to.
        reporter: `reporting.Reporter`.
        evaluate: function that returns a dict of float, or None.
        best: `checkpoints.BestCheckpoint` that is offered each evaluation, or None.
        note: dict, the note of the checkpoint that the state was restored from, or None.

    Raises:
        divergence.Diverged: the loss blew up, or was not finite for `max_skipped_steps` steps in
            a row, once more than it may be rolled back.
        ValueError: a weight that was to be saved is not finite. Either way the last good
            checkpoint is kept.
        signals.Stopped: SIGTERM or SIGINT came to this worker or another, and the state is saved.
    """
    run = supervision.Run(train_step, checkpoints, reporter, best, note)
    if run.is_done():
        return
    iterator = iter(distribution.distribute(dataset, train_step.strategy))
    with signals.StopRequest() as request:
        while not run.is_done():
            blown_up = run.take_steps(iterator)
            if blown_up:
                run.roll_back(blown_up)
            elif run.is_at_checkpoint():
                run.evaluate_and_save(evaluate)
            if signal := run.signal(request):  # Asked last: it may come in an evaluation.
                run.stop(signal)


def evaluate(evaluation_step, dataset, max_steps=0):
    """Takes each example of a dataset once and returns the means over all of them.

    Args:
        evaluation_step: `step.EvaluationStep`.
        dataset: as of `distribution.distribute`, finite.
        max_steps: batches at most; 0 takes all.

    Returns:
        dict of float: `loss` and what `forward` counts.

    Raises:
        ValueError: the dataset is empty.
    """
    totals = {}
    batches = iter(distribution.distribute(dataset, evaluation_step.strategy))
    for batch in itertools.islice(batches, max_steps or None):
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
        indices.append(distribution.gather(strategy, index))
        for name, output in outputs.items():
            parts.setdefault(name, []).append(distribution.gather(strategy, output))
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
