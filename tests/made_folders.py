"""Folders of small models with random weights, for whoever asks a trained model."""

import json

import made_models
import made_weights
import programs
import tensorflow as tf

from data import tokenization
from folders import model_folder
from modeling import models, task_models
from predictor import from_folder

LONGEST = 48  # Pieces that the tables of positions reach.
LABELS = ("bad", "fair", "good")
SETTINGS = {"max_seq_length": 32, "max_qa_length": 12, "max_query_length": 8, "doc_stride": 6}
SETTINGS |= {"version": "1.1", "max_answer_length": 5, "start_n_top": 6, "end_n_top": 8}
TASKS = {  # Name -> what makes the model, and task.json's task, kind and labels.
    "pretraining": (models.PretrainingModel, None),
    "classes": (lambda config: task_models.Classifier(config, 3), ("custom", "classes", LABELS)),
    "multilabel": (
        lambda config: task_models.Classifier(config, 3),
        ("custom", "multilabel", LABELS),
    ),
    "number": (lambda config: task_models.Classifier(config, 1), ("custom", "number", ())),
    "choice": (task_models.MultipleChoice, ("RACE", "choice", ())),
    "span": (task_models.SpanModel, ("SQuAD 1.1", "span", ())),
    "answerable": (
        lambda config: task_models.AnswerableSpanModel(config, start_n_top=6, end_n_top=8),
        ("SQuAD 2.0", "span", ()),
    ),
}

# What models are asked about.
TEXTS = ["the old fox .", "then the sailor paints the river near the garden .", "first"]
PAIRS = [("the old fox .", "later the young fox ."), ("red", "the blue horse opens a letter .")]
MASKED = ["the [MASK] fox .", "first [MASK] sailor [MASK] the old [MASK] .", "[MASK]"]
CONTEXT = "the old fox finds the river . then the young sailor opens the letter near the window ."
QUESTIONS = ["the letter", "old fox river"]


def write(folder, name, seed=0, tokenizer=None, **settings):
    """Writes the folder of a model of TASKS, as a run leaves it, and returns the model."""
    tokenizer = tokenizer or tokenization.load(programs.write_word_list(folder))
    config = made_models.small_config(
        vocab_size=tokenizer.vocab_size, max_position_embeddings=LONGEST
    )
    make, task = TASKS[name]
    model = made_models.randomize(make(config), seed)
    kept = {**SETTINGS, "version": "2.0"} if name == "answerable" else SETTINGS
    kept = {"max_seq_length": SETTINGS["max_seq_length"]} if task is None else kept
    model_folder.seal(
        str(folder), config=config, tokenizer=tokenizer, settings={**kept, **settings}
    )
    if task:
        described = dict(zip(("task", "kind", "labels"), task, strict=True), metrics=["accuracy"])
        (folder / model_folder.TASK).write_text(json.dumps(described))
        labels = "".join(f"{label}\n" for label in described["labels"])
        (folder / model_folder.LABELS).write_text(labels)
    made_weights.write_checkpoint(folder / "model.ckpt-1", made_weights.arrays_of(model))
    return model


def maker(tmp_path_factory):
    """Returns a function from a name of TASKS to (folder, model by hand, predictor), made once."""
    kept = {}

    def make(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp(name)
            kept[name] = folder, write(folder, name), from_folder(folder, batch_size=2)
        return kept[name]

    return make


def by_hand(folder, *texts, marked=False):
    """Returns the batch of one text or pair, unpadded."""
    tokenizer = tokenization.load(folder / "tokenizer")
    ids, segments = [tokenizer.cls_id], [0]
    for number, text in enumerate(texts):
        pieces = [*tokenizer.encode(text, allow_markers=marked), tokenizer.sep_id]
        ids, segments = ids + pieces, segments + [number] * len(pieces)
    batch = {"input_ids": [ids], "input_mask": [[1] * len(ids)], "segment_ids": [segments]}
    return {name: tf.constant(values, tf.int32) for name, values in batch.items()}
