"""The folder that a run writes and that other programs take: one sealed unit.

`albert_config.json`, `tokenizer/`, `settings.json`, `checkpoints/`, `best/`,
`metrics.jsonl`, `tensorboard/`. Folders that others made are read as far as they go. Only
programs import this module.
"""

import dataclasses
import json
import os
import platform
import re

import tensorflow as tf

from data import files, tokenization
from folders import foreign_folders
from modeling import checkpoint_names
from modeling.config import AlbertConfig
from training import initialization

CONFIG, TOKENIZER, SETTINGS = "albert_config.json", "tokenizer", "settings.json"
TASK, LABELS = "task.json", "labels.txt"
THRESHOLD = "null_threshold.json"  # Of a SQuAD 2.0 model, tuned.
CONVERTED_FROM = "converted_from"  # In the settings of a folder that no run has made.
# Folders inside a run's or a TF-Hub module's: the model's parts are further out.
INNER_FOLDER = re.compile(r"best|checkpoints|step-\d+|variables")


def places(path):
    """Lists the folders that may hold the parts of the model that a path means, nearest first.

    Args:
        path: folder, checkpoint prefix or file; None has none.
    """
    if not path:
        return []
    path = str(path).rstrip("/")
    folders = [path if tf.io.gfile.isdir(path) else os.path.dirname(path)]
    while INNER_FOLDER.fullmatch(os.path.basename(folders[-1])):
        folders.append(os.path.dirname(folders[-1]))
    return [*folders, os.path.join(folders[-1], "assets")]


def find(path, name):
    """Returns where a folder, or the folder of a checkpoint, holds a part of a model of ours.

    Args:
        path: as of `places`.
        name: CONFIG or TOKENIZER, or that of a file.

    Returns:
        A path, or None where there is none.
    """
    candidates = [os.path.join(folder, name) for folder in places(path)]
    return next((found for found in candidates if tf.io.gfile.exists(found)), None)


def read_config(path):
    """Returns the AlbertConfig that belongs to weights, or None where they come without one.

    Args:
        path: a run's folder, Google's archive, Hugging Face's folder, or a file in one.

    Raises:
        ValueError: a config cannot be this model's; the message names the file.
    """
    if found := find(path, CONFIG):
        return AlbertConfig.from_json_file(found)
    configs = (foreign_folders.read_config(folder) for folder in places(path))
    return next((config for config in configs if config), None)


def read_tokenizer(path, **settings):
    """Returns the Tokenizer that belongs to weights, or None where they come without one.

    Args:
        path: as of `read_config`.
        **settings: `lower`, `keep_accents`, `digit_comma_split`, where the user says them.

    Raises:
        ValueError: it cannot be read, or a setting contradicts what is kept beside it.
    """
    if found := find(path, TOKENIZER):
        return tokenization.load(found, **settings)
    tokenizers = (foreign_folders.read_tokenizer(f, **settings) for f in places(path))
    return next((tokenizer for tokenizer in tokenizers if tokenizer), None)


def load_weights(named_variables, path, *, required_prefix="bert/", leave=()):
    """Loads weights alone from any file this model's can come from, and says what was matched.

    Args:
        named_variables: dict of name to tf.Variable, of a model's `named_variables()`.
        path: a run's folder, Google's archive, Hugging Face's folder, or a file in one; also
            those of BERT, for a config with `sharing` none.
        required_prefix: str or tuple: names that begin with it must all be there.
        leave: prefixes of names that keep their values, such as another task's head.

    Returns:
        str: a line for the user.

    Raises:
        FileNotFoundError, ValueError: as `initialization.initialize`, or the config is not the
            one that the weights were made with.
    """
    return initialization.initialize(
        named_variables, path, required_prefix, translate=checkpoint_names.translate, leave=leave
    )


def read_json(path, name):
    """Returns the dict that a JSON file of a model holds; empty where there is none.

    Args:
        path: as of `find`.
        name: of the file, such as SETTINGS or TASK.
    """
    found = find(path, name)
    return json.loads(files.read_bytes(found)) if found else {}


def read_labels(path):
    """Returns the labels that a run's folder was trained for, list[str]; empty without a list."""
    found = find(path, LABELS)
    text = files.read_bytes(found).decode() if found else ""
    return text.removesuffix("\n").split("\n") if text else []


