"""Writes arrays in the two forms that `weight_files` opens: TF1 checkpoints and safetensors."""

import numpy as np
import tensorflow as tf
from safetensors.numpy import save


def write_checkpoint(prefix, values):
    """Writes what `tf.compat.v1.train.Saver` writes, by names and values.

    Args:
        prefix: path of the files, less their endings.
        values: dict of name to tensor or array.
    """
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=tf.constant(prefix),
            tensor_names=list(values),
            shape_and_slices=[""] * len(values),
            tensors=[tf.convert_to_tensor(value) for value in values.values()],
        )


def write_safetensors(path, values):
    """Writes one safetensors file, which transformers takes for PyTorch's.

    Args:
        path: of the file, local.
        values: dict of name to array.
    """
    if "://" in path:
        raise ValueError(f"safetensors must be written to a local disk. Received: {path}.")
    arrays = {name: np.ascontiguousarray(value) for name, value in values.items()}
    with open(path, "wb") as file:  # Theirs would be readable by its owner alone.
        file.write(save(arrays, metadata={"format": "pt"}))
