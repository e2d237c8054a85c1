"""Measures ALBERT's encoder at inference: ours, Hugging Face's in PyTorch, ONNX Runtime.

python benchmarks/inference.py --rounds=7
python benchmarks/inference.py --workloads=mix --input_file=texts.txt --tokenizer=30k-clean.model

`1x128` is one full text, `32x128` a full batch, `mix` as many lines of a file as `--num_texts`
says, in batches of 32: ours sorted by length, as `predict.py embed` and `classify` sort a file;
the others in the file's order and sorted too. Our programs pad to one of a few lengths, what is
exported and the others to the longest of each batch. Weights are
random, as speed does not depend on them, and ids are ready: tokenization is no part of it. Every
contestant is a resident process, and they take turns, so that what else the machine does meets
all alike; a ratio is the median of the rounds' ratios. Needs `requirements-dev.txt` and
`requirements-onnx.txt`.
"""

import contextlib
import json
import math
import os
import statistics
import sys

import numpy as np
from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import inference_contestants, limits, workers
from benchmarks.rounds import median_ratio, times
from data import classification, classification_tables, tokenization
from data.features import pack
from modeling import config

WORKLOADS = flags.DEFINE_list("workloads", ["1x128", "32x128"], "BxT each, or mix.")
CHOSEN = flags.DEFINE_list(
    "contestants",
    list(inference_contestants.CONTESTANTS),
    f"Who takes part: {', '.join(inference_contestants.CONTESTANTS)}.",
)
MODEL = flags.DEFINE_enum("model", "base", list(config.SIZES), "Size of the model.")
VOCAB_SIZE = flags.DEFINE_integer("vocab_size", 30_000, "V, where texts are drawn.", lower_bound=10)
INPUT_FILE = flags.DEFINE_string("input_file", None, "mix: a text a line, or text TAB text_b.")
TOKENIZER = flags.DEFINE_string("tokenizer", None, "mix: tokenizer folder, model or vocab.txt.")
NUM_TEXTS = flags.DEFINE_integer("num_texts", 256, "mix: lines drawn from the file.", lower_bound=1)
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "mix: texts in a batch.", lower_bound=1)
MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "mix: pieces of a text at most.")
TOKENS = flags.DEFINE_integer(
    "tokens_per_turn", 2048, "A turn repeats a workload up to about as many.", lower_bound=1
)
ROUNDS = flags.DEFINE_integer("rounds", 7, "Turns that each contestant takes.", lower_bound=1)
NUM_THREADS = flags.DEFINE_integer("num_threads", 2, "Threads of each contestant.", lower_bound=1)
JSON = flags.DEFINE_string("json", None, "File for every single measurement.")

MIX, SEED = "mix", 0
REFERENCES = ("sdpa", "onnx_runtime")
CLOCKS = ("seconds", "processor_seconds")  # The wall's, and that of all the process's threads.


def full_texts(shape):
    """Draws the Features of "BxT": B texts of T pieces."""
    batch, _, length = shape.partition("x")
    if not (batch.isdigit() and length.isdigit() and int(batch) and int(length)):
        raise ValueError(f"`workloads` must be BxT, such as 1x128, or mix. Received: {shape!r}.")
    ids = np.random.default_rng(SEED).integers(5, VOCAB_SIZE.value, (int(batch), int(length)))
    segments = [0] * int(length)
    return pack([{"input_ids": row, "segment_ids": segments} for row in ids.tolist()])


def texts_of_file(tokenizer):
    """Draws lines of the file, and returns their Features."""
    with open(INPUT_FILE.value, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip()]
    number = min(NUM_TEXTS.value, len(lines))
    chosen = np.random.default_rng(SEED).choice(len(lines), number, replace=False)
    pairs = [lines[place].partition("\t")[::2] for place in chosen]
    texts, others = (list(column) for column in zip(*pairs, strict=True))
    table = classification_tables.Table(INPUT_FILE.value, [""] * number, texts, others, None)
    return classification.make_features(table, tokenizer, MAX_SEQ_LENGTH.value)


