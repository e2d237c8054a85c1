"""Programs on two machines, both of them here, end where one device does.

Also when one of them is killed, or told to stop, and the job is started again.
"""

import json
import signal

import created_data
import made_records
import made_rows
import numpy as np
import programs
import pytest
import tensorflow as tf
from test_distribution import free_ports

from data import record_reading

pytestmark = pytest.mark.slow  # Each machine imports TensorFlow and meets the other.


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multi_worker")
    for part in ("train", "heldout"):
        (folder / part).mkdir()
    files = made_records.write_shards(folder / "train", 100, num_shards=3, with_metadata=True)
    (heldout,) = made_records.write_shards(folder / "heldout", 10, with_metadata=True, seed=1)
    return {
        "input_file": ",".join(files),
        "eval_input_file": heldout,
        "albert_config_file": programs.write_config(folder, made_records.V),
        "do_eval": True,
        "learning_rate": 1e-3,
        "train_batch_size": 8,
        "eval_batch_size": 4,
        "num_train_steps": 20,
        "num_warmup_steps": 2,
        "iterations_per_loop": 2,
        "save_checkpoints_steps": 5,
        "best_metric": "loss",
    }


@pytest.fixture(scope="module")
def one_device(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one_device")
    programs.succeed(programs.run("run_pretraining", **command, output_dir=folder))
    return folder


def start_workers(num_workers, program="run_pretraining", **settings):
    """Starts a run on several machines, all of them this one; returns the list of Popen."""
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(num_workers)]}
    tasks = [{"type": "worker", "index": index} for index in range(num_workers)]
    at_once = {"PYTHONUNBUFFERED": "1"}  # Each line is there when it is printed.
    return [
        programs.start(
            program,
            **settings,
            strategy="multi_worker",
            variables={"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} | at_once,
        )
        for task in tasks
    ]


def finish(workers, timeout=1200):
    """Waits for all; returns [(exit code, stdout, stderr)]."""
    outputs = [worker.communicate(timeout=timeout) for worker in workers]
    return [(w.returncode, *output) for w, output in zip(workers, outputs, strict=True)]


def newest(folder):
    indices = folder.glob("checkpoints/step-*/*.index")
    index = max(indices, key=lambda path: int(path.parent.name.removeprefix("step-")))
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_same_end(folder, one_device):
    ours, theirs = newest(folder), newest(one_device)
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)
    for mine, other in zip(rows(folder), rows(one_device), strict=True):
        assert (mine["step"], mine["split"]) == (other["step"], other["split"])
        for name in (n for n in other if n.endswith(("loss", "accuracy"))):
            assert mine[name] == pytest.approx(other[name], rel=1e-5), (name, mine)
    kept = [sorted(str(p.relative_to(f)) for p in f.glob("*/step-*")) for f in (folder, one_device)]
    assert kept[0] == kept[1]


def test_two_machines_end_where_one_device_does(command, one_device, tmp_path):
    results = finish(start_workers(2, **command, output_dir=tmp_path))
    for exit_code, stdout, stderr in results:
        assert exit_code == 0, stdout + stderr
        assert "train_batch_size: 8 examples, 4 on each of 2 replica(s)" in stdout
        assert "examples/s" in stdout and "a device)" in stdout
    assert_same_end(tmp_path, one_device)


def test_two_machines_mask_records_that_nothing_describes_as_one_device_does(command, tmp_path):
    """They look into the records before the first step; nothing else runs before they meet."""
    tokenizer, made = str(programs.write_word_list(tmp_path)), tmp_path / "made.tfrecord"
    created_data.create(tokenizer, programs.write_toy_text(tmp_path), made)
    (tmp_path / "bare").mkdir()
    serialized = record_reading.read([str(made)]).as_numpy_iterator()
    bare = made_records.write_raw(tmp_path / "bare" / "train.tfrecord", serialized)
    config = programs.write_config(tmp_path, programs.VOCAB_SIZE)
    settings = {**command, "input_file": bare, "albert_config_file": config, "num_train_steps": 4}
    settings |= {"tokenizer": tokenizer, "dynamic_masking": True}
    settings |= dict.fromkeys(("do_eval", "eval_input_file", "best_metric"))
    settings = {name: value for name, value in settings.items() if value is not None}
    one, two = tmp_path / "one", tmp_path / "two"
    programs.succeed(programs.run("run_pretraining", **settings, output_dir=one))
    for exit_code, stdout, stderr in finish(start_workers(2, **settings, output_dir=two)):
        assert exit_code == 0, stdout + stderr
        assert "are drawn each time a record is read" in stdout
    assert_same_end(two, one)


