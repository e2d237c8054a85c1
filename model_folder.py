"""The folder that a run writes and that other programs take: one sealed unit.

`albert_config.json`, `tokenizer/`, `settings.json`, `checkpoints/`, `best/`,
`metrics.jsonl`, `tensorboard/`. Only programs import this module.
"""

import dataclasses
import json
import os
import platform

import tensorflow as tf

from data import tokenization
from modeling.config import AlbertConfig

CONFIG, TOKENIZER, SETTINGS = "albert_config.json", "tokenizer", "settings.json"
PARTS = (CONFIG, TOKENIZER)  # What a model needs beside its weights.


def find(path, name):
    """Returns where a folder, or the folder of a checkpoint, holds a part of a model.

    Args:
        path: folder, checkpoint prefix or file; None finds nothing.
        name: CONFIG or TOKENIZER.

    Returns:
        A path, or None where there is none.
    """
    folders = [path, os.path.dirname(path)] if path else []
    candidates = [os.path.join(folder, name) for folder in folders]
    return next((found for found in candidates if tf.io.gfile.exists(found)), None)


def read_config(path):
    """Returns the AlbertConfig of a folder, or None where it holds none."""
    found = find(path, CONFIG)
    return AlbertConfig.from_json_file(found) if found else None


def seal(folder, *, config, tokenizer, settings):
    """Writes what a model needs beside its weights; a folder of another model is refused.

    Args:
        folder: path.
        config: AlbertConfig.
        tokenizer: a Tokenizer, or None where the records came without one.
        settings: dict of JSON values, every setting of the run.

    Raises:
        ValueError: the folder holds another config or tokenizer.
    """
    held = read_config(folder)
    for field in dataclasses.fields(config) if held else []:
        ours, theirs = getattr(config, field.name), getattr(held, field.name)
        if ours != theirs:
            raise ValueError(
                f"A run goes on with the config it began with. Received: {field.name}={ours}, but "
                f"{theirs} in {os.path.join(folder, CONFIG)}. Use another `output_dir`."
            )
    tf.io.gfile.makedirs(folder)
    if not held:
        config.to_json_file(os.path.join(folder, CONFIG))
    if tokenizer:
        seal_tokenizer(os.path.join(folder, TOKENIZER), tokenizer)
    with tf.io.gfile.GFile(os.path.join(folder, SETTINGS), "w") as file:
        file.write(json.dumps({**settings, "versions": versions()}, indent=2) + "\n")


def seal_tokenizer(folder, tokenizer):
    """Writes the tokenizer, or refuses a folder that holds another one."""
    if not tf.io.gfile.exists(folder):
        tokenizer.save(folder)
        return
    held = tokenization.load(folder)
    if held.fingerprint != tokenizer.fingerprint:
        raise ValueError(
            f"A run goes on with the tokenizer it began with. Received: {tokenizer.fingerprint}, "
            f"but {held.fingerprint} in {folder}. Use another `output_dir`."
        )


def versions():
    """Returns the versions that a run depends on."""
    import keras

    return {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }
