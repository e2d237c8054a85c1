"""Elementwise arithmetic in one pass over memory.

TensorFlow's operations each read and write whole tensors; on a CPU those of GELU and LayerNorm
then cost a tenth of a training step. XLA makes one loop of them.
"""

import contextlib
import contextvars
import functools

import tensorflow as tf

_uses_xla = contextvars.ContextVar("uses_xla", default=True)


@contextlib.contextmanager
def without_xla():
    """Makes graphs that are traced within of TensorFlow's own operations, for use elsewhere.

    What reads a saved graph may have no XLA, as TFLite and ONNX.
    """
    token = _uses_xla.set(False)
    try:
        yield
    finally:
        _uses_xla.reset(token)


@functools.cache
def has_xla():
    """Says whether XLA compiles for this process's own devices; the build for TPUs has none."""
    with tf.init_scope():
        try:
            tf.function(tf.negative, jit_compile=True)(tf.zeros([]))
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):
            return False
    return True


def one_pass(function):
    """Returns a function that computes the same as `function`, compiled to few passes.

    Under TPUStrategy everything is compiled already, and `function` itself is called; also
    `without_xla`, and where there is none.

    Args:
        function: of tensors, of elementwise operations and reductions over the last dimension.
    """
    compiled = tf.function(function, jit_compile=True)

    def call(*tensors):
        is_tpu = isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
        fuses = _uses_xla.get() and not is_tpu and has_xla()
        return compiled(*tensors) if fuses else function(*tensors)

    return call
