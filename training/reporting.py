"""What a run tells: a line on the console, a progress bar, metrics.jsonl, TensorBoard."""

import json
import math
import os
import sys

import tensorflow as tf
from tqdm import tqdm

SHORT = {"learning_rate": "lr", "gradient_norm": "grad"}  # On the console alone.


def console_columns(metrics):
    """Lays out one line for the eye: a task's loss and accuracy share a column.

    Each column has a constant width. `skipped_steps` is told only if there are any.

    Args:
        metrics: dict of float.

    Returns:
        str.
    """
    columns = []
    for name, value in metrics.items():
        task, _, kind = name.rpartition("_")
        accuracy = metrics.get(f"{task}_accuracy")
        if kind == "loss" and accuracy is not None:
            columns.append(f"{task} {value:.4f} {accuracy:6.1%}")
        elif kind == "accuracy" and f"{task}_loss" not in metrics:
            columns.append(f"{task or kind} {value:6.1%}")
        elif name.endswith("_per_second"):
            columns.append(f"{value:7,.0f} {name.removesuffix('_per_second')}/s")
        elif name == "learning_rate":
            columns.append(f"{SHORT[name]} {value:.2e}")
        elif kind != "accuracy" and (name != "skipped_steps" or value):
            columns.append(f"{SHORT.get(name, name)} {value:7.4g}")
    return "  ".join(columns)


def append_row(path, row):
    """Appends one line of JSON; NaN and infinity, which JSON has not, become null."""
    row = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
    with tf.io.gfile.GFile(path, "a") as stream:
        stream.write(json.dumps(row) + "\n")


def drop_rows_after(path, step):
    """Rewrites a file of rows without those of later steps and without a line cut short."""
    if not tf.io.gfile.exists(path):
        return
    kept = []
    with tf.io.gfile.GFile(path, "rb") as stream:
        for line in stream.read().splitlines():
            try:
                row = json.loads(line)
            except ValueError:  # The process was killed while it wrote this line.
                continue
            if row["step"] <= step:
                kept.append(json.dumps(row) + "\n")
    with tf.io.gfile.GFile(f"{path}.new", "w") as stream:
        stream.write("".join(kept))
    tf.io.gfile.rename(f"{path}.new", path, overwrite=True)


class Reporter:
    """Reports training and evaluation; a context manager.

    Attributes:
        units_per_step: dict such as {"examples": 64, "tokens": 8192}; each becomes a rate.
    """

    def __init__(self, output_dir, *, num_train_steps, units_per_step, first_step=0):
        """Opens the files; drops what an interrupted run wrote of steps about to be done again.

        Args:
            output_dir: the run's folder.
            num_train_steps: the last step.
            units_per_step: see the class.
            first_step: steps already done, so the step of the restored checkpoint.
        """
        self.num_train_steps, self.units_per_step = num_train_steps, units_per_step
        tf.io.gfile.makedirs(output_dir)
        self.path = os.path.join(output_dir, "metrics.jsonl")
        drop_rows_after(self.path, first_step)
        self.writers = {
            split: tf.summary.create_file_writer(os.path.join(output_dir, "tensorboard", split))
            for split in ("train", "eval")
        }
        self.bar = tqdm(
            total=num_train_steps,
            initial=first_step,
            unit="step",
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.bar.close()
        for writer in self.writers.values():
            writer.close()

    def train(self, step, metrics, *, num_steps, seconds):
        """Reports the steps since the last report.

        Args:
            step: steps done.
            metrics: dict of float.
            num_steps: how many steps these are the means of.
            seconds: how long they took.
        """
        rates = {
            f"{unit}_per_second": count * num_steps / seconds
            for unit, count in self.units_per_step.items()
        }
        self.bar.update(num_steps)
        self._report("train", step, {**metrics, **rates})

    def evaluation(self, step, metrics):
        """Reports an evaluation; arguments as for `train`."""
        self._report("eval", step, metrics)

    def _report(self, split, step, metrics):
        width = len(f"{self.num_train_steps:,}")
        self.message(f"{split:<5}  step {step:>{width},}  {console_columns(metrics)}")
        append_row(self.path, {"step": step, "split": split, **metrics})
        with self.writers[split].as_default():
            for name, value in metrics.items():
                tf.summary.scalar(name, value, step=step)
        self.writers[split].flush()

    def message(self, text):
        """Prints a line above the progress bar."""
        self.bar.write(text, file=sys.stdout)
        sys.stdout.flush()
