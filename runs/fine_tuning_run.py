"""One run of fine-tuning: train in a folder, keep the best, predict.

Only programs import this module.

n: examples.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

import command_line
from data import length_batches
from folders import model_folder
from modeling import precision, task_losses
from runs import fine_tuning, fine_tuning_folder, memory_report
from training import distribution, divergence, loop, run, step

HEAD_PREFIXES = ("output_", "cls/squad/", "start_logits/", "end_logits/", "answer_class/")
AT_CHANCE = 0.99  # Of the loss of a guess: who is not below it has learnt nothing.
# Shares of the training after which a loss at chance is warned of, and ends a run where wanted.
WARN_AFTER, STOP_AFTER = 0.1, 0.2


@dataclasses.dataclass(frozen=True)
class Task:
    """What a run must know of its task.

    Attributes:
        make_model: function of (AlbertConfig, seed) that returns a model of `modeling.task_models`.
        losses: function of (outputs, batch), of `modeling.task_losses`.
        score: function of the outputs for the dev set, a dict of arrays [n, ...], that returns a
            dict of float; it prints what the user should be warned of.
        chance_loss: loss of a guess that knows how frequent the labels are, or None.
        stops_at_chance: whether a run that stays there ends.
        description: dict that goes to `task.json`: task, kind, labels, metrics.
    """

    make_model: Callable
    losses: Callable
    score: Callable
    chance_loss: float | None
    stops_at_chance: bool
    description: dict


class Run:
    """A model of one task on its strategy.

    Args:
        task: Task.
        config: AlbertConfig.
        settings: TrainConfig.
        max_seq_length: longest sequence, in pieces.
    """

    def __init__(self, task, config, settings, max_seq_length):
        self.task, self.config, self.settings = task, config, settings
        self.max_seq_length = max_seq_length
        if settings.deterministic:
            distribution.make_deterministic(settings.seed)
        self.strategy = distribution.create_strategy(settings.strategy, settings.tpu_name)
        distribution.check_divisible(settings.eval_batch_size, self.strategy, "eval_batch_size")
        command_line.compile_quietly()
        with self.strategy.scope(), precision.scope(settings.precision):
            self.model = task.make_model(config, settings.seed)
        self.model.encoder.recompute = settings.recompute
        self._prediction_step = step.PredictionStep(self.model, self.strategy)

    def train(self, folder, features, *, dev=None, begin=None):
        """Trains to the end, from wherever the folder has got to, and loads the best weights.

        Args:
            folder: path, sealed by `seal`.
            features: `features.Features` of the training set.
            dev: Features whose score picks the best checkpoint, or None: the last is kept.
            begin: function that loads the encoder's weights, called where a run begins.
        """
        settings = self.settings
        shape = {"max_seq_length": self.max_seq_length, "num_choices": features.num_choices}
        memory_report.print_memory(self.model, settings, strategy=self.strategy, **shape)
        with self.strategy.scope():
            state = run.create_state(self.model.named_variables(), settings)

        def forward(batch, dropout_seed):
            is_training = dropout_seed is not None
            outputs = self.model(batch, training=is_training, dropout_seed=dropout_seed)
            return self.task.losses(outputs, batch)

        def evaluate():
            metrics = self.score(dev)
            check_progress(self.task, settings, int(state.step.numpy()), metrics["loss"])
            return metrics

        train_step = step.TrainStep(
            forward, task_losses.OBJECTIVES, state=state, config=settings, strategy=self.strategy
        )
        run.train_in_folder(
            train_step,
            folder,
            begin=begin or (lambda: None),
            make_dataset=lambda examples_seen: length_batches.training_batches(
                features,
                batch_size=settings.train_batch_size,
                max_seq_length=self.max_seq_length,
                seed=settings.seed,
                skip_batches=examples_seen // settings.train_batch_size,
            ),
            units={"examples": settings.train_batch_size},
            evaluate=evaluate if dev else None,
        )
        self.load(folder)

    def load(self, path):
        """Loads trained weights, the head's among them.

        Raises:
            ValueError: a weight is missing, such as the head of this task, or the head is of
                other labels.
        """
        fine_tuning_folder.check_task(path, self.task.description, ("kind", "labels"))
        try:
            model_folder.load_weights(self.model.named_variables(), path, required_prefix="")
        except ValueError as error:
            raise ValueError(
                f"{path} must hold a model that was trained for {self.task.description['task']}, "
                f"head and all; train first. {error}"
            ) from error

    def predict(self, features):
        """Returns what the model gives for each example, in order: dict of array [n, ...]."""
        batches = length_batches.prediction_batches(
            features,
            batch_size=self.settings.eval_batch_size,
            max_seq_length=self.max_seq_length,
        )
        return loop.predict(self._prediction_step, batches)

    def score(self, features):
        """Returns the dev set's loss and metrics: dict of float."""
        outputs = self.predict(features)
        return {**self.task.score(outputs), **loss_of(self.task.losses, outputs, features)}


