"""Breaks a run of run_pretraining.py again and again, and compares its end with an unbroken one's.

    python -m benchmarks.soak --minutes=30 --kills=20

A tiny model with dropout trains twice, `--deterministic`: once undisturbed, once broken at random
steps by what ends long runs: SIGKILL, SIGTERM, a full disk (the largest file is limited while it
runs), a truncated checkpoint, a record file truncated before it starts or while it reads. Each
time the same command is given again. The end must be the same bit for bit: weights, slots,
counters, the checkpoints kept and the reported figures. Where data is lost, while a record file is
cut, the program must say so in one line with the file's name, and goes on once it is back.
"""

import dataclasses
import itertools
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import flags

import command_line

MINUTES = flags.DEFINE_float("minutes", 30, "About how long both runs take together.")
KILLS = flags.DEFINE_integer("kills", 20, "How often the second one is broken.", lower_bound=1)
SEED = flags.DEFINE_integer("seed", 0, "Seed of how and when it is broken.", lower_bound=0)
FOLDER = flags.DEFINE_string("folder", None, "Where to work; not given: a temporary folder.")
KINDS = ("SIGKILL", "SIGTERM", "full disk", "checkpoint", "records at start", "records")
TOKENS, MASKED, VOCABULARY, BATCH = 32, 5, 500, 8
CALIBRATION_STEPS = 200
LAST_STEPS = 1000  # Undisturbed: four epochs, in which a file that was cut is opened again.
TINY = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "embedding_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": TOKENS,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
LARGEST_FILE = 20_000  # Bytes; less than a checkpoint of the model has.


@dataclasses.dataclass
class Soak:
    """A folder with records and a config, and the command that trains on them.

    Attributes:
        folder: pathlib.Path.
        settings: dict of flags.
    """

    folder: pathlib.Path
    settings: dict

    def start(self, output, num_steps):
        """Starts the program; returns its Popen, whose output is read by `Lines`."""
        given = {**self.settings, "output_dir": self.folder / output, "num_train_steps": num_steps}
        return subprocess.Popen(
            [sys.executable, "run_pretraining.py", *(f"--{n}={v}" for n, v in given.items())],
            cwd=pathlib.Path(__file__).resolve().parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def records(self):
        return sorted(self.folder.glob("records/*.tfrecord"))

    def checkpoints(self, output):
        """Returns the folders of a run's newest checkpoints, the newest last."""
        found = (self.folder / output / "checkpoints").glob("step-*[0-9]")
        return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def make(folder):
    """Writes records and a config of a tiny model."""
    from data import metadata, records

    generator = np.random.default_rng(0)
    tokens, masked = (2000, TOKENS), (2000, MASKED)
    examples = {
        "input_ids": generator.integers(0, VOCABULARY, tokens),
        "input_mask": np.ones(tokens, int),
        "segment_ids": generator.integers(0, 2, tokens),
        "token_boundary": np.zeros(tokens, int),
        "masked_lm_positions": generator.integers(0, TOKENS, masked),
        "masked_lm_ids": generator.integers(0, VOCABULARY, masked),
        "masked_lm_weights": np.ones(masked, np.float32),
        "next_sentence_labels": generator.integers(0, 2, 2000),
    }
    (folder / "records").mkdir(parents=True, exist_ok=True)
    files = [str(folder / "records" / f"train-{i}.tfrecord") for i in range(6)]
    with records.ShardWriter(files) as writer:
        writer.write(records.serialize(examples))
    metadata.write(
        metadata.Metadata(
            settings={},
            max_seq_length=TOKENS,
            max_predictions_per_seq=MASKED,
            sentence_objective="sop",
            vocab_size=VOCABULARY,
            tokenizer_sha256="0" * 64,
            counts={},
            shards=writer.shards,
            versions={},
        )
    )
    (folder / "config.json").write_text(json.dumps(TINY))
    settings = {
        "input_file": folder / "records" / "*.tfrecord",
        "albert_config_file": folder / "config.json",
        "learning_rate": 1e-3,
        "train_batch_size": BATCH,
        "num_warmup_steps": 10,
        "iterations_per_loop": 20,
        "save_checkpoints_steps": 50,
        "keep_checkpoint_max": 3,
        "deterministic": True,
    }
    return Soak(folder, settings)


def run_to_end(soak, output, num_steps):
    """Runs the program to its end; returns the seconds it took."""
    started = time.monotonic()
    with soak.start(output, num_steps) as process:
        printed = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"A run that nothing disturbs must succeed. It said:\n{printed}")
    return time.monotonic() - started


def choose_num_steps(soak, minutes, num_kills):
    """Returns how many steps make both runs last about so many minutes, the restarts included."""
    seconds = run_to_end(soak, "calibration", CALIBRATION_STEPS)
    rows = read_rows(soak.folder / "calibration")
    rate = np.median([row["examples_per_second"] for row in rows]) / BATCH
    restart = max(seconds - CALIBRATION_STEPS / rate, 0)
    left = minutes * 60 - seconds - (num_kills + 2) * restart
    return max(2 * LAST_STEPS + 50 * num_kills, int(rate * left / 2))


def read_rows(folder):
    with open(folder / "metrics.jsonl") as file:
        return [json.loads(line) for line in file]


