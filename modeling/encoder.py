"""The encoder: embeddings, their projection, the layers, the pooler.

Shapes: B batch, T tokens, Q positions that are read, E embedding, H hidden, R rows (B * T).
"""

import keras
import tensorflow as tf

from modeling import layers
from modeling.blocks import AttentionBlock, FeedForwardBlock, attention_bias
from modeling.recomputation import recomputed


def no_positions(input_ids):
    """Returns int32[B, 0], for a head that reads [CLS] alone; `input_ids` is int32[B, T]."""
    return tf.zeros([layers.shape_of(input_ids)[0], 0], tf.int32)


class Embeddings(keras.layers.Layer):
    """Sums word, position and segment embeddings, then LayerNorm and dropout, at width E."""

    def __init__(self, config, initializers):
        super().__init__(dtype="float32")  # Sums of many gradients, which half precision swallows.
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

    Attributes:
        recompute: bool, whether training keeps no activations of a layer but its input, and
            computes the others again. May be set until a graph is built.
    """

    def __init__(self, config, initializers, unroll=False):
        # The loop's weights, and the sums of their gradients; each block rounds for itself.
        super().__init__(dtype="float32")
        self.recompute = False
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

    def call(
        self,
        batch,
        training=False,
        dropout_seed=None,
        return_hidden_states=False,
        positions=None,
    ):
        """Encodes a batch.

        The last layer computes no more than is read, unless hidden states are asked for: the
        same numbers but for rounding, and but for its dropout, which draws others.

        Args:
            batch: dict with `input_ids`, `input_mask` and `segment_ids`, int32[B, T].
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica. None draws one from
                TensorFlow's global generator.
            return_hidden_states: whether to return what each block gives, too.
            positions: int32[B, Q], where the last layer's output is read beside [CLS]; None:
                everywhere.

        Returns:
            A dict: `sequence_output` float[B, T, H], or float[B, Q, H] at `positions`;
            `pooled_output` float[B, H]; on request `hidden_states`, a list of float[B, T, H]:
            the projected embeddings, then one for each block in the order they run.
        """
        seed = layers.step_seed(training, dropout_seed)
        embedded = self.embeddings(batch["input_ids"], batch["segment_ids"], seed=seed)
        batch_size, length, width = layers.shape_of(embedded)
        hidden = tf.reshape(embedded, [-1, width])  # float[R, E]
        if self.projection is not None:
            hidden = self.projection(hidden)  # float[R, H]
        bias = attention_bias(batch["input_mask"], hidden.dtype)

        read = None
        if positions is not None and not return_hidden_states:
            read = tf.pad(positions, [[0, 0], [1, 0]])  # int32[B, 1 + Q], [CLS] first.
        if self.loops and not return_hidden_states:
            states = [self._run_loop(hidden, bias, seed, read)]
        else:
            states = self._run_unrolled(hidden, bias, seed, read)
        width = hidden.shape[-1]
        if read is not None:
            last = tf.reshape(states[-1], [batch_size, layers.shape_of(read)[1], width])
            return {"sequence_output": last[:, 1:], "pooled_output": self._pool(last)}
        states = [tf.reshape(state, [batch_size, length, width]) for state in states]
        outputs = {"sequence_output": states[-1], "pooled_output": self._pool(states[-1])}
        if positions is not None:
            outputs["sequence_output"] = layers.pick(states[-1], positions)
        if return_hidden_states:
            outputs["hidden_states"] = states
        return outputs

    def _pool(self, sequences):
        return tf.tanh(self.pooler(sequences[:, 0]))

    def _run_block(self, blocks, place, hidden, bias, seed, read):
        """Returns the output of a pair of blocks that runs as number `place`, an int or int32[].

        Args:
            blocks: (attention block, feed-forward block), numbers.
            place: int or int32[].
            hidden: float[R, H].
            bias: of `attention_bias`.
            seed: int32[2], or None.
            read: int32[B, Q], where the output is computed; None: everywhere.
        """
        attention = self.attention_blocks[blocks[0]]
        feed_forward = self.feed_forward_blocks[blocks[1]]

        def run(hidden):
            hidden = attention(hidden, bias, block=place, seed=seed, positions=read)
            return feed_forward(hidden, block=place, seed=seed)

        if self.recompute:
            return recomputed(run, hidden, attention.variables + feed_forward.variables)
        return run(hidden)

    def _run_unrolled(self, hidden, bias, seed, read):
        """Returns the layers' input and the output of each block, float[R, H] but for the last."""
        states = [hidden]
        runs = [
            tuple(block * self.num_inner + inner for block in blocks)
            for blocks in self.plan
            for inner in range(self.num_inner)
        ]
        for place, blocks in enumerate(runs):
            at = read if place == len(runs) - 1 else None
            states.append(self._run_block(blocks, place, states[-1], bias, seed, at))
        return states

    def _run_loop(self, hidden, bias, seed, read):
        """Returns the last layer's output, float[R, H], or float[B * Q, H] where `read`.

        The weights are read before the loop and held for its whole length, so that the loop
        sees tensors: it sums their gradients as it runs backwards. A last layer that computes
        less has a shape of its own and follows the loop.
        """
        shared = [
            (variable, tf.convert_to_tensor(variable.value))
            for block in self.attention_blocks + self.feed_forward_blocks
            for variable in block.variables
        ]

        def run_layer(index, hidden, read=None):
            with keras.StatelessScope(state_mapping=shared, initialize_variables=False):
                for inner in range(self.num_inner):
                    place = index * self.num_inner + inner
                    at = read if inner == self.num_inner - 1 else None
                    hidden = self._run_block((inner, inner), place, hidden, bias, seed, at)
            return hidden

        num_looped = len(self.plan) - (read is not None)
        hidden = tf.while_loop(
            lambda index, _: index < num_looped,
            lambda index, hidden: (index + 1, run_layer(index, hidden)),
            (tf.constant(0), hidden),
            maximum_iterations=num_looped,
        )[1]
        return hidden if read is None else run_layer(num_looped, hidden, read)

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
