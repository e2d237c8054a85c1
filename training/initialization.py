"""Loads weights alone, by name, from any file that `weight_files` opens, and says what it did.

Step counters and optimizer slots stay behind: this is how a new run starts from old
weights. Going on with a run is `checkpoints.Checkpoints.restore`.
"""

import dataclasses

from training import weight_files

# Ours and the original's slots, those of TF1's Adam, and the counters that ride along.
SLOTS = frozenset({"adam_m", "adam_v", "Adam", "Adam_1"})
COUNTERS = frozenset(
    {"global_step", "examples_seen", "skipped_steps", "skipped_in_a_row", "num_updates"}
    | {"loss_scale", "loss_scale_good_steps", "beta1_power", "beta2_power"}
)


def initialize(named_variables, path, required_prefix="", *, translate=None, leave=()):
    """Assigns weights from a file and says what was matched, ignored, missing, unused.

    Args:
        named_variables: dict of name to tf.Variable.
        path: as of `weight_files.open_weights`.
        required_prefix: str, or tuple of them: names that begin with it must all be matched,
            such as "bert/"; others (a new head) may be missing. "" requires every one.
        translate: function that finds each weight in a file with names of its own. It is given
            the Weights, without slots and counters, and a dict of the model's names to shapes.
            It returns a dict of `sources`, model's name -> (file's name, whether to transpose),
            `ignored`, file's names that say nothing of their own, `optional`, tuple of prefixes
            of names that such a file may lack, and `notes`, sentences for the user. None: the
            file's names are the model's.
        leave: prefixes of names that keep their values whatever the file holds, such as the
            head of another task.

    Returns:
        str: a line for the user.

    Raises:
        FileNotFoundError: there are no weights at `path`.
        ValueError: a required name is missing, shapes differ, or `translate` refuses the file.
            Nothing is assigned then.
    """
    weights, slots, counters = without_slots(weight_files.open_weights(path))
    shapes = {name: list(variable.shape) for name, variable in named_variables.items()}
    found = (translate or by_name)(weights, shapes)
    sources, left = found["sources"], [n for n in shapes if n.startswith(tuple(leave))]
    matched = {n: sources[n] for n in shapes if n in sources and n not in left}
    missing = [n for n in shapes if n not in matched and n not in left]
    used = {sources[name][0] for name in shapes if name in sources}
    others = [*counters, *found["ignored"]]
    parts = {
        "matched": f"{len(matched)} of {len(shapes)}",
        "ignored": f"{len(slots)} optimizer slots" + (f" and {listed(others)}" if others else ""),
        "missing": listed(missing),
        "unused": listed(sorted(set(weights.shapes) - used - set(found["ignored"]))),
        "left as they were": listed(left),
    }
    if not left:
        del parts["left as they were"]
    said = ", ".join(f"{what} {which}" for what, which in parts.items())
    line = " ".join([f"{weights.path}: {said}.", *found["notes"]])
    required = [name for name in missing if not name.startswith(tuple(found["optional"]))]
    if any(name.startswith(required_prefix) for name in required):
        raise ValueError(
            f"The weights must hold every one whose name begins with {required_prefix!r}. What "
            f"is missing must be trained first, or come from another file. Received: {line}"
        )
    assign(named_variables, weights, matched)
    return line


def without_slots(weights):
    """Returns Weights without slots and counters, the slots' names and the counters'."""
    leaves = {name: name.rsplit("/", 1)[-1] for name in weights.shapes}
    slots = sorted(name for name, leaf in leaves.items() if leaf in SLOTS)
    counters = sorted(name for name, leaf in leaves.items() if leaf in COUNTERS)
    kept = {n: s for n, s in weights.shapes.items() if leaves[n] not in SLOTS | COUNTERS}
    return dataclasses.replace(weights, shapes=kept), slots, counters


def by_name(weights, shapes):
    """Finds each weight under the model's own name. Args and returns: `translate`'s."""
    sources = {name: (name, False) for name in weights.shapes}
    return {"sources": sources, "ignored": (), "optional": (), "notes": ()}


def assign(named_variables, weights, sources):
    """Puts arrays of a file into variables; none of them where a shape is wrong.

    Args:
        named_variables: dict of name to tf.Variable.
        weights: Weights.
        sources: dict of variable's name to (file's name, whether to transpose).
    """
    pairs = {}
    for name, (source, is_transposed) in sources.items():
        shape = list(weights.shapes[source])
        pairs[name] = named_variables[name].shape, shape[::-1] if is_transposed else shape
    check_shapes(pairs)
    for name, (source, is_transposed) in sources.items():
        array = weights.read(source)
        if array.dtype.kind in "iub":
            raise ValueError(
                f"Weights must be floating-point numbers. Received: {array.dtype} for {source} in "
                f"{weights.path}; a quantized file must be turned back first."
            )
        variable = named_variables[name]
        array = array.T if is_transposed else array
        variable.assign(array.astype(variable.dtype.as_numpy_dtype))


def listed(names, most=8):
    """Returns "0", or the count and the first few names in brackets."""
    if not names:
        return "0"
    return f"{len(names)} ({', '.join(names[:most])}{', ...' if names[most:] else ''})"


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
