"""The models: an encoder with heads, from a batch to logits.

Shapes: B batch, T tokens, P masked positions, V vocabulary.
"""

import dataclasses

import keras

from modeling import layers, precision
from modeling.config import AlbertConfig
from modeling.encoder import Encoder
from modeling.heads import MaskedLMHead, SentenceHead


class EncoderModel(keras.Model):
    """What all models share: how Keras saves them and makes them again.

    Attributes:
        settings: dict, the arguments of the constructor, with the config as a dict.
    """

    # `fit` compiles with XLA where a model allows it; on a CPU that is slower and takes long.
    supports_jit = False

    def get_config(self):
        return {**super().get_config(), **self.settings}

    @classmethod
    def from_config(cls, config):
        settings = dict(config)
        with precision.policy_scope(keras.dtype_policies.get(settings["dtype"])):
            return cls(AlbertConfig.from_dict(settings.pop("config")), **settings)


@keras.saving.register_keras_serializable(package="albert")
class PretrainingModel(EncoderModel):
    """ALBERT with its masked-LM and sentence-order heads.

    All variables exist when the constructor returns, and nothing restored into them is lost.

    Args:
        config: AlbertConfig.
        seed: int, tells the initial weights.
        unroll: as Encoder's.

    Example:
        model = PretrainingModel(config.size("base", vocab_size=30_000))
        outputs = model(batch, training=True, dropout_seed=[0, step])
    """

    def __init__(self, config, seed=0, unroll=False, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"config": dataclasses.asdict(config), "seed": seed, "unroll": unroll}
        initializers = layers.initializers(config.initializer_range, seed)
        self.encoder = Encoder(config, initializers, unroll)
        self.masked_lm = MaskedLMHead(config, initializers)
        self.sentence_order = SentenceHead(config, initializers)
        self.built = True

    def call(self, batch, training=False, dropout_seed=None):
        """Computes the logits of both tasks.

        Args:
            batch: dict with `input_ids`, `input_mask`, `segment_ids`, int32[B, T], and
                `masked_lm_positions`, int32[B, P]; other features may be there, too.
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica. None draws one from
                TensorFlow's global generator, which suits `fit`.

        Returns:
            A dict: `masked_lm_logits` float32[B, P, V], `sentence_order_logits` float32[B, 2]
            (1: the segments are swapped).
        """
        encoded = self.encoder(
            batch,
            training=training,
            dropout_seed=dropout_seed,
            positions=batch["masked_lm_positions"],
        )
        return {
            "masked_lm_logits": self.masked_lm(
                encoded["sequence_output"], self.encoder.embeddings.word.value
            ),
            "sentence_order_logits": self.sentence_order(encoded["pooled_output"]),
        }

    def named_variables(self):
        """Returns dict Google's TF1 name -> tf.Variable (under a strategy, a distributed one).

        The names are those of the released checkpoints, so they serve to read and write them
        and to name the optimizer's slots.
        """
        heads = {"cls/predictions": self.masked_lm, "cls/seq_relationship": self.sentence_order}
        return self.encoder.named_variables() | layers.named_variables(heads)
