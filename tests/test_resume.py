"""Runs of run_pretraining.py that are killed or find damage, and are started again."""

import collections
import itertools
import json
import random
import re
import shutil
import signal
import time

import made_records
import programs
import pytest
import tensorflow as tf

NUM_STEPS, SAVED_EACH = 60, 10


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The flags of a run with everything that has a state: dropout, data of epochs, the best."""
    folder = tmp_path_factory.mktemp("resume")
    for part in ("train", "heldout"):
        (folder / part).mkdir()
    files = made_records.write_shards(folder / "train", 100, num_shards=3, with_metadata=True)
    (heldout,) = made_records.write_shards(folder / "heldout", 10, with_metadata=True, seed=1)
    return {
        "input_file": ",".join(files),
        "eval_input_file": heldout,
        "albert_config_file": programs.write_config(
            folder, made_records.V, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1
        ),
        "do_eval": True,
        "learning_rate": 0.01,
        "train_batch_size": 8,
        "eval_batch_size": 4,
        "num_train_steps": NUM_STEPS,
        "num_warmup_steps": 5,
        "iterations_per_loop": 1,
        "save_checkpoints_steps": SAVED_EACH,
        "keep_checkpoint_max": 2,
        "best_metric": "loss",
        "seed": 3,
    }


@pytest.fixture(scope="module")
def unbroken(command, tmp_path_factory):
    """(folder, programs.Result) of a run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("unbroken")
    result = programs.run("run_pretraining", **command, output_dir=folder, deterministic=True)
    return folder, programs.succeed(result)


def kill_after(num_reports, seconds, **settings):
    """Starts a run and kills it some seconds after it has printed so many lines of training."""
    with programs.start("run_pretraining", **settings) as process:
        reports = (line for line in process.stdout if line.startswith("train "))
        collections.deque(itertools.islice(reports, num_reports), maxlen=0)
        time.sleep(seconds)
        process.kill()
    assert process.returncode == -signal.SIGKILL, "It had ended before."


def checkpoint_bits(folder):
    """Returns {checkpoint: {name: bytes of the tensor}} of all that a run's folder has kept."""
    bits = {}
    for index in folder.glob("*/step-*/*.index"):
        reader = tf.train.load_checkpoint(str(index.with_suffix("")))
        names = reader.get_variable_to_shape_map()
        bits[index.relative_to(folder)] = {n: reader.get_tensor(n).tobytes() for n in names}
    return bits


