"""The encoder: embeddings, their projection, the layers, the pooler.

Shapes: B batch, T tokens, E embedding, H hidden, R rows (B * T).
"""

import keras
import tensorflow as tf

from modeling import layers
from modeling.blocks import AttentionBlock, FeedForwardBlock, attention_bias


class Embeddings(keras.layers.Layer):
    """Sums word, position and segment embeddings, then LayerNorm and dropout, at width E."""

    def __init__(self, config, initializers):
        super().__init__()
        self.rate = config.hidden_dropout_prob

        def table(name, size):
            return self.add_weight(
                shape=(size, config.embedding_size), initializer=next(initializers), name=name
            )

        self.word = table("word_embeddings", config.vocab_size)
        self.position = table("position_embeddings", config.max_position_embeddings)
        self.token_type = table("token_type_embeddings", config.type_vocab_size)
        self.layer_norm = layers.LayerNorm(config.embedding_size)
        self.built = True

    def call(self, input_ids, segment_ids, seed=None):
        """Embeds a batch.

        Args:
            input_ids: int32[B, T], each in [0, vocab_size).
            segment_ids: int32[B, T], each in [0, type_vocab_size).
            seed: int32[2] of the step, or None: no dropout.

        Returns:
            float[B, T, E].

        Raises:
            ValueError: sequences longer than the position table.
        """
        length = layers.shape_of(input_ids)[1]
        longest = self.position.shape[0]
        if isinstance(length, int) and length > longest:
            raise ValueError(
                "A sequence must be at most `max_position_embeddings` pieces long. Received: "
                f"length {length}, max_position_embeddings={longest}."
            )
        words = layers.lookup(self.word.value, input_ids)
        segments = layers.lookup(self.token_type.value, segment_ids)
        embedded = words + segments + self.position.value[:length]
        return layers.dropout(self.layer_norm(embedded), self.rate, seed, site=0)

    def named_variables(self):
        return {
            "word_embeddings": self.word.value,
            "position_embeddings": self.position.value,
            "token_type_embeddings": self.token_type.value,
            **layers.named_variables({"LayerNorm": self.layer_norm}),
        }


class Encoder(keras.layers.Layer):
    """ALBERT's encoder (arXiv 1909.11942, section 3.1), with any sharing of its layers.

    Blocks are made once for each (block, inner place) that the config's layer plan names;
    layers that name the same block run the same weights. A plan with one block for all
    layers runs in a loop, whose graph is as large at 48 layers as at 2.

    Args:
        config: AlbertConfig.
        initializers: iterator of initializers, one for each kernel or table.
        unroll: lay the layers out one after another even if a loop would do; faster where
            XLA compiles for a CPU.
    """

    def __init__(self, config, initializers, unroll=False):
        super().__init__()
        self.plan = config.layer_plan
        self.num_inner = config.inner_group_num
        self.loops = len(set(self.plan)) == 1 < len(self.plan) and not unroll
        self.embeddings = Embeddings(config, initializers)
        self.projection = None
        if config.embedding_size != config.hidden_size:
            self.projection = layers.Dense(
                config.embedding_size, config.hidden_size, next(initializers)
            )
        num_attention, num_feed_forward = (
            1 + max(blocks) for blocks in zip(*self.plan, strict=True)
        )
        self.attention_blocks = [
            AttentionBlock(config, initializers) for _ in range(num_attention * self.num_inner)
        ]
        self.feed_forward_blocks = [
            FeedForwardBlock(config, initializers) for _ in range(num_feed_forward * self.num_inner)
        ]
        self.pooler = layers.Dense(config.hidden_size, config.hidden_size, next(initializers))
        self.built = True

    def call(self, batch, training=False, dropout_seed=None, return_hidden_states=False):
        """Encodes a batch.

        Args:
            batch: dict with `input_ids`, `input_mask` and `segment_ids`, int32[B, T].
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica. None draws one from
                TensorFlow's global generator.
            return_hidden_states: whether to return what each block gives, too.

        Returns:
            A dict: `sequence_output` float[B, T, H], `pooled_output` float[B, H], and on
            request `hidden_states`, a list of float[B, T, H]: the projected embeddings,
            then one for each block in the order they run.
        """
        seed = layers.step_seed(training, dropout_seed)
        embedded = self.embeddings(batch["input_ids"], batch["segment_ids"], seed=seed)
        batch_size, length, width = layers.shape_of(embedded)
        hidden = tf.reshape(embedded, [-1, width])  # float[R, E]
        if self.projection is not None:
            hidden = self.projection(hidden)  # float[R, H]
        bias = attention_bias(batch["input_mask"], hidden.dtype)

        if self.loops and not return_hidden_states:
            states = [self._run_loop(hidden, bias, seed)]
        else:
            states = self._run_unrolled(hidden, bias, seed)
        shape = [batch_size, length, hidden.shape[-1]]
        states = [tf.reshape(state, shape) for state in states]
        outputs = {
            "sequence_output": states[-1],
            "pooled_output": tf.tanh(self.pooler(states[-1][:, 0])),
        }
        if return_hidden_states:
            outputs["hidden_states"] = states
        return outputs

    def _run_layer(self, index, hidden, bias, seed, blocks=(0, 0)):
        """Yields the output of each inner block of layer `index`, an int or int32[]."""
        for inner in range(self.num_inner):
            attend, feed_forward = (block * self.num_inner + inner for block in blocks)
            place = index * self.num_inner + inner
            hidden = self.attention_blocks[attend](hidden, bias, block=place, seed=seed)
            hidden = self.feed_forward_blocks[feed_forward](hidden, block=place, seed=seed)
            yield hidden

    def _run_unrolled(self, hidden, bias, seed):
        """Returns the layers' input and the output of each block, float[R, H]."""
        states = [hidden]
        for index, blocks in enumerate(self.plan):
            states += self._run_layer(index, states[-1], bias, seed, blocks)
        return states

    def _run_loop(self, hidden, bias, seed):
        """Returns the last layer's output, float[R, H].

        The weights are read before the loop and held for its whole length, so that the loop
        sees tensors: it sums their gradients as it runs backwards.
        """
        shared = [
            (variable, tf.convert_to_tensor(variable.value))
            for block in self.attention_blocks + self.feed_forward_blocks
            for variable in block.variables
        ]

        def body(index, hidden):
            with keras.StatelessScope(state_mapping=shared, initialize_variables=False):
                *_, hidden = self._run_layer(index, hidden, bias, seed)
            return index + 1, hidden

        num_layers = len(self.plan)
        return tf.while_loop(
            lambda index, _: index < num_layers,
            body,
            (tf.constant(0), hidden),
            maximum_iterations=num_layers,
        )[1]

    def named_variables(self):
        """Returns dict Google's TF1 name -> tf.Variable.

        Block b of the plan is `group_<b>`, for its attention and its feed-forward network
        apart: Google's names where the plan is one of Google's, and the same idea beyond.
        """
        parts = {"bert/embeddings": self.embeddings}
        if self.projection is not None:
            parts["bert/encoder/embedding_hidden_mapping_in"] = self.projection
        named = layers.named_variables(parts)
        for blocks in (self.attention_blocks, self.feed_forward_blocks):
            for index, block in enumerate(blocks):
                group, inner = divmod(index, self.num_inner)
                name = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
                named |= layers.named_variables({name: block})
        return named | layers.named_variables({"bert/pooler/dense": self.pooler})
