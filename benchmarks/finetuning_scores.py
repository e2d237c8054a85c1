"""Compares dev scores after fine-tuning: ours and a plain Hugging Face loop, from one encoder.

python benchmarks/finetuning_scores.py --init_checkpoint=minilm --data_dir=glue \
    --results_file=results.jsonl --seeds=3 [--sides=ours] [--table]

Same weights, batch, rate, epochs, warm-up, clipping, weight decay, dropout, rows and seeds. A
score is that of the weights after the last step on the whole dev set: neither side picks its best
checkpoint. Each is a line of the results file; a program started again goes past those that are
there, so it may be killed, and two may write to one file at once. `--table` prints what there
is. Needs `requirements-dev.txt`.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import finetuning_sides as sides
from benchmarks import result_lines

# Epochs and rows so that one core gets through all tasks with one seed in an hour or two.
RECIPES = {
    "MRPC": {"num_train_epochs": 3, "max_train_rows": None},
    "STS-B": {"num_train_epochs": 3, "max_train_rows": None},
    "RTE": {"num_train_epochs": 3, "max_train_rows": None},
    "CoLA": {"num_train_epochs": 2, "max_train_rows": None},
    "SST-2": {"num_train_epochs": 1, "max_train_rows": 8000},
}
REFERENCE = "hugging_face"
NOT_IN_POINTS = ("mean_squared_error",)  # Nor higher where better.

INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Encoder: a Hugging Face folder of ALBERT or BERT."
)
DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of GLUE.")
RESULTS_FILE = flags.DEFINE_string("results_file", None, "JSON lines that results are added to.")
CHOSEN_TASKS = flags.DEFINE_list("tasks", list(RECIPES), "Tasks, in this order.")
CHOSEN_SIDES = flags.DEFINE_list(
    "sides", ["hugging_face", "ours"], f"Whom to measure, of {', '.join(sides.SIDES)}."
)
SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds, from 0; all tasks with one, then the next.")
LEARNING_RATE = flags.DEFINE_float("learning_rate", 5e-5, "Peak of the rate, after 10 % warm-up.")
BATCH_SIZE = flags.DEFINE_integer("train_batch_size", 32, "Examples in a batch.")
MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "Longest example, in pieces.")
DROPOUT = flags.DEFINE_float("dropout", 0.1, "Dropout of hidden states and attention.")
EPOCHS = flags.DEFINE_integer("num_train_epochs", None, "In place of the task's own number.")
MAX_TRAIN_ROWS = flags.DEFINE_integer(
    "max_train_rows", None, "Training rows at most, in place of the task's own number."
)
NUM_THREADS = flags.DEFINE_integer("num_threads", 1, "Threads of either side.", lower_bound=1)
TABLE = flags.DEFINE_bool("table", False, "Print the table of the results file; measure nothing.")


def check_flags():
    """Refuses names that are unknown and flags that are missing."""
    for chosen, known in ((CHOSEN_TASKS.value, RECIPES), (CHOSEN_SIDES.value, sides.SIDES)):
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"tasks and sides must be of {list(known)}. Received: {unknown}.")
    needed = ("results_file",) if TABLE.value else ("results_file", "init_checkpoint", "data_dir")
    for name in needed:
        if not flags.FLAGS[name].value:
            raise ValueError(f"`{name}` must be given. Received: nothing.")


def jobs():
    """Lists the jobs of the flags, those of a lower seed first."""
    result = []
    for seed in range(SEEDS.value):
        for task in CHOSEN_TASKS.value:
            settings = {
                "encoder": os.path.abspath(INIT_CHECKPOINT.value),
                "learning_rate": LEARNING_RATE.value,
                "train_batch_size": BATCH_SIZE.value,
                "max_seq_length": MAX_SEQ_LENGTH.value,
                "dropout": DROPOUT.value,
                "num_train_epochs": EPOCHS.value or RECIPES[task]["num_train_epochs"],
                "max_train_rows": MAX_TRAIN_ROWS.value or RECIPES[task]["max_train_rows"],
            }
            result += [sides.Job(task, side, seed, **settings) for side in CHOSEN_SIDES.value]
    return result


def measure(job):
    """Does a job and adds its line to the results file."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = sides.shorten(job, os.path.abspath(DATA_DIR.value), folder)
        scores = sides.SIDES[job.side](job, data_dir, folder, NUM_THREADS.value)
    seconds = time.perf_counter() - started
    words = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(words, cwd=sides.REPOSITORY, capture_output=True, text=True)
    result = {"job": dataclasses.asdict(job), "metrics": scores, "seconds": seconds}
    result_lines.add(RESULTS_FILE.value, {**result, "commit": commit.stdout.strip()})
    text = ", ".join(f"{name} {value:.4f}" for name, value in scores.items())
    print(f"{job.task}, {job.side}, seed {job.seed}: {text}; {seconds:.0f} s", flush=True)


def rows(results):
    """Lays the results out for the table.

    Args:
        results: list of dict, the lines of the results file.

    Returns:
        dict of (task, settings, metric) to dict of side to dict of seed to float, in points;
        settings is all of a job but task, side and seed, as JSON.
    """
    result = {}
    for line in results:
        job = dict(line["job"])
        task, side, seed = (job.pop(name) for name in ("task", "side", "seed"))
        for metric, value in line["metrics"].items():
            if metric not in NOT_IN_POINTS:
                row = result.setdefault((task, json.dumps(job), metric), {})
                row.setdefault(side, {})[seed] = 100 * value
    return result


def cell(by_seed):
    values = " ".join(f"{by_seed[seed]:.1f}" for seed in sorted(by_seed))
    return f"{statistics.median(by_seed.values()):.1f} ({values})"


def difference(by_seed, reference):
    """Returns the difference of medians over the seeds that both sides have, and how many."""
    common = by_seed.keys() & reference.keys()
    if not common:
        return "-"
    medians = [statistics.median(of[seed] for seed in common) for of in (by_seed, reference)]
    return f"{medians[0] - medians[1]:+.1f} of {len(common)}"


def print_table(results):
    """Prints the median over the seeds of each side, all values, and what ours are beyond."""
    table = rows(results)
    names = [side for side in sides.SIDES if any(side in row for row in table.values())]
    others = [name for name in names if name != REFERENCE]
    heads = ["task", "rows x epochs", "metric", *names, *(f"{name} - HF" for name in others)]
    print("Median of the seeds (each seed), in points; the difference of the medians.\n")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for (task, settings, metric), row in table.items():
        job = json.loads(settings)
        size = f"{job['max_train_rows'] or 'all'} x {job['num_train_epochs']}"
        cells = [cell(row[name]) if name in row else "-" for name in names]
        beyond = [difference(row.get(name, {}), row.get(REFERENCE, {})) for name in others]
        print(f"| {' | '.join([task, size, metric, *cells, *beyond])} |")
    for settings in dict.fromkeys(settings for _, settings, _ in table):
        print(f"\n{settings}")


def main():
    check_flags()
    if TABLE.value:
        print_table(result_lines.read(RESULTS_FILE.value))
        return
    for job in jobs():
        done = [result["job"] for result in result_lines.read(RESULTS_FILE.value)]
        if dataclasses.asdict(job) in done:
            print(f"done before: {job.task}, {job.side}, seed {job.seed}", flush=True)
        else:
            measure(job)


if __name__ == "__main__":
    command_line.run(main)
