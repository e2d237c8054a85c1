"""Reads a whole model, from whatever form: weights, config, tokenizer, what it was trained for.

Forms are Google's TF1 checkpoints, runs' folders, Hugging Face's folders and `.keras` files.
Only programs import this module.

C: classes.
"""

import dataclasses
import os

import keras
import numpy as np

from conversion import model_kinds
from data import files
from data.tokenizer_base import Tokenizer
from folders import model_folder
from modeling import checkpoint_names, task_models
from modeling.config import AlbertConfig
from modeling.models import PretrainingModel
from training import initialization, weight_files

KERAS_FILE = "model.keras"
SLOTS = ("adam_m", "adam_v")
STEP = "global_step"
MODELS = {  # Kind -> its model's class; that of an encoder alone has heads which are not used.
    "encoder": PretrainingModel,
    "pretraining": PretrainingModel,
    "classes": task_models.Classifier,
    "number": task_models.Classifier,
    "multilabel": task_models.Classifier,
    "choice": task_models.MultipleChoice,
    "span": task_models.SpanModel,
    "answerable": task_models.AnswerableSpanModel,
}


@dataclasses.dataclass(frozen=True)
class Source:
    """A model as it was read.

    Attributes:
        path: str, as the user gave it.
        config: AlbertConfig.
        kind: str of model_kinds.KINDS, what the model is for.
        arrays: dict of the model's name to float32 array, without what its file lacked.
        tokenizer: Tokenizer, or None.
        labels: list[str], names of the classes; empty where nothing tells them.
        settings: dict of a run's settings.json; empty without one.
        slots: dict of the optimizer's slot to array, where asked for.
        step: int, steps it was trained for, or None.
        line: str for the user, what was matched.
        left_over: list[str], what the file lacked and what it had beyond the model.
    """

    path: str
    config: AlbertConfig
    kind: str
    arrays: dict
    tokenizer: Tokenizer | None = None
    labels: list = dataclasses.field(default_factory=list)
    settings: dict = dataclasses.field(default_factory=dict)
    slots: dict = dataclasses.field(default_factory=dict)
    step: int | None = None
    line: str = ""
    left_over: list = dataclasses.field(default_factory=list)

    def has(self, prefix):
        """Says whether there are weights whose names begin with `prefix`."""
        return any(name.startswith(prefix) for name in self.arrays)


def read(path, *, kind=None, with_slots=False, config=None, tokenizer=None):
    """Reads a model.

    Args:
        path: a run's folder, Google's archive, prefix or file, Hugging Face's folder, a `.keras`
            file, or a folder that holds `model.keras`.
        kind: one of model_kinds.KINDS where the user says it, else None.
        with_slots: whether the optimizer's slots are read, too.
        config, tokenizer: AlbertConfig and Tokenizer, where the user names others than those
            beside the weights.

    Returns:
        Source.

    Raises:
        FileNotFoundError: there are no weights, or no config beside them.
        ValueError: they cannot be this model's, or it is not told what the head is for.
    """
    path = str(path).rstrip("/")
    kept = {
        "path": path,
        "tokenizer": tokenizer or model_folder.read_tokenizer(path),
        "labels": model_kinds.read_labels(path),
        "settings": model_kinds.read_settings(path),
    }
    if found := find_keras(path):
        return read_keras(found, kind, kept)
    weights = weight_files.open_weights(path)
    config = config or model_folder.read_config(path)
    if config is None:
        raise FileNotFoundError(
            "The config must lie beside the weights: albert_config.json, or Hugging Face's "
            f"config.json. Received: {path}, without one; `albert_config_file` names another."
        )
    held, slots, counters = initialization.without_slots(weights)
    sources, _ = checkpoint_names.find_sources(held)
    shapes = {name: held.shapes[file] for name, (file, _) in sources.items()}
    kind = model_kinds.find_kind(path, shapes, kind)
    variables = variables_of(config, kind, shapes)
    sources, line, left_over = load(variables, held, path)
    return Source(
        config=config,
        kind=kind,
        arrays={name: variables[name].numpy() for name in variables if name in sources},
        slots=read_slots(weights, slots, sources) if with_slots else {},
        step=int(weights.read(STEP)) if STEP in counters else None,
        line=line,
        left_over=left_over,
        **kept,
    )