def wait_for_step(process, step):
    """Reads what a run prints until it reports a step or ends.

    Returns:
        (list of lines, int: the last step that was reported, 0 before the first).
    """
    lines, reached = [], 0
    for line in process.stdout:
        lines.append(line)
        if line.startswith("train "):
            reached = int(line.split()[2].replace(",", ""))
            if reached >= step:
                break
    return lines, reached


def cut(path, generator):
    """Truncates a file to a random length; returns what it held."""
    whole = path.read_bytes()
    path.write_bytes(whole[: generator.randrange(1, len(whole))])
    return whole


def break_once(soak, kind, step, num_steps, generator):
    """Starts the run, breaks it at about a step, and mends what the user would.

    Returns:
        dict: what happened, a row of the table.

    Raises:
        RuntimeError: it did not end as it must.
    """
    path, whole = generator.choice(soak.records()), None
    if kind == "records at start":
        whole = cut(path, generator)
    with soak.start("broken", num_steps) as process:
        lines, reached = wait_for_step(process, step)
        time.sleep(generator.uniform(0, 0.5))
        if kind == "records":
            whole = cut(path, generator)
        elif kind == "full disk":
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (LARGEST_FILE, -1))
        elif kind in ("SIGKILL", "SIGTERM", "checkpoint"):
            process.send_signal(signal.SIGTERM if kind == "SIGTERM" else signal.SIGKILL)
        lines += process.stdout.readlines()
    if whole:
        path.write_bytes(whole)
    if kind == "checkpoint" and len(soak.checkpoints("broken")) > 1:
        cut(next(soak.checkpoints("broken")[-1].glob("*.data-*")), generator)
    told = lines[-1].strip() if lines else ""
    check_ending(kind, process.returncode, told, str(path))
    resumed = [line.split()[4] for line in lines if line.startswith("going on from step")]
    started_at = resumed[0] if resumed else "0"
    return {"began at step": started_at, "broken after": reached, "code": process.returncode}


def check_ending(kind, code, told, path):
    """Raises RuntimeError unless a broken run ended with the right code, and one line where due."""
    right = {
        "SIGKILL": code == -signal.SIGKILL,
        "checkpoint": code == -signal.SIGKILL,
        "SIGTERM": code == 128 + signal.SIGTERM and told.startswith("stopped by SIGTERM"),
        "full disk": code == 1 and told.startswith("error: ") and "could not be written" in told,
        "records": code == 1 and told.startswith("error: ") and path in told,
        "records at start": code == 1 and told.startswith("error: ") and path in told,
    }
    if not right[kind]:
        raise RuntimeError(f"{kind}: exit code {code}, and the last line:\n{told}")


def newest_bits(soak, output):
    """Returns {name: bytes} of the newest checkpoint."""
    import tensorflow as tf

    (index,) = soak.checkpoints(output)[-1].glob("*.index")
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {n: reader.get_tensor(n).tobytes() for n in reader.get_variable_to_shape_map()}


def differences(soak):
    """Returns what differs between the ends of the two runs: list of str, empty if nothing does."""
    bits = [newest_bits(soak, output) for output in ("unbroken", "broken")]
    found = [name for name in bits[0] | bits[1] if bits[0].get(name) != bits[1].get(name)]
    kept = [[path.name for path in soak.checkpoints(o)] for o in ("unbroken", "broken")]
    if kept[0] != kept[1]:
        found.append(f"checkpoints kept: {kept[0]} and {kept[1]}")
    rows = [
        [
            {name: value for name, value in row.items() if "per_second" not in name}
            for row in read_rows(soak.folder / output)
        ]
        for output in ("unbroken", "broken")
    ]
    if rows[0] != rows[1]:
        found.append("reported figures")
    return found


def break_often(soak, num_steps, num_kills, generator):
    """Breaks one run at random steps, then lets it end; prints a row for each time."""
    steps = sorted(generator.sample(range(1, num_steps - LAST_STEPS), num_kills))
    kinds = list(itertools.islice(itertools.cycle(KINDS), num_kills))
    generator.shuffle(kinds)
    print("| broken by | began at step | broken after step | exit code |\n|---|---|---|---|")
    for kind, step in zip(kinds, steps, strict=True):
        row = break_once(soak, kind, step, num_steps, generator)
        print(f"| {kind} | {' | '.join(str(value) for value in row.values())} |", flush=True)
    run_to_end(soak, "broken", num_steps)


def main():
    command_line.prepare_tensorflow()
    started, generator = time.monotonic(), random.Random(SEED.value)
    with tempfile.TemporaryDirectory() as temporary:
        soak = make(pathlib.Path(FOLDER.value or temporary).resolve())
        num_steps = choose_num_steps(soak, MINUTES.value, KILLS.value)
        run_to_end(soak, "unbroken", num_steps)
        break_often(soak, num_steps, KILLS.value, generator)
        found = differences(soak)
    if found:
        raise ValueError(
            "A broken run must end as the unbroken one, bit for bit. Received: differences in "
            f"{', '.join(found[:5])}."
        )
    print(
        f"{num_steps:,} steps, broken {KILLS.value} times, end bit for bit where the unbroken run "
        f"does; {(time.monotonic() - started) / 60:.0f} minutes on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    command_line.run(main)
