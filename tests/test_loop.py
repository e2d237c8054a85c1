import json

import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy

from training import checkpoints, divergence, loop, reporting, step

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def spoilt(arrays, *steps, batch_size=8):
    """Returns the examples with one weight of each of these steps' batches infinite."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for number in steps:
        arrays["weights"][number * batch_size + 3] = np.inf
    return arrays


def run(folder, arrays, *, evaluate=None, keep_max=5, **settings):
    """Starts, or goes on with, a run in `folder`; returns (state, rows of metrics.jsonl)."""
    train_step, evaluation_step = toy.make(ONE_DEVICE, **settings)
    state, config = train_step.state, train_step.config
    saved = checkpoints.Checkpoints(folder / "checkpoints", state.variables(), keep_max)
    best = checkpoints.BestCheckpoint(folder / "best", state.variables(), config.best_metric)
    _, note = saved.restore() or (0, None)
    unseen = {name: array[int(state.examples_seen) :] for name, array in arrays.items()}
    with reporting.Reporter(
        folder,
        num_train_steps=config.num_train_steps,
        units_per_step={"examples": config.train_batch_size},
        first_step=int(state.step),
    ) as reporter:
        loop.train(
            train_step,
            toy.dataset(unseen),
            checkpoints=saved,
            reporter=reporter,
            evaluate=evaluate and (lambda: evaluate(evaluation_step)),
            best=best,
            note=note,
        )
    return state, rows(folder)


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_same_bits(ours, theirs):
    assert set(ours) == set(theirs)
    for name in ours:
        assert ours[name].tobytes() == theirs[name].tobytes(), name


def test_a_run_stopped_and_gone_on_with_ends_with_the_bits_of_an_unbroken_one(tmp_path):
    unbroken, rows_unbroken = run(tmp_path / "a", toy.examples(), dropout=0.3)
    # The same run, killed after step 7: its last checkpoint is that of step 4.
    with pytest.raises(tf.errors.OutOfRangeError):
        run(tmp_path / "b", {k: v[: 8 * 7] for k, v in toy.examples().items()}, dropout=0.3)
    assert (tmp_path / "b/checkpoints/step-4/complete.json").exists()
    resumed, rows_resumed = run(tmp_path / "b", toy.examples(), dropout=0.3)
    assert_same_bits(toy.values(resumed), toy.values(unbroken))
    untimed = [
        [{k: v for k, v in row.items() if k != "examples_per_second"} for row in part]
        for part in (rows_unbroken, rows_resumed)
    ]
    assert untimed[0] == untimed[1]


def test_the_number_of_steps_on_the_device_at_a_time_changes_nothing(tmp_path):
    one, rows_one = run(tmp_path / "1", toy.examples(), iterations_per_loop=1)
    seven, rows_seven = run(
        tmp_path / "7", toy.examples(), iterations_per_loop=7, save_checkpoints_steps=100
    )
    assert_same_bits(toy.values(one), toy.values(seven))
    assert [row["step"] for row in rows_one] == list(range(1, 11))
    assert [row["step"] for row in rows_seven] == [7, 10]
    # A reported norm is the mean over the steps since the line before.
    norms = [row["gradient_norm"] for row in rows_one]
    assert rows_seven[0]["gradient_norm"] == pytest.approx(np.mean(norms[:7]), rel=1e-5)
    assert rows_seven[0]["learning_rate"] == rows_one[6]["learning_rate"]


def test_a_non_finite_step_is_skipped_and_counted_and_touches_no_weight(tmp_path):
    train_step, _ = toy.make(ONE_DEVICE)
    iterator = iter(toy.dataset(spoilt(toy.examples(), 2)))
    train_step.run(iterator, 2)
    before = toy.values(train_step.state)
    assert np.isnan(train_step.run(iterator, 1)["loss"])
    after = toy.values(train_step.state)
    counters = {"global_step": 3, "examples_seen": 24, "skipped_steps": 1, "skipped_in_a_row": 1}
    assert {name: int(after[name]) for name in counters} == counters
    assert_same_bits({**after, **{n: before[n] for n in counters}}, before)
    assert np.isfinite(train_step.run(iterator, 1)["loss"])
    assert int(train_step.state.skipped_in_a_row) == 0
    assert int(train_step.state.skipped_steps) == 1


def test_a_skipped_step_does_not_spoil_the_reported_means(tmp_path):
    _, reported = run(tmp_path, spoilt(toy.examples(), 1, 7))
    assert [row["skipped_steps"] for row in reported] == [1, 1, 2, 2]  # Steps 4, 5, 8, 10.
    assert all(np.isfinite(row["loss"]) for row in reported)


def test_training_stops_after_too_many_skipped_steps_and_keeps_the_last_good_checkpoint(tmp_path):
    bad = spoilt(toy.examples(), 6, 7, 8, 9)
    with pytest.raises(
        divergence.Diverged, match=r"step 9: .* last 3 steps .*step-4.*`learning_rate`"
    ):
        run(tmp_path, bad, max_skipped_steps=3, iterations_per_loop=10, max_rollbacks=0)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-4"]


def test_weights_of_a_step_that_came_out_non_finite_are_not_saved(tmp_path):
    run(tmp_path, spoilt(toy.examples(), 7), evaluate=None)
    kept = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert kept == ["step-10", "step-4"]  # Step 8, the second multiple of 4, was skipped.


def test_a_batch_in_which_nothing_counts_costs_nothing_and_gives_no_nan():
    arrays = toy.examples()
    arrays["weights"][:] = 0
    train_step, evaluation_step = toy.make(ONE_DEVICE, num_warmup_steps=0)
    metrics = train_step.run(iter(toy.dataset(arrays)), 5)
    assert metrics["word_loss"] == 0 and metrics["word_accuracy"] == 0
    assert metrics["loss"] == pytest.approx(metrics["parity_loss"])
    assert int(train_step.state.skipped_steps) == 0
    assert loop.evaluate(evaluation_step, toy.dataset(arrays))["word_loss"] == 0


def test_the_loss_halves_and_the_classes_are_learnt(tmp_path):
    _, reported = run(
        tmp_path,
        toy.examples(1600),
        num_train_steps=200,
        save_checkpoints_steps=200,
        optimizer="adamw",
    )
    assert reported[-1]["loss"] < reported[0]["loss"] / 2
    assert reported[-1]["word_accuracy"] > 0.9


def test_evaluation_takes_each_example_once_and_not_the_rows_that_fill_up():
    arrays = toy.examples(10)
    arrays["weights"][:] = 1
    filled = {k: np.concatenate([v, np.zeros(2, v.dtype)]) for k, v in arrays.items()}
    _, evaluation_step = toy.make(ONE_DEVICE)
    by_fours = loop.evaluate(evaluation_step, toy.dataset(filled, 4))
    at_once = loop.evaluate(evaluation_step, toy.dataset(arrays, 10))
    assert by_fours["word_loss"] == pytest.approx(at_once["word_loss"], rel=1e-6)
    assert by_fours["word_accuracy"] == pytest.approx(at_once["word_accuracy"], rel=1e-6)
    first = loop.evaluate(evaluation_step, toy.dataset(arrays, 5), max_steps=1)
    assert first == loop.evaluate(
        evaluation_step, toy.dataset({k: v[:5] for k, v in arrays.items()}, 5)
    )


def test_an_empty_evaluation_is_an_error():
    _, evaluation_step = toy.make(ONE_DEVICE)
    with pytest.raises(ValueError, match="at least one batch.*an empty dataset"):
        loop.evaluate(evaluation_step, toy.dataset(toy.examples(3), 8))


def test_each_checkpoint_is_evaluated_and_the_best_is_kept_beside_the_newest(tmp_path):
    scores = iter([0.5, 0.9, 0.7])

    def evaluate(evaluation_step):
        metrics = loop.evaluate(evaluation_step, toy.dataset(toy.examples(16, seed=9)))
        return {**metrics, "word_accuracy": next(scores)}

    _, reported = run(tmp_path, toy.examples(), evaluate=evaluate, keep_max=1)
    assert [row["step"] for row in reported if row["split"] == "eval"] == [4, 8, 10]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-10"]
    assert [path.name for path in (tmp_path / "best").iterdir()] == ["step-8"]


def test_training_stops_early_and_stays_stopped_when_no_evaluation_is_better(tmp_path):
    def run_with(*values):
        scores = iter(values)
        return run(
            tmp_path,
            toy.examples(800),
            evaluate=lambda _: {"word_accuracy": next(scores)},
            num_train_steps=100,
            early_stopping_patience=2,
        )[1]

    reported = run_with(0.5, 0.9, 0.7, 0.9)
    assert [row["step"] for row in reported if row["split"] == "eval"] == [4, 8, 12, 16]
    assert [path.name for path in (tmp_path / "best").iterdir()] == ["step-8"]
    assert run_with() == reported


def test_a_finished_run_started_again_does_nothing(tmp_path):
    finished, reported = run(tmp_path, toy.examples())
    again, reported_again = run(tmp_path, toy.examples())
    assert_same_bits(toy.values(again), toy.values(finished))
    assert reported_again == reported


def test_the_clip_is_by_the_norm_of_summed_rows():
    """A word seen twice has one gradient row: the sum (the original's CPU runs took two)."""
    arrays = toy.examples(8)
    arrays["inputs"][:] = 4
    train_step, _ = toy.make(ONE_DEVICE)
    variables = train_step.state.named_variables
    with tf.GradientTape() as tape:
        pairs = train_step.forward({k: tf.constant(v) for k, v in arrays.items()}, None)
        loss = sum(pairs[name][0] / pairs[name][1] for name in toy.OBJECTIVES)
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, list(variables.values()))]
    reported = train_step.run(iter(toy.dataset(arrays)), 1)["gradient_norm"]
    assert reported == pytest.approx(float(tf.linalg.global_norm(gradients)), rel=1e-6)


