"""Compiles the pretraining step of each published size for TPUs, without having one.

    python benchmarks/tpu_compile.py --results_file=compiled.jsonl [--table]

The program is that of `run_pretraining.py --strategy=tpu` on one core: LAMB, bfloat16, sequences
of 512 with 77 predictions, gradients summed over eight cores. For each kind of TPU it looks for the
largest power of two of sequences on a core that fits, with and without `--recompute`. A line of the
results file is one compilation (about a minute of one core); a program started again goes past
those that are there. `--table` prints what there is. Needs `requirements-tpu-compile.txt`.

It proves that XLA compiles the step, at those shapes, and what it takes of a core's memory. No step
has run: neither TPUStrategy, nor the reading of batches, nor the speed is shown.
"""

import concurrent.futures
import dataclasses
import multiprocessing
import os
import sys
import time

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import result_lines, tpu_compiler, tpu_step
from modeling import config

PUBLISHED = [name for name in config.SIZES if name not in ("tiny", "small")]
DEPTHS = (2, 12, 24, 48)
BATCHES = tuple(2**power for power in range(10))  # On a core; the paper's 4096 on 8 are 512.
UNCOMPILED = "uncompiled"  # In place of a kind: the program as it is before.

RESULTS_FILE = flags.DEFINE_string("results_file", None, "JSON lines that results are added to.")
CHOSEN_SIZES = flags.DEFINE_list("sizes", PUBLISHED, "Sizes of the model.")
KINDS = flags.DEFINE_list("kinds", list(tpu_compiler.TOPOLOGIES), "Kinds of TPU.")
TABLE = flags.DEFINE_bool("table", False, "Print the tables of the results file; compile nothing.")


def check_flags():
    """Refuses names that are unknown, and nowhere to write."""
    for chosen, known in (
        (CHOSEN_SIZES.value, PUBLISHED),
        (KINDS.value, list(tpu_compiler.TOPOLOGIES)),
    ):
        if unknown := [name for name in chosen if name not in known]:
            raise ValueError(f"sizes and kinds must be of {known}. Received: {unknown}.")
    if not RESULTS_FILE.value:
        raise ValueError("`results_file` must be given. Received: nothing.")


