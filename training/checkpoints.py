"""Saves everything a run needs to go on, finds the newest whole checkpoint, and restores it.

Knows names and variables only. The layout of a folder is in `checkpoint_files`; loading
weights alone, from whatever file, is `initialization`.
"""

import os
import re
import sys

import numpy as np
import tensorflow as tf

from training import checkpoint_files

STEP_FOLDER = re.compile(r"step-(\d+)")
UNFINISHED = re.compile(r"step-\d+\.unfinished-[0-9a-f]{8}")


def local_value(variable):
    """Returns this device's copy of a variable, which every replica holds the same."""
    return variable.values[0] if hasattr(variable, "values") else variable


class Checkpoints:
    """The checkpoints of one folder: `<folder>/step-<N>/`.

    A run has two of these: `<output_dir>/checkpoints`, and `<output_dir>/best` with
    `keep_max=1`, so that the best is never deleted to make room for the newest.
    """

    def __init__(self, folder, variables, keep_max=5, writes=True):
        """Remembers what is to be saved; touches no file.

        Args:
            folder: path, local or remote.
            variables: dict of saved name to tf.Variable (`TrainingState.variables()`).
            keep_max: newest checkpoints to keep, at least 1; 0 or "all" keeps all of them.
            writes: False on a worker that is not the chief: it checks, and leaves files alone.

        Raises:
            ValueError: `keep_max` is neither.
        """
        keep_max = 0 if keep_max == "all" else keep_max
        if not isinstance(keep_max, int) or keep_max < 0:
            raise ValueError(
                f'`keep_max` must be a count, or 0 or "all" to keep all. Received: {keep_max!r}.'
            )
        self.folder, self.variables, self.keep_max = str(folder), dict(variables), keep_max
        self.writes = writes

    def path(self, step):
        return os.path.join(self.folder, f"step-{step}")

    def steps(self):
        """Returns the steps there are folders for, whole or damaged, oldest first."""
        if not tf.io.gfile.isdir(self.folder):
            return []
        names = (STEP_FOLDER.fullmatch(n.rstrip("/")) for n in tf.io.gfile.listdir(self.folder))
        return sorted(int(name[1]) for name in names if name)

    def save(self, step, note=None, replaces=0):
        """Writes the checkpoint of `step`, then deletes those beyond `keep_max`.

        A folder newer than `step` is left alone: it is damaged (`latest` went past it),
        and takes nobody's place. One whose note says `interim` counts among none, and is
        deleted with the next: so a run that signals interrupt keeps what an unbroken one does.

        Args:
            step: int, steps done.
            note: dict of JSON values to keep in `complete.json`.
            replaces: step of the interim checkpoint there is; 0 where there is none.

        Returns:
            The path of the checkpoint's folder.

        Raises:
            ValueError: a weight or slot is not finite; nothing is written then.
            OSError: the disk is full, or the folder cannot be written.
        """
        values = {name: local_value(v).read_value() for name, v in self.variables.items()}
        spoilt = [
            name
            for name, value in values.items()
            if value.dtype.is_floating and not tf.reduce_all(tf.math.is_finite(value))
        ]
        if spoilt:
            raise ValueError(
                f"Step {step}: a checkpoint must hold finite values. Received: NaN or infinity in "
                f"{', '.join(spoilt[:5])}{', ...' if len(spoilt) > 5 else ''}."
            )
        if not self.writes:
            return self.path(step)
        self._delete_unfinished()
        checkpoint_files.write(self.path(step), step, values, note)
        if replaces not in (0, step):
            self.delete(replaces)
        older = [saved for saved in self.steps() if saved <= step]
        if self.keep_max and not (note or {}).get("interim"):
            for surplus in older[: -self.keep_max]:
                self.delete(surplus)
        return self.path(step)

    def delete(self, step):
        """Deletes one checkpoint, if there is one and this process writes."""
        if self.writes and tf.io.gfile.isdir(self.path(step)):
            tf.io.gfile.rmtree(self.path(step))

    def _delete_unfinished(self):
        """Deletes what saves that were killed have left: before the next, for it needs room."""
        if not tf.io.gfile.isdir(self.folder):
            return
        for name in tf.io.gfile.listdir(self.folder):
            if UNFINISHED.fullmatch(name.rstrip("/")):
                tf.io.gfile.rmtree(os.path.join(self.folder, name))

    def latest(self, with_interim=True):
        """Finds the newest checkpoint that is whole, and warns of each damaged one it goes past.

        Args:
            with_interim: whether one that a signal asked for counts.

        Returns:
            (step, path of its folder), or None where there is no checkpoint at all.

        Raises:
            ValueError: there are checkpoints, and every one is damaged.
        """
        damaged = []
        for step in reversed(self.steps()):
            problem = checkpoint_files.problem(self.path(step))
            if problem:
                print(f"warning: damaged checkpoint, left aside: {problem}.", file=sys.stderr)
                damaged.insert(0, step)
            elif with_interim or not self.note(step).get("interim"):
                return step, self.path(step)
        if damaged:
            raise ValueError(
                f"One checkpoint in {self.folder} must be whole. Received: {len(damaged)} damaged "
                f"(steps {', '.join(map(str, damaged))}). Remove the folder to start anew."
            )
        return None

    def note(self, step):
        """Returns what was noted with the whole checkpoint of `step`."""
        return checkpoint_files.read_complete(self.path(step))["note"]

    def restore(self, with_interim=True):
        """Restores every variable from the newest whole checkpoint; argument as of `latest`.

        Returns:
            (step, note) of the checkpoint, or None where there is none.

        Raises:
            ValueError: all are damaged, or names or shapes are not exactly those of the
                variables; nothing is changed then.
        """
        found = self.latest(with_interim)
        if found is None:
            return None
        step, folder = found
        reader = tf.train.load_checkpoint(checkpoint_files.prefix(folder))
        self._check_exact(folder, reader.get_variable_to_shape_map())
        for name, variable in self.variables.items():
            variable.assign(reader.get_tensor(name))
        return step, self.note(step)

    def _check_exact(self, folder, shapes):
        """Raises ValueError unless the file has exactly the variables' names and shapes."""
        expected = {name: list(v.shape) for name, v in self.variables.items()}
        faults = {
            "missing": sorted(set(expected) - set(shapes)),
            "not in this model": sorted(set(shapes) - set(expected)),
            "of another shape": [
                f"{name} (model {expected[name]}, file {shapes[name]})"
                for name in sorted(set(expected) & set(shapes))
                if expected[name] != shapes[name]
            ],
        }
        if any(faults.values()):
            listed = "; ".join(
                f"{len(names)} {fault}: {', '.join(names[:5])}{', ...' if names[5:] else ''}"
                for fault, names in faults.items()
                if names
            )
            raise ValueError(
                f"{folder} must hold exactly this run's variables to go on from it. "
                f"Received: {listed}. Use the settings it was made with, or another `output_dir`."
            )


