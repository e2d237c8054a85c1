"""A training run in its folder: gone on with or begun, then trained, evaluated and saved."""

import os

from training import checkpoints, distribution, loop, loss_scaling, optimizers, reporting
from training import step as training_step


def create_state(named_variables, config):
    """Creates the optimizer with its slots, the counters, and float16's loss scale.

    Call it within the scope of the strategy.

    Args:
        named_variables: dict of name to tf.Variable, what is trained.
        config: TrainConfig.

    Returns:
        step.TrainingState.
    """
    optimizer = optimizers.Optimizer(
        named_variables,
        kind=config.optimizer,
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
    )
    loss_scale = loss_scaling.LossScale() if config.precision == "float16" else None
    return training_step.TrainingState(named_variables, optimizer, loss_scale)


def train_in_folder(train_step, folder, *, begin, make_dataset, units, evaluate=None):
    """Trains up to the last step, from wherever the folder's checkpoints have got to.

    Args:
        train_step: `step.TrainStep`.
        folder: the run's folder; `checkpoints/`, `best/`, `metrics.jsonl` and `tensorboard/`
            are written there.
        begin: function without arguments, called where there is no checkpoint to go on
            from: loads the weights to begin with, if any.
        make_dataset: function of the number of examples already seen that returns the batches
            from there on, as `distribution.distribute` takes them.
        units: dict of name to number per step, such as {"examples": 64}, whose rates are
            reported.
        evaluate: function that returns a dict of float, called at each checkpoint, or None.

    Raises:
        ValueError: every checkpoint is damaged or another model's, training diverged, or workers
            do not share the folder.
        signals.Stopped: a signal asked for it.
    """
    state, config, strategy = train_step.state, train_step.config, train_step.strategy
    writes = distribution.is_chief(strategy)
    saved = checkpoints.Checkpoints(
        os.path.join(folder, "checkpoints"), state.variables(), config.keep_checkpoint_max, writes
    )
    best = None
    if evaluate:
        best = checkpoints.BestCheckpoint(
            os.path.join(folder, "best"), state.variables(), config.best_metric, writes
        )
    step, note = saved.restore() or (0, None)
    check_shared(strategy, saved.folder, step)
    if note is None:
        begin()
    else:
        print(f"going on from step {step:,} of {saved.folder}")
    reporter = reporting.Reporter(
        folder,
        num_train_steps=config.num_train_steps,
        units_per_step=units,
        first_step=step,
        num_devices=strategy.num_replicas_in_sync,
        writes=writes,
    )
    with reporter:
        loop.train(
            train_step,
            make_dataset(int(state.examples_seen.numpy())),
            checkpoints=saved,
            reporter=reporter,
            evaluate=evaluate,
            best=best,
            note=note,
        )
    distribution.largest(strategy, [0])  # The chief has written all that others may read now.


def check_shared(strategy, folder, step):
    """Refuses workers that begin at different steps, since each sees another folder."""
    steps = distribution.from_all_workers(strategy, [step])[:, 0].tolist()
    if len(set(steps)) > 1:
        raise ValueError(
            "`output_dir` must be a folder that all workers share, such as one of a bucket. "
            f"Received: {folder}, whose newest checkpoint is that of steps {sorted(set(steps))}."
        )
