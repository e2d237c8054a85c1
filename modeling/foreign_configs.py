"""Reads the configs of BERT's and Hugging Face's as this model's, where it can be that model."""

from modeling.config import AlbertConfig

SIZES = (  # What no config may leave unsaid.
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
ALBERT_SIZES = ("embedding_size", "num_hidden_groups", "inner_group_num")
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
# Hugging Face's keys that change what is computed, and the one value that this model has. Its
# other keys say nothing of the encoder, and there are dozens.
FIXED = {
    "position_embedding_type": "absolute",
    "layer_norm_eps": 1e-12,
    "is_decoder": False,
    "add_cross_attention": False,
    "quantization_config": None,
}
# Hugging Face's `gelu` is the exact form, its `gelu_new` the original's.
HUGGING_FACE_ACTS = {"gelu": "gelu_erf", "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu"}
ACTS_FOR_HUGGING_FACE = {"gelu": "gelu_new", "gelu_erf": "gelu"}
# Google's BERT began with the exact form, with which its first models and the paper's BERT were
# made, and went to the tanh form later under the same name.
GOOGLE_BERT_ACTS = {"gelu": "gelu_erf"}


def from_google_bert(values):
    """Makes the config of a model that shares nothing from BERT's `bert_config.json`.

    Args:
        values: dict of the file's keys.

    Returns:
        AlbertConfig with `sharing` none and E = H.

    Raises:
        ValueError: a size is missing, or values cannot be.
    """
    return bert_config(values, GOOGLE_BERT_ACTS)


def from_hugging_face(values):
    """Makes a config from transformers' `config.json` of ALBERT or of BERT.

    Args:
        values: dict of the file's keys.

    Returns:
        AlbertConfig.

    Raises:
        ValueError: it is another kind of model, or computes what this one does not.
    """
    kind = values.get("model_type")
    if kind not in ("albert", "bert"):
        raise ValueError(f"`model_type` must be albert or bert. Received: {kind!r}.")
    for key, value in FIXED.items():
        if values.get(key, value) != value:
            raise ValueError(f"`{key}` must be {value!r} or absent. Received: {values[key]!r}.")
    if kind == "bert":
        return bert_config(values, HUGGING_FACE_ACTS)
    defaults = {"hidden_act": "gelu_new"}
    return config_of({**defaults, **values}, (*SIZES, *ALBERT_SIZES), HUGGING_FACE_ACTS)


def bert_config(values, acts):
    """Returns the AlbertConfig of one of BERT's; `acts` as of `config_of`."""
    defaults = {
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    width = {"embedding_size": values.get("hidden_size"), "sharing": "none"}
    return config_of({**defaults, **values}, SIZES, acts, **width)


def config_of(values, sizes, acts, **others):
    """Makes an AlbertConfig from another library's keys.

    Args:
        values: dict of all its keys, `hidden_act` among them.
        sizes: names of the sizes it must tell.
        acts: dict of its names for activations to this model's, where they differ.
        **others: fields that it has no key for.
    """
    missing = [name for name in sizes if name not in values]
    if missing:
        raise ValueError(f"A config must tell {', '.join(sizes)}. Received: no {missing}.")
    fields = {name: values[name] for name in (*sizes, *RATES) if name in values}
    act = values["hidden_act"]
    return AlbertConfig(**fields, **others, hidden_act=acts.get(act, act))


def is_bert(config):
    """Says whether a config is that of a BERT: layers that share nothing, at full width."""
    is_wide = config.embedding_size == config.hidden_size
    return config.sharing == "none" and is_wide and config.inner_group_num == 1


def check_plan(config, groups, whose):
    """Refuses a config whose layers others would not run in the same blocks.

    Args:
        config: AlbertConfig.
        groups: list[int], the group that they take for each layer.
        whose: str, who they are.

    Raises:
        ValueError: as above.
    """
    if config.layer_plan != [(group, group) for group in groups]:
        raise ValueError(
            f"The layers must share as {whose} can have them. Received: sharing="
            f"{config.sharing}, {config.num_hidden_layers} layers, {config.num_hidden_groups} "
            "groups. `--to=folder` and `--to=keras` keep any."
        )


def check_google(config):
    """Refuses a config that Google's code would run otherwise (modeling.py:1091, get_activation).

    Raises:
        ValueError: as above.
    """
    layers, groups = config.num_hidden_layers, config.num_hidden_groups
    check_plan(config, [int(i / layers * groups) for i in range(layers)], "Google's code")
    if config.hidden_act == "gelu_erf":
        raise ValueError(
            "Google's form must have an activation that its code knows: gelu (the tanh form), relu "
            "or tanh. Received: gelu_erf. `--to=huggingface` and `--to=folder` keep it."
        )


def to_hugging_face(config):
    """Turns a config into the keys of transformers' `config.json`.

    Args:
        config: AlbertConfig.

    Returns:
        dict of JSON values, `model_type` among them.

    Raises:
        ValueError: transformers would run the layers otherwise.
    """
    shared = {
        **{name: getattr(config, name) for name in (*SIZES, *RATES)},
        "hidden_act": ACTS_FOR_HUGGING_FACE.get(config.hidden_act, config.hidden_act),
        "layer_norm_eps": FIXED["layer_norm_eps"],
        "tie_word_embeddings": True,
    }
    if is_bert(config):
        return {"model_type": "bert", **shared}
    layers, groups = config.num_hidden_layers, config.num_hidden_groups
    # transformers' modeling_albert.py, AlbertTransformer.
    plan = [int(i / (layers / groups)) for i in range(layers)]
    check_plan(config, plan, "Hugging Face's ALBERT")
    return {
        "model_type": "albert",
        **shared,
        **{name: getattr(config, name) for name in ALBERT_SIZES},
    }
