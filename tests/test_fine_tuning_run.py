"""Runs in their folders: where they begin, how they go on, when they end; several of them."""

import dataclasses
import json
import multiprocessing
import re
import shutil

import made_rows
import numpy as np
import programs
import pytest
import tensorflow as tf

from data.features import Features
from modeling import task_losses
from runs import fine_tuning_folder, fine_tuning_run
from training import divergence
from training.config import TrainConfig

SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork.


def task(**changes):
    values = dict.fromkeys(("make_model", "losses", "score", "chance_loss"))
    description = {"task": "toy", "kind": "classes", "labels": ["a", "b"], "metrics": []}
    values |= {"stops_at_chance": False, "description": description}
    return fine_tuning_run.Task(**{**values, **changes})


SETTINGS = TrainConfig(num_train_steps=100, save_checkpoints_steps=10, learning_rate=1e-3)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return made_rows.encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def collapsed(encoder, tmp_path_factory):
    """What a run printed that cannot learn: rate 0, and one text under all labels of dev."""
    folder = tmp_path_factory.mktemp("collapsed")
    rows = [("s", count % 2, "", text) for count, (_, text) in enumerate(made_rows.rows(16))]
    made_rows.write(folder / "CoLA" / "train.tsv", rows[0], rows[1:])
    same = [("s", count % 2, "", "the sad horse .") for count in range(6)]
    made_rows.write(folder / "CoLA" / "dev.tsv", same[0], same[1:])
    flags = {
        **encoder,
        **made_rows.STILL,
        "task": "CoLA",
        "data_dir": folder,
        "output_dir": folder / "run",
    }
    flags |= {"num_train_steps": 10, "save_checkpoints_steps": 1, "iterations_per_loop": 1}
    result = programs.call("run_classifier", **flags, early_stopping_patience=1)
    return folder / "run", programs.succeed(result).stdout


def test_one_prediction_for_all_is_warned_of_and_correlates_with_nothing(collapsed):
    folder, printed = collapsed
    assert re.search(
        "warning: the model has collapsed: all 6 predictions for dev are [01]", printed
    )
    assert "dev: matthews 0.0000" in printed
    assert json.loads((folder / "scores.json").read_text())["matthews"] == 0


def test_a_loss_at_chance_is_warned_of_with_a_remedy(collapsed):
    _, printed = collapsed
    (line,) = (line for line in printed.splitlines() if "that of a guess" in line)
    assert line.startswith("warning: after 1 of 10 steps") and "`learning_rate`" in line


def test_a_run_without_progress_stops_early(collapsed):
    _, printed = collapsed
    assert "stopped early at step 2: 1 evaluation(s) without a better matthews" in printed


@pytest.fixture(scope="module")
def two_seeds(encoder, tmp_path_factory):
    """(flags of two runs, what they printed)."""
    folder = tmp_path_factory.mktemp("seeds")
    flags = {**made_rows.write_own(folder, num_train=12, num_dev=6), **encoder}
    flags |= {**made_rows.TWO_STEPS, "output_dir": folder / "run", "seeds": 2, "seed": 3}
    result = programs.call("run_classifier", **flags)
    return flags, programs.succeed(result).stdout


def scores_of_seed(flags, seed):
    return json.loads((flags["output_dir"] / f"seed-{seed}" / "scores.json").read_text())


def table_of(printed):
    lines = printed.splitlines()
    return lines[next(n for n, line in enumerate(lines) if line.startswith("seed ")) :]


def test_runs_with_several_seeds_are_summarized(two_seeds):
    flags, printed = two_seeds
    table = table_of("\n".join(printed.splitlines()[-9:]))
    assert table[0].split() == ["seed", "accuracy", "macro_f1", "matthews"]
    values = [100 * scores_of_seed(flags, seed)["accuracy"] for seed in (3, 4)]
    expected = {"3": values[0], "4": values[1], "median": np.mean(values), "best": max(values)}
    found = {line.split()[0]: float(line.split()[1]) for line in table[1:-1]}
    assert list(found) == ["3", "4", "median", "mean", "deviation", "best"]
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=0.01)
    assert re.fullmatch("The run with the median accuracy is that of seed [34].", table[-1])


