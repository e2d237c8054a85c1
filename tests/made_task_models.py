"""Small models of every task, and random batches for them."""

import numpy as np
import tensorflow as tf
from made_models import randomize, small_config

from modeling import task_losses, task_models

NUM_CHOICES = 3
# Task -> (its model's class and settings, its losses).
TASKS = {
    "classes": (task_models.Classifier, {"num_classes": 3}, task_losses.classification_losses),
    "number": (task_models.Classifier, {"num_classes": 1}, task_losses.regression_losses),
    "multilabel": (task_models.Classifier, {"num_classes": 4}, task_losses.multilabel_losses),
    "choice": (task_models.MultipleChoice, {}, task_losses.choice_losses),
    "span": (task_models.SpanModel, {}, task_losses.span_losses),
    "answerable": (
        task_models.AnswerableSpanModel,
        {"start_n_top": 3, "end_n_top": 2},
        task_losses.answerable_span_losses,
    ),
}
PAD_VALUES = {"p_mask": 1}


def random_task_model(task, **config):
    """Returns a model with random weights; dropout is off unless `config` or `training` says so."""
    model_class, settings, _ = TASKS[task]
    return randomize(model_class(small_config(**config), **settings))


def losses_of(task):
    """Returns the task's function of outputs and batch."""
    return TASKS[task][2]


def random_task_batch(task, batch_size=4, length=12, seed=0):
    """Returns a batch whose texts have from 6 to `length` pieces; the spans lie in 1 to 5."""
    rng = np.random.default_rng(seed)
    shape = (batch_size, NUM_CHOICES) if task == "choice" else (batch_size,)
    lengths = rng.integers(6, length + 1, (*shape, 1))
    lengths.flat[0] = length
    mask = np.arange(length) < lengths
    starts = rng.integers(1, 4, batch_size)
    columns = {
        "classes": {"label_ids": rng.integers(0, 3, batch_size)},
        "number": {"label_ids": rng.standard_normal(batch_size).astype(np.float32)},
        "multilabel": {"label_ids": rng.integers(0, 2, (batch_size, 4)).astype(np.float32)},
        "choice": {
            "label_ids": rng.integers(0, 2, batch_size),
            "choice_mask": np.ones(shape, np.float32),
        },
        "span": {"start_positions": starts, "end_positions": starts + 2},
    }
    columns["answerable"] = {
        **columns["span"],
        "is_impossible": rng.integers(0, 2, batch_size),
        "p_mask": ~mask | (np.arange(length) >= 9),
    }
    batch = {
        "input_ids": rng.integers(0, 50, mask.shape) * mask,
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, mask.shape) * mask,
        "example_weights": np.ones(batch_size, np.float32),
        **columns[task],
    }
    return {
        name: tf.constant(array, None if array.dtype == np.float32 else tf.int32)
        for name, array in batch.items()
    }


def padded(batch, more):
    """Returns the batch with `more` columns of padding."""
    result = dict(batch)
    for name in ("input_ids", "input_mask", "segment_ids", "p_mask"):
        if name in batch:
            paddings = [[0, 0]] * (len(batch[name].shape) - 1) + [[0, more]]
            result[name] = tf.pad(batch[name], paddings, constant_values=PAD_VALUES.get(name, 0))
    return result
