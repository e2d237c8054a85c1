"""Names of the weights in transformers' ALBERT and BERT models, with and without heads.

Dense kernels lie the other way round there.
"""

import re

import numpy as np

from modeling import bert_names

BLOCK = "encoder.albert_layer_groups.{}.albert_layers.{}."
BLOCK_PATTERN = re.compile(re.escape(BLOCK).replace(r"\{\}", r"(\d+)") + "(.+)")
BLOCK_LAYERS = {
    "attention_1/self/query": "attention.query",
    "attention_1/self/key": "attention.key",
    "attention_1/self/value": "attention.value",
    "attention_1/output/dense": "attention.dense",
    "LayerNorm": "attention.LayerNorm",
    "ffn_1/intermediate/dense": "ffn",
    "ffn_1/intermediate/output/dense": "ffn_output",
    "LayerNorm_1": "full_layer_layer_norm",
}
LAYERS = {
    "bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
    "bert/encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
    "bert/pooler/dense": "albert.pooler",
    "cls/predictions/transform/dense": "predictions.dense",
    "cls/predictions/transform/LayerNorm": "predictions.LayerNorm",
}
VARIABLES = {
    "bert/embeddings/word_embeddings": "albert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "albert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "albert.embeddings.token_type_embeddings.weight",
    "cls/predictions/output_bias": "predictions.bias",
    "cls/seq_relationship/output_weights": "sop_classifier.classifier.weight",
    "cls/seq_relationship/output_bias": "sop_classifier.classifier.bias",
}
# Some of Hugging Face's files hold these twice.
TIED = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}
MAPPING = "bert/encoder/embedding_hidden_mapping_in"

# The way back; models without a head have no prefix, so it is left out.
PREFIX = re.compile(r"^(albert|bert)\.")
BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)$")
MODEL_BLOCK_LAYERS = {theirs: ours for ours, theirs in BLOCK_LAYERS.items()}
MODEL_LAYERS = {
    **{PREFIX.sub("", theirs): ours for ours, theirs in LAYERS.items()},
    "pooler.dense": "bert/pooler/dense",
    "cls.predictions.transform.dense": "cls/predictions/transform/dense",
    "cls.predictions.transform.LayerNorm": "cls/predictions/transform/LayerNorm",
}
MODEL_VARIABLES = {
    **{PREFIX.sub("", theirs): ours for ours, theirs in VARIABLES.items()},
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    # Of classifiers and of multiple choice; a token classifier's is told by its lack of a pooler.
    "classifier.weight": "output_weights",
    "classifier.bias": "output_bias",
    "qa_outputs.weight": "cls/squad/output_weights",
    "qa_outputs.bias": "cls/squad/output_bias",
}
MODEL_TWINS = {
    "decoder.weight": "bert/embeddings/word_embeddings",
    "decoder.bias": "cls/predictions/output_bias",
}
LEAVES = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
# BERT files of before 2019 call what scales and shifts gamma and beta.
NORM_LEAVES = {"weight": "gamma", "bias": "beta", "gamma": "gamma", "beta": "beta"}
DENSE_LEAVES = {"weight": "kernel", "bias": "bias"}


def hugging_face_name(name):
    """Translates a name of the model's into that of transformers' AlbertForPreTraining.

    Raises:
        KeyError: the name is none of the pretraining model's.
    """
    if name in VARIABLES:
        return VARIABLES[name]
    layer, leaf = name.rsplit("/", 1)
    match = re.fullmatch(bert_names.BLOCK.format(r"(\d+)", r"(\d+)", "(.+)"), layer)
    if match:
        group, inner, layer = match.groups()
        found = "albert." + BLOCK.format(group, inner) + BLOCK_LAYERS[layer]
    else:
        found = LAYERS[layer]
    return f"{found}.{LEAVES[leaf]}"


def to_hugging_face(arrays):
    """Turns the model's weights into the state dict of transformers' AlbertForPreTraining.

    Where E = H this model has no projection and transformers' always has: it gets the identity.

    Args:
        arrays: dict of the model's name to NumPy array.

    Returns:
        dict of Hugging Face's name to NumPy array.

    Raises:
        KeyError: a name is none of the pretraining model's.
    """
    width = arrays["bert/pooler/dense/kernel"].shape[0]
    mapping = {
        f"{MAPPING}/kernel": np.eye(width, dtype=np.float32),
        f"{MAPPING}/bias": np.zeros(width, np.float32),
    }
    state = {
        hugging_face_name(name): array.T if name.endswith("kernel") else array
        for name, array in {**mapping, **arrays}.items()
    }
    return state | {twin: state[name] for twin, name in TIED.items()}


def model_name(name):
    """Translates a name in transformers' files into the model's.

    Args:
        name: of ALBERT's or BERT's, with or without its prefix.

    Returns:
        (the model's name, whether the array is to be transposed); what is none of theirs
        keeps its name.
    """
    bare = PREFIX.sub("", name)
    if bare in MODEL_VARIABLES:
        return MODEL_VARIABLES[bare], False
    layer, _, leaf = bare.rpartition(".")
    if match := BLOCK_PATTERN.fullmatch(layer):
        part = MODEL_BLOCK_LAYERS.get(match[3])
        found = part and bert_names.BLOCK.format(match[1], match[2], part)
    else:
        found = MODEL_LAYERS.get(layer) or bert_names.block_layer(layer)
    leaves = NORM_LEAVES if found and "LayerNorm" in found else DENSE_LEAVES
    if not found or leaf not in leaves:
        return name, False
    return f"{found}/{leaves[leaf]}", leaves[leaf] == "kernel"


def twin(name):
    """Returns the model's name of what a file holds once more under `name`, or None."""
    match = re.fullmatch(r"(?:cls\.)?predictions\.(decoder\.\w+)", name)
    return MODEL_TWINS.get(match[1]) if match else None
