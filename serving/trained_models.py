"""Loads a trained model from its folder alone, and says what it can be asked.

Only programs and `predictor` import this module.
"""

import dataclasses
import os

import keras
import numpy as np

from conversion import model_kinds
from data.tokenizer_base import Tokenizer
from evaluation import prediction_files
from folders import model_folder
from modeling import checkpoint_names, models, task_models
from training import initialization, weight_files

CLASSIFICATION = ("classes", "multilabel", "number")  # Kinds in task.json.
MASKED_LM, SENTENCE_ORDER, POOLER = "cls/predictions/", "cls/seq_relationship/", "bert/pooler/"
OBJECTIVES = {MASKED_LM: "masked words", SENTENCE_ORDER: "sentence order"}
SPAN_BEAMS = ("start_n_top", "end_n_top")  # Settings of the model of SQuAD 2.0.


@dataclasses.dataclass(frozen=True)
class Ability:
    """What a model must have to be asked something.

    Attributes:
        of: str, what it tells.
        kinds: of task.json; empty: the weights tell.
        prefix: str, what the names of its weights begin with.
        program: str, where it is trained.
    """

    of: str
    kinds: tuple[str, ...] = ()
    prefix: str = ""
    program: str = "run_pretraining.py"


ABILITIES = {
    "fill-mask": Ability("masked words", prefix=MASKED_LM),
    "order": Ability("the order of two segments", prefix=SENTENCE_ORDER),
    "classify": Ability("classes, labels or a number", CLASSIFICATION, program="run_classifier.py"),
    "choose": Ability("choices", ("choice",), program="run_race.py"),
    "answer": Ability("answers in a text", ("span",), program="run_squad.py"),
    "pool": Ability("pooled outputs", prefix=POOLER),
}


@dataclasses.dataclass(frozen=True)
class TrainedModel:
    """A model with its weights, and what its folder tells of it.

    Attributes:
        folder: str, as it was given.
        model: keras.Model of `modeling`.
        tokenizer: Tokenizer.
        task: dict of task.json, or what its weights tell of one; None: nobody has fine-tuned it.
        settings: dict of settings.json, empty where there is none.
        found: names of the model's weights that the folder holds; the others are random.
    """

    folder: str
    model: keras.Model
    tokenizer: Tokenizer
    task: dict | None
    settings: dict
    found: frozenset[str]

    @property
    def longest(self):
        """How many pieces the table of positions reaches."""
        return self.model.settings["config"]["max_position_embeddings"]

    def has(self, prefix):
        """Says whether there are weights whose names begin so, and the folder holds them all."""
        names = {name for name in self.model.named_variables() if name.startswith(prefix)}
        return bool(names) and names <= self.found

    def described(self):
        """Says in words what the model was trained for, as far as its folder tells."""
        if self.task:
            return f"was trained for {self.task['task']} ({self.task['kind']})"
        heads = [of for prefix, of in OBJECTIVES.items() if self.has(prefix)]
        if not heads:
            return f"has no {model_folder.TASK} and no head of pretraining"
        return f"was trained for {' and '.join(heads)}"

    def check(self, ability):
        """Raises ValueError unless the model has been trained for a key of ABILITIES."""
        needed = ABILITIES[ability]
        has_kind = bool(self.task) and self.task["kind"] in needed.kinds
        if not (has_kind if needed.kinds else self.has(needed.prefix)):
            raise ValueError(
                f"`{ability}` needs a model with a head for {needed.of}. Received: {self.folder}, "
                f"which {self.described()}; train first, with {needed.program}."
            )
        if ability == "order":
            self._check_order()

    def _check_order(self):
        """Refuses a head that is there, as in every pretrained model, but has learnt nothing."""
        bias = self.model.named_variables()[f"{SENTENCE_ORDER}output_bias"]
        objective = self.settings.get("sentence_objective", "sop")
        if objective == "sop" and not np.any(bias):  # It begins at 0, and the first step moves it.
            objective = "none"
        if objective != "sop":
            raise ValueError(
                "`order` needs a model that was pretrained on the order of segments "
                f"(sentence_objective=sop). Received: {self.folder}, with "
                f"sentence_objective={objective}."
            )


