"""Names of BERT's layers, each of which is a block of its own for a model that shares nothing."""

import re

# Google's and Hugging Face's; the second here without its prefix "bert.".
LAYER = re.compile(r"(?:bert/encoder/layer_|encoder\.layer\.)(\d+)[/.](.+)")
BLOCK = "bert/encoder/transformer/group_{}/inner_group_{}/{}"
BLOCK_LAYERS = {
    "attention/self/query": "attention_1/self/query",
    "attention/self/key": "attention_1/self/key",
    "attention/self/value": "attention_1/self/value",
    "attention/output/dense": "attention_1/output/dense",
    "attention/output/LayerNorm": "LayerNorm",
    "intermediate/dense": "ffn_1/intermediate/dense",
    "output/dense": "ffn_1/intermediate/output/dense",
    "output/LayerNorm": "LayerNorm_1",
}


def block_layer(layer):
    """Returns the model's name of a part of a BERT layer, or None where it is none.

    Args:
        layer: a variable's name without its last part, in Google's layout or in Hugging
            Face's without the prefix "bert.".
    """
    match = LAYER.fullmatch(layer)
    part = BLOCK_LAYERS.get(match[2].replace(".", "/")) if match else None
    return BLOCK.format(match[1], 0, part) if part else None
