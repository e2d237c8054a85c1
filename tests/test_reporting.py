import json
import re

import pytest
import tensorflow as tf

from training import reporting

METRICS = {"loss": 7.25, "word_accuracy": 0.125, "gradient_norm": 1.5, "learning_rate": 0.00176}


def report(folder, steps, first_step=0, metrics=METRICS):
    with reporting.Reporter(
        folder,
        num_train_steps=1_000,
        units_per_step={"examples": 8, "tokens": 1024},
        first_step=first_step,
    ) as reporter:
        for step in steps:
            reporter.train(step, metrics, num_steps=10, seconds=2.0)
            reporter.evaluation(step, {"loss": 6.5})


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_each_report_is_one_line_of_json_with_step_split_and_rates(tmp_path):
    report(tmp_path, [10])
    train, evaluation = rows(tmp_path)
    rates = {"examples_per_second": 8 * 10 / 2, "tokens_per_second": 1024 * 10 / 2}
    assert train == {"step": 10, "split": "train", **METRICS, **rates}
    assert evaluation == {"step": 10, "split": "eval", "loss": 6.5}


def test_steps_that_are_done_again_are_not_told_twice(tmp_path):
    report(tmp_path, [10, 20, 30])
    with open(tmp_path / "metrics.jsonl", "a") as stream:
        stream.write('{"step": 30, "spl')  # Killed while it wrote.
    report(tmp_path, [30, 40], first_step=20)
    assert [row["step"] for row in rows(tmp_path)] == [10, 10, 20, 20, 30, 30, 40, 40]


def test_what_json_has_no_number_for_is_null(tmp_path):
    report(tmp_path, [10], metrics={"loss": float("nan"), "other": float("inf")})
    assert rows(tmp_path)[0]["loss"] is None and rows(tmp_path)[0]["other"] is None


def test_console_lines_are_aligned_and_plain_where_there_is_no_terminal(tmp_path, capfd):
    report(tmp_path, [10, 20])
    report(tmp_path, [990], metrics={**METRICS, "loss": 12.0, "word_accuracy": 1.0})
    printed, errors = capfd.readouterr()
    assert errors == ""
    lines = [line for line in printed.splitlines() if line.startswith("train")]
    assert len({len(line) for line in lines}) == 1
    assert re.fullmatch(
        r"train  step    10  loss    7\.25  word  12\.5%  grad     1\.5  lr 1\.76e-03"
        r"       40 examples/s    5,120 tokens/s",
        lines[0],
    )


def test_a_tasks_loss_and_accuracy_share_a_column_and_no_skipped_step_is_no_news():
    metrics = {"order_loss": 0.6931, "order_accuracy": 0.5, "skipped_steps": 0}
    assert reporting.console_columns(metrics) == "order 0.6931  50.0%"
    assert "skipped_steps       3" in reporting.console_columns({**metrics, "skipped_steps": 3})


def test_tensorboard_gets_both_splits(tmp_path):
    report(tmp_path, [10, 20])
    for split, value in (("train", 7.25), ("eval", 6.5)):
        (file,) = (tmp_path / "tensorboard" / split).iterdir()
        events = [
            tf.compat.v1.Event.FromString(record.numpy())
            for record in tf.data.TFRecordDataset(file)
        ]
        losses = {
            event.step: float(tf.make_ndarray(entry.tensor))
            for event in events
            for entry in event.summary.value
            if entry.tag == "loss"
        }
        assert losses == {10: value, 20: value}


@pytest.mark.parametrize("first_step", [0, 40])
def test_a_terminal_gets_a_bar_that_begins_where_the_run_does(tmp_path, monkeypatch, first_step):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with reporting.Reporter(
        tmp_path, num_train_steps=100, units_per_step={}, first_step=first_step
    ) as reporter:
        reporter.train(first_step + 10, METRICS, num_steps=10, seconds=1.0)
        assert (reporter.bar.n, reporter.bar.total) == (first_step + 10, 100)
        assert not reporter.bar.disable