def rows(folder):
    """Returns the rows of metrics.jsonl without what the clock says."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if "per_second" not in name}
        for line in lines
    ]


def assert_same_run(folder, unbroken_folder):
    ours, theirs = checkpoint_bits(folder), checkpoint_bits(unbroken_folder)
    assert set(ours) == set(theirs)
    for checkpoint in theirs:
        assert ours[checkpoint] == theirs[checkpoint], checkpoint
    assert rows(folder) == rows(unbroken_folder)


def test_an_unbroken_run_reports_each_step_once_and_keeps_weights_slots_and_counters(unbroken):
    folder, _ = unbroken
    steps = {
        split: [r["step"] for r in rows(folder) if r["split"] == split]
        for split in ("train", "eval")
    }
    assert steps["train"] == list(range(1, NUM_STEPS + 1))
    assert steps["eval"] == list(range(SAVED_EACH, NUM_STEPS + 1, SAVED_EACH))
    newest = f"checkpoints/step-{NUM_STEPS}/model.ckpt-{NUM_STEPS}"
    reader = tf.train.load_checkpoint(str(folder / newest))
    assert reader.get_tensor("global_step") == NUM_STEPS
    assert reader.get_tensor("examples_seen") == NUM_STEPS * 8
    names = set(reader.get_variable_to_shape_map())
    assert {f"bert/pooler/dense/kernel{slot}" for slot in ("", "/adam_m", "/adam_v")} <= names


def test_the_console_of_a_run_holds_its_own_lines_and_nothing_else(unbroken):
    _, result = unbroken
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    expected = ["warning: nothing tells the tokenizer of ", "train_batch_size: "]
    expected += ["eval_batch_size: ", "model: ", "training: ", "held out: ", "lamb: "]
    expected += ["memory on each replica: ", "first step: after "]
    for line, beginning in zip(lines, expected, strict=False):
        assert line.startswith(beginning)
    reports = lines[len(expected) :]
    assert len(reports) == NUM_STEPS + NUM_STEPS // SAVED_EACH
    assert all(re.match("(train|eval )  step +[0-9]+  loss  ", line) for line in reports)
    training = [line for line in reports if line.startswith("train")]
    assert all(rate in line for line in training for rate in ("examples/s", "tokens/s"))


def test_a_run_killed_at_a_random_moment_ends_with_the_bits_of_an_unbroken_one(
    command, unbroken, tmp_path
):
    num_reports, seconds = random.randint(1, NUM_STEPS * 3 // 4), random.uniform(0, 0.05)
    print(f"killed {seconds} s after {num_reports} reports")  # Shown when the test fails.
    command = {**command, "output_dir": tmp_path, "deterministic": True}
    kill_after(num_reports, seconds, **command)
    again = programs.succeed(programs.run("run_pretraining", **command))
    last_saved = num_reports // SAVED_EACH * SAVED_EACH
    assert not last_saved or "going on from step" in again.stdout
    assert_same_run(tmp_path, unbroken[0])


def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_with_a_warning(
    command, unbroken, tmp_path
):
    folder = tmp_path / "run"
    shutil.copytree(unbroken[0], folder)
    (damaged,) = folder.glob(f"checkpoints/step-{NUM_STEPS}/*.data-*")
    made_records.flip_byte(damaged, offset=1000)
    result = programs.run("run_pretraining", **command, output_dir=folder, deterministic=True)
    programs.succeed(result)
    (warning,) = result.stderr.splitlines()
    assert warning.startswith("warning: damaged checkpoint") and str(damaged) in warning
    assert f"going on from step {NUM_STEPS - SAVED_EACH} of {folder}" in result.stdout
    assert_same_run(folder, unbroken[0])


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_with_the_bits_of_an_unbroken_one(
    command, unbroken, tmp_path
):
    command = {**command, "output_dir": tmp_path, "deterministic": True}
    for num_reports in (0, 1, SAVED_EACH, SAVED_EACH, 1, SAVED_EACH + 1):
        kill_after(num_reports, random.uniform(0, 0.05), **command)
    programs.succeed(programs.run("run_pretraining", **command))
    assert_same_run(tmp_path, unbroken[0])


@pytest.mark.parametrize(("keep", "kept"), [(2, [5, 6]), (0, [1, 2, 3, 4, 5, 6])])
def test_as_many_checkpoints_are_kept_as_asked_for_and_the_best_beside_them(
    command, tmp_path, keep, kept
):
    """A rate this high spoils the weights, so that an early evaluation is the best."""
    changes = {"learning_rate": 1.0, "num_train_steps": 6, "save_checkpoints_steps": 1}
    changes |= {"keep_checkpoint_max": keep, "output_dir": tmp_path}
    programs.succeed(programs.call("run_pretraining", **{**command, **changes}))
    steps = {
        part: sorted(int(path.name.removeprefix("step-")) for path in (tmp_path / part).iterdir())
        for part in ("checkpoints", "best")
    }
    losses = {row["step"]: row["loss"] for row in rows(tmp_path) if row["split"] == "eval"}
    assert steps == {"checkpoints": kept, "best": [min(losses, key=losses.get)]}
    assert min(losses, key=losses.get) < 5  # So a limit of 2 would have deleted it.


def test_a_finished_run_started_again_changes_nothing(command, tmp_path):
    command = {**command, "num_train_steps": 3, "save_checkpoints_steps": 3}
    programs.succeed(programs.call("run_pretraining", **command, output_dir=tmp_path))
    before = checkpoint_bits(tmp_path), rows(tmp_path)
    again = programs.call("run_pretraining", **command, output_dir=tmp_path)
    assert "going on from step 3" in programs.succeed(again).stdout
    assert (checkpoint_bits(tmp_path), rows(tmp_path)) == before
