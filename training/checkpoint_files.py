"""The files of one checkpoint: a TF1 bundle with plain names, and the list that proves it whole.

A folder `step-<N>/` holds `model.ckpt-<N>.index`, `model.ckpt-<N>.data-00000-of-00001`
(the format of `tf.compat.v1.train.Saver`, so the original reads it) and
`complete.json`: size and sha256 of each of the two, and of what it says itself. The folder
gets its name only when all three are on the disk. Nothing is pickled.
"""

import contextlib
import hashlib
import json
import os
import uuid

import tensorflow as tf

from training import weight_writing

COMPLETE = "complete.json"
CHUNK = 1 << 24  # Bytes hashed at a time: 16 MiB, so that memory does not grow with the model.


def write(folder, step, values, note=None):
    """Writes one checkpoint folder; it appears under its name whole or not at all.

    Args:
        folder: path the folder is to have; one that is already there is replaced.
        step: number in the names of the files.
        values: dict of name to tensor.
        note: dict of JSON values to keep with it.

    Raises:
        OSError: the disk is full, or the folder cannot be written; what was there stays.
    """
    folder = folder.rstrip("/")
    unfinished = f"{folder}.unfinished-{uuid.uuid4().hex[:8]}"
    try:
        with writing(folder):
            _write_whole(folder, unfinished, step, values, note)
    except OSError:
        with contextlib.suppress(tf.errors.OpError):  # The reason of the first error is told.
            tf.io.gfile.rmtree(unfinished)
        raise


@contextlib.contextmanager
def writing(path):
    """Turns what goes wrong with a file, in TensorFlow or not, into an OSError that names it."""
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        reason = getattr(error, "message", None) or error
        raise OSError(f"{path} could not be written: {reason}") from error


def _write_whole(folder, unfinished, step, values, note):
    tf.io.gfile.makedirs(unfinished)
    weight_writing.write_checkpoint(os.path.join(unfinished, f"model.ckpt-{step}"), values)
    names = sorted(tf.io.gfile.listdir(unfinished))
    files = {name: description(os.path.join(unfinished, name)) for name in names}
    body = {"step": step, "files": files, "note": note or {}}
    with tf.io.gfile.GFile(os.path.join(unfinished, COMPLETE), "w") as stream:
        stream.write(json.dumps({**body, "sha256": fingerprint(body)}, indent=1) + "\n")
    for path in (*(os.path.join(unfinished, name) for name in (*names, COMPLETE)), unfinished):
        to_disk(path)
    replaced = f"{folder}.unfinished-{uuid.uuid4().hex[:8]}"
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rename(folder, replaced)
    tf.io.gfile.rename(unfinished, folder)
    to_disk(os.path.dirname(folder))
    if tf.io.gfile.exists(replaced):
        tf.io.gfile.rmtree(replaced)


def to_disk(path):
    """Waits until a local file or folder would survive a power cut; remote ones need no wait."""
    if "://" in path:
        return
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def description(path):
    """Returns {"bytes", "sha256"} of a file."""
    digest, size = hashlib.sha256(), 0
    with tf.io.gfile.GFile(path, "rb") as stream:
        while block := stream.read(CHUNK):
            digest.update(block)
            size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def fingerprint(body):
    """Returns the sha256 of a JSON value, however it is laid out."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def read_complete(folder):
    """Returns what `complete.json` says: {"step", "files", "note"}.

    Raises:
        ValueError: it is absent, or does not say what was written.
    """
    path = os.path.join(folder, COMPLETE)
    if not tf.io.gfile.exists(path):
        raise ValueError(f"{path} is missing")
    with tf.io.gfile.GFile(path, "rb") as stream:
        try:
            body = json.loads(stream.read())
        except ValueError as error:
            raise ValueError(f"{path} is damaged") from error
    if not isinstance(body, dict) or body.pop("sha256", None) != fingerprint(body):
        raise ValueError(f"{path} is damaged")
    return body


def problem(folder):
    """Says what is wrong with a checkpoint folder.

    Returns:
        A sentence that names the file, or None when every byte is as it was written.
    """
    try:
        complete = read_complete(folder)
    except ValueError as error:
        return str(error)
    for name, written in complete["files"].items():
        path = os.path.join(folder, name)
        if not tf.io.gfile.exists(path):
            return f"{path} is missing"
        found = description(path)
        if found["bytes"] != written["bytes"]:
            return f"{path} has {found['bytes']} bytes, {written['bytes']} were written"
        if found["sha256"] != written["sha256"]:
            return f"{path} is not what was written (its sha256 differs)"
    return None


def prefix(folder):
    """Returns the path TensorFlow calls the checkpoint: that of its files, less their endings."""
    return os.path.join(folder, f"model.ckpt-{read_complete(folder)['step']}")
