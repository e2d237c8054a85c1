"""What a run tells: a line on the console, a progress bar, metrics.jsonl, TensorBoard."""

import json
import math
import os
import sys

import tensorflow as tf
from tqdm import tqdm

from training import checkpoint_files

PER_DEVICE = "_per_second_per_device"
UNSEEN = ("loss_deviation",)  # On the console; in the files alone.
NEWS = ("skipped_steps", "rollbacks")  # On the console only where there are any.
SHORT = {"learning_rate": "lr", "gradient_norm": "grad"}  # On the console alone.


def console_columns(metrics):
    """Lays out one line for the eye: a task's loss and accuracy share a column.

    Each column has a constant width. What is 0 of NEWS is not told, nor is UNSEEN.

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
        elif name.endswith(PER_DEVICE):
            columns[-1] += f" ({value:,.0f} a device)"
        elif name == "learning_rate":
            columns.append(f"{SHORT[name]} {value:.2e}")
        elif kind != "accuracy" and name not in UNSEEN and (name not in NEWS or value):
            columns.append(f"{SHORT.get(name, name)} {value:7.4g}")
    return "  ".join(columns)


def append_row(path, row):
    """Appends one line of JSON; NaN and infinity, which JSON has not, become null."""
    row = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }
    with checkpoint_files.writing(path), tf.io.gfile.GFile(path, "a") as stream:
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
    with checkpoint_files.writing(path):
        with tf.io.gfile.GFile(f"{path}.new", "w") as stream:
            stream.write("".join(kept))
        tf.io.gfile.rename(f"{path}.new", path, overwrite=True)


class Reporter:
    """Reports training and evaluation; a context manager.

    Attributes:
        units_per_step: dict such as {"examples": 64, "tokens": 8192}; each becomes a rate.
    """

    def __init__(
        self,
        output_dir,
        *,
        num_train_steps,
        units_per_step,
        first_step=0,
        num_devices=1,
        writes=True,
    ):
        """Opens the files; drops what an interrupted run wrote of steps about to be done again.

        Args:
            output_dir: the run's folder.
            num_train_steps: the last step.
            units_per_step: see the class.
            first_step: steps already done, so the step of the restored checkpoint.
            num_devices: replicas; of more than one the rates are told per device, too.
            writes: False on a worker that is not the chief: it prints alone.
        """
        self.num_train_steps, self.units_per_step = num_train_steps, units_per_step
        self.num_devices, self.writes = num_devices, writes
        self.path = os.path.join(output_dir, "metrics.jsonl")
        self.writers = {}
        if writes:
            tf.io.gfile.makedirs(output_dir)
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
        with checkpoint_files.writing(os.path.dirname(self.path)):
            for writer in self.writers.values():
                writer.close()

    def train(self, step, metrics, *, num_steps, seconds, figures=None):
        """Reports the steps since the last report.

        Args:
            step: steps done.
            metrics: dict of float.
            num_steps: how many steps these are the means of.
            seconds: how long they took.
            figures: dict of float for TensorBoard alone.
        """
        rates = {}
        for unit, count in self.units_per_step.items():
            rate = count * num_steps / seconds
            rates[f"{unit}_per_second"] = rate
            if self.num_devices > 1:
                rates[f"{unit}{PER_DEVICE}"] = rate / self.num_devices
        self.bar.update(step - self.bar.n)
        self._report("train", step, {**metrics, **rates}, figures or {})

    def evaluation(self, step, metrics):
        """Reports an evaluation; arguments as for `train`."""
        self._report("eval", step, metrics, {})

    def _report(self, split, step, metrics, figures):
        width = len(f"{self.num_train_steps:,}")
        self.message(f"{split:<5}  step {step:>{width},}  {console_columns(metrics)}")
        if not self.writes:
            return
        append_row(self.path, {"step": step, "split": split, **metrics})
        with checkpoint_files.writing(os.path.dirname(self.path)):
            with self.writers[split].as_default():
                for name, value in {**metrics, **figures}.items():
                    tf.summary.scalar(name, value, step=step)
            self.writers[split].flush()

    def go_back(self, step):
        """Forgets the steps after `step`, which are about to be done again."""
        if self.writes:
            drop_rows_after(self.path, step)
        self.bar.update(step - self.bar.n)

    def message(self, text):
        """Prints a line above the progress bar."""
        self.bar.write(text, file=sys.stdout)
        sys.stdout.flush()
