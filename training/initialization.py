"""Loads weights alone, by name, from any TF1 (V2-format) checkpoint: Google's or our own.

Step counters and optimizer slots stay behind: this is how a new run starts from old
weights. Going on with a run is `checkpoints.Checkpoints.restore`.
"""

import os
import re

import tensorflow as tf

from training import checkpoint_files, checkpoints

FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")
# Ours and the original's slots, those of TF1's Adam, and the counters that ride along.
SLOTS = frozenset({"adam_m", "adam_v", "Adam", "Adam_1"})
COUNTERS = frozenset(
    {"global_step", "examples_seen", "skipped_steps", "skipped_in_a_row", "num_updates"}
    | {"beta1_power", "beta2_power"}
)


def initialize(named_variables, path, required_prefix="", rename=None):
    """Assigns weights from a checkpoint and says what was matched, ignored, missing, unused.

    Args:
        named_variables: dict of name to tf.Variable.
        path: checkpoint prefix, one of its files (`.index`, `.data-...`, `.meta`), a folder
            that holds one, one of our `step-<N>` folders, or a run's output folder.
        required_prefix: names that begin with it must all be matched, such as "bert/";
            others (a new head) may be missing. "" requires every one.
        rename: function from a name in the file to the name in the model, such as one that
            strips "module/".

    Returns:
        str: a line for the user.

    Raises:
        FileNotFoundError: there is no checkpoint at `path`.
        ValueError: a required name is missing, shapes differ, or two names of the file are
            renamed to one. Nothing is assigned then.
    """
    prefix = find(path)
    reader = tf.train.load_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    ignored = {name for name in shapes if name.rsplit("/", 1)[-1] in SLOTS | COUNTERS}
    sources = renamed(sorted(set(shapes) - ignored), rename or (lambda name: name))
    matched = [name for name in named_variables if name in sources]
    missing = [name for name in named_variables if name not in sources]
    unused = sorted(sources[name] for name in set(sources) - set(named_variables))
    line = (
        f"{prefix}: matched {len(matched)} of {len(named_variables)}, "
        f"ignored {sum(n.rsplit('/', 1)[-1] in SLOTS for n in ignored)} optimizer slots, "
        f"missing {listed(missing)}, unused {listed(unused)}."
    )
    if any(name.startswith(required_prefix) for name in missing):
        raise ValueError(
            f"A checkpoint must hold every weight whose name begins with {required_prefix!r}. "
            f"Received: {line}"
        )
    check_shapes({name: (named_variables[name].shape, shapes[sources[name]]) for name in matched})
    for name in matched:
        named_variables[name].assign(reader.get_tensor(sources[name]))
    return line


def listed(names, most=8):
    """Returns "0", or the count and the first few names in brackets."""
    if not names:
        return "0"
    return f"{len(names)} ({', '.join(names[:most])}{', ...' if names[most:] else ''})"


def renamed(names, rename):
    """Returns a dict of the model's name to the file's; ValueError if two would be one."""
    sources = {}
    for name in names:
        target = rename(name)
        if target in sources:
            raise ValueError(
                "Each weight must have one source in the checkpoint. Received: "
                f"{sources[target]} and {name} for {target}."
            )
        sources[target] = name
    return sources


def check_shapes(pairs):
    """Raises ValueError naming each weight whose (model, file) shapes differ."""
    different = [
        f"{name} (model {list(model)}, checkpoint {list(file)})"
        for name, (model, file) in pairs.items()
        if list(model) != list(file)
    ]
    if different:
        raise ValueError(
            "Shapes in the checkpoint must be the model's; is this the config it was made with? "
            f"Received: {listed(different)}."
        )


def find(path):
    """Finds the checkpoint a user means.

    Args:
        path: see `initialize`.

    Returns:
        The checkpoint's prefix.

    Raises:
        FileNotFoundError: there is none, or the `.index` or a `.data` file is absent.
        ValueError: a folder holds several and nothing says which.
    """
    path = str(path).rstrip("/")
    if tf.io.gfile.isdir(path):
        return find_in_folder(path)
    prefix = FILE_ENDING.sub("", path)
    if tf.io.gfile.exists(f"{prefix}.index"):
        if not tf.io.gfile.glob(f"{prefix}.data-?????-of-?????"):
            raise FileNotFoundError(
                f"A checkpoint must have its .data files beside {prefix}.index. Received: none."
            )
        return prefix
    raise FileNotFoundError(
        "A checkpoint must be a prefix (with .index and .data files), a folder that holds one, or "
        f"a run's output folder. Received: {path}, and there is no {prefix}.index."
    )


def find_in_folder(folder):
    """Returns the prefix of the one checkpoint a folder stands for."""
    if checkpoints.STEP_FOLDER.fullmatch(os.path.basename(folder)):
        if problem := checkpoint_files.problem(folder):
            raise ValueError(f"A checkpoint must be whole. Received: {problem}.")
        return checkpoint_files.prefix(folder)
    for run in (os.path.join(folder, "checkpoints"), os.path.join(folder, "best"), folder):
        if found := checkpoints.Checkpoints(run, {}).latest():
            return checkpoint_files.prefix(found[1])
    indices = tf.io.gfile.glob(os.path.join(folder, "*.index"))
    prefixes = sorted(FILE_ENDING.sub("", index) for index in indices)
    if not prefixes:
        raise FileNotFoundError(f"A folder must hold a checkpoint. Received: {folder}, with none.")
    names = [os.path.basename(prefix) for prefix in prefixes]
    # A state file's path may be one of its author's machine; its last part is what counts.
    # Without one, Google's releases and the original's best are called "model.ckpt-best".
    for name in (*named_in_state_file(folder), "model.ckpt-best"):
        if name in names:
            return find(prefixes[names.index(name)])
    if len(prefixes) > 1:
        raise ValueError(
            f"A folder with several checkpoints needs a choice; name one. Received: {folder}, with "
            f"{', '.join(names)}."
        )
    return find(prefixes[0])


def named_in_state_file(folder):
    """Returns [the name that the folder's `checkpoint` file gives], or []."""
    path = os.path.join(folder, "checkpoint")
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as stream:
        found = re.search(r'^model_checkpoint_path: "(.*)"', stream.read(), re.MULTILINE)
    return [os.path.basename(found[1].rstrip("/"))] if found else []
