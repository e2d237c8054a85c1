"""Finds the model's weights in files whose names are not, or not all, the model's own.

The model uses the names of Google's released TF1 checkpoints (`named_variables`). Other
layouts of Google's, Hugging Face's ALBERT and BERT of both kinds are translated; what can be
told from shapes is compared before anything is loaded.
"""

import re

import numpy as np

from modeling import bert_names, hugging_face_names

# What a name tells about a file that this model cannot hold.
FOREIGN_LAYOUTS = {
    r"/layer_shared/|word_embeddings_2": "albert_zh's (brightmart/albert_zh), which is another "
    "architecture; Google's own Chinese models are in the layout that fits",
    r"/layer_normalization(_\d+)?/": "one whose LayerNorms are not shared, from a fork in which "
    "each layer made new ones (google-research/albert issue 241); no ALBERT can be made of it",
}
GROUP = re.compile(r"/group_(\d+)/")
MAPPING = hugging_face_names.MAPPING
POOLER = "bert/pooler/"
FIRST_BLOCK = bert_names.BLOCK.format(0, 0, "")
FIELDS = {  # Field of the config: the weight that shows it, and the axis.
    "vocab_size": ("bert/embeddings/word_embeddings", 0),
    "embedding_size": ("bert/embeddings/word_embeddings", 1),
    "max_position_embeddings": ("bert/embeddings/position_embeddings", 0),
    "type_vocab_size": ("bert/embeddings/token_type_embeddings", 0),
    "hidden_size": (f"{FIRST_BLOCK}attention_1/self/query/kernel", 0),
    "intermediate_size": (f"{FIRST_BLOCK}ffn_1/intermediate/dense/kernel", 1),
}
COUNTS = {  # Field: the weights that there are as many of.
    "num_hidden_groups": r"/group_\d+/inner_group_0/attention_1/self/query/kernel",
    "num_hidden_groups (of feed-forward blocks)": r"/group_\d+/inner_group_0/LayerNorm_1/beta",
    "inner_group_num": r"/group_0/inner_group_\d+/attention_1/self/query/kernel",
}


def canonical(name):
    """Turns a name in any of Google's layouts into the one that the model uses.

    Hub exports put `module/` before all names; some old files number the shared layers' scopes
    otherwise (modeling.py:389-440 of the original looks for `attention_<n>` and `ffn_<n>`).
    BERT's layers become blocks that nothing shares.

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
    layer, _, leaf = name.rpartition("/")
    if found := bert_names.block_layer(layer):
        return f"{found}/{leaf}"
    return re.sub(r"(?<=/)(attention|ffn)_\d+/", r"\1_1/", name)


def translate(weights, shapes):
    """Finds the model's weights in a file, whichever of the known layouts it is in.

    Args:
        weights: what `training.weight_files` gives: `path`, `shapes` (dict of file's name to
            shape) and `read` (file's name -> array).
        shapes: dict of the model's name to shape.

    Returns:
        A dict: `sources`, model's name -> (file's name, whether to transpose); `ignored`, names
        of buffers and of second copies; `optional`, prefixes of what such a file may lack;
        `notes`, sentences for the user.

    Raises:
        ValueError: the file's layout or its config cannot be the model's.
    """
    sources, ignored = find_sources(weights)
    drop_identity(sources, ignored, weights, shapes)
    notes, optional = [], ()
    is_hugging_face = any("." in source for source, _ in sources.values())
    if is_hugging_face and not any(name.startswith(POOLER) for name in sources):
        optional = (POOLER,)
        for name in ("output_weights", "output_bias"):  # A token classifier's.
            sources.pop(name, None)
        if any(name.startswith(POOLER) for name in shapes):
            notes.append("The file has no pooler, as some of Hugging Face's: it begins anew.")
    is_bert = any(bert_names.LAYER.search(name) for name in weights.shapes)
    check_config(weights, sources, shapes, can_fill=not is_bert)
    notes += fill_groups(sources, shapes)
    return {"sources": sources, "ignored": ignored, "optional": optional, "notes": notes}


def find_sources(weights):
    """Returns (dict of model's name to (file's name, whether to transpose), names to ignore).

    Raises:
        ValueError: two names of the file stand for one weight.
    """
    sources, ignored, twins = {}, [], {}
    for name in sorted(weights.shapes):
        if hugging_face_names.BUFFERS.search(name):
            ignored.append(name)
            continue
        if target := hugging_face_names.twin(name):
            twins[name] = target
            continue
        is_google = "/" in name or "." not in name
        target, is_transposed = (
            (canonical(name), False) if is_google else hugging_face_names.model_name(name)
        )
        if target in sources:
            raise ValueError(
                "Each weight must have one source in the checkpoint. Received: "
                f"{sources[target][0]} and {name} for {target}."
            )
        sources[target] = name, is_transposed
    return sources, ignored + drop_twins(twins, sources, weights)


def drop_twins(twins, sources, weights):
    """Returns the names of second copies; what has a second name only goes into `sources`.

    Args:
        twins: dict of file's name to the model's name of what it holds once more.
        sources: dict of model's name to (file's name, whether to transpose).
        weights: as of `translate`.

    Raises:
        ValueError: a copy is not equal.
    """
    copies = []
    for name, target in twins.items():
        first, _ = sources.setdefault(target, (name, False))
        if first == name:
            continue
        if not np.array_equal(weights.read(first), weights.read(name)):
            raise ValueError(
                "The masked-LM head must use the embedding table and one bias. Received: "
                f"{weights.path}, where {name} is not {first}."
            )
        copies.append(name)
    return copies


def drop_identity(sources, ignored, weights, shapes):
    """Takes the projection out of `sources` where E = H, since this model then has none.

    Raises:
        ValueError: the projection is not the identity.
    """
    kernel = f"{MAPPING}/kernel"
    if kernel in shapes or kernel not in sources:
        return
    name, _ = sources[kernel]
    size, width = weights.shapes[name]
    if size != width:
        return
    bias, _ = sources.get(f"{MAPPING}/bias", (None, False))
    if not np.array_equal(weights.read(name), np.eye(width)) or (bias and weights.read(bias).any()):
        raise ValueError(
            "Where `embedding_size` is `hidden_size` there must be no projection between them, or "
            f"the identity. Received: {weights.path}, with another {name}."
        )
    ignored += [sources.pop(n)[0] for n in (kernel, f"{MAPPING}/bias") if n in sources]


def described_fields(shapes):
    """Returns the fields of the config that the shapes of the model's weights tell, as a dict."""
    fields = {f: shapes[name][axis] for f, (name, axis) in FIELDS.items() if name in shapes}
    counts = {
        field: sum(bool(re.search(pattern, name)) for name in shapes)
        for field, pattern in COUNTS.items()
    }
    return fields | {field: count for field, count in counts.items() if count}


