"""Losses of fine-tuning, each as a sum and its count (why: see `modeling.losses`).

Each function takes a model's outputs and the batch and returns a dict of name to
(sum, count), both float32[]. `example_weights`, float32[B], is 0 on rows that only fill up a
batch: they add nothing to any sum, count or gradient. Losses are in nats, but for regression's.

Shapes: B batch, C classes or choices, T tokens.
"""

import tensorflow as tf

from modeling.losses import accuracy, cross_entropy

# The names whose means add up to the loss, whatever the task.
OBJECTIVES = ("loss",)


def weighted_sum(losses, weights):
    """Sums float32[B] over the rows that count; returns (sum, sum of the weights)."""
    return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)


def classification_losses(outputs, batch):
    """Computes cross-entropy and accuracy of one class a row.

    Args:
        outputs: dict with `logits` float32[B, C].
        batch: dict with `label_ids` int32[B], each in [0, C), and `example_weights`.

    Returns:
        `loss` and `accuracy`.
    """
    arguments = outputs["logits"], batch["label_ids"], batch["example_weights"]
    return {"loss": cross_entropy(*arguments), "accuracy": accuracy(*arguments)}


# A choice is a class of its row; padded ones are never the label and never the largest.
choice_losses = classification_losses


def regression_losses(outputs, batch):
    """Computes the squared error.

    Args:
        outputs: dict with `logits` float32[B, 1].
        batch: dict with `label_ids` float32[B] and `example_weights`.

    Returns:
        `loss`, in squared units of the label.
    """
    errors = tf.square(outputs["logits"][:, 0] - batch["label_ids"])
    return {"loss": weighted_sum(errors, batch["example_weights"])}


def multilabel_losses(outputs, batch):
    """Computes the cross-entropy of every label for itself, as a mean over the labels.

    Args:
        outputs: dict with `logits` float32[B, C].
        batch: dict with `label_ids` float32[B, C], each 0 or 1, and `example_weights`.

    Returns:
        `loss`.
    """
    losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=batch["label_ids"], logits=outputs["logits"]
    )
    losses = tf.reduce_mean(losses, axis=-1)
    return {"loss": weighted_sum(losses, batch["example_weights"])}


def span_losses(outputs, batch):
    """Computes the mean of start's and end's cross-entropy (SQuAD 1.1).

    As in the original, padding is among the positions to choose from.

    Args:
        outputs: dict with `start_logits` and `end_logits`, float32[B, T].
        batch: dict with `start_positions` and `end_positions`, int32[B], each in [0, T), and
            `example_weights`.

    Returns:
        `loss`, `start_loss`, `end_loss`.
    """
    weights = batch["example_weights"]
    start_loss = cross_entropy(outputs["start_logits"], batch["start_positions"], weights)
    end_loss = cross_entropy(outputs["end_logits"], batch["end_positions"], weights)
    mean = 0.5 * (start_loss[0] + end_loss[0]), start_loss[1]
    return {"loss": mean, "start_loss": start_loss, "end_loss": end_loss}


def answerable_span_losses(outputs, batch):
    """Computes half of start's and end's cross-entropy and half of answerability's (SQuAD 2.0).

    Args:
        outputs: dict with `start_log_probs` and `end_log_probs`, float32[B, T], and
            `cls_logits` float32[B].
        batch: dict with `start_positions` and `end_positions`, int32[B], each legal (0 where
            there is no answer), `is_impossible` int32[B] and `example_weights`.

    Returns:
        `loss`, `start_loss`, `end_loss`, `answerability_loss`.
    """
    weights = batch["example_weights"]
    start_losses, end_losses = (
        -tf.gather(outputs[f"{edge}_log_probs"], batch[f"{edge}_positions"], batch_dims=1)
        for edge in ("start", "end")
    )
    answer_losses = tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(batch["is_impossible"], tf.float32), logits=outputs["cls_logits"]
    )
    losses = {
        "loss": 0.5 * (start_losses + end_losses) + 0.5 * answer_losses,
        "start_loss": start_losses,
        "end_loss": end_losses,
        "answerability_loss": answer_losses,
    }
    return {name: weighted_sum(values, weights) for name, values in losses.items()}
