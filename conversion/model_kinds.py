"""Says what a model is for: by the names of its weights, and by the files beside them.

Only programs import this module.
"""

from folders import foreign_folders, model_folder
from modeling import checkpoint_names

KINDS = ("encoder", "pretraining", "classes", "number", "multilabel", "choice", "span")
KINDS = (*KINDS, "answerable")  # SQuAD 2.0's; `span` is SQuAD 1.1's.
BY_POOLED_OUTPUT = ("classes", "number", "multilabel", "choice")  # Their heads have one name.
TASKS = {"choice": "RACE", "span": "SQuAD 1.1", "answerable": "SQuAD 2.0"}
HUGGING_FACE_KINDS = {  # The end of `architectures`, or `problem_type`.
    "ForMultipleChoice": "choice",
    "regression": "number",
    "single_label_classification": "classes",
    "multi_label_classification": "multilabel",
}
DROPOUT_KEYS = ("classifier_dropout_prob", "classifier_dropout")  # ALBERT's and ours; BERT's.


def find_kind(path, shapes, asked):
    """Says what the model is for, by the names of its weights and what lies beside them.

    Args:
        path: as of `read`.
        shapes: dict of the model's name to shape.
        asked: str, what the user says, or None.

    Raises:
        ValueError: nothing tells a regression from a choice, or the user contradicts the names.
    """
    if asked == "encoder":
        return asked
    has_pooler = any(name.startswith(checkpoint_names.POOLER) for name in shapes)
    kind = "encoder"
    if "start_logits/dense/kernel" in shapes:
        kind = "answerable"
    elif "cls/squad/output_weights" in shapes:
        kind = "span"
    elif "output_weights" in shapes and has_pooler:
        kind = asked or told_kind(path)
        if kind not in BY_POOLED_OUTPUT:
            kind = "classes" if shapes["output_weights"][0] > 1 else None
        if kind is None:
            raise ValueError(
                "A head of one output must be said to be for a `kind` number or choice. "
                f"Received: {path}, where nothing tells."
            )
    elif any(name.startswith("cls/") for name in shapes):
        kind = "pretraining"
    if asked not in (None, kind):
        raise ValueError(f"`kind` must be that of the weights, {kind}. Received: {asked}.")
    return kind


def told_kind(path):
    """Returns what the files beside weights say they are for, or None."""
    if told := model_folder.read_json(path, model_folder.TASK).get("kind"):
        return told
    values = read_hugging_face(path)
    name = (values.get("architectures") or [""])[0]
    kinds = [kind for ending, kind in HUGGING_FACE_KINDS.items() if name.endswith(ending)]
    return kinds[0] if kinds else HUGGING_FACE_KINDS.get(values.get("problem_type"))


def read_labels(path):
    """Returns the names of the classes, list[str]; empty where they are numbered only."""
    if labels := model_folder.read_labels(path):
        return labels
    names = read_hugging_face(path).get("id2label") or {}
    labels = [names[number] for number in sorted(names, key=int)]
    return labels if any(f"LABEL_{i}" != label for i, label in enumerate(labels)) else []


def read_settings(path):
    """Returns what a run's folder says of its settings, and Hugging Face's of the head's dropout.

    Returns:
        dict, empty where nothing tells.
    """
    values = read_hugging_face(path)
    dropouts = [values[key] for key in DROPOUT_KEYS if values.get(key) is not None]
    told = {DROPOUT_KEYS[0]: dropouts[0]} if dropouts else {}
    return told | model_folder.read_json(path, model_folder.SETTINGS)


def read_hugging_face(path):
    """Returns the dict of Hugging Face's `config.json` beside weights, or an empty one."""
    values = model_folder.read_json(path, foreign_folders.HUGGING_FACE)
    return values if "model_type" in values else {}


def describe(source):
    """Returns what `task.json` says of a model that was trained for a task; {} for another."""
    if source.kind in ("encoder", "pretraining"):
        return {}
    kept = model_folder.read_json(source.path, model_folder.TASK)
    kind = "span" if source.kind == "answerable" else source.kind  # As run_squad.py has it.
    task = {"task": TASKS.get(source.kind, "custom"), "metrics": []}
    return {**task, **kept, "kind": kind, "labels": source.labels}
