"""Measures an epoch of fine-tuning on MRPC: ours against a plain Hugging Face loop in PyTorch.

python benchmarks/finetuning.py --data_dir=glue --tokenizer=30k-clean.model --rounds=7

Random weights, as speed does not depend on them. Ours has batches of like length; the peer takes
them in random order, padded to the longest of each, or to the full length. Every contestant is a
resident process, and they take turns, so that what else the machine does meets all alike. A turn
is a few batches of each contestant's own epoch, spread evenly over their lengths; seconds of an
epoch are those of an example times the examples. `--rounds=23 --batches_per_round=5` is
the whole epoch of MRPC at a batch of 32. Needs `requirements-dev.txt`.
"""

import contextlib
import json
import os
import statistics
import sys

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import finetuning_contestants, workers
from data import classification, classification_tables, classification_tasks, tokenization
from modeling import config

DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of GLUE, or of the files of MRPC.")
TOKENIZER = flags.DEFINE_string("tokenizer", None, "Tokenizer folder, model or vocab.txt.")
CHOSEN = flags.DEFINE_list(
    "contestants",
    ["by_length", "dynamic_padding", "full_padding"],
    f"Who takes part: {', '.join(finetuning_contestants.CONTESTANTS)}.",
)
MODEL = flags.DEFINE_enum("model", "base", list(config.SIZES), "Size of the model.")
BATCH_SIZE = flags.DEFINE_integer("train_batch_size", 32, "Examples in a batch.", lower_bound=1)
MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "The full length, in pieces.")
ROUNDS = flags.DEFINE_integer("rounds", 7, "Turns that each contestant takes.", lower_bound=1)
BATCHES = flags.DEFINE_integer("batches_per_round", 3, "Batches of a turn.", lower_bound=1)
NUM_THREADS = flags.DEFINE_integer("num_threads", 2, "Threads of each contestant.", lower_bound=1)
JSON = flags.DEFINE_string("json", None, "File for every single measurement.")
REFERENCE = "dynamic_padding"
CLOCKS = ("seconds", "processor_seconds")  # The wall's, and that of all the process's threads.


