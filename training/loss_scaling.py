"""The loss scale of float16, whose smallest gradients are 0 unless the loss is multiplied.

(arXiv 1710.03740, section 3.2.) A non-finite gradient halves it and skips the step; many good
steps double it.
"""

import tensorflow as tf

FIRST_SCALE = 2.0**15  # TensorFlow's and Keras's.
LEAST_SCALE = 1.0  # Below it a scale only rounds away what float16 can hold.
GOOD_STEPS = 2_000  # TensorFlow's and Keras's.


class LossScale:
    """A loss scale that follows the gradients; all scales are powers of 2, so exact.

    Attributes:
        value: float32[], the scale of the next step.
        good_steps: int64[], steps applied since it last changed.
    """

    def __init__(self):
        """Creates the variables; call it within the scope of the strategy."""
        self.value = tf.Variable(FIRST_SCALE, trainable=False)
        self.good_steps = tf.Variable(tf.zeros([], tf.int64), trainable=False)

    def variables(self):
        """Returns a dict of saved name to tf.Variable."""
        return {"loss_scale": self.value, "loss_scale_good_steps": self.good_steps}

    def update(self, finite):
        """Counts a step; call it in cross-replica context.

        Args:
            finite: bool[], whether the step was applied.
        """
        good_steps = tf.where(finite, self.good_steps + 1, 0)
        grows = good_steps == GOOD_STEPS
        scale = self.value * tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.value.assign(tf.maximum(scale, LEAST_SCALE))
        self.good_steps.assign(tf.where(grows, tf.zeros([], tf.int64), good_steps))