def test_seeds_that_are_done_are_gone_past(two_seeds):
    flags, printed = two_seeds
    before = {seed: scores_of_seed(flags, seed) for seed in (3, 4)}
    (flags["output_dir"] / "seed-4" / "scores.json").unlink()  # As if killed just before the end.
    again = programs.succeed(programs.call("run_classifier", **flags)).stdout
    assert "seed 3: done before" in again and "== seed 4 (2 of 2)" in again
    assert "going on from step 2" in again
    assert {seed: scores_of_seed(flags, seed) for seed in (3, 4)} == before
    assert again.splitlines()[-7:] == printed.splitlines()[-7:]


def test_more_of_a_seed_that_is_done_is_made_without_training_it_again(two_seeds, tmp_path):
    flags, _ = two_seeds
    shutil.copytree(flags["output_dir"], tmp_path / "run")
    more = {**flags, "output_dir": tmp_path / "run", "do_predict": True}
    more["test_file"] = flags["dev_file"]
    printed = programs.succeed(programs.call("run_classifier", **more)).stdout
    assert printed.count("going on from step 2") == 2 and "done before" not in printed
    assert (tmp_path / "run" / "seed-4" / "test_predictions.jsonl").exists()


def refused(**flags):
    """Returns the one line with which a run ends that is not begun."""
    result = programs.call("run_classifier", **flags)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    return line


def test_a_run_goes_on_with_the_settings_it_began_with(two_seeds):
    flags, _ = two_seeds
    kept = flags["output_dir"] / "seed-3" / "settings.json"
    before = kept.read_bytes()
    for name, value in {"learning_rate": 1e-5, "max_seq_length": 12}.items():
        line = refused(**{**flags, name: value})
        assert f"Received: {name}={value}, but {flags[name]} in " in line
    assert kept.read_bytes() == before


def test_a_folder_with_other_weights_is_left_as_it_is(two_seeds, tmp_path):
    flags, _ = two_seeds
    run = flags["output_dir"] / "seed-3"
    pretrained, converted, loose = (tmp_path / name for name in ("run", "converted", "loose"))
    for folder in (pretrained, converted):
        shutil.copytree(run, folder)
    (pretrained / "task.json").unlink()
    settings = json.loads((run / "settings.json").read_text())
    (converted / "settings.json").write_text(json.dumps({**settings, "converted_from": "model"}))
    shutil.copytree(run / "best" / "step-2", loose)
    for folder in (pretrained, converted, loose):
        before = contents(folder)
        line = refused(**{**flags, "output_dir": folder, "seeds": 1})
        assert f"Received: {folder}, which holds other weights" in line
        assert contents(folder) == before


def contents(folder):
    """Returns the bytes of all files of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def six_steps(tmp_path):
    """Flags of a run with all that has a state, which keeps three checkpoints."""
    flags = {**made_rows.write_own(tmp_path, num_train=50, num_dev=6), **made_rows.LEARN}
    flags |= {**made_rows.encoder(tmp_path), "hidden_dropout_prob": 0.1, "keep_checkpoint_max": 0}
    return {**flags, "num_train_steps": 6, "save_checkpoints_steps": 2, "iterations_per_loop": 1}


def cut_short(whole, halved):
    """Copies the folder of a run as it was just after its second step."""
    shutil.copytree(whole, halved)
    for step in ("step-4", "step-6"):
        for part in ("checkpoints", "best"):
            shutil.rmtree(halved / part / step, ignore_errors=True)


def checkpoints(folder):
    """Returns {checkpoint: {name: array}} of all that a run's folder has kept."""
    indices = sorted(folder.glob("*/step-*/*.index"))
    return {str(index.relative_to(folder)): arrays(index) for index in indices}


def arrays(index):
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def train(flags, folder):
    result = programs.call("run_classifier", **flags, output_dir=folder)
    return programs.succeed(result).stdout


