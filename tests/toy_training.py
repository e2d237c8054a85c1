"""A classifier of a few hundred weights, for tests of the training loop: it trains in milliseconds.

Letters: B batch, C classes. It has what can go wrong: a table that is gathered from (a
sparse gradient), weights of 0 and 1 spread unevenly over the batch, two objectives with counts
of their own, dropout.
"""

import numpy as np
import tensorflow as tf

from training import config, optimizers, step

NUM_CLASSES = 10
OBJECTIVES = ("word_loss", "parity_loss")


def settings(**changes):
    defaults = {
        "learning_rate": 0.05,
        "num_train_steps": 10,
        "num_warmup_steps": 2,
        "train_batch_size": 8,
        "iterations_per_loop": 5,
        "save_checkpoints_steps": 4,
        "best_metric": "word_accuracy",
    }
    return config.TrainConfig(**{**defaults, **changes})


def examples(num_examples=80, seed=0):
    """Returns a dict of arrays; the class of input x is 3 x + 1, and 1 in 3 does not count."""
    generator = np.random.default_rng(seed)
    inputs = generator.integers(0, NUM_CLASSES, num_examples).astype(np.int32)
    return {
        "inputs": inputs,
        "labels": (3 * inputs + 1) % NUM_CLASSES,
        "weights": (np.arange(num_examples) // 2 % 3 != 0).astype(np.float32),
    }


def dataset(arrays, batch_size=8):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size, drop_remainder=True)


def cross_entropy(logits, labels, weights):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)  # float32[B]
    return tf.reduce_sum(losses * weights), tf.reduce_sum(weights)


def make(strategy, dropout=0.0, **changes):
    """Returns (train step, evaluation step) that share one set of weights."""
    generator = np.random.default_rng(1)
    shapes = {
        "embedding/table": (NUM_CLASSES, 6),
        "word/kernel": (6, NUM_CLASSES),
        "word/bias": (NUM_CLASSES,),
        "parity/kernel": (6, 2),
    }
    chosen = settings(**changes)
    with strategy.scope():
        variables = {
            name: tf.Variable(generator.normal(size=shape).astype(np.float32))
            for name, shape in shapes.items()
        }
        optimizer = optimizers.Optimizer(variables, kind=chosen.optimizer)
        state = step.TrainingState(variables, optimizer)

    def forward(batch, dropout_seed):
        hidden = tf.gather(variables["embedding/table"], batch["inputs"])  # float32[B, 6]
        if dropout_seed is not None and dropout:
            hidden = tf.nn.experimental.stateless_dropout(hidden, dropout, dropout_seed)
        logits = hidden @ variables["word/kernel"] + variables["word/bias"]  # float32[B, C]
        right = tf.cast(tf.argmax(logits, -1, tf.int32) == batch["labels"], tf.float32)
        everywhere = tf.ones_like(batch["weights"])
        return {
            "word_loss": cross_entropy(logits, batch["labels"], batch["weights"]),
            "parity_loss": cross_entropy(
                hidden @ variables["parity/kernel"], batch["labels"] % 2, everywhere
            ),
            "word_accuracy": (
                tf.reduce_sum(right * batch["weights"]),
                tf.reduce_sum(batch["weights"]),
            ),
        }

    return (
        step.TrainStep(forward, OBJECTIVES, state=state, config=chosen, strategy=strategy),
        step.EvaluationStep(forward, OBJECTIVES, strategy),
    )


def values(state):
    """Returns the state as arrays, by the names a checkpoint gives them."""
    return {
        name: (v.values[0] if hasattr(v, "values") else v).numpy()
        for name, v in state.variables().items()
    }