def test_a_killed_machine_ends_the_job_which_started_again_ends_as_it_would_have(
    command, one_device, tmp_path
):
    chief, other = start_workers(2, **command, output_dir=tmp_path)
    next(line for line in other.stdout if line.startswith("train  step 12"))
    other.send_signal(signal.SIGKILL)
    ((exit_code, _, errors), _) = finish([chief, other])
    assert exit_code not in (0, 1)  # Not a user's mistake: schedulers start the job again.
    assert errors
    results = finish(start_workers(2, **command, output_dir=tmp_path))
    for exit_code, stdout, stderr in results:
        assert exit_code == 0, stdout + stderr
        assert "going on from step 10" in stdout
    assert_same_end(tmp_path, one_device)


def test_a_machine_killed_while_models_are_made_ends_the_job_as_one_killed_later(command, tmp_path):
    chief, other = start_workers(2, **command, output_dir=tmp_path)
    next(line for line in other.stdout if line.startswith("eval_batch_size"))
    other.send_signal(signal.SIGKILL)
    ((exit_code, _, errors), _) = finish([chief, other])
    assert exit_code == 143
    assert errors.splitlines()[-1].startswith("stopped: another worker is gone")


def test_workers_refuse_a_folder_of_another_model_all_alike(command, one_device, tmp_path):
    other = programs.write_config(tmp_path, made_records.V, num_hidden_layers=3)
    settings = {**command, "albert_config_file": other, "output_dir": one_device}
    before = (one_device / "settings.json").read_bytes()
    for exit_code, _, errors in finish(start_workers(2, **settings)):
        assert exit_code == 1
        assert "Received: num_hidden_layers=3, but 2" in errors.splitlines()[-1]
    assert (one_device / "settings.json").read_bytes() == before


def test_a_signal_to_one_machine_stops_all_at_one_step(command, one_device, tmp_path):
    chief, other = start_workers(2, **command, output_dir=tmp_path)
    next(line for line in other.stdout if line.startswith("train  step 12"))
    other.send_signal(signal.SIGTERM)
    results = finish([chief, other])
    assert [exit_code for exit_code, _, _ in results] == [143, 143], results
    assert len({errors.splitlines()[-1] for _, _, errors in results}) == 1
    finish(start_workers(2, **command, output_dir=tmp_path))
    assert_same_end(tmp_path, one_device)


def probabilities(folder):
    """Returns those of each row that was predicted, and the scores."""
    lines = (folder / "dev_predictions.jsonl").read_text().splitlines()
    scores = json.loads((folder / "scores.json").read_text())
    return np.array([json.loads(line)["probabilities"] for line in lines]), scores


def test_two_machines_fine_tune_and_predict_as_one_device_does(tmp_path):
    settings = {
        **made_rows.write_own(tmp_path, num_train=21, num_dev=10),
        **made_rows.encoder(tmp_path),
        **made_rows.TWO_STEPS,
        **made_rows.NO_DROPOUT,
        "train_batch_size": 8,
        "eval_batch_size": 4,  # Of ten rows the last batch has two.
    }
    one, two = tmp_path / "one", tmp_path / "two"
    programs.succeed(programs.run("run_classifier", **settings, output_dir=one))
    results = finish(start_workers(2, "run_classifier", **settings, output_dir=two))
    assert ["predictions in" in stdout for _, stdout, _ in results] == [True, False]
    for exit_code, stdout, stderr in results:
        assert exit_code == 0, stdout + stderr
        assert "train_batch_size: 8 examples, 4 on each of 2 replica(s)" in stdout
    (ours, our_scores), (theirs, their_scores) = probabilities(two), probabilities(one)
    assert len(ours) == 10
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert our_scores == pytest.approx(their_scores, abs=1e-5)