def make_work(workload):
    """Returns the inference_contestants.Work of one workload."""
    vocab_size, batch_size = VOCAB_SIZE.value, BATCH_SIZE.value
    if workload == MIX:
        tokenizer = tokenization.load(TOKENIZER.value)
        features, vocab_size = texts_of_file(tokenizer), tokenizer.vocab_size
    else:
        features = full_texts(workload)
        batch_size = len(features)
    sizes = config.size(MODEL.value, vocab_size)
    if features.lengths().max() > sizes.max_position_embeddings:
        raise ValueError(
            f"A text must have at most {sizes.max_position_embeddings} pieces. Received: "
            f"{features.lengths().max()}."
        )
    repeats = max(1, TOKENS.value // int(features.lengths().sum()))
    return inference_contestants.Work(sizes, features, batch_size, NUM_THREADS.value, repeats)


def taking_part(workload):
    """Returns the names of those who take part: where lengths are all alike, none sorted anew."""
    return [n for n in CHOSEN.value if workload == MIX or not n.endswith("_by_length")]


def measure(names, work, rounds):
    """Has every contestant and every product of the limit take its turns.

    Returns:
        dict of name to {"first": dict, "steps": list of dict} of `workers.Worker`.
    """
    with contextlib.ExitStack() as stack:
        everyone = (*names, *limits.PRODUCTS)
        running = [stack.enter_context(workers.Worker(name, work)) for name in everyone]
        results = {}
        for worker in running:
            worker.imported()
            results[worker.name] = {"first": worker.step(), "steps": []}
            worker.step()  # The second still grows what the allocators hold.
        for done in range(rounds):
            for worker in running:
                results[worker.name]["steps"].append(worker.step())
            print(f"\rround {done + 1}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    return results


def summarise(results, work):
    """Turns one workload's measurements into the numbers of its table.

    Returns:
        (FLOP/s of the best library's products, its label; dict of contestant to its row).
    """
    best = min(limits.PRODUCTS, key=lambda name: statistics.median(times(results[name], "seconds")))
    product_flops, flops = limits.product_flops(work), work.flops * work.repeats
    rate = product_flops / statistics.median(times(results[best], "seconds"))
    rows = {}
    for name in (name for name in results if name not in limits.PRODUCTS):
        taken = {clock: times(results[name], clock) for clock in CLOCKS}
        rows[name] = {
            "milliseconds": 1e3 * statistics.median(taken["seconds"]) / work.repeats,
            "memory": results[name]["steps"][-1]["memory"],
            "positions": inference_contestants.CONTESTANTS[name].num_positions(work),
        }
        for clock in CLOCKS:
            floors = [flops / product_flops * t for t in times(results[best], clock)]
            rows[name][f"fraction_{clock}"] = median_ratio(floors, taken[clock])
            for other in REFERENCES:
                ratio = math.nan
                if other in results:
                    ratio = median_ratio(taken[clock], times(results[other], clock))
                rows[name][f"{other}_{clock}"] = ratio
    return rate, limits.PRODUCTS[best].label, rows


def print_rows(workload, work, rate, library, rows):
    real = int(work.features.lengths().sum())
    print(
        f"\n{workload}: {len(work.features):,} texts, {real:,} real tokens, "
        f"{work.flops / 1e9:.1f} GFLOP. Limit: {rate / 1e9:.0f} GFLOP/s ({library}'s products at "
        f"these shapes); floor: {1e3 * work.flops / rate:.0f} ms.\n\n"
        "| contestant | padded tokens (of real) | ms | % of limit | time / HF | time / ONNX "
        "| peak MiB |"
    )
    print("|---" * 7 + "|")
    for name, row in rows.items():
        cells = [
            inference_contestants.CONTESTANTS[name].label,
            f"{row['positions']:,} ({row['positions'] / real:.2f})",
            f"{row['milliseconds']:.1f}",
            "{:.0f} ({:.0f})".format(*(100 * row[f"fraction_{clock}"] for clock in CLOCKS)),
            *(
                "{:.2f} ({:.2f})".format(*(row[f"{other}_{clock}"] for clock in CLOCKS))
                for other in REFERENCES
            ),
            f"{row['memory']:.0f}",
        ]
        print(f"| {' | '.join(cells)} |")


def check_flags():
    known = list(inference_contestants.CONTESTANTS)
    unknown = [name for name in CHOSEN.value if name not in known]
    if unknown or not CHOSEN.value:
        raise ValueError(f"`contestants` must be of {known}. Received: {CHOSEN.value}.")
    if MIX in WORKLOADS.value and not (INPUT_FILE.value and TOKENIZER.value):
        raise ValueError("`mix` needs `input_file` and `tokenizer`. Received: not both.")
    workers.check_installed((*CHOSEN.value, *limits.PRODUCTS))


def main():
    check_flags()
    command_line.prepare_tensorflow()
    works = {workload: make_work(workload) for workload in WORKLOADS.value}
    os.environ["OMP_NUM_THREADS"] = str(NUM_THREADS.value)  # Of NumPy's and PyTorch's products.
    print(
        f"ALBERT-{MODEL.value}'s encoder, float32; {NUM_THREADS.value} threads each; "
        f"{ROUNDS.value} rounds; {os.cpu_count()} cores, load before the start "
        f"{os.getloadavg()[0]:.1f}.\nIn brackets: by processor time."
    )
    report = {}
    for workload, work in works.items():
        results = measure(taking_part(workload), work, ROUNDS.value)
        rate, library, rows = summarise(results, work)
        print_rows(workload, work, rate, library, rows)
        report[workload] = {"flops_per_second": rate, "rows": rows, "measurements": results}
    if JSON.value:
        with open(JSON.value, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    command_line.run(main)
