"""The models that are fine-tuned: an encoder with the head of a task.

Their variables have the names of the original's fine-tuned checkpoints.

Shapes: B batch, C classes or choices, T tokens, H hidden, K beams (Ks starts, Ke ends).
"""

import dataclasses

import keras
import tensorflow as tf

from modeling import layers
from modeling.encoder import Encoder, no_positions
from modeling.heads import SentenceHead
from modeling.models import EncoderModel
from modeling.task_heads import (
    HEAD_DROPOUT_SITE,
    AnswerabilityHead,
    EndHead,
    StartHead,
    likeliest,
)

PADDED_CHOICE = -1e9  # Its logit: less than any real one, and a softmax of it is exactly 0.
ENCODER_FEATURES = ("input_ids", "input_mask", "segment_ids")


@keras.saving.register_keras_serializable(package="albert")
class Classifier(EncoderModel):
    """Classifies texts or pairs of texts by their pooled output (run_classifier.py).

    One class makes it a regression, whose logit is the prediction; with several labels a row
    each logit stands for itself.

    Args:
        config: AlbertConfig.
        num_classes: int, at least 1.
        classifier_dropout: float in [0, 1), on the pooled output.
        seed: int, tells the initial weights.
        unroll: as Encoder's.
    """

    def __init__(self, config, num_classes, classifier_dropout=0.1, seed=0, unroll=False, **kwargs):
        super().__init__(**kwargs)
        self.settings = {
            "config": dataclasses.asdict(config),
            "num_classes": num_classes,
            "classifier_dropout": classifier_dropout,
            "seed": seed,
            "unroll": unroll,
        }
        initializers = layers.initializers(config.initializer_range, seed)
        self.encoder = Encoder(config, initializers, unroll)
        self.classifier = SentenceHead(config, initializers, num_classes)
        self.built = True

    def call(self, batch, training=False, dropout_seed=None):
        """Computes the logits.

        Args:
            batch: dict with `input_ids`, `input_mask` and `segment_ids`, int32[B, T].
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica; None draws one.

        Returns:
            A dict: `logits` float32[B, C].
        """
        seed = layers.step_seed(training, dropout_seed)
        nowhere = no_positions(batch["input_ids"])
        encoded = self.encoder(batch, training=training, dropout_seed=seed, positions=nowhere)
        pooled, rate = encoded["pooled_output"], self.settings["classifier_dropout"]
        return {"logits": self.classifier(layers.dropout(pooled, rate, seed, HEAD_DROPOUT_SITE))}

    def named_variables(self):
        """Returns dict of the original's checkpoint name -> tf.Variable."""
        return self.encoder.named_variables() | self.classifier.named_variables()


@keras.saving.register_keras_serializable(package="albert")
class MultipleChoice(EncoderModel):
    """Chooses among several texts by one score each (race_utils.py of the original).

    Arguments as Classifier's.
    """

    def __init__(self, config, classifier_dropout=0.1, seed=0, unroll=False, **kwargs):
        super().__init__(**kwargs)
        self.settings = {
            "config": dataclasses.asdict(config),
            "classifier_dropout": classifier_dropout,
            "seed": seed,
            "unroll": unroll,
        }
        initializers = layers.initializers(config.initializer_range, seed)
        self.encoder = Encoder(config, initializers, unroll)
        self.classifier = SentenceHead(config, initializers, num_classes=1)
        self.built = True

    def call(self, batch, training=False, dropout_seed=None):
        """Computes the logits.

        Args:
            batch: dict with `input_ids`, `input_mask` and `segment_ids`, int32[B, C, T], and
                `choice_mask` float32[B, C], 0 on a choice that is only padding.
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica; None draws one.

        Returns:
            A dict: `logits` float32[B, C]; padded choices have -1e9 and learn nothing.
        """
        seed = layers.step_seed(training, dropout_seed)
        batch_size, num_choices, length = layers.shape_of(batch["input_ids"])
        texts = {name: tf.reshape(batch[name], [-1, length]) for name in ENCODER_FEATURES}
        nowhere = no_positions(texts["input_ids"])
        encoded = self.encoder(texts, training=training, dropout_seed=seed, positions=nowhere)
        pooled, rate = encoded["pooled_output"], self.settings["classifier_dropout"]
        logits = self.classifier(layers.dropout(pooled, rate, seed, HEAD_DROPOUT_SITE))
        logits = tf.reshape(logits, [batch_size, num_choices])
        return {"logits": tf.where(batch["choice_mask"] > 0, logits, PADDED_CHOICE)}

    def named_variables(self):
        """Returns dict of the original's checkpoint name -> tf.Variable."""
        return self.encoder.named_variables() | self.classifier.named_variables()


