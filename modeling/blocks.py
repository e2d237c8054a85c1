"""The two halves of an encoder layer: self-attention, and the feed-forward network.

Each ends with its residual and its LayerNorm ("post-LN", as BERT and the original). Hidden
states stay flat, float[R, H] with R = B * T rows: all but the attention itself is a function
of rows, and a matrix product of two dimensions is TensorFlow's fastest.

Shapes: B batch, T tokens, Q of them that ask, H hidden, N heads, D per head (H / N), R rows
(B * T).
"""

import keras
import tensorflow as tf

from modeling import layers
from modeling.activations import ACTIVATIONS
from modeling.precision import exact

MASKED = -10000.0  # Added to the scores of padding; modeling.py:824 of the original.


def attention_bias(input_mask, dtype):
    """Says what to add to the scores so that nobody attends to padding.

    Padding itself still attends, to the real pieces; nobody reads what it gets.

    Args:
        input_mask: int32[B, T], 1 on real pieces.
        dtype: of the scores.

    Returns:
        dtype[B, 1, 1, T], 0 on real pieces.
    """
    batch, length = layers.shape_of(input_mask)
    # Not by newaxis, which TFLite takes once at most where sizes are not known.
    mask = tf.reshape(tf.cast(input_mask, dtype), [batch, 1, 1, length])
    return (1 - mask) * MASKED


def attention(query, key, value, bias, dropout):
    """Scaled dot-product attention (arXiv 1706.03762, section 3.2.1); its softmax is float32.

    Args:
        query: float[B, N, Q, D].
        key, value: float[B, N, T, D].
        bias: float[B, 1, 1, T], added to the scores.
        dropout: function applied to the probabilities.

    Returns:
        float[B, N, Q, D].
    """
    query *= query.shape[-1] ** -0.5
    scores = exact(tf.matmul(query, key, transpose_b=True)) + exact(bias)  # float[B, N, Q, T]
    return tf.matmul(dropout(tf.cast(tf.nn.softmax(scores), value.dtype)), value)


def dropout_site(block, place):
    """Numbers the three dropouts of each block; the embeddings' is 0."""
    return 1 + 3 * block + place


class AttentionBlock(keras.layers.Layer):
    """Multi-head self-attention with its output projection, residual and LayerNorm."""

    def __init__(self, config, initializers):
        super().__init__()
        width = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.rates = config.attention_probs_dropout_prob, config.hidden_dropout_prob
        self.query, self.key, self.value, self.output_dense = (
            layers.Dense(width, width, next(initializers)) for _ in range(4)
        )
        self.layer_norm = layers.LayerNorm(width)
        self.built = True

    def call(self, hidden, bias, block=0, seed=None, positions=None):
        """Runs the block.

        Args:
            hidden: float[R, H].
            bias: float[B, 1, 1, T] of `attention_bias`.
            block: int or int32[], this block's place among all that are run.
            seed: int32[2] of the step, or None: no dropout.
            positions: int32[B, Q], where the block's output is asked for; None: everywhere.

        Returns:
            float[R, H], or float[B * Q, H].
        """
        batch, _, _, length = layers.shape_of(bias)
        width = hidden.shape[-1]
        everywhere = hidden
        if positions is not None:
            hidden = layers.pick(tf.reshape(hidden, [batch, length, width]), positions)
            hidden = tf.reshape(hidden, [-1, width])  # float[B * Q, H]

        def heads(dense, rows, num_rows):
            split = tf.reshape(
                dense(rows), [batch, num_rows, self.num_heads, width // self.num_heads]
            )
            return tf.transpose(split, [0, 2, 1, 3])  # float[B, N, num_rows, D]

        num_asked = length if positions is None else layers.shape_of(positions)[1]
        context = attention(
            heads(self.query, hidden, num_asked),
            heads(self.key, everywhere, length),
            heads(self.value, everywhere, length),
            bias,
            lambda x: layers.dropout(x, self.rates[0], seed, dropout_site(block, 0)),
        )
        context = tf.reshape(tf.transpose(context, [0, 2, 1, 3]), [-1, width])
        output = self.output_dense(context)
        output = layers.dropout(output, self.rates[1], seed, dropout_site(block, 1))
        return self.layer_norm(output + hidden)

    def named_variables(self):
        """Returns the variables by Google's names below `inner_group_<i>`."""
        parts = {
            "attention_1/self/query": self.query,
            "attention_1/self/key": self.key,
            "attention_1/self/value": self.value,
            "attention_1/output/dense": self.output_dense,
            "LayerNorm": self.layer_norm,
        }
        return layers.named_variables(parts)


class FeedForwardBlock(keras.layers.Layer):
    """The feed-forward network with its residual and LayerNorm."""

    def __init__(self, config, initializers):
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.activation = ACTIVATIONS[config.hidden_act]
        self.rate = config.hidden_dropout_prob
        self.intermediate = layers.Dense(width, inner, next(initializers))
        self.output_dense = layers.Dense(inner, width, next(initializers))
        self.layer_norm = layers.LayerNorm(width)
        self.built = True

    def call(self, hidden, block=0, seed=None):
        """Runs the block; arguments and result as AttentionBlock's."""
        output = self.output_dense(self.activation(self.intermediate(hidden)))
        output = layers.dropout(output, self.rate, seed, dropout_site(block, 2))
        return self.layer_norm(output + hidden)

    def named_variables(self):
        """Returns the variables by Google's names below `inner_group_<i>`."""
        parts = {
            "ffn_1/intermediate/dense": self.intermediate,
            "ffn_1/intermediate/output/dense": self.output_dense,
            "LayerNorm_1": self.layer_norm,
        }
        return layers.named_variables(parts)
