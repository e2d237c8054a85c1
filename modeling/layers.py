"""The small layers everything is made of: dense, LayerNorm, embedding look-up, dropout.

Layers own the variables; the arithmetic is in functions beside them. Shapes: R rows (any
leading dimensions, flattened), I and O widths in and out, V entries of a table, E its width.
"""

import keras
import tensorflow as tf

from modeling.fusion import one_pass
from modeling.precision import exact

EPSILON = 1e-12  # Of the LayerNorm; modeling.py:429 of the original.


def initializers(stddev, seed):
    """Yields an initializer for each kernel or table, all different, all told by `seed`.

    Args:
        stddev: standard deviation of the normal distribution, which is cut at twice that.
        seed: int.
    """
    while True:
        yield keras.initializers.TruncatedNormal(stddev=stddev, seed=seed)
        seed += 1


def named_variables(parts):
    """Gathers the variables of several layers, each name below its layer's.

    Args:
        parts: dict name -> anything with a method `named_variables`.

    Returns:
        dict name -> tf.Variable.
    """
    return {
        f"{name}/{rest}": variable
        for name, layer in parts.items()
        for rest, variable in layer.named_variables().items()
    }


def shape_of(tensor):
    """Returns the shape as a list: ints where known, scalar tensors where not."""
    dynamic = None if tensor.shape.is_fully_defined() else tf.shape(tensor)
    return [dynamic[i] if size is None else size for i, size in enumerate(tensor.shape)]


@tf.custom_gradient
def layer_norm(x, gamma, beta):
    """Normalises the last dimension (arXiv 1607.06450), then scales and shifts it.

    Statistics are float32 under mixed precision. The gradient computes them again, so that
    only `x` is kept.

    Args:
        x: float[..., H].
        gamma: float[H].
        beta: float[H].

    Returns:
        float[..., H], of x's dtype.
    """
    return normalise(x, gamma, beta), lambda upstream: layer_norm_gradient(x, gamma, beta, upstream)


def unit_rows(x):
    """Returns rows of mean 0 and variance 1, and what the centred rows were multiplied by."""
    centred = exact(x)
    centred -= tf.reduce_mean(centred, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    scale = tf.math.rsqrt(variance + EPSILON)
    return centred * scale, scale


def normalise(x, gamma, beta):
    unit, _ = unit_rows(x)
    return tf.cast(unit * tf.cast(gamma, unit.dtype) + tf.cast(beta, unit.dtype), x.dtype)


@one_pass
def layer_norm_gradient(x, gamma, beta, upstream):
    unit, scale = unit_rows(x)
    upstream = tf.cast(upstream, unit.dtype)
    rows = list(range(x.shape.rank - 1))
    d_gamma = tf.reduce_sum(upstream * unit, axis=rows)
    d_beta = tf.reduce_sum(upstream, axis=rows)
    d_unit = upstream * tf.cast(gamma, unit.dtype)
    mean = tf.reduce_mean(d_unit, axis=-1, keepdims=True)
    projection = tf.reduce_mean(d_unit * unit, axis=-1, keepdims=True)
    d_x = (d_unit - mean - unit * projection) * scale
    return tf.cast(d_x, x.dtype), tf.cast(d_gamma, gamma.dtype), tf.cast(d_beta, beta.dtype)


def lookup(table, ids):
    """Picks rows of a table; the gradient is dense.

    A dense gradient has the true norm. Differs from the original on CPU and GPU, whose
    clipping takes the norm of un-summed rows; it is what the original does on TPU.

    Args:
        table: float[V, E].
        ids: int32[...], each in [0, V). On a CPU another id is an error that names it; GPU
            and TPU do not check.

    Returns:
        float[..., E].
    """

    @tf.custom_gradient
    def rows(table):
        def gradient(upstream):
            return tf.math.unsorted_segment_sum(upstream, ids, shape_of(table)[0])

        return tf.gather(table, ids), gradient

    return rows(tf.convert_to_tensor(table))


def pick(sequences, positions):
    """Picks rows of each sequence.

    Args:
        sequences: float[B, T, H].
        positions: int32[B, Q], each in [0, T).

    Returns:
        float[B, Q, H].
    """
    return tf.gather(sequences, positions, batch_dims=1)


def step_seed(training, seed=None):
    """Returns the seed of a step's dropout.

    Args:
        training: whether dropout applies.
        seed: int32[2], other for each step and replica. None draws one from TensorFlow's
            global generator.

    Returns:
        int32[2], or None: no dropout.
    """
    if training and seed is None:
        return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)
    return seed if training else None


def dropout(x, rate, seed, site):
    """Sets each element to 0 with probability `rate` and scales up the rest.

    Stateless, so a resumed run draws what an unbroken one would. Random bits are compared
    as integers: XLA turns bits into floats otherwise than TensorFlow.

    Args:
        x: float[...].
        rate: float in [0, 1), known when the graph is built; at 0 nothing is added to it.
        seed: int32[2] of the step and replica, or None: no dropout.
        site: int or int32[], the place in the model; each place draws its own bits.

    Returns:
        float[...].
    """
    if seed is None or rate == 0:
        return x
    bits = tf.random.stateless_uniform(
        tf.shape(x),
        tf.random.experimental.stateless_fold_in(seed, site),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
    )
    threshold = tf.constant(round(rate * 2**32), tf.uint32)
    return tf.where(bits >= threshold, x * (1 / (1 - rate)), tf.zeros([], x.dtype))


class Dense(keras.layers.Layer):
    """An affine map of rows: float[R, I] -> float[R, O]."""

    def __init__(self, input_size, output_size, initializer):
        super().__init__()
        self.kernel = self.add_weight(
            shape=(input_size, output_size), initializer=initializer, name="kernel"
        )
        self.bias = self.add_weight(shape=(output_size,), initializer="zeros", name="bias")
        self.built = True

    def call(self, rows):
        return tf.nn.bias_add(tf.matmul(rows, self.kernel.value), self.bias.value)

    def named_variables(self):
        return {"kernel": self.kernel.value, "bias": self.bias.value}


class LayerNorm(keras.layers.Layer):
    """`layer_norm` with its variables."""

    def __init__(self, width):
        super().__init__()
        self.gamma = self.add_weight(shape=(width,), initializer="ones", name="gamma")
        self.beta = self.add_weight(shape=(width,), initializer="zeros", name="beta")
        self.built = True

    def call(self, x):
        return layer_norm(x, *map(tf.convert_to_tensor, (self.gamma.value, self.beta.value)))

    def named_variables(self):
        return {"gamma": self.gamma.value, "beta": self.beta.value}
