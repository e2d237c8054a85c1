"""A loss that blows up is told from a noisy one, and a run goes back and on with other data."""

import json

import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy
from test_loop import assert_same_bits, run, spoilt

from training import divergence


def judged(losses, num_deviations=6.0):
    """Returns the numbers of the reports at which a blow-up is found."""
    watch = divergence.LossWatch()
    return [i for i, loss in enumerate(losses) if watch.add(loss, num_deviations)]


def falling(num_reports, noise=0.1):
    steps = np.arange(num_reports)
    return 3 + 7 * np.exp(-steps / 10) + noise * np.random.default_rng(0).normal(size=num_reports)


def test_a_loss_that_jumps_and_stays_up_is_found_at_the_third_report():
    losses = falling(160)
    losses[150:] += 4
    assert judged(losses)[0] == 152


def test_a_loss_that_drifts_up_slowly_is_found_too():
    assert judged([*falling(60), *np.linspace(3, 9, 200)])


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.5])
def test_noise_a_bad_stretch_and_a_falling_loss_are_no_blow_up(noise):
    losses = falling(1000, noise)
    losses[[100, 101, 300, 500]] += 5  # Two in a row at most.
    losses[700] = np.nan
    assert judged(losses) == []


def test_a_loss_near_zero_may_wobble():
    assert judged([1e-3] * 50 + [0.4] * 3) == []


def test_the_judgement_can_be_switched_off():
    assert judged([1.0] * 20 + [100.0] * 20, num_deviations=0) == []


def test_the_running_figures_are_those_of_the_first_reports():
    watch = divergence.LossWatch()
    for loss in (2.0, 4.0, 9.0):
        watch.add(loss, 6.0)
    assert watch.mean == pytest.approx(5) and watch.variance == pytest.approx(np.var([2, 4, 9]))


SETTINGS = {
    "num_train_steps": 40,
    "iterations_per_loop": 1,
    "save_checkpoints_steps": 5,
    "max_skipped_steps": 3,
    "learning_rate": 0.01,
    "dropout": 0.3,
}


def test_a_blown_up_run_goes_back_and_on_with_the_examples_after(tmp_path, capsys):
    """Steps 23 to 25 blow up; the run goes back to step 20 and takes batches 25, 26, ..."""
    arrays = spoilt(toy.examples(8 * 60), 22, 23, 24)
    state, reported = run(tmp_path, arrays, **SETTINGS)
    printed = capsys.readouterr().out
    assert "step 25: the loss or gradient of the last 3 steps was not finite" in printed
    assert "Went back to step 20, and on with other examples (rollback 1 of 2)" in printed
    assert [row["step"] for row in reported] == list(range(1, 41))
    assert [row["rollbacks"] for row in reported] == [0] * 20 + [1] * 20
    assert int(state.examples_seen) == 8 * 45
    # It ends as a run that never met the batches 20 to 24.
    rest = {name: np.delete(array, slice(8 * 20, 8 * 25), axis=0) for name, array in arrays.items()}
    other, _ = run(tmp_path / "other", rest, **SETTINGS)
    ours, theirs = toy.values(state), toy.values(other)
    assert_same_bits(*({**v, "examples_seen": np.zeros(())} for v in (ours, theirs)))


def test_a_run_killed_after_a_rollback_does_not_take_the_same_examples_again(tmp_path):
    arrays = spoilt(toy.examples(8 * 60), 22, 23, 24)
    unbroken, rows = run(tmp_path / "a", arrays, **SETTINGS)
    # Killed two steps after it has gone back: the next command finds step 20 and batch 25.
    with pytest.raises(tf.errors.OutOfRangeError):
        run(tmp_path / "b", {k: v[: 8 * 27] for k, v in arrays.items()}, **SETTINGS)
    note = json.loads((tmp_path / "b/checkpoints/step-20/complete.json").read_text())["note"]
    assert note["num_rollbacks"] == 1
    resumed, rows_resumed = run(tmp_path / "b", arrays, **SETTINGS)
    assert_same_bits(toy.values(resumed), toy.values(unbroken))
    assert [row["loss"] for row in rows_resumed] == [row["loss"] for row in rows]


def test_a_run_that_blows_up_too_often_stops_with_the_remedy(tmp_path):
    arrays = spoilt(toy.examples(8 * 60), *range(22, 60))
    with pytest.raises(
        divergence.Diverged,
        match=r"step 23: .*not finite, after 2 rollback\(s\) .*step-20.*Lower `learning_rate`",
    ):
        run(tmp_path, arrays, **SETTINGS)


def test_a_run_without_a_checkpoint_stops_where_it_blows_up(tmp_path):
    arrays = spoilt(toy.examples(8 * 10), *range(10))
    with pytest.raises(divergence.Diverged, match=r"step 3: .*not finite\. Lower"):
        run(tmp_path, arrays, **SETTINGS)


def test_high_losses_roll_back_and_no_checkpoint_is_taken_of_them(tmp_path, capsys):
    arrays = toy.examples(8 * 200)
    arrays["weights"][:] = 1
    arrays["labels"][8 * 118 :] = (arrays["labels"][8 * 118 :] + 5) % 10
    settings = {"num_train_steps": 150, "learning_rate": 0.02, "optimizer": "adamw"}
    with pytest.raises(divergence.Diverged, match="stays above"):
        run(tmp_path, arrays, **{**SETTINGS, **settings, "dropout": 0, "save_checkpoints_steps": 4})
    assert "Went back to step 116" in capsys.readouterr().out
    kept = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert "step-116" in kept and "step-120" not in kept


def test_the_figures_of_lamb_are_told_by_variable(tmp_path):
    run(tmp_path, toy.examples(), num_train_steps=4)
    (file,) = (tmp_path / "tensorboard/train").iterdir()
    records = tf.data.TFRecordDataset(file).as_numpy_iterator()
    values = [v for r in records for v in tf.compat.v1.Event.FromString(r).summary.value]
    ratios = {v.tag: float(tf.make_ndarray(v.tensor)) for v in values if "trust_ratio" in v.tag}
    names = ("embedding/table", "parity/kernel", "word/kernel")  # Biases have none.
    assert set(ratios) == {f"trust_ratio/{name}" for name in names}
    assert all(ratio > 0 and ratio != 1 for ratio in ratios.values())
    assert {"rollbacks", "loss_deviation", "input_wait"} <= {value.tag for value in values}
