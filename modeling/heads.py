"""The two heads of pretraining; `SentenceHead` serves other tasks, too.

Shapes: B batch, P masked positions, E embedding, H hidden, V vocabulary, C classes.
"""

import keras
import tensorflow as tf

from modeling import layers
from modeling.activations import ACTIVATIONS


class MaskedLMHead(keras.layers.Layer):
    """Scores the vocabulary at the masked positions, with the embedding table as weights.

    (run_pretraining.py:294-337 of the original.)
    """

    def __init__(self, config, initializers):
        super().__init__()
        self.activation = ACTIVATIONS[config.hidden_act]
        self.transform = layers.Dense(config.hidden_size, config.embedding_size, next(initializers))
        self.layer_norm = layers.LayerNorm(config.embedding_size)
        self.output_bias = self.add_weight(
            shape=(config.vocab_size,), initializer="zeros", name="output_bias"
        )
        self.built = True

    def call(self, picked, table):
        """Computes the logits.

        Args:
            picked: float[B, P, H], the encoder's output at the masked positions.
            table: float[V, E], the encoder's word embeddings.

        Returns:
            float32[B, P, V].
        """
        batch, num_positions, width = layers.shape_of(picked)
        rows = tf.reshape(picked, [-1, width])
        rows = self.layer_norm(self.activation(self.transform(rows)))  # float[B * P, E]
        logits = tf.matmul(rows, tf.cast(table, rows.dtype), transpose_b=True)
        logits = tf.nn.bias_add(logits, self.output_bias.value)
        logits = tf.reshape(logits, [batch, num_positions, logits.shape[-1]])
        return tf.cast(logits, tf.float32)

    def named_variables(self):
        transform = {"transform/dense": self.transform, "transform/LayerNorm": self.layer_norm}
        return layers.named_variables(transform) | {"output_bias": self.output_bias.value}


class SentenceHead(keras.layers.Layer):
    """Classifies rows, such as pooled outputs; kernel [C, H], as the original's."""

    def __init__(self, config, initializers, num_classes=2):
        super().__init__()
        self.output_weights = self.add_weight(
            shape=(num_classes, config.hidden_size),
            initializer=next(initializers),
            name="output_weights",
        )
        self.output_bias = self.add_weight(
            shape=(num_classes,), initializer="zeros", name="output_bias"
        )
        self.built = True

    def call(self, pooled_output):
        """Computes the logits.

        Args:
            pooled_output: float[B, H].

        Returns:
            float32[B, C].
        """
        logits = tf.matmul(pooled_output, self.output_weights.value, transpose_b=True)
        return tf.cast(tf.nn.bias_add(logits, self.output_bias.value), tf.float32)

    def named_variables(self):
        return {
            "output_weights": self.output_weights.value,
            "output_bias": self.output_bias.value,
        }
