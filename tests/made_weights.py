"""Files of small weights for the tests: TF1 checkpoints, safetensors, lists of shards."""

import json

import numpy as np
import tensorflow as tf
from safetensors.numpy import save_file

BERT = {"bert/encoder/kernel": (3, 2), "bert/encoder/bias": (2,)}
HEAD = {"cls/predictions/output_bias": (5,)}


def tensors(shapes, seed=0):
    generator = np.random.default_rng(seed)
    return {n: generator.normal(size=s).astype(np.float32) for n, s in shapes.items()}


def variables(shapes):
    return {name: tf.Variable(tf.zeros(shape)) for name, shape in shapes.items()}


def arrays_of(model):
    return {name: variable.numpy() for name, variable in model.named_variables().items()}


def write_checkpoint(prefix, values):
    """Writes a TF1 checkpoint as `tf.compat.v1.train.Saver` does, by names and values."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.constant(value) for value in values.values()],
    )
    return prefix


def write_safetensors(path, values):
    save_file({name: np.ascontiguousarray(value) for name, value in values.items()}, path)
    return path


def write_shards(folder, values):
    """Writes each array into a file of its own, and the list that Hugging Face puts beside."""
    files = {
        name: f"model-{i:05d}-of-{len(values):05d}.safetensors" for i, name in enumerate(values)
    }
    for name, file in files.items():
        write_safetensors(folder / file, {name: values[name]})
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    return path
