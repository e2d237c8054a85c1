"""Measures a pretraining step, side by side: ours, Hugging Face's in PyTorch, Model Garden's.

python benchmarks/pretraining_step.py --rounds=7 --json=step.json

Every contestant is a resident process, and they take their steps in turn, so that what else the
machine does meets all alike; a ratio is the median of the rounds' ratios. Absolute
figures change from machine to machine, ratios much less. Needs `requirements-dev.txt`.
"""

import contextlib
import json
import math
import os
import platform
import statistics
import sys

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import contestants, limits, workers
from benchmarks.rounds import median_ratio, times
from modeling import config

CONTESTANTS = flags.DEFINE_list(
    "contestants",
    ["ours", "hugging_face", "model_garden"],
    f"Who takes part: {', '.join(contestants.CONTESTANTS)}.",
)
MODEL = flags.DEFINE_enum("model", "base", list(config.SIZES), "Size of the model.")
VOCAB_SIZE = flags.DEFINE_integer("vocab_size", 30_000, "V.", lower_bound=10)
SHAPES = flags.DEFINE_list("shapes", ["8x128", "2x512"], "Batches, BxT each.")
NUM_PREDICTIONS = flags.DEFINE_integer(
    "num_predictions", 20, "P, masked positions a sequence; 77 is our default at length 512."
)
ROUNDS = flags.DEFINE_integer("rounds", 7, "Times that each contestant is measured.", lower_bound=1)
NUM_THREADS = flags.DEFINE_integer("num_threads", 2, "Threads of each contestant.", lower_bound=1)
FIRST_STEP_LAYERS = flags.DEFINE_list(
    "first_step_layers", ["12", "24", "48"], "Depths whose first step is timed; none if empty."
)
JSON = flags.DEFINE_string("json", None, "File for every single measurement.")

FIRST_STEP_SHAPE = (1, 128)  # Small, so that the step itself hides little of what precedes it.
REFERENCE = "hugging_face"
CLOCKS = ("seconds", "processor_seconds")  # The wall's, and that of all the process's threads.


def parse_shape(text):
    """Reads "8x128" as (8, 128)."""
    batch, _, length = text.partition("x")
    if not (batch.isdigit() and length.isdigit() and int(batch) and int(length)):
        raise ValueError(f"`shapes` must be BxT, such as 8x128. Received: {text!r}.")
    return int(batch), int(length)


def make_work(shape, **sizes):
    """Returns the Work of the flags for one batch, (B, T)."""
    batch, length = shape
    chosen = config.size(
        MODEL.value,
        VOCAB_SIZE.value,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **sizes,
    )
    if not NUM_PREDICTIONS.value <= length <= chosen.max_position_embeddings:
        raise ValueError(
            "A shape's length must lie between `num_predictions` and "
            f"{chosen.max_position_embeddings}. Received: {length}."
        )
    return contestants.Work(chosen, batch, length, NUM_PREDICTIONS.value, NUM_THREADS.value)


def measure_steps(names, work, rounds):
    """Has every contestant and every limit take a step in turn, again and again.

    Returns:
        dict of name to {"imported": dict, "first": dict, "steps": list of dict}; the dicts are
        those of `workers.Worker`.
    """
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(workers.Worker(name, work)) for name in (*names, *limits.LIMITS)
        ]
        results = {worker.name: {"imported": worker.imported(), "steps": []} for worker in running}
        for worker in running:
            results[worker.name]["first"] = worker.step()
            worker.step()  # The second still grows what the allocators hold.
        for done in range(rounds):
            for worker in running:
                results[worker.name]["steps"].append(worker.step())
            print(f"\r{work.batch_size}x{work.length}: round {done + 1}", end="", file=sys.stderr)
        print(file=sys.stderr)
    return results


def measure_first_step(name, work):
    """Returns the seconds that a first step takes longer than the next, in a fresh process."""
    with workers.Worker(name, work) as worker:
        worker.imported()
        first, *later = (worker.step()["seconds"] for _ in range(4))
    return first - min(later)


