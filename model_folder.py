"""The folder that a run writes and that other programs take: one sealed unit.

`albert_config.json`, `tokenizer/`, `settings.json`, `checkpoints/`, `best/`,
`metrics.jsonl`, `tensorboard/`. Only programs import this module.
"""

import dataclasses
import json
import os
import platform

import tensorflow as tf

from data import files, tokenization
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


def has_weights(folder):
    """Says whether a folder holds weights that a run has written or will go on from."""
    patterns = ("*.index", "*/step-*/*.index")
    return any(tf.io.gfile.glob(os.path.join(folder, pattern)) for pattern in patterns)


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
    if has_weights(folder):
        check_config(folder, config)
        if tokenizer:
            check_tokenizer(folder, tokenizer.fingerprint)
    files.check_folder(folder)
    config.to_json_file(os.path.join(folder, CONFIG))
    if tokenizer:
        tokenizer.save(os.path.join(folder, TOKENIZER))
    with tf.io.gfile.GFile(os.path.join(folder, SETTINGS), "w") as file:
        file.write(json.dumps({**settings, "versions": versions()}, indent=2) + "\n")


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
        path: folder or checkpoint of the weights, or None; all is well without a tokenizer.
        fingerprint: of the records' tokenizer.
    """
    held = find(path, TOKENIZER)
    if held and tokenization.load(held).fingerprint != fingerprint:
        raise ValueError(
            "The records must be made with the tokenizer that is kept. Received: records of "
            f"{fingerprint[:12]}..., but {tokenization.load(held).fingerprint[:12]}... in {held}. "
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
