"""SIGTERM and SIGINT: a run saves at the next step boundary, and goes on to the same end."""

import json
import os
import signal

import made_records
import programs
import pytest
import toy_training as toy
from test_loop import assert_same_bits, run
from test_resume import assert_same_run

from training import signals

CODES = {signal.SIGTERM: 143, signal.SIGINT: 130}


@pytest.fixture(autouse=True)
def usual_handlers():
    """Those of a program in the foreground: what is started in the background ignores SIGINT."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_first_signal_is_noted_and_the_next_acts_as_before():
    with signals.StopRequest() as request:
        os.kill(os.getpid(), signal.SIGINT)
        assert request.number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def signalled(arrays, number, at_batch):
    """Returns the toy's batches; the signal comes while batch `at_batch` is read."""
    import tensorflow as tf

    def generate():
        for i, batch in enumerate(toy.dataset(arrays).as_numpy_iterator()):
            if i == at_batch:
                os.kill(os.getpid(), number)
            yield batch

    signature = {name: tf.TensorSpec([8], array.dtype) for name, array in arrays.items()}
    return tf.data.Dataset.from_generator(generate, output_signature=signature)


@pytest.mark.parametrize("number", CODES)
def test_a_signalled_run_saves_at_a_step_in_between_and_ends_with_the_bits_of_an_unbroken_one(
    tmp_path, monkeypatch, number
):
    settings = {"dropout": 0.3, "num_train_steps": 40, "save_checkpoints_steps": 10, "keep_max": 2}
    arrays = toy.examples(8 * 50)
    unbroken, rows = run(tmp_path / "a", arrays, **settings)
    plain = toy.dataset
    for at_batch in (13, 4):  # Counted from where the run goes on.
        monkeypatch.setattr(toy, "dataset", lambda arrays, at=at_batch: stopping(arrays, at))

        def stopping(arrays, at):
            monkeypatch.setattr(toy, "dataset", plain)
            return signalled(arrays, number, at)

        with pytest.raises(signals.Stopped, match=signals.name(number)) as stopped:
            run(tmp_path / "b", arrays, **settings)
        assert stopped.value.exit_code == CODES[number]
    resumed, rows_resumed = run(tmp_path / "b", arrays, **settings)
    assert_same_bits(toy.values(resumed), toy.values(unbroken))
    for ours, theirs in zip(rows_resumed, rows, strict=True):
        assert {**ours, "examples_per_second": 0} == {**theirs, "examples_per_second": 0}
    kept = [sorted(p.name for p in (tmp_path / f / "checkpoints").iterdir()) for f in "ab"]
    assert kept[0] == kept[1] == ["step-30", "step-40"]


@pytest.mark.parametrize(
    ("scores", "patience"), [({4: 0.5, 8: 0.6, 10: 0.7}, 0), ({4: 0.5, 8: 0.4}, 1)]
)
def test_a_signal_in_the_last_evaluation_ends_the_run_too(scores, patience, tmp_path):
    left = list(scores.values())

    def evaluate(_):
        score = left.pop(0)
        if not left:
            os.kill(os.getpid(), signal.SIGTERM)
        return {"word_accuracy": score}

    last = max(scores)
    with pytest.raises(signals.Stopped, match=f"SIGTERM at step {last}, saved in .*step-{last};"):
        run(tmp_path, toy.examples(), evaluate=evaluate, early_stopping_patience=patience)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == sorted(f"step-{step}" for step in scores)
    state, _ = run(tmp_path, toy.examples(), evaluate=evaluate, early_stopping_patience=patience)
    assert int(state.step) == last


@pytest.mark.slow
def test_a_program_leaves_with_the_code_of_the_signal_and_one_line(tmp_path):
    (tmp_path / "records").mkdir()
    files = made_records.write_shards(tmp_path / "records", 100, with_metadata=True)
    command = {
        "input_file": ",".join(files),
        "albert_config_file": programs.write_config(tmp_path, made_records.V),
        "learning_rate": 0.01,
        "train_batch_size": 8,
        "num_train_steps": 300,
        "num_warmup_steps": 5,
        "iterations_per_loop": 50,
        "save_checkpoints_steps": 100,
        "deterministic": True,
    }
    unbroken = tmp_path / "unbroken"
    programs.succeed(programs.run("run_pretraining", **command, output_dir=unbroken))
    for number, code in CODES.items():
        folder = tmp_path / str(code)
        with programs.start("run_pretraining", **command, output_dir=folder) as process:
            next(line for line in process.stdout if line.startswith("train "))
            process.send_signal(number)
            _, errors = process.communicate()
        assert process.returncode == code
        (line,) = errors.splitlines()
        assert line.startswith(f"stopped by {signals.name(number)} at step ")
        (interim,) = (p for p in (folder / "checkpoints").iterdir() if "00" not in p.name)
        assert json.loads((interim / "complete.json").read_text())["note"]["interim"]
        programs.succeed(programs.run("run_pretraining", **command, output_dir=folder))
        assert_same_run(folder, unbroken)