def summarise(results, work):
    """Turns one shape's measurements into the numbers of its table.

    Returns:
        (dict of the limits: `library`, `flops_per_second`, `bytes_per_second`; dict of
        contestant to its row. `fraction` and `ratio` are by both of `CLOCKS`).
    """
    best = min(limits.PRODUCTS, key=lambda name: statistics.median(times(results[name], "seconds")))
    product_flops = limits.product_flops(work)
    machine = {
        "library": limits.PRODUCTS[best].label,
        "flops_per_second": product_flops / statistics.median(times(results[best], "seconds")),
        "bytes_per_second": limits.TRIAD_BYTES
        / statistics.median(times(results["triad"], "seconds")),
    }
    rows = {}
    for name in (name for name in results if name not in limits.LIMITS):
        result = results[name]
        rows[name] = {
            "tokens_per_second": work.num_tokens / statistics.median(times(result, "seconds")),
            "peak_memory": result["steps"][-1]["memory"],
            "imported_memory": result["imported"]["memory"],
            "first_loss": result["first"]["loss"],
            "fraction": {},
            "ratio": {},
        }
        for clock in CLOCKS:
            floors = [work.flops / product_flops * t for t in times(results[best], clock)]
            rows[name]["fraction"][clock] = median_ratio(floors, times(result, clock))
            if REFERENCE in results:
                rows[name]["ratio"][clock] = median_ratio(
                    times(result, clock), times(results[REFERENCE], clock)
                )
    return machine, rows


def print_steps(work, machine, rows):
    rate, bandwidth = machine["flops_per_second"], machine["bytes_per_second"]
    print(
        f"\nStep at {work.batch_size}x{work.length}, {work.num_predictions} predictions a sequence"
        f": {work.flops / 1e9:.0f} GFLOP.\nLimit: {rate / 1e9:.0f} GFLOP/s ({machine['library']}'s "
        f"products at these shapes), {bandwidth / 1e9:.0f} GB/s. Floor: "
        f"{work.flops / rate:.2f} s of products, {work.bytes / bandwidth:.2f} s of memory.\n"
    )
    print("| contestant | tokens/s | % of limit | time / HF | peak MiB (of it imports) |")
    print("|---|---|---|---|---|")
    for name, row in rows.items():
        fraction, ratio = row["fraction"], row["ratio"] or dict.fromkeys(CLOCKS, math.nan)
        print(
            f"| {contestants.CONTESTANTS[name].label} | {row['tokens_per_second']:.0f} | "
            + " | ".join(
                [
                    "{:.0f} ({:.0f})".format(*(100 * fraction[clock] for clock in CLOCKS)),
                    "{:.2f} ({:.2f})".format(*(ratio[clock] for clock in CLOCKS)),
                    f"{row['peak_memory']:.0f} ({row['imported_memory']:.0f}) |",
                ]
            )
        )


def print_first_steps(depths, first_steps):
    """Prints a row for each contestant: seconds of its first step beyond a later one, by depth."""
    batch, length = FIRST_STEP_SHAPE
    print(f"\nFirst step, less a later one, at {batch}x{length}: seconds without imports.\n")
    print(f"| contestant | {' | '.join(f'{depth} layers' for depth in depths)} |")
    print("|---" * (1 + len(depths)) + "|")
    for name, by_depth in first_steps.items():
        cells = " | ".join(f"{by_depth[depth]:.1f}" for depth in depths)
        print(f"| {contestants.CONTESTANTS[name].label} | {cells} |")


def describe_machine():
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def check_names(names):
    """Refuses contestants that are unknown, or whose libraries are not installed."""
    unknown = sorted(set(names) - set(contestants.CONTESTANTS))
    if unknown or not names:
        raise ValueError(
            f"`contestants` must be some of {list(contestants.CONTESTANTS)}. Received: "
            f"{', '.join(unknown) or 'none'}."
        )
    workers.check_installed((*names, *limits.LIMITS))


def main():
    names = CONTESTANTS.value
    check_names(names)
    works = [make_work(parse_shape(shape)) for shape in SHAPES.value]
    depths = [int(depth) for depth in FIRST_STEP_LAYERS.value]
    deep = {depth: make_work(FIRST_STEP_SHAPE, num_hidden_layers=depth) for depth in depths}
    os.environ["OMP_NUM_THREADS"] = str(NUM_THREADS.value)  # Of NumPy's and PyTorch's products.
    report = {"machine": describe_machine(), "shapes": {}, "first_steps": {}}
    print(
        f"ALBERT-{MODEL.value}, float32, no dropout, no padding, AdamW; {NUM_THREADS.value} "
        f"threads each; {ROUNDS.value} rounds; {report['machine']['cores']} cores, load before the "
        f"start {report['machine']['load']:.1f}.\nIn brackets: by processor time, which other "
        "programs disturb less, and which threads that wait by spinning add to."
    )
    for shape, work in zip(SHAPES.value, works, strict=True):
        results = measure_steps(names, work, ROUNDS.value)
        machine, rows = summarise(results, work)
        print_steps(work, machine, rows)
        report["shapes"][shape] = {"limits": machine, "rows": rows, "measurements": results}
    if deep:
        report["first_steps"] = {
            name: {depth: measure_first_step(name, work) for depth, work in deep.items()}
            for name in names
        }
        print_first_steps(depths, report["first_steps"])
    if JSON.value:
        with open(JSON.value, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    command_line.run(main)
