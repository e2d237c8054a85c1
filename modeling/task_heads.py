"""The heads of question answering with unanswerable questions (SQuAD 2.0).

They are XLNet's, which the original took over (squad_utils.py, `create_v2_model`): the end is
told given a start, and whether there is an answer is told given where it would start.

Shapes: B batch, T tokens, H hidden, K starts to go on from.
"""

import keras
import tensorflow as tf

from modeling import layers

# The encoder's sites are 0 and above.
HEAD_DROPOUT_SITE = -1
ILLEGAL = -1e30  # The logit of a position that cannot be; XLNet's and the original's.


def position_log_probs(logits, illegal):
    """Turns scores of positions into log-probabilities.

    Args:
        logits: float[..., T].
        illegal: bool[..., T], positions that cannot be; some may be legal nowhere.

    Returns:
        float32[..., T], in nats; about -1e30 where illegal, yet finite.
    """
    logits = tf.cast(logits, tf.float32)
    return tf.nn.log_softmax(tf.where(illegal, ILLEGAL, logits))


def likeliest(log_probs, number):
    """Picks the likeliest positions; in a text of fewer, the last one fills up, at -1e30.

    Args:
        log_probs: float32[..., T].
        number: int, K.

    Returns:
        (float32[..., K], int32[..., K]): log-probabilities, the highest first, and positions.
    """
    length = layers.shape_of(log_probs)[-1]
    more = [[0, 0]] * (len(log_probs.shape) - 1) + [[0, tf.maximum(number - length, 0)]]
    log_probs, positions = tf.math.top_k(tf.pad(log_probs, more, constant_values=ILLEGAL), number)
    return log_probs, tf.minimum(positions, length - 1)


class StartHead(keras.layers.Layer):
    """Says where an answer starts."""

    def __init__(self, config, initializers):
        super().__init__()
        self.dense = layers.Dense(config.hidden_size, 1, next(initializers))
        self.built = True

    def call(self, hidden, illegal):
        """Computes log-probabilities.

        Args:
            hidden: float[B, T, H].
            illegal: bool[B, T].

        Returns:
            float32[B, T].
        """
        batch, length, width = layers.shape_of(hidden)
        logits = self.dense(tf.reshape(hidden, [-1, width]))
        return position_log_probs(tf.reshape(logits, [batch, length]), illegal)

    def named_variables(self):
        return layers.named_variables({"dense": self.dense})


class EndHead(keras.layers.Layer):
    """Says where an answer ends, given where it starts."""

    def __init__(self, config, initializers):
        super().__init__()
        width = config.hidden_size
        self.dense_0 = layers.Dense(2 * width, width, next(initializers))
        self.layer_norm = layers.LayerNorm(width)
        self.dense_1 = layers.Dense(width, 1, next(initializers))
        self.built = True

    def call(self, hidden, starts, illegal):
        """Computes log-probabilities.

        The first layer sees a token beside the start. Its two halves are applied apart and
        added, so that neither is repeated for each pair of them.

        Args:
            hidden: float[B, T, H].
            starts: int32[B, K], each in [0, T).
            illegal: bool[B, T].

        Returns:
            float32[B, K, T].
        """
        batch, length, width = layers.shape_of(hidden)
        num_starts = layers.shape_of(starts)[1]
        of_token, of_start = tf.split(tf.convert_to_tensor(self.dense_0.kernel.value), 2)
        tokens = tf.matmul(tf.reshape(hidden, [-1, width]), of_token)
        tokens = tf.nn.bias_add(tokens, self.dense_0.bias.value)
        tokens = tf.reshape(tokens, [batch, 1, length, width])
        picked = tf.gather(hidden, starts, batch_dims=1)  # float[B, K, H]
        picked = tf.matmul(tf.reshape(picked, [-1, width]), of_start)
        picked = tf.reshape(picked, [batch, num_starts, 1, width])
        pairs = self.layer_norm(tf.tanh(tokens + picked))  # float[B, K, T, H]
        logits = self.dense_1(tf.reshape(pairs, [-1, width]))
        logits = tf.reshape(logits, [batch, num_starts, length])
        return position_log_probs(logits, illegal[:, tf.newaxis])

    def named_variables(self):
        parts = {"dense_0": self.dense_0, "LayerNorm": self.layer_norm, "dense_1": self.dense_1}
        return layers.named_variables(parts)


class AnswerabilityHead(keras.layers.Layer):
    """Says whether a question has no answer in this text."""

    def __init__(self, config, initializers, dropout):
        super().__init__()
        width = config.hidden_size
        self.rate = dropout
        self.dense_0 = layers.Dense(2 * width, width, next(initializers))
        self.kernel = self.add_weight(
            shape=(width, 1), initializer=next(initializers), name="kernel"
        )
        self.built = True

    def call(self, hidden, start_log_probs, seed=None):
        """Computes the logits.

        Args:
            hidden: float[B, T, H].
            start_log_probs: float32[B, T].
            seed: int32[2] of the step, or None: no dropout.

        Returns:
            float32[B], above 0 where "no answer" is the likelier.
        """
        probabilities = tf.cast(tf.exp(start_log_probs), hidden.dtype)
        start = tf.linalg.matvec(hidden, probabilities, transpose_a=True)  # float[B, H]
        features = tf.tanh(self.dense_0(tf.concat([start, hidden[:, 0]], axis=-1)))
        features = layers.dropout(features, self.rate, seed, HEAD_DROPOUT_SITE)
        return tf.cast(tf.matmul(features, self.kernel.value)[:, 0], tf.float32)

    def named_variables(self):
        return {
            **layers.named_variables({"dense_0": self.dense_0}),
            "dense_1/kernel": self.kernel.value,
        }
