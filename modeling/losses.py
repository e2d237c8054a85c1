"""Losses and accuracies of pretraining, each as a sum and its count.

Sum and count stay apart until the end: the training loop divides by the count of the whole
batch, so neither loss nor gradient depends on the number of replicas.

Shapes: B batch, P masked positions, V vocabulary, C classes.
"""

import tensorflow as tf

# The pairs whose means add up to the loss, by what the sentence head is taught.
OBJECTIVES = {
    "sop": ("masked_lm_loss", "sentence_order_loss"),
    "nsp": ("masked_lm_loss", "sentence_order_loss"),
    "none": ("masked_lm_loss",),
}


def cross_entropy(logits, labels, weights):
    """Sums the cross-entropy over the examples that count.

    Differs from the original, which divides by each shard's own count
    (run_pretraining.py:333-335).

    Args:
        logits: float[..., C], unnormalised.
        labels: int32[...], each in [0, C).
        weights: float32[...], 1 on what counts, 0 on padding.

    Returns:
        (float32[], float32[]): summed loss in nats, sum of the weights.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )
    return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)


def accuracy(logits, labels, weights):
    """Counts the examples whose largest logit is the label's; arguments as cross_entropy's.

    Returns:
        (float32[], float32[]): weighted number of right ones, sum of the weights.
    """
    right = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
    return tf.reduce_sum(tf.cast(right, tf.float32) * weights), tf.reduce_sum(weights)


def pretraining_losses(outputs, batch):
    """Computes what pretraining minimises and reports.

    Args:
        outputs: dict of PretrainingModel: `masked_lm_logits` float32[B, P, V] and
            `sentence_order_logits` float32[B, 2].
        batch: dict with `masked_lm_ids` int32[B, P], `masked_lm_weights` float32[B, P],
            `next_sentence_labels` int32[B] and `example_weights` float32[B].

    Returns:
        dict name -> (sum, count), both float32[]: `masked_lm_loss` and
        `sentence_order_loss` in nats, `masked_lm_accuracy` and `sentence_order_accuracy` in
        right predictions.
    """
    masked_lm = outputs["masked_lm_logits"], batch["masked_lm_ids"], batch["masked_lm_weights"]
    sentence_order = (
        outputs["sentence_order_logits"],
        batch["next_sentence_labels"],
        batch["example_weights"],
    )
    return {
        "masked_lm_loss": cross_entropy(*masked_lm),
        "sentence_order_loss": cross_entropy(*sentence_order),
        "masked_lm_accuracy": accuracy(*masked_lm),
        "sentence_order_accuracy": accuracy(*sentence_order),
    }
