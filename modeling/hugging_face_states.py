"""Gives the model's weights the names and classes that transformers' ALBERT and BERT have.

The way back from `hugging_face_names.model_name`. Dense kernels lie the other way round there.

Shapes: E embedding, H hidden, C classes.
"""

import re

import numpy as np

from modeling import bert_names, hugging_face_names
from modeling.hugging_face_names import LEAVES, MAPPING

# Of AutoModelFor..., by what a model was trained for; "pretraining" is by the heads there are.
CLASSES = {
    "encoder": "Model",
    "classes": "ForSequenceClassification",
    "number": "ForSequenceClassification",
    "multilabel": "ForSequenceClassification",
    "choice": "ForMultipleChoice",
    "span": "ForQuestionAnswering",
}
WITHOUT_CLASS = (
    "Hugging Face's ALBERT must have a class with the model's heads. Received: {}. `--to=google` "
    "or `--to=folder` keeps them."
)
MASKED_LM, SENTENCE_ORDER = "cls/predictions/", "cls/seq_relationship/"
HEADS = {
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
}
BERT_VARIABLES = {
    "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
}
BERT_BLOCK_LAYERS = {
    ours: theirs.replace("/", ".") for theirs, ours in bert_names.BLOCK_LAYERS.items()
}
BLOCK = re.compile(bert_names.BLOCK.format(r"(\d+)", "0", "(.+)"))


def class_name(kind, names):
    """Returns the class of transformers that holds a model, less its "Albert" or "Bert".

    Args:
        kind: "encoder", "pretraining", or what a task's model was trained for.
        names: the names of the model's weights.

    Raises:
        ValueError: there is none; the message says why.
    """
    if kind == "answerable":
        raise ValueError(
            WITHOUT_CLASS.format(
                "SQuAD 2.0's, XLNet's beam search, where theirs knows one score for each start "
                "and end"
            )
        )
    if kind != "pretraining":
        return CLASSES[kind]
    if not any(name.startswith(MASKED_LM) for name in names):
        raise ValueError(WITHOUT_CLASS.format("a sentence-order head without a masked-LM head"))
    has_order = any(name.startswith(SENTENCE_ORDER) for name in names)
    return "ForPreTraining" if has_order else "ForMaskedLM"


def state_dict(arrays, is_bert):
    """Turns a model's weights into a state dict; tied weights stand there once.

    Args:
        arrays: dict of the model's name to NumPy array.
        is_bert: whether the names are BERT's; the layers then share nothing, and E = H.

    Returns:
        dict of Hugging Face's name to NumPy array. ALBERT's has a projection from E to H always:
        where this model has none, it is the identity.
    """
    width = arrays["bert/embeddings/word_embeddings"].shape[1]
    if not is_bert and f"{MAPPING}/kernel" not in arrays:
        arrays = {
            **arrays,
            f"{MAPPING}/kernel": np.eye(width, dtype=np.float32),
            f"{MAPPING}/bias": np.zeros(width, np.float32),
        }
    name_of = bert_name if is_bert else albert_name
    return {
        name_of(name): array.T if name.endswith("/kernel") else array
        for name, array in arrays.items()
    }


def albert_name(name):
    return HEADS.get(name) or hugging_face_names.hugging_face_name(name)


def bert_name(name):
    """Translates a name of the model's into that of transformers' BERT models."""
    known = HEADS | BERT_VARIABLES
    if name in known:
        return known[name]
    layer, leaf = name.rsplit("/", 1)
    if match := BLOCK.fullmatch(layer):
        found = f"bert.encoder.layer.{match[1]}.{BERT_BLOCK_LAYERS[match[2]]}"
    else:
        prefix = "" if name.startswith("cls/") else "bert."
        found = prefix + layer.removeprefix("bert/").replace("/", ".")
    return f"{found}.{LEAVES[leaf]}"
