"""The activations a config may name; GELU keeps its input alone for the backward pass."""

import math

import tensorflow as tf

from modeling.fusion import one_pass
from modeling.precision import exact

LINEAR = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR


@tf.custom_gradient
def gelu(x):
    """Gaussian error linear unit, tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).

    Google's configs mean this form by `gelu` (modeling.py:311). It is written with a sigmoid,
    since 1/2 (1 + tanh(z)) = sigmoid(2z), in as few passes over memory as TensorFlow's
    operations allow: on a CPU each costs as much as it reads and writes. The gradient
    computes the sigmoid again, so that of all between only `x` is kept. In half precision
    x^3 would overflow, and infinity times 0 is no number: between is float32.

    Args:
        x: float[...].

    Returns:
        float[...].
    """

    return gelu_value(x), lambda upstream: gelu_gradient(x, upstream)


@one_pass
def gelu_value(x):
    wide = exact(x)
    return tf.cast(wide * tf.sigmoid(wide * (tf.square(wide) * CUBIC + LINEAR)), x.dtype)


@one_pass
def gelu_gradient(x, upstream):
    wide = exact(x)
    squared = tf.square(wide)
    argument = wide * (squared * CUBIC + LINEAR)
    slope = wide * (squared * (3 * CUBIC) + LINEAR)  # x times the argument's slope.
    # sigmoid(-z) is 1 - sigmoid(z) without its cancellation.
    gradient = exact(upstream) * tf.sigmoid(argument) * (1 + slope * tf.sigmoid(-argument))
    return tf.cast(gradient, x.dtype)


def gelu_erf(x):
    """Gaussian error linear unit, exact form: x/2 (1 + erf(x / sqrt(2))), as PyTorch's BERT."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS = {"gelu": gelu, "gelu_erf": gelu_erf, "relu": tf.nn.relu, "tanh": tf.tanh}