@keras.saving.register_keras_serializable(package="albert")
class SpanModel(EncoderModel):
    """Scores each token as start and as end of the answer (SQuAD 1.1).

    The logits are the original's: what cannot be an answer has one, too. Arguments as
    Classifier's.
    """

    def __init__(self, config, seed=0, unroll=False, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"config": dataclasses.asdict(config), "seed": seed, "unroll": unroll}
        initializers = layers.initializers(config.initializer_range, seed)
        self.encoder = Encoder(config, initializers, unroll)
        self.span = SentenceHead(config, initializers, num_classes=2)
        self.built = True

    def call(self, batch, training=False, dropout_seed=None):
        """Computes the logits.

        Args:
            batch: dict with `input_ids`, `input_mask` and `segment_ids`, int32[B, T].
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica; None draws one.

        Returns:
            A dict: `start_logits` and `end_logits`, float32[B, T].
        """
        encoded = self.encoder(batch, training=training, dropout_seed=dropout_seed)
        batch_size, length, width = layers.shape_of(encoded["sequence_output"])
        rows = tf.reshape(encoded["sequence_output"], [-1, width])
        logits = tf.reshape(self.span(rows), [batch_size, length, 2])
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def named_variables(self):
        """Returns dict of the original's checkpoint name -> tf.Variable."""
        return self.encoder.named_variables() | layers.named_variables({"cls/squad": self.span})


@keras.saving.register_keras_serializable(package="albert")
class AnswerableSpanModel(EncoderModel):
    """Finds the span of an answer, and whether there is one (SQuAD 2.0).

    Args:
        config: AlbertConfig.
        start_n_top: int, most likely starts that the ends are sought for.
        end_n_top: int, most likely ends kept for each of them.
        classifier_dropout: float in [0, 1), in the head that tells whether there is an answer.
        seed: int, tells the initial weights.
        **kwargs: `unroll`, as Encoder's, and keras.Model's own.
    """

    def __init__(
        self, config, start_n_top=5, end_n_top=5, classifier_dropout=0.1, seed=0, **kwargs
    ):
        unroll = kwargs.pop("unroll", False)
        super().__init__(**kwargs)
        self.settings = {
            "config": dataclasses.asdict(config),
            "start_n_top": start_n_top,
            "end_n_top": end_n_top,
            "classifier_dropout": classifier_dropout,
            "seed": seed,
            "unroll": unroll,
        }
        initializers = layers.initializers(config.initializer_range, seed)
        self.encoder = Encoder(config, initializers, unroll)
        self.start = StartHead(config, initializers)
        self.end = EndHead(config, initializers)
        self.answerability = AnswerabilityHead(config, initializers, classifier_dropout)
        self.built = True

    def call(self, batch, training=False, dropout_seed=None):
        """Computes log-probabilities, and beams unless training.

        Args:
            batch: dict with `input_ids`, `input_mask`, `segment_ids` and `p_mask` (1: cannot
                be an answer), int32[B, T]; for training also `start_positions`, int32[B].
            training: whether dropout applies.
            dropout_seed: int32[2], other for each step and replica; None draws one.

        Returns:
            A dict: `cls_logits` float32[B] (above 0: no answer) and `start_log_probs`
            float32[B, T]; where the batch has `start_positions`, `end_log_probs` float32[B, T]
            given those; unless training, `start_top_log_probs` float32[B, Ks],
            `start_top_index` int32[B, Ks], `end_top_log_probs` float32[B, Ks * Ke] and
            `end_top_index` int32[B, Ks * Ke], whose entry i * Ke + j belongs to start i.
            Beams beyond the legal positions have about -1e30.
        """
        seed = layers.step_seed(training, dropout_seed)
        encoded = self.encoder(batch, training=training, dropout_seed=seed)
        hidden = encoded["sequence_output"]
        illegal = (batch["p_mask"] > 0) | (batch["input_mask"] == 0)
        start_log_probs = self.start(hidden, illegal)
        outputs = {
            "start_log_probs": start_log_probs,
            "cls_logits": self.answerability(hidden, start_log_probs, seed=seed),
        }
        if training or "start_positions" in batch:
            starts = batch["start_positions"][:, tf.newaxis]
            outputs["end_log_probs"] = self.end(hidden, starts, illegal)[:, 0]
        if not training:
            outputs |= self._beams(hidden, start_log_probs, illegal)
        return outputs

    def _beams(self, hidden, start_log_probs, illegal):
        """Picks the most likely starts, and for each the most likely ends."""
        num_starts, num_ends = self.settings["start_n_top"], self.settings["end_n_top"]
        start_top_log_probs, start_top_index = likeliest(start_log_probs, num_starts)
        end_log_probs = self.end(hidden, start_top_index, illegal)  # float32[B, Ks, T]
        end_top_log_probs, end_top_index = likeliest(end_log_probs, num_ends)
        return {
            "start_top_log_probs": start_top_log_probs,
            "start_top_index": start_top_index,
            "end_top_log_probs": tf.reshape(end_top_log_probs, [-1, num_starts * num_ends]),
            "end_top_index": tf.reshape(end_top_index, [-1, num_starts * num_ends]),
        }

    def named_variables(self):
        """Returns dict of the original's checkpoint name -> tf.Variable."""
        heads = {
            "start_logits": self.start,
            "end_logits": self.end,
            "answer_class": self.answerability,
        }
        return self.encoder.named_variables() | layers.named_variables(heads)