def check_progress(task, settings, done, loss):
    """Warns of a loss that is still at chance, or ends the run.

    One evaluation decides each: a model that learns its training set by heart comes back to that
    loss on the dev set, and beyond, while its other scores rise.

    Args:
        task: Task.
        settings: TrainConfig.
        done: steps done.
        loss: of the dev set.

    Raises:
        divergence.Diverged: it is so after STOP_AFTER of the steps, and the task stops there.
    """
    num_steps, before = settings.num_train_steps, done - settings.save_checkpoints_steps
    if task.chance_loss is None or loss < AT_CHANCE * task.chance_loss:
        return

    def is_first_after(share):
        return before / num_steps < share <= done / num_steps

    problem = (
        f"after {done:,} of {num_steps:,} steps the dev loss {loss:.4f} is that of a guess, "
        f"{task.chance_loss:.4f}: try a lower `learning_rate` than {settings.learning_rate:g} or a "
        "longer warm-up"
    )
    if task.stops_at_chance and is_first_after(STOP_AFTER) and done < num_steps:
        raise divergence.Diverged(f"Stopped: {problem}. `--nostop_at_chance` goes on.")
    if is_first_after(WARN_AFTER):
        print(f"warning: {problem}")


def loss_of(losses, outputs, features):
    """Returns {"loss": mean over the examples}, from outputs for all of them.

    Args:
        losses: function of `modeling.task_losses`.
        outputs: dict of arrays [n, ...].
        features: the labelled Features they belong to.
    """
    batch = {**features.columns, "example_weights": np.ones(len(features), np.float32)}
    total, count = losses(
        {name: tf.constant(values) for name, values in outputs.items()},
        {name: tf.constant(values) for name, values in batch.items()},
    )[task_losses.OBJECTIVES[0]]
    return {"loss": float(total / count)}


def begin(run, tuning):
    """Loads the encoder's weights, unless random ones are asked for, and prints what matched.

    A head that the file holds stays there: it is another task's, or this one's before.
    """
    if tuning.init_checkpoint:
        variables = run.model.named_variables()
        print(model_folder.load_weights(variables, tuning.init_checkpoint, leave=HEAD_PREFIXES))


def train_or_load(run, folder, tuning, tokenizer, train, dev=None):
    """Trains in a folder from where it has got to, or loads what was trained before.

    Args:
        run: Run.
        folder: path.
        tuning: fine_tuning.FineTuneConfig.
        tokenizer: Tokenizer that the features were made with.
        train: Features to train on; None unless `tuning.do_train`.
        dev: Features whose score picks the best checkpoint, or None.
    """
    if not tuning.do_train:
        run.load(fine_tuning.trained_folder(tuning))
        return
    distribution.check_divisible(
        run.settings.train_batch_size,
        run.strategy,
        num_micro_batches=run.settings.gradient_accumulation_steps,
    )
    fine_tuning_folder.seal(run, folder, tokenizer)
    run.train(folder, train, dev=dev, begin=lambda: begin(run, tuning))
