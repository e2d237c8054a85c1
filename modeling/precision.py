"""What is computed in half precision, and what is not.

Under bfloat16 and float16 the matrix products of encoder and heads are rounded; variables and
their gradients' sums, softmax, layer norms, GELU and losses are float32.
"""

import contextlib

import keras
import tensorflow as tf

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@contextlib.contextmanager
def policy_scope(policy):
    """Makes a Keras dtype policy, or its name, that of all layers that are made within."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def scope(precision):
    """Makes models that are made within compute in "float32", "bfloat16" or "float16"."""
    return policy_scope(POLICIES[precision])


def exact(x):
    """Returns float[...] as float32 where it is of half precision."""
    return tf.cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x
