"""Measures data creation: text a second, sequences a second, peak memory; and the peers'.

python benchmarks/data_creation.py --input_file=text.txt --tokenizer=spm.model --json=data.json

Every run is a process of its own. The time of a run on a few lines is taken off, as it is that of
imports: "net". Processor time, of all of a run's processes, is what to go by where the
machine does other work too. Memory is the sum over a run's processes, sampled. The text is
repeated to the sizes asked for. The peers get a small text, and so does ours beside them.
The original is measured where `--original_folder` names a checkout of it.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import psutil
from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SAMPLING_SECONDS = 0.05
SHORTEST_SECONDS = 0.5  # Net time from which a rate is given; imports vary by as much.
NUM_TINY_LINES = 40  # Of the text whose run is all imports.
COLUMNS = "contestant,MB,dupe,workers,wall s,net s,MB/s,seq/s,net CPU s,seq/CPU s,peak MB"

INPUT_FILE = flags.DEFINE_string(
    "input_file", None, "Text to repeat; by default the sample corpus is made for it."
)
TOKENIZER = flags.DEFINE_string("tokenizer", None, "SentencePiece model.", required=True)
MEGABYTES = flags.DEFINE_list("megabytes", ["5", "50"], "Sizes of the text.")
DUPE_FACTORS = flags.DEFINE_list("dupe_factors", ["1", "10"], "Passes over the text.")
NUM_WORKERS = flags.DEFINE_list("num_workers", ["1", "2"], "Worker processes of ours.")
MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 512, "T.")
ROUNDS = flags.DEFINE_integer("rounds", 1, "Times that each run is made.", lower_bound=1)
PEERS = flags.DEFINE_list("peers", ["model_garden"], "Who is measured beside ours, if any.")
PEER_MEGABYTES = flags.DEFINE_float("peer_megabytes", 1, "Size of the peers' text.")
ORIGINAL_FOLDER = flags.DEFINE_string(
    "original_folder", None, "Checkout of google-research/albert, to measure it too."
)
JSON = flags.DEFINE_string("json", None, "File for every single measurement.")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of one contestant."""

    contestant: str
    text: pathlib.Path
    megabytes: float
    dupe_factor: int
    num_workers: int


def command(run, output):
    """Returns the words that start a run."""
    num_predictions = round(0.15 * MAX_SEQ_LENGTH.value)
    shared = {
        "input_file": run.text,
        "output_file": output,
        "max_seq_length": MAX_SEQ_LENGTH.value,
        "max_predictions_per_seq": num_predictions,
        "dupe_factor": run.dupe_factor,
        "do_whole_word_mask": True,
    }
    modules = {
        "ours": "data.create_pretraining_data",
        "model_garden": "official.nlp.data.create_pretraining_data",
        "original": "albert.create_pretraining_data",
    }
    own = {
        "ours": {"spm_model_file": TOKENIZER.value, "num_workers": run.num_workers},
        "model_garden": {
            "tokenization": "SentencePiece",
            "sp_model_file": TOKENIZER.value,
            "max_ngram_size": 3,
        },
        "original": {"spm_model_file": TOKENIZER.value, "vocab_file": "unused", "ngram": 3},
    }[run.contestant]
    words = [f"--{name}={value}" for name, value in {**shared, **own}.items()]
    return [sys.executable, "-m", modules[run.contestant], *words]


def children_seconds():
    """Returns the processor time of all processes that this one started and that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def tree_memory(process):
    """Returns the resident MB of a process and its descendants."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue  # It ended between the two calls.
    return total / 1e6


def measure(run, folder):
    """Makes a run.

    Args:
        run: Run.
        folder: pathlib.Path for what it writes; `albert` in it is the original.

    Returns:
        dict of seconds, processor_seconds, peak_megabytes and num_examples.

    Raises:
        ValueError: the run failed; with the last line that it printed.
    """
    output = folder / "output.tfrecord"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), str(folder)])
    start, processor_start = time.perf_counter(), children_seconds()
    with open(folder / "log.txt", "w+") as log:
        process = psutil.Popen(
            command(run, output), env=environment, cwd=folder, stdout=log, stderr=log
        )
        peak = 0
        while process.poll() is None:
            try:
                peak = max(peak, tree_memory(process))
                process.wait(SAMPLING_SECONDS)
            except (psutil.NoSuchProcess, psutil.TimeoutExpired, subprocess.TimeoutExpired):
                continue
        seconds = time.perf_counter() - start
        processor_seconds = children_seconds() - processor_start
        log.seek(0)
        if process.returncode:
            raise ValueError(f"{run.contestant} failed: {log.read().strip().splitlines()[-1]}")
    from data import record_reading

    num_examples = record_reading.count([str(output)])
    return {
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "peak_megabytes": peak,
        "num_examples": num_examples,
    }


def write_repeated(source, path, num_bytes):
    """Writes a text over and over, whole documents, until a size is reached; returns the path."""
    documents = source.read_text(encoding="utf-8", errors="replace").split("\n\n")
    size = 0
    with open(path, "w", encoding="utf-8") as file:
        for document in itertools.cycle(documents):
            size += file.write(document.strip() + "\n\n")
            if size >= num_bytes:
                return path


def planned_runs(source, folder):
    """Returns the runs that the flags ask for, and for each contestant a run on a few lines."""
    texts = {
        float(size): write_repeated(source, folder / f"{size}.txt", float(size) * 1e6)
        for size in MEGABYTES.value
    }
    plan = [
        Run("ours", text, size, int(dupe_factor), int(num_workers))
        for size, text in texts.items()
        for dupe_factor in DUPE_FACTORS.value
        for num_workers in NUM_WORKERS.value
    ]
    peers = PEERS.value + ["original"] * bool(ORIGINAL_FOLDER.value)
    if peers:
        small = write_repeated(source, folder / "peers.txt", PEER_MEGABYTES.value * 1e6)
        plan += [Run(name, small, PEER_MEGABYTES.value, 1, 1) for name in ["ours", *peers]]
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    tiny = folder / "tiny.txt"
    tiny.write_text("\n".join([*lines[:NUM_TINY_LINES], "", *lines[:NUM_TINY_LINES]]))
    imports = [
        Run(name, tiny, 0, 1, number)
        for name, number in sorted({(run.contestant, run.num_workers) for run in plan})
    ]
    return plan, imports


def net(results, import_results, name):
    """Returns the median over rounds of a time, less the shortest of a run of imports."""
    shortest = min(result[name] for result in import_results)
    return statistics.median(result[name] for result in results) - shortest


def rate(amount, seconds, digits):
    """Returns what is done in a second, or "-" where imports vary more than that takes."""
    return f"{amount / seconds:,.{digits}f}" if seconds > SHORTEST_SECONDS else "-"


def row(run, results, import_results):
    """Returns a row of the table."""
    seconds = net(results, import_results, "seconds")
    processor_seconds = net(results, import_results, "processor_seconds")
    num_examples = results[0]["num_examples"]
    return (
        run.contestant,
        f"{run.megabytes:.1f}",
        str(run.dupe_factor),
        str(run.num_workers),
        f"{statistics.median(result['seconds'] for result in results):.1f}",
        f"{seconds:.1f}",
        rate(run.megabytes, seconds, 2),
        rate(num_examples, seconds, 0),
        f"{processor_seconds:.1f}",
        rate(num_examples, processor_seconds, 0),
        f"{max(result['peak_megabytes'] for result in results):,.0f}",
    )


def print_table(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)))


def sample_corpus(folder):
    """Makes the sample corpus and returns its path."""
    path = folder / "corpus.txt"
    program = [sys.executable, "-m", "data.sample_corpus", f"--output_file={path}"]
    subprocess.run(program, check=True, cwd=REPOSITORY)
    return path


def main():
    command_line.prepare_tensorflow()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if ORIGINAL_FOLDER.value:
            (folder / "albert").symlink_to(pathlib.Path(ORIGINAL_FOLDER.value).resolve())
            (folder / "tensorflow_hub.py").touch()  # Imported, not used; the real one may fail.
        source = pathlib.Path(INPUT_FILE.value) if INPUT_FILE.value else sample_corpus(folder)
        plan, imports = planned_runs(source, folder)
        results = {run: [] for run in [*imports, *plan]}
        for _ in range(ROUNDS.value):
            for run, measured in results.items():
                measured.append(measure(run, folder))
    of_imports = {(run.contestant, run.num_workers): results[run] for run in imports}
    if JSON.value:
        measured = [
            {**dataclasses.asdict(run), "text": run.text.name, "results": found}
            for run, found in results.items()
        ]
        pathlib.Path(JSON.value).write_text(json.dumps(measured, indent=2))
    print(f"length {MAX_SEQ_LENGTH.value}")
    rows = [row(run, results[run], of_imports[run.contestant, run.num_workers]) for run in plan]
    print_table([COLUMNS.split(","), *rows])


if __name__ == "__main__":
    command_line.run(main)