def make_work():
    """Reads MRPC and returns the finetuning_contestants.Work of the flags."""
    tokenizer = tokenization.load(TOKENIZER.value)
    task = classification_tasks.TASKS["MRPC"]
    table = classification_tables.read(task, DATA_DIR.value, "train")
    features = classification.make_features(table, tokenizer, MAX_SEQ_LENGTH.value)
    sizes = config.size(
        MODEL.value,
        tokenizer.vocab_size,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return finetuning_contestants.Work(
        sizes, features, BATCH_SIZE.value, MAX_SEQ_LENGTH.value, NUM_THREADS.value
    )


def first_batches(epoch, work):
    """Picks a batch of each length that ours pads to: what may be compiled for it is then."""
    lengths = work.features.lengths()
    by_length = {}
    for batch in epoch:
        longest = lengths[batch].max()
        by_length[finetuning_contestants.next_static_length(longest, work.max_seq_length)] = batch
    return list(by_length.values())


def measure(names, work, rounds, batches_per_round):
    """Has every contestant take its turns.

    Returns:
        dict of name to {"epoch", "first", "plan": lists of batches, "build", "warm": dict of
        workers.Worker, "steps": list of such dicts}.
    """
    results = {}
    for name in names:
        contestant = finetuning_contestants.CONTESTANTS[name]
        epoch, planned = finetuning_contestants.plan(contestant, work, rounds, batches_per_round)
        results[name] = {"epoch": epoch, "first": first_batches(epoch, work), "plan": planned}
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(workers.Worker(name, work)) for name in names]
        for worker in running:
            worker.imported()
            results[worker.name]["warm"] = worker.step(results[worker.name]["first"])
            results[worker.name]["steps"] = []
        for done in range(rounds):
            for worker in running:
                result = results[worker.name]
                result["steps"].append(worker.step(result["plan"][done]))
            print(f"\rround {done + 1}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    return results


def summarise(results, work):
    """Turns the measurements into the numbers of the table: dict of name to dict."""
    rows = {}
    for name, result in results.items():
        contestant = finetuning_contestants.CONTESTANTS[name]

        def positions(batches, contestant=contestant):
            return sum(contestant.num_positions(work, batch) for batch in batches)

        taken = [batch for batches in result["plan"] for batch in batches]
        num_examples = sum(map(len, taken))
        row = {"positions": positions(result["epoch"]), "num_batches": len(taken)}
        for clock in CLOCKS:
            total = sum(step[clock] for step in result["steps"])
            row[clock] = total / num_examples * len(work.features)
            usual = total / positions(taken) * positions(result["first"])
            row[f"first_{clock}"] = result["warm"][clock] - usual
        row["memory"] = result["steps"][-1]["memory"]
        rows[name] = row
    return rows


def ratios(results, name, clock):
    """Returns a contestant's time over the reference's, turn by turn."""
    pairs = zip(results[name]["steps"], results[REFERENCE]["steps"], strict=True)
    return [one[clock] / other[clock] for one, other in pairs]


def print_rows(results, rows, work):
    real = int(work.features.lengths().sum())
    print(
        f"\n{len(work.features):,} examples, {real:,} real tokens, {work.num_steps} batches.\n\n"
        "| contestant | padded tokens (of real) | batches measured | epoch, s | time / dynamic | "
        "median of turns | building and first steps, s | with these, time / dynamic | peak MiB |"
    )
    print("|---" * 9 + "|")
    for name, row in rows.items():
        cells = [[], [], [], [], []]
        for clock in CLOCKS:
            other = rows.get(REFERENCE, row)
            first = f"first_{clock}"
            cells[0].append(f"{row[clock]:.0f}")
            cells[1].append(f"{row[clock] / other[clock]:.2f}")
            by_turn = ratios(results, name, clock) if REFERENCE in rows else [1.0]
            cells[2].append(f"{statistics.median(by_turn):.2f}")
            cells[3].append(f"{row[first]:.0f}")
            cells[4].append(f"{(row[clock] + row[first]) / (other[clock] + other[first]):.2f}")
        texts = [f"{cell[0]} ({cell[1]})" for cell in cells]
        label = finetuning_contestants.CONTESTANTS[name].label
        padded = f"{row['positions']:,} ({row['positions'] / real:.2f})"
        counted = f"{row['num_batches']} of {work.num_steps}"
        print(f"| {' | '.join([label, padded, counted, *texts, format(row['memory'], '.0f')])} |")


def check_flags():
    for name in ("data_dir", "tokenizer"):
        if not flags.FLAGS[name].value:
            raise ValueError(f"`{name}` must be given. Received: nothing.")
    known = list(finetuning_contestants.CONTESTANTS)
    if unknown := [name for name in CHOSEN.value if name not in known]:
        raise ValueError(f"`contestants` must be of {known}. Received: {unknown}.")
    workers.check_installed(CHOSEN.value)


def main():
    check_flags()
    command_line.prepare_tensorflow()
    work = make_work()
    os.environ["OMP_NUM_THREADS"] = str(NUM_THREADS.value)
    print(
        f"ALBERT-{MODEL.value}, MRPC, batches of {BATCH_SIZE.value}, at most "
        f"{MAX_SEQ_LENGTH.value} pieces, float32, AdamW; {NUM_THREADS.value} threads each; "
        f"{ROUNDS.value} rounds of {BATCHES.value} batches; {os.cpu_count()} cores, load before "
        f"the start {os.getloadavg()[0]:.1f}.\nIn brackets: by processor time."
    )
    results = measure(CHOSEN.value, work, ROUNDS.value, BATCHES.value)
    rows = summarise(results, work)
    print_rows(results, rows, work)
    if JSON.value:
        kept = {name: {k: results[name][k] for k in ("warm", "steps")} for name in results}
        with open(JSON.value, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "measurements": kept}, file, indent=1)


if __name__ == "__main__":
    command_line.run(main)