def check_config(weights, sources, shapes, can_fill):
    """Refuses weights made with another config, naming each field and both values.

    Args:
        weights: as of `translate`.
        sources: dict of model's name to (file's name, whether to transpose).
        shapes: dict of the model's name to shape.
        can_fill: whether one group may serve for all of the model's.
    """
    in_file = {
        name: list(weights.shapes[source])[:: -1 if is_transposed else 1]
        for name, (source, is_transposed) in sources.items()
    }
    ours, theirs = described_fields(shapes), described_fields(in_file)
    groups = [field for field in COUNTS if "groups" in field]
    if can_fill and all(theirs.get(field) == 1 for field in groups):
        theirs = {field: value for field, value in theirs.items() if field not in groups}
    different = [
        f"{field} is {theirs[field]}, and {ours[field]} in the config"
        for field in ours
        if field in theirs and ours[field] != theirs[field]
    ]
    surplus = sorted(
        name for name in sources if name.startswith("bert/encoder/") and name not in shapes
    )
    if not different and surplus and any(name in sources for name in shapes):
        different = [f"{', '.join(surplus[:3])} would have no place in the model"]
    if different:
        raise ValueError(
            "The config must be the one that the weights were made with (for BERT's, one with "
            f"`sharing` none). Received: {weights.path}, where {'; '.join(different)}."
        )


def fill_groups(sources, shapes):
    """Lets the one group of a file serve for all groups of the model.

    (modeling.py:389 of the original, get_assignment_map_from_checkpoint with num_of_group > 1.)
    Differs from the original: there group 0's `attention_1` and `ffn_1` are taken for group 1's,
    which then take their place, so that these of group 0 begin with random weights.

    Returns:
        A list of sentences for the user.
    """
    filled = {}
    if any(group != "0" for name in sources for group in GROUP.findall(name)):
        return []
    for name in shapes:
        origin = GROUP.sub("/group_0/", name)
        if name not in sources and origin in sources:
            sources[name] = sources[origin]
            filled.setdefault(GROUP.search(name)[1], []).append(name)
    if not filled:
        return []
    count = sum(map(len, filled.values()))
    return [
        f"Of those matched, {count} in group {', '.join(filled)} were filled from group 0, the "
        "file's only one."
    ]
