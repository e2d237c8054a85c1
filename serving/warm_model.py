"""A model that stays warm: its graphs are built once and take any number and length of texts.

Only programs and `predictor` import this module.

Shapes: B batch, T tokens, P masks of a text at most, C choices, H hidden, V vocabulary, L layers.
"""

import numpy as np
import tensorflow as tf

from data import length_batches

INPUTS = ("input_ids", "input_mask", "segment_ids", "p_mask", "choice_mask")  # Of some model.
POOLINGS = ("mean", "cls", "pooled")
ALL_LAYERS = "all"


class WarmModel:
    """A model and the graphs of what it has been asked.

    Args:
        model: keras.Model of `modeling`.
        max_seq_length: longest T.
        batch_size: B at most.
    """

    def __init__(self, model, max_seq_length, batch_size):
        self.model, self.max_seq_length, self.batch_size = model, max_seq_length, batch_size
        self.graphs = {}  # Key -> tf.function.

    def run(self, key, compute, features, more=None):
        """Computes something for each example, those of like length together.

        Args:
            key: what is computed; equal keys share a graph.
            compute: function of (model, batch of INPUTS) to a dict of tensors [B, ...].
            features: data.features.Features of n examples.
            more: function of a batch to a dict of arrays that are added to it, or None.

        Returns:
            n dicts of array, in the examples' order. T and P are those of an example's batch.

        Raises:
            ValueError: the model gives what is no number.
        """
        rows = [None] * len(features)
        for examples in length_batches.longest_first(features, self.batch_size):
            batch = length_batches.pad(features, examples, len(examples), self.max_seq_length)
            batch = {name: batch[name] for name in INPUTS if name in batch}
            batch |= more(batch) if more else {}
            outputs = self._graph(key, compute, batch)(batch)
            arrays = {name: finite(output.numpy()) for name, output in outputs.items()}
            for place, example in enumerate(examples):
                rows[example] = {name: array[place] for name, array in arrays.items()}
        return rows

    def _graph(self, key, compute, batch):
        """Returns the tf.function of a key, made for batches of any sizes like this one's."""
        if key not in self.graphs:
            signature = {
                name: tf.TensorSpec([None] * array.ndim, array.dtype)
                for name, array in batch.items()
            }
            self.graphs[key] = tf.function(
                lambda batch: compute(self.model, batch), input_signature=[signature]
            )
        return self.graphs[key]


def finite(array):
    """Returns an array; raises ValueError unless it holds numbers alone."""
    if not np.isfinite(array).all():
        raise ValueError(
            "A model's outputs must be numbers. Received: NaN or infinity; its training has likely "
            "diverged."
        )
    return array


def logits(model, batch):
    """Computes what a model with a task's head gives."""
    return model(batch)


def masked_words(model, batch):
    """Ranks the pieces for each mask.

    Args:
        model: PretrainingModel.
        batch: also `masked_lm_positions` int32[B, P] and `top_k` int32[].

    Returns:
        dict: `probabilities` float32[B, P, top_k], the highest first, and `ids` of as many.
    """
    probabilities = tf.nn.softmax(model(batch)["masked_lm_logits"])  # float32[B, P, V]
    values, ids = tf.math.top_k(probabilities, batch["top_k"])
    return {"probabilities": values, "ids": ids}


def mask_positions(input_ids, mask_id):
    """Returns where the masks of each row are, int32[B, P]; rows with fewer end in other places."""
    is_mask = input_ids == mask_id
    order = np.argsort(~is_mask, axis=1, kind="stable")
    return order[:, : is_mask.sum(axis=1).max()].astype(np.int32)


def sentence_order(model, batch):
    """Computes `probabilities` float32[B, 2]; 1: the segments are swapped."""
    return {
        "probabilities": tf.nn.softmax(model.sentence_order(model.encoder(batch)["pooled_output"]))
    }


def num_states(model):
    """Returns L + 1: how many hidden states an encoder has, the projected embeddings first."""
    return len(model.encoder.plan) * model.encoder.num_inner + 1


def check_embedding(model, pooling, layer):
    """Raises ValueError where a pooling or a layer is none of the model's."""
    if pooling not in POOLINGS:
        raise ValueError(f"`pooling` must be one of {POOLINGS}. Received: {pooling!r}.")
    last = num_states(model) - 1
    if layer != ALL_LAYERS and not (isinstance(layer, int) and -last - 1 <= layer <= last):
        raise ValueError(
            f"`layer` must lie in [0, {last}], 0 the projected embeddings, or be -1, the last, or "
            f"'all'. Received: {layer!r}."
        )
    if pooling == "pooled" and layer not in (-1, last):
        raise ValueError(
            "`pooling` pooled is of the last layer alone. Received: pooling=pooled, "
            f"layer={layer!r}."
        )


def embeddings(pooling, layer):
    """Returns the function of (model, batch) that computes `vectors`.

    Args:
        pooling: one of POOLINGS.
        layer: ALL_LAYERS or the number of a hidden state.

    Returns:
        Function to a dict: `vectors` float32[B, H], or float32[B, L + 1, H] of all layers.
    """

    def compute(model, batch):
        encoded = model.encoder(batch, return_hidden_states=layer != -1)
        if pooling == "pooled":
            return {"vectors": encoded["pooled_output"]}
        states = encoded.get("hidden_states", [encoded["sequence_output"]])
        chosen = states if layer == ALL_LAYERS else [states[layer]]
        vectors = [pooled(state, batch["input_mask"], pooling) for state in chosen]
        return {"vectors": tf.stack(vectors, axis=1) if layer == ALL_LAYERS else vectors[0]}

    return compute


def pooled(states, mask, pooling):
    """Returns one vector a text, float[B, H], of float[B, T, H] and int32[B, T]."""
    if pooling == "cls":
        return states[:, 0]
    weights = tf.expand_dims(tf.cast(mask, states.dtype), -1)  # float[B, T, 1]
    return tf.reduce_sum(states * weights, axis=1) / tf.reduce_sum(weights, axis=1)
