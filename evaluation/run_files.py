"""Whole files in runs' folders, local or remote (`gs://`); no TensorFlow for local ones."""

import os
import uuid


def is_remote(path):
    """Says whether only `tf.io.gfile` can open the path."""
    return "://" in os.fspath(path)


def _gfile():
    import tensorflow as tf

    return tf.io.gfile


def exists(path):
    """Says whether there is a file or a folder of that name."""
    return _gfile().exists(path) if is_remote(path) else os.path.exists(path)


def is_folder(path):
    """Says whether there is a folder of that name."""
    return _gfile().isdir(path) if is_remote(path) else os.path.isdir(path)


def names_in(folder):
    """Returns the names of what a folder holds."""
    return _gfile().listdir(folder) if is_remote(folder) else os.listdir(folder)


def read_bytes(path):
    """Returns what a file holds."""
    with _gfile().GFile(path, "rb") if is_remote(path) else open(path, "rb") as file:
        return file.read()


def write_bytes(path, content):
    """Writes a file, and its folder; the file has its name only once it is complete.

    Args:
        path: str.
        content: bytes.
    """
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.partial")
    if is_remote(path):
        _gfile().makedirs(folder)
        with _gfile().GFile(partial, "wb") as file:
            file.write(content)
        _gfile().rename(partial, path, overwrite=True)
        return
    os.makedirs(folder or ".", exist_ok=True)
    with open(partial, "wb") as file:
        file.write(content)
    os.replace(partial, path)
