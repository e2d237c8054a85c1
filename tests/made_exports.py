"""Exports of small models, and a process that knows nothing of this code to serve them."""

import subprocess

import made_folders
import numpy as np
import programs
import tensorflow as tf

from serving import exported_model, trained_models

STORY = "the old fox finds the river . then the young sailor opens the letter ."
FILES = ("given", "found")  # Of a process that knows nothing of this code.
SERVE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
folder, given, found = sys.argv[1:]
assert not {"modeling", "data", "model_folder"} & sys.modules.keys()
served = tf.saved_model.load(folder).signatures
results = {}
with np.load(given) as arrays:
    cases = sorted({name.split("/")[0] for name in arrays})
    for case in cases:
        batch = {n.split("/")[1]: arrays[n] for n in arrays if n.split("/")[0] == case}
        outputs = served[case.split("-")[0]](**{n: tf.constant(v) for n, v in batch.items()})
        for name, tensor in outputs.items():
            values = tensor.numpy()
            is_text = tensor.dtype == tf.string
            values = np.char.decode(values.astype(bytes), "utf-8") if is_text else values
            results[f"{case}/{name}"] = values
np.savez(found, **results)
"""


def maker(tmp_path_factory):
    """Returns a function from a kind to its model folder, its export, and the served model."""
    kept = {}

    def make(kind, **settings):
        if kind not in kept:
            folder = tmp_path_factory.mktemp(kind)
            made_folders.write(folder, kind, **settings)
            result = programs.call("export_model", model_folder=folder, output_dir=folder / "out")
            programs.succeed(result)
            exported = exported_model.ExportedModel(trained_models.load(folder))
            kept[kind] = folder, folder / "out", exported
        return kept[kind]

    return make


def succeed(command, folder):
    """Runs a command in a folder, and returns what it writes to standard error."""
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stderr


def strings(texts):
    return tf.constant([text.encode() for text in texts])


def ids_of(exported, batch_size, length, seed=0):
    """Returns random inputs of the ids signature: dict of array."""
    generator = np.random.default_rng(seed)
    shape = (batch_size, 3, length) if exported.kind == "choice" else (batch_size, length)
    mask = np.arange(length) < generator.integers(4, length + 1, (*shape[:-1], 1))
    batch = {
        "input_ids": generator.integers(0, programs.VOCAB_SIZE, shape) * mask,
        "input_mask": mask,
        "segment_ids": generator.integers(0, 2, shape) * mask,
        "p_mask": ~mask,
        "masked_lm_positions": generator.integers(0, 4, (batch_size, 2)),
    }
    batch = {name: array.astype(np.int32) for name, array in batch.items()}
    batch["choice_mask"] = np.ones(shape[:-1], np.float32)
    return {name: batch[name] for name in exported.id_inputs()}
