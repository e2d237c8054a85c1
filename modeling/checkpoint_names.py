"""Names of the weights in other people's files: old layouts of Google's, and Hugging Face's.

The model itself uses the names of Google's released TF1 checkpoints
(`PretrainingModel.named_variables`), so those need no table.
"""

import re

import numpy as np

# What a name tells about a file that this model cannot hold.
FOREIGN_LAYOUTS = {
    r"/layer_shared/|word_embeddings_2": "albert_zh's (brightmart/albert_zh), which is another "
    "architecture; Google's own Chinese models are in the layout that fits",
    r"/layer_normalization(_\d+)?/": "one whose LayerNorms are not shared, from a fork in which "
    "each layer made new ones (google-research/albert issue 241); no ALBERT can be made of it",
    r"bert/encoder/layer_\d+/": "BERT's, with weights of its own for each layer",
}

GOOGLE_BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}/"
HUGGING_FACE_BLOCK = "albert.encoder.albert_layer_groups.{}.albert_layers.{}."
LEAVES = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
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
# Hugging Face's file holds these twice.
TIED = {
    "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
    "predictions.decoder.bias": "predictions.bias",
}
MAPPING = "bert/encoder/embedding_hidden_mapping_in"


def canonical(name):
    """Turns a name in any of Google's layouts into the one that the model uses.

    Hub exports put `module/` before all names; some old files number the shared layers' scopes
    otherwise (modeling.py:389-440 of the original looks for `attention_<n>` and `ffn_<n>`).

    Args:
        name: a variable's name in a checkpoint.

    Returns:
        The model's name for it, or the name itself.

    Raises:
        ValueError: the name belongs to a layout that this model cannot hold.
    """
    for pattern, layout in FOREIGN_LAYOUTS.items():
        if re.search(pattern, name):
            raise ValueError(
                "The checkpoint must be in Google's ALBERT layout. Received: a file with "
                f"{name}; that layout is {layout}."
            )
    name = name.removeprefix("module/")
    return re.sub(r"(?<=/)(attention|ffn)_\d+/", r"\1_1/", name)


def hugging_face_name(name):
    """Translates a name of the model's into that of transformers' AlbertForPreTraining.

    Raises:
        KeyError: the name is none of the pretraining model's.
    """
    if name in VARIABLES:
        return VARIABLES[name]
    layer, leaf = name.rsplit("/", 1)
    match = re.fullmatch(GOOGLE_BLOCK.format(r"(\d+)", r"(\d+)") + "(.+)", layer)
    if match:
        group, inner, layer = match.groups()
        found = HUGGING_FACE_BLOCK.format(group, inner) + BLOCK_LAYERS[layer]
    else:
        found = LAYERS[layer]
    return f"{found}.{LEAVES[leaf]}"


def to_hugging_face(arrays):
    """Turns the model's weights into the state dict of transformers' AlbertForPreTraining.

    Dense kernels are transposed. Where E = H this model has no projection and transformers'
    always has: it gets the identity.

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


def from_hugging_face(state):
    """Turns a state dict of transformers' AlbertForPreTraining into the model's weights.

    The inverse of `to_hugging_face`; an identity projection is left out.

    Args:
        state: dict of Hugging Face's name to NumPy array.

    Returns:
        dict of the model's name to NumPy array.

    Raises:
        ValueError: names that are none of AlbertForPreTraining's.
    """
    blocks = re.compile(re.escape(HUGGING_FACE_BLOCK).replace(r"\{\}", r"(\d+)"))
    pairs = sorted({match.groups() for name in state if (match := blocks.match(name))})
    names = [*VARIABLES]
    for layer in [
        *LAYERS,
        *(GOOGLE_BLOCK.format(*pair) + layer for pair in pairs for layer in BLOCK_LAYERS),
    ]:
        leaves = ("gamma", "beta") if "LayerNorm" in layer else ("kernel", "bias")
        names += [f"{layer}/{leaf}" for leaf in leaves]
    sources = {name: hugging_face_name(name) for name in names}
    unknown = sorted(set(state) - set(sources.values()) - set(TIED))
    if unknown:
        raise ValueError(
            f"The weights must be those of transformers' AlbertForPreTraining. Received: {unknown}."
        )
    arrays = {
        name: state[source].T if name.endswith("kernel") else state[source]
        for name, source in sources.items()
        if source in state
    }
    kernel = arrays.get(f"{MAPPING}/kernel")
    if kernel is not None and np.array_equal(kernel, np.eye(len(kernel))):
        del arrays[f"{MAPPING}/kernel"], arrays[f"{MAPPING}/bias"]
    return arrays