def in_a_process(function, *arguments):
    """Calls a function in a process of its own: TensorFlow and the compiler do not mix."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as executor:
        return executor.submit(function, *arguments).result()


class Compilations:
    """The compilations that are known, and how to come by more.

    Attributes:
        results: list of dict, the lines of the results file.
    """

    def __init__(self):
        self.results = result_lines.read(RESULTS_FILE.value)
        self._text = None, None  # (CoreStep, its program): the next kind often wants the same.

    def _lower(self, core_step):
        if self._text[0] != core_step:
            text = in_a_process(tpu_step.lower, core_step, tpu_compiler.NUM_CORES)
            self._text = core_step, text
        return self._text[1]

    def of(self, core_step, kind):
        """Returns the line of one step on one kind of TPU, or UNCOMPILED, made now if need be."""
        key = {**dataclasses.asdict(core_step), "kind": kind}
        for result in self.results:
            if key.items() <= result.items():
                return result
        text, started = self._lower(core_step), time.perf_counter()
        result = {**key, "instructions": tpu_step.num_instructions(text)}
        if kind == UNCOMPILED:
            return self._keep(result)
        result |= in_a_process(compiled, kind, text)
        result["seconds"] = round(time.perf_counter() - started)
        told = f"{result['peak'] / 2**30:.1f} GiB" if result["fits"] else result["refusal"]
        print(f"{kind}, {core_step}: {told}; {result['seconds']} s", flush=True)
        return self._keep(result)

    def _keep(self, result):
        self.results.append(result)
        result_lines.add(RESULTS_FILE.value, result)
        return result


def compiled(kind, text):
    """Compiles a program; returns what its line in the results file says of it."""
    try:
        sizes, optimized = tpu_compiler.compile_for(kind, text)
    except MemoryError as error:
        return {"fits": False, "refusal": error.args[0]}
    return {"fits": True, **sizes, "all_reduces": tpu_step.count(optimized, "all-reduce")}


def find_largest(compilations, core_step, kind, guess):
    """Returns the line of the largest batch that fits, or None where not even 1 does.

    It is the quicker from a guess that is too large: a refusal takes seconds, a program minutes.
    """
    place = BATCHES.index(guess)

    def at(place):
        step = dataclasses.replace(core_step, batch_size=BATCHES[place])
        return compilations.of(step, kind)

    if at(place)["fits"]:
        while place + 1 < len(BATCHES) and at(place + 1)["fits"]:
            place += 1
        return at(place)
    while place and not at(place)["fits"]:
        place -= 1
    return at(place) if at(place)["fits"] else None


def measure():
    """Compiles what is missing of the tables."""
    compilations, largest = Compilations(), {}  # By `recompute`: of the search before.
    for size in CHOSEN_SIZES.value:
        for recompute in (False, True):
            core_step = tpu_step.CoreStep(size, 1, recompute)
            for kind in KINDS.value:
                guess = min(2 * largest.get(recompute, BATCHES[-1]), BATCHES[-1])
                found = find_largest(compilations, core_step, kind, guess)
                largest[recompute] = found["batch_size"] if found else 1
    for depth in DEPTHS:
        compilations.of(tpu_step.CoreStep("base", 1, num_hidden_layers=depth), UNCOMPILED)


def cell(results, size, kind, recompute):
    """Returns the largest batch that fits and what it takes, for the table."""
    wanted = {"size": size, "kind": kind, "recompute": recompute}
    found = [result for result in results if wanted.items() <= result.items()]
    fitting = [result for result in found if result["fits"]]
    if not fitting:
        smallest = min((result["batch_size"] for result in found), default=None)
        return {None: "-", BATCHES[0]: "none"}.get(smallest, f"below {smallest}")
    largest = max(fitting, key=lambda result: result["batch_size"])
    refused = any(r["batch_size"] == 2 * largest["batch_size"] for r in found if not r["fits"])
    sign = "" if refused else "at least "
    return f"{sign}{largest['batch_size']} ({largest['peak'] / 2**30:.1f})"


def is_whole(result):
    """Says whether a line is of a size as published, not of a part of it for the depths."""
    return result["num_hidden_layers"] is None


def print_tables(results):
    """Prints the largest batches, and the size of the program by depth."""
    columns = [(kind, recompute) for kind in KINDS.value for recompute in (False, True)]
    heads = [f"{kind}{', --recompute' if recompute else ''}" for kind, recompute in columns]
    print("Sequences of 512 on a core, the largest power of two that fits (GiB it takes).\n")
    print(f"| size | {' | '.join(heads)} | all-reduces | instructions |")
    print("|---" * (len(heads) + 3) + "|")
    for size in CHOSEN_SIZES.value:
        of_size = [result for result in results if result["size"] == size and is_whole(result)]
        sums = sorted({result["all_reduces"] for result in of_size if result["fits"]})
        instructions = sorted({result["instructions"] for result in of_size})
        ends = [" to ".join(map(str, dict.fromkeys(v[:1] + v[-1:]))) for v in (sums, instructions)]
        cells = [cell(results, size, *column) for column in columns]
        print(f"| {' | '.join([size, *cells, *ends])} |")
    depths = {r["num_hidden_layers"]: r["instructions"] for r in results if not is_whole(r)}
    print("\nInstructions of base's step by depth, before any optimization:\n")
    print(f"| layers | {' | '.join(map(str, depths))} |\n{'|---' * (len(depths) + 1)}|")
    print(f"| instructions | {' | '.join(f'{number:,}' for number in depths.values())} |")


def main():
    check_flags()
    if not TABLE.value:
        measure()
    print_tables(result_lines.read(RESULTS_FILE.value))


if __name__ == "__main__":
    command_line.run(main)