def has_weights(folder):
    """Says whether a folder holds weights that a run has written or will go on from."""
    patterns = ("*.index", "*/step-*/*.index")
    return any(tf.io.gfile.glob(os.path.join(folder, pattern)) for pattern in patterns)


def check_goes_on(folder, is_fine_tuning):
    """Refuses a folder with weights that no run of this kind has left, for a run replaces them.

    Args:
        folder: path that a run is to write to.
        is_fine_tuning: bool.

    Raises:
        ValueError: they were converted, put there, or trained for something else.
    """
    if not has_weights(folder):
        return
    is_foreign = tf.io.gfile.glob(os.path.join(folder, "*.index"))
    is_foreign = is_foreign or CONVERTED_FROM in read_json(folder, SETTINGS)
    if is_foreign or is_fine_tuning != files.exists(os.path.join(folder, TASK)):
        raise ValueError(
            "`output_dir` must be a new folder, or one that a run of this program has begun. "
            f"Received: {folder}, which holds other weights. Use another one; `init_checkpoint` "
            "begins with the weights of a folder."
        )


def seal(folder, *, config, tokenizer, settings):
    """Writes what a model needs beside its weights; a folder of another model is refused.

    Where there are no weights yet, config and tokenizer are replaced: a run that failed
    before its first checkpoint binds the next one to nothing.

    Args:
        folder: path.
        config: AlbertConfig.
        tokenizer: a Tokenizer, or None where the records came without one.
        settings: dict of JSON values, every setting of the run.

    Raises:
        ValueError: the folder holds weights of another config or tokenizer, or cannot be
            written.
    """
    check_model(folder, config, tokenizer)
    files.check_folder(folder)
    config.to_json_file(os.path.join(folder, CONFIG))
    if tokenizer:
        tokenizer.save(os.path.join(folder, TOKENIZER))
    with tf.io.gfile.GFile(os.path.join(folder, SETTINGS), "w") as file:
        file.write(json.dumps({**settings, "versions": versions()}, indent=2) + "\n")


def write_task(folder, task, labels):
    """Writes what a model was trained for, and the names of its classes where it has some.

    Args:
        folder: path.
        task: dict of `task.json`, or None: nothing tells.
        labels: list of str.

    Raises:
        ValueError: a label goes over several lines.
    """
    if broken := [label for label in labels if "\n" in label]:
        raise ValueError(f"The name of a class must be one line. Received: {broken[0]!r}.")
    if task:
        files.write_json(os.path.join(folder, TASK), task)
    if labels:
        text = "".join(f"{label}\n" for label in labels)
        files.write_bytes(os.path.join(folder, LABELS), text.encode())


def check_model(folder, config, tokenizer):
    """Refuses a folder with weights of another config or tokenizer; args as of `seal`."""
    if has_weights(folder):
        check_config(folder, config)
        if tokenizer:
            check_tokenizer(folder, tokenizer.fingerprint)


def check_config(folder, config):
    """Refuses a folder that holds another config, naming the first field that differs."""
    held = read_config(folder)
    for field in dataclasses.fields(config) if held else []:
        ours, theirs = getattr(config, field.name), getattr(held, field.name)
        if ours != theirs:
            raise ValueError(
                f"A run goes on with the config it began with. Received: {field.name}={ours}, but "
                f"{theirs} in {os.path.join(folder, CONFIG)}. Use another `output_dir`."
            )


def check_tokenizer(path, fingerprint):
    """Refuses weights that belong to another tokenizer than the records.

    Args:
        path: folder or checkpoint of the weights, or None; all is well where no tokenizer is
            kept with its settings, as in Google's archives.
        fingerprint: of the records' tokenizer.
    """
    names = (TOKENIZER, foreign_folders.TOKENIZER_SETTINGS)
    held = read_tokenizer(path) if any(find(path, name) for name in names) else None
    if held and held.fingerprint != fingerprint:
        raise ValueError(
            "The records must be made with the tokenizer that is kept. Received: records of "
            f"{fingerprint[:12]}..., but {held.fingerprint[:12]}... beside the weights in {path}. "
            "Create the data with that tokenizer, or use other weights."
        )


def versions():
    """Returns the versions that a run depends on."""
    import keras

    return {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }
