"""Opens whatever file a user's weights are in: a TF1 (V2-format) checkpoint or safetensors.

Both come back alike, as names, shapes and arrays; what a name means is for others to say.
Pickle, which can run anybody's code, is never opened.
"""

import collections.abc
import contextlib
import dataclasses
import json
import os
import re

import safetensors
import tensorflow as tf

from training import checkpoint_files, checkpoints

FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
SAFETENSORS, SHARD_LIST = ".safetensors", ".safetensors.index.json"
# PyTorch's files are pickles; what is in the other two would need libraries of its own.
PICKLES = (".bin", ".pt", ".pth", ".pkl")
FOREIGN = (*PICKLES, ".h5", ".msgpack")
# A run's best weights come before its newest; a TF-Hub module keeps its own in `variables/`.
INNER_FOLDERS = ("best", "checkpoints", "", "variables")


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights in a file, or in a set of files that belong together.

    Attributes:
        path: str, the checkpoint's prefix, the safetensors file or the list of its shards.
        shapes: dict of name to list[int].
        read: function from a name to its array.
    """

    path: str
    shapes: dict
    read: collections.abc.Callable


def open_weights(path):
    """Opens the weights that a user means.

    Args:
        path: a checkpoint's prefix or one of its files (`.index`, `.data-...`, `.meta`), a
            `.safetensors` file or the `.safetensors.index.json` of several; a folder that
            holds one of these; one of our `step-<N>` folders; or a run's output folder, whose
            best weights are taken where there are some, and its newest otherwise.

    Returns:
        Weights.

    Raises:
        FileNotFoundError: there are none, or a part of them is absent.
        ValueError: a folder holds several and nothing says which, or a file is damaged or
            of a kind that is not opened.
    """
    found = find(path)
    if found.endswith((SAFETENSORS, SHARD_LIST)):
        return open_safetensors(found)
    return open_checkpoint(found)


def open_checkpoint(prefix):
    """Opens a TF1 checkpoint; what is damaged beside its index shows when weights are read.

    Args:
        prefix: path of its files, less their endings.

    Returns:
        Weights.
    """
    with whole(f"{prefix}.index"):
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
    data = " and ".join(sorted(tf.io.gfile.glob(f"{prefix}.data-?????-of-?????")))

    def read(name):
        with whole(data):
            return reader.get_tensor(name)

    return Weights(prefix, shapes, read)


@contextlib.contextmanager
def whole(path):
    """Turns what TensorFlow raises of a damaged file into a ValueError that names it."""
    try:
        yield
    except (IndexError, tf.errors.OpError) as error:
        reason = str(getattr(error, "message", error)).rstrip(".")
        raise ValueError(f"{path} must be whole. Received: {reason}. Copy it again.") from None


def open_safetensors(path):
    """Opens one safetensors file, or all that a list of shards names.

    Args:
        path: of the file or the list, local.

    Returns:
        Weights.
    """
    if "://" in path:
        raise ValueError(f"safetensors must be on a local disk: copy them. Received: {path}.")
    files = [path]
    if path.endswith(SHARD_LIST):
        folder = os.path.dirname(path)
        files = [os.path.join(folder, name) for name in shards(path)]
    holders = {}  # Name to the open file that has it.
    for file in files:
        try:
            opened = safetensors.safe_open(file, "np")
        except FileNotFoundError:
            raise FileNotFoundError(f"{path} needs {file}. Received: no such file.") from None
        except safetensors.SafetensorError as error:
            raise ValueError(f"{file} must be whole safetensors. Received: {error}.") from None
        holders |= dict.fromkeys(opened.keys(), opened)
    shapes = {name: holder.get_slice(name).get_shape() for name, holder in holders.items()}
    return Weights(path, shapes, lambda name: holders[name].get_tensor(name))


def shards(path):
    """Returns the names of the files that a `.safetensors.index.json` lists."""
    try:
        with tf.io.gfile.GFile(path) as stream:
            names = sorted(set(json.loads(stream.read())["weight_map"].values()))
        is_right = all(name == os.path.basename(name) for name in names)
    except (AttributeError, KeyError, TypeError, ValueError):
        is_right = False
    if not is_right:
        raise ValueError(f"{path} must hold `weight_map`, from weights to files beside it.")
    return names


def find(path):
    """Finds the file that a path means.

    Args:
        path: as of `open_weights`.

    Returns:
        str: a checkpoint's prefix, or the path of safetensors or of their list.
    """
    path = str(path).rstrip("/")
    if tf.io.gfile.isdir(path):
        return find_in_folder(path)
    if path.endswith((SAFETENSORS, SHARD_LIST)) and tf.io.gfile.exists(path):
        return path
    prefix = FILE_ENDING.sub("", path)
    if tf.io.gfile.exists(f"{prefix}.index"):
        if not tf.io.gfile.glob(f"{prefix}.data-?????-of-?????"):
            raise FileNotFoundError(
                f"A checkpoint must have its .data files beside {prefix}.index. Received: none."
            )
        return prefix
    refuse_foreign([path])
    raise FileNotFoundError(
        "Weights must be a checkpoint's prefix (with .index and .data files), a .safetensors file, "
        "a folder that holds one of these, or a run's output folder. Received: "
        f"{path}, and there is no {prefix}.index."
    )


def find_in_folder(folder):
    """Returns what `find` does for the one set of weights that a folder stands for."""
    if checkpoints.STEP_FOLDER.fullmatch(os.path.basename(folder)):
        if problem := checkpoint_files.problem(folder):
            raise ValueError(f"A checkpoint must be whole. Received: {problem}.")
        return checkpoint_files.prefix(folder)
    for inner in (os.path.join(folder, name).rstrip("/") for name in INNER_FOLDERS):
        if found := checkpoints.Checkpoints(inner, {}).latest():
            return checkpoint_files.prefix(found[1])
        if found := choose(inner, safetensors_in(inner) or prefixes_in(inner)):
            return find(found)
    refuse_foreign(tf.io.gfile.glob(os.path.join(folder, "*")))
    raise FileNotFoundError(
        f"A folder must hold a checkpoint or safetensors. Received: {folder}, with none."
    )


def safetensors_in(folder):
    """Returns the lists of shards in a folder, or else the safetensors files."""
    for ending in (SHARD_LIST, SAFETENSORS):
        if found := tf.io.gfile.glob(os.path.join(folder, f"*{ending}")):
            return sorted(found)
    return []


def prefixes_in(folder):
    """Returns the prefixes of the TF1 checkpoints that lie in a folder itself."""
    indices = tf.io.gfile.glob(os.path.join(folder, "*.index"))
    return [FILE_ENDING.sub("", index) for index in sorted(indices)]


def choose(folder, paths):
    """Returns the one of a folder's sets of weights that is meant, or None of none.

    Raises:
        ValueError: there are several and nothing says which.
    """
    names = [os.path.basename(path) for path in paths]
    # A state file's path may be one of its author's machine; its last part is what counts.
    # Without one, Google's releases and the original's best are called "model.ckpt-best".
    preferred = (*named_in_state_file(folder), "model.ckpt-best", "model.safetensors")
    for name in (name for name in preferred if name in names):
        return paths[names.index(name)]
    if len(paths) > 1:
        raise ValueError(
            f"A folder with several checkpoints needs a choice; name one. Received: {folder}, with "
            f"{', '.join(names)}."
        )
    return paths[0] if paths else None


def named_in_state_file(folder):
    """Returns [the name that the folder's `checkpoint` file gives], or []."""
    path = os.path.join(folder, "checkpoint")
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as stream:
        found = re.search(r'^model_checkpoint_path: "(.*)"', stream.read(), re.MULTILINE)
    return [os.path.basename(found[1].rstrip("/"))] if found else []


def refuse_foreign(paths):
    """Raises ValueError, with the remedy, if one of the paths is weights that are not opened."""
    for path in sorted(path for path in paths if path.endswith(FOREIGN)):
        kind = "a pickle, which can run code" if path.endswith(PICKLES) else "of another kind"
        raise ValueError(
            f"Weights must be a TF1 checkpoint or safetensors. Received: {path}, {kind}. Save them "
            "as safetensors: in transformers, "
            "`AutoModel.from_pretrained(folder).save_pretrained(new_folder)`."
        )