@pytest.mark.parametrize("beyond", [3e38, float("inf")])
def test_a_norm_beyond_all_clips_nothing(beyond):
    def after_a_step(clip_norm):
        train_step, _ = toy.make(ONE_DEVICE, num_warmup_steps=0, clip_norm=clip_norm)
        train_step.run(iter(toy.dataset(toy.examples(8))), 1)
        return toy.values(train_step.state)

    assert_same_bits(after_a_step(beyond), after_a_step(2.0**20))


def test_dropout_seeds_tell_run_step_and_replica_apart_and_are_the_same_again():
    def seed(*of):
        return tuple(step.dropout_seed(of[0], tf.constant(of[1], tf.int64), of[2]).numpy())

    cases = [(r, s, n) for r in (0, 1, 2**40) for s in (0, 1, 999_999) for n in (0, 1, 7)]
    assert len({seed(*case) for case in cases}) == len(cases)
    assert [seed(*case) for case in cases] == [seed(*case) for case in cases]


def test_a_step_without_a_learning_rate_is_refused():
    with pytest.raises(ValueError, match="`learning_rate` must be a number. Received: None"):
        toy.make(ONE_DEVICE, learning_rate=None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_train_steps", 0),
        ("train_batch_size", -1),
        ("num_warmup_steps", -1),
        ("keep_checkpoint_max", -1),
        ("learning_rate", float("nan")),
        ("beta_1", 1.0),
        ("clip_norm", 0.0),
        ("clip_norm", float("nan")),
        ("learning_rate", float("inf")),
        ("blow_up_deviations", float("inf")),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name_and_value(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {value}"):
        toy.settings(**{name: value})


def test_use_tpu_is_strategy_tpu_and_contradicts_the_others():
    assert toy.settings(use_tpu=True).strategy == "tpu"
    with pytest.raises(ValueError, match="use_tpu=True, strategy='mirrored'"):
        toy.settings(use_tpu=True, strategy="mirrored")
    assert toy.settings(use_tpu=True, tpu_name="pod").tpu_name == "pod"
    with pytest.raises(ValueError, match="tpu_name='pod', strategy='one_device'"):
        toy.settings(tpu_name="pod")


def test_a_warm_up_that_is_not_there_begins_nowhere():
    with pytest.raises(ValueError, match="start_warmup_step=5, num_warmup_steps=0"):
        toy.settings(start_warmup_step=5, num_warmup_steps=0)