def test_a_run_that_was_killed_goes_on_to_the_same_weights(six_steps, tmp_path):
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    train(six_steps, whole)
    cut_short(whole, halved)
    assert "going on from step 2" in train(six_steps, halved)
    ours, theirs = checkpoints(halved), checkpoints(whole)
    assert list(ours) == list(theirs) and len(ours) == 4
    for name, weights in ours.items():
        for variable, array in weights.items():
            expected = theirs[name][variable]
            np.testing.assert_allclose(array, expected, atol=2e-6, err_msg=variable)


@pytest.mark.slow
def test_a_deterministic_run_that_was_killed_goes_on_to_the_same_bits(six_steps, tmp_path):
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    flags = {**six_steps, "deterministic": True}
    for folder in (whole, halved):
        with SPAWN.Pool(1) as pool:
            pool.apply(train, (flags, folder))
        if folder == whole:
            cut_short(whole, halved)
    ours, theirs = checkpoints(halved), checkpoints(whole)
    assert list(ours) == list(theirs) and len(ours) == 4
    for name, weights in ours.items():
        for variable, array in weights.items():
            np.testing.assert_array_equal(array, theirs[name][variable], err_msg=variable)
    assert (halved / "scores.json").read_text() == (whole / "scores.json").read_text()


@pytest.mark.parametrize(
    ("done", "loss", "is_warned", "is_stopped"),
    [
        (10, 1.0, True, False),
        (10, 0.98, False, False),
        (20, 1.0, False, True),
        (20, 0.98, False, False),
        (30, 1.0, False, False),  # It has been below.
        (90, 2.5, False, False),  # Learnt by heart.
    ],
)
def test_a_loss_is_judged_after_a_tenth_and_after_a_fifth(
    done, loss, is_warned, is_stopped, capsys
):
    toy = task(chance_loss=1.0, stops_at_chance=True)
    if is_stopped:
        with pytest.raises(
            divergence.Diverged, match="after 20 of 100 steps.* 1.0000: try a lower"
        ):
            fine_tuning_run.check_progress(toy, SETTINGS, done, loss)
    else:
        fine_tuning_run.check_progress(toy, SETTINGS, done, loss)
    assert ("warning" in capsys.readouterr().out) == is_warned


def test_where_evaluations_are_few_the_first_is_judged_and_the_last_ends_nothing(capsys):
    toy = task(chance_loss=1.0, stops_at_chance=True)
    seldom = dataclasses.replace(SETTINGS, save_checkpoints_steps=50)
    with pytest.raises(divergence.Diverged):
        fine_tuning_run.check_progress(toy, seldom, 50, 1.0)
    once = dataclasses.replace(SETTINGS, save_checkpoints_steps=100)
    fine_tuning_run.check_progress(toy, once, 100, 1.0)
    assert capsys.readouterr().out.count("warning") == 1


def test_the_loss_of_a_set_is_the_mean_over_its_examples():
    logits = np.array([[0.0, 0.0], [np.log(3), 0.0]], np.float32)
    ids = np.zeros(2, np.int32)
    labelled = Features(
        {"input_ids": ids, "segment_ids": ids}, np.arange(3), {"label_ids": np.array([0, 1])}
    )
    found = fine_tuning_run.loss_of(task_losses.classification_losses, {"logits": logits}, labelled)
    assert found == {"loss": pytest.approx((np.log(2) + np.log(4)) / 2)}


def test_a_model_of_another_kind_is_refused(tmp_path):
    for held in ({"kind": "classes", "labels": ["b", "a"]}, {"kind": "choice", "labels": []}):
        (tmp_path / "task.json").write_text(json.dumps({"task": "other", **held}))
        with pytest.raises(ValueError, match="of a trained model must be that of the run"):
            fine_tuning_folder.check_task(str(tmp_path), task().description, ("kind", "labels"))
    (tmp_path / "task.json").unlink()
    fine_tuning_folder.check_task(str(tmp_path), task().description, ("kind", "labels"))