def load(folder):
    """Loads the model of a folder, its best weights where it has some.

    Args:
        folder: a run's --output_dir, or Google's or Hugging Face's folder.

    Returns:
        TrainedModel.

    Raises:
        FileNotFoundError: the folder lacks its config, its tokenizer or its weights.
        ValueError: the weights are not those of the config, or of the task.
    """
    folder = str(folder)
    config, tokenizer = read_parts(folder)
    path = model_folder.find(folder, model_folder.TASK)
    task = prediction_files.read_task(os.path.dirname(path)) if path else told_by_weights(folder)
    settings = model_folder.read_json(folder, model_folder.SETTINGS)
    model = make_model(config, task, settings)
    variables = model.named_variables()
    try:
        model_folder.load_weights(variables, folder, required_prefix="" if task else "bert/")
    except ValueError as error:
        raise ValueError(
            f"{folder} must hold a model that was trained for {task['task']}, head and all; train "
            f"first. {error}"
            if task
            else error
        ) from error
    return TrainedModel(folder, model, tokenizer, task, settings, found_in(folder, variables))


def read_parts(folder):
    """Returns (AlbertConfig, Tokenizer) of a folder. Raises as `load`."""
    parts = {
        model_folder.CONFIG: model_folder.read_config(folder),
        model_folder.TOKENIZER: model_folder.read_tokenizer(folder),
    }
    for name, part in parts.items():
        if part is None:
            raise FileNotFoundError(
                f"`model_folder` must hold {name}, as a training run's --output_dir does. "
                f"Received: {folder}."
            )
    config, tokenizer = parts.values()
    if tokenizer.vocab_size > config.vocab_size:
        raise ValueError(
            f"The vocabulary of {folder} must hold the tokenizer's. Received: vocab_size="
            f"{config.vocab_size}, a tokenizer of {tokenizer.vocab_size} pieces."
        )
    return config, tokenizer


def told_by_weights(folder):
    """Returns what task.json would say of a model that others fine-tuned; None of another model.

    Labels are Hugging Face's where it names them, numbers otherwise.

    Raises:
        ValueError: a head of one output, of which nothing tells what it is for.
    """
    weights, _, _ = initialization.without_slots(weight_files.open_weights(folder))
    sources, _ = checkpoint_names.find_sources(weights)
    shapes = {name: weights.shapes[source] for name, (source, _) in sources.items()}
    kind = model_kinds.find_kind(folder, shapes, None)
    if kind in ("encoder", "pretraining"):
        return None
    labels = []
    if kind in ("classes", "multilabel"):
        numbers = map(str, range(shapes["output_weights"][0]))
        labels = model_kinds.read_labels(folder) or list(numbers)
    task = model_kinds.TASKS.get(kind, "a task of others")
    kind = "span" if kind == "answerable" else kind  # As run_squad.py has it.
    return {"task": task, "kind": kind, "labels": labels, "metrics": []}


def make_model(config, task, settings):
    """Returns a new keras.Model for a task (None: pretraining)."""
    if task is None:
        return models.PretrainingModel(config)
    if task["kind"] == "choice":
        return task_models.MultipleChoice(config)
    if task["kind"] == "span":
        if not task["task"].endswith("2.0"):
            return task_models.SpanModel(config)
        beams = {name: settings[name] for name in SPAN_BEAMS if name in settings}
        return task_models.AnswerableSpanModel(config, **beams)
    num_outputs = 1 if task["kind"] == "number" else len(task["labels"])
    return task_models.Classifier(config, num_outputs)


def found_in(folder, variables):
    """Returns the names among `variables` that the folder's weights hold: frozenset of str."""
    weights, _, _ = initialization.without_slots(weight_files.open_weights(folder))
    shapes = {name: list(variable.shape) for name, variable in variables.items()}
    return frozenset(checkpoint_names.translate(weights, shapes)["sources"])
