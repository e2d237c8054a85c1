"""Whole small files, local or remote (`gs://`); no TensorFlow for local ones."""

import json
import os
import uuid


def is_remote(path):
    """Says whether only `tf.io.gfile` can open the path."""
    return "://" in path


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
    """Returns the names of what a folder holds, sorted; remote folders' end in a slash."""
    return sorted(_gfile().listdir(folder) if is_remote(folder) else os.listdir(folder))


def read_bytes(path):
    """Returns what a file holds."""
    with _gfile().GFile(path, "rb") if is_remote(path) else open(path, "rb") as file:
        return file.read()


def remove(path):
    """Removes a file."""
    _gfile().remove(path) if is_remote(path) else os.remove(path)


def write_bytes(path, content):
    """Writes a file that is either whole or not there, and its folder.

    Several processes may write the same at once, as the workers of a run do: each under a name
    of its own until it is whole. Process ids are not, in containers on several machines.

    Args:
        path: str.
        content: bytes.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.partial")
    if is_remote(path):
        _gfile().makedirs(folder)
        with _gfile().GFile(temporary, "wb") as file:
            file.write(content)
        _gfile().rename(temporary, path, overwrite=True)
        return
    os.makedirs(folder or ".", exist_ok=True)
    with open(temporary, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def write_json(path, value):
    """Writes a JSON value, indented by 2, as `write_bytes` writes."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def check_folder(path):
    """Makes a folder for output, unless it is there.

    Raises:
        ValueError: it cannot be made or written to.
    """
    try:
        if is_remote(path):
            _gfile().makedirs(path)
            return
        os.makedirs(path, exist_ok=True)
        is_writable = os.access(path, os.W_OK)
        reason = "no permission"
    except OSError as error:
        is_writable, reason = False, error.strerror
    if not is_writable:
        raise ValueError(
            f"output must go to a folder that can be written. Received: {path} ({reason})."
        )
