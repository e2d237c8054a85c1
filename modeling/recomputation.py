"""Activations computed twice rather than kept."""

import keras
import tensorflow as tf


def recomputed(function, x, variables):
    """Computes function(x), keeping for the backward pass nothing but what goes in.

    The weights go in as tensors: TensorFlow's own recomputation sees no gradient of what a
    closure captures, and in a loop on the device it may meet no variable.

    Args:
        function: of float[...], which it is differentiated by.
        x: float[...].
        variables: list of keras.Variable, all that `function` reads.

    Returns:
        What `function` returns.
    """

    def run(x, *weights):
        mapping = list(zip(variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=mapping, initialize_variables=False):
            return function(x)

    weights = [tf.convert_to_tensor(variable.value) for variable in variables]
    return tf.recompute_grad(run)(x, *weights)