class BestCheckpoint:
    """Keeps, in `<output_dir>/best`, the checkpoint with the best value of one metric.

    Attributes:
        step: int, the step it was saved at; 0 where there is none.
        value: float, the metric's value there; None where there is none.
    """

    def __init__(self, folder, variables, metric, writes=True):
        """Reads which value is to be beaten, if there is one from before.

        Args:
            folder: path.
            variables: as for `Checkpoints`, as is `writes`.
            metric: name of the metric; the highest value is best, or the lowest if the name
                ends in "loss" or "error".
        """
        self.checkpoints = Checkpoints(folder, variables, keep_max=1, writes=writes)
        self.metric = metric
        found = self.checkpoints.latest()
        note = self.checkpoints.note(found[0]) if found else {}
        self.step, self.value = found[0] if found else 0, note.get(metric)

    def offer(self, step, metrics):
        """Saves the variables if `metrics` beats the best so far.

        Returns:
            bool, whether it did. NaN never does.

        Raises:
            ValueError: `metrics` lacks the metric.
        """
        if self.metric not in metrics:
            raise ValueError(
                f"`best_metric` must be one of {sorted(metrics)}. Received: {self.metric!r}."
            )
        value = float(metrics[self.metric])
        sign = -1 if self.metric.endswith(("loss", "error")) else 1
        if np.isnan(value) or (self.value is not None and sign * value <= sign * self.value):
            return False
        newer = [saved for saved in self.checkpoints.steps() if saved > step]
        for abandoned in newer:  # Of steps that are being done again after a fall-back.
            self.checkpoints.delete(abandoned)
        self.checkpoints.save(step, {self.metric: value})
        self.step, self.value = step, value
        return True