def variables_of(config, kind, shapes):
    """Returns the variables of the model that weights of these shapes are of: dict by name."""
    model = make_model(config, kind, (shapes.get("output_weights") or [1])[0])
    return (model.encoder if kind == "encoder" else model).named_variables()


def make_model(config, kind, num_classes=1):
    """Makes the Keras model of a kind; `num_classes` is that of a classifier."""
    if MODELS[kind] is task_models.Classifier:
        return task_models.Classifier(config, num_classes)
    return MODELS[kind](config)


def build(source):
    """Makes the Keras model with the weights that a Source holds."""
    num_classes = len(source.arrays.get("output_weights", [0]))
    model = make_model(source.config, source.kind, num_classes)
    variables = model.named_variables()
    for name, array in source.arrays.items():
        variables[name].assign(array)
    return model


def load(variables, held, path):
    """Loads weights, and tells where each came from.

    Args:
        variables: dict of name to tf.Variable.
        held: Weights without slots.
        path: as of `read`.

    Returns:
        (dict of the model's name to (file's name, whether to transpose), line for the user,
        list of what was missing and what was not used).
    """
    found = {}

    def translate(weights, shapes):
        found.update(checkpoint_names.translate(weights, shapes))
        return found

    line = initialization.initialize(variables, path, "bert/", translate=translate)
    sources = {name: found["sources"][name] for name in variables if name in found["sources"]}
    used = {file for file, _ in sources.values()} | set(found["ignored"])
    missing = [f"no {name}" for name in variables if name not in sources]
    return sources, line, [*missing, *sorted(set(held.shapes) - used)]


def read_slots(weights, names, sources):
    """Returns the optimizer's slots under the model's names: dict of name to array.

    Args:
        weights: Weights of the whole file.
        names: list[str], the file's names of slots.
        sources: as of `load`.

    Raises:
        ValueError: there are none.
    """
    slots = {}
    for name, (file, _) in sources.items():
        for slot in SLOTS:
            if f"{file}/{slot}" in names:
                slots[f"{name}/{slot}"] = weights.read(f"{file}/{slot}")
    if not slots:
        raise ValueError(
            "Optimizer slots (adam_m, adam_v) must be in the file to be converted. Received: "
            f"{weights.path}, without any. Leave out `with_slots`."
        )
    return slots


def find_keras(path):
    """Returns the path of the `.keras` file that is meant, or None."""
    candidates = [path, os.path.join(path, KERAS_FILE)]
    return next((c for c in candidates if c.endswith(".keras") and files.exists(c)), None)


def read_keras(found, asked, kept):
    """Reads a `.keras` file.

    Args:
        found: its path.
        asked: as `kind` of `read`.
        kept: dict of the fields of Source that lie beside it.
    """
    try:
        model = keras.saving.load_model(found, compile=False)
        settings = model.settings
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{found} must hold a model of `modeling`. {error}") from error
    allowed = [k for k, made in MODELS.items() if made is type(model) and k != "encoder"]
    if asked not in (None, "encoder", *allowed):
        raise ValueError(
            f"`kind` must be that of the weights, {' or '.join(allowed)}. Received: {asked}."
        )
    kind = asked or model_kinds.told_kind(found)
    if kind not in ("encoder", *allowed):
        kind = "number" if settings.get("num_classes") == 1 else allowed[0]
    held = model.encoder if kind == "encoder" else model
    arrays = {name: np.asarray(v) for name, v in held.named_variables().items()}
    return Source(
        config=AlbertConfig.from_dict(settings["config"]),
        kind=kind,
        arrays=arrays,
        line=f"{found}: {len(arrays)} weights.",
        **kept,
    )
