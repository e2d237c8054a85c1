"""Small models and random batches for the tests of `modeling`."""

import numpy as np
import tensorflow as tf

from modeling.config import AlbertConfig
from modeling.models import PretrainingModel


def small_config(**others):
    """Returns a config whose model runs in milliseconds."""
    fields = {
        "vocab_size": 50,
        "embedding_size": 8,
        "hidden_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 20,
    }
    return AlbertConfig(**{**fields, **others})


def random_batch(config, batch_size=4, length=12, num_predictions=3, seed=0):
    """Returns a batch whose rows have from 4 to `length` real pieces."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, length + 1, batch_size)
    lengths[0] = length
    mask = np.arange(length) < lengths[:, np.newaxis]

    def ids(most, *shape):
        return rng.integers(0, most, shape)

    features = {
        "input_ids": ids(config.vocab_size, batch_size, length) * mask,
        "input_mask": mask,
        "segment_ids": ids(config.type_vocab_size, batch_size, length) * mask,
        "masked_lm_positions": ids(4, batch_size, num_predictions),
        "masked_lm_ids": ids(config.vocab_size, batch_size, num_predictions),
        "next_sentence_labels": ids(2, batch_size),
    }
    batch = {name: tf.constant(value, tf.int32) for name, value in features.items()}
    weights = rng.integers(0, 2, (batch_size, num_predictions))
    return batch | {
        "masked_lm_weights": tf.constant(weights, tf.float32),
        "example_weights": tf.ones([batch_size]),
    }


def randomize(model, seed=0):
    """Makes every weight of a model random, and large enough to matter; returns the model.

    The usual first weights are so small, with every bias 0, that much could be wrong unseen.
    """
    rng = np.random.default_rng(seed)
    for name, variable in sorted(model.named_variables().items()):
        scale = 0.25 if len(variable.shape) == 1 else 1.2 * variable.shape[0] ** -0.5
        centre = 1.0 if name.endswith("gamma") else 0.0
        variable.assign(centre + scale * rng.standard_normal(variable.shape))
    return model


def random_model(config, seed=0, **others):
    """Returns a pretraining model whose weights are those of `randomize`."""
    return randomize(PretrainingModel(config, **others), seed)
