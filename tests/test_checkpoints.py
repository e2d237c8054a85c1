import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy

from training import checkpoint_files, checkpoints

ONE_DEVICE = tf.distribute.OneDeviceStrategy("CPU:0")


def variables(value=1.0):
    """Returns a few variables under the original's names, every entry telling them apart."""
    shapes = {"bert/pooler/dense/kernel": (4, 3), "bert/pooler/dense/bias": (3,)}
    held = {
        name: tf.Variable(value + np.arange(np.prod(shape), dtype=np.float32).reshape(shape))
        for name, shape in shapes.items()
    }
    return {**held, "global_step": tf.Variable(np.int64(2**40 + value))}


def save(folder, *steps, keep_max=5):
    saved = checkpoints.Checkpoints(folder, variables(), keep_max)
    for step in steps:
        saved.variables["global_step"].assign(step)
        saved.save(step)
    return saved


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-2])


def fill_with_text(path):
    path.write_text("{}")


DAMAGES = [
    ("model.ckpt-8.data-00000-of-00001", truncate, r"data-00000-of-00001 has \d+ bytes, \d+ were"),
    ("model.ckpt-8.data-00000-of-00001", flip_a_byte, "data-00000-of-00001 .*sha256 differs"),
    ("model.ckpt-8.index", flip_a_byte, r"ckpt-8\.index .*sha256 differs"),
    ("model.ckpt-8.index", lambda path: path.unlink(), r"ckpt-8\.index is missing"),
    ("complete.json", lambda path: path.unlink(), r"complete\.json is missing"),
    ("complete.json", truncate, r"complete\.json is damaged"),
    ("complete.json", flip_a_byte, r"complete\.json is damaged"),
    ("complete.json", fill_with_text, r"complete\.json is damaged"),
]


def test_what_is_saved_comes_back_bit_for_bit_with_all_slots_and_counters(tmp_path):
    train_step, _ = toy.make(ONE_DEVICE)
    train_step.run(iter(toy.dataset(toy.examples())), 5)
    checkpoints.Checkpoints(tmp_path, train_step.state.variables()).save(5, {"note": 1})
    other, _ = toy.make(ONE_DEVICE)
    assert checkpoints.Checkpoints(tmp_path, other.state.variables()).restore() == (5, {"note": 1})
    ours, theirs = toy.values(other.state), toy.values(train_step.state)
    assert int(ours["global_step"]) == 5 and int(ours["examples_seen"]) == 40
    assert ours["word/kernel/adam_v"].any()
    for name in theirs:
        assert ours[name].tobytes() == theirs[name].tobytes(), name


def test_the_original_reads_our_checkpoints_through_a_tf1_saver(tmp_path):
    saved = save(tmp_path, 7)
    prefix = str(tmp_path / "step-7/model.ckpt-7")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph_variables = {
            name: tf.compat.v1.get_variable(name, variable.shape, variable.dtype, use_resource=True)
            for name, variable in saved.variables.items()
        }
        tf.compat.v1.train.Saver(graph_variables).restore(session, prefix)
        restored = session.run(graph_variables)
    for name, value in restored.items():
        np.testing.assert_array_equal(value, saved.variables[name])
    assert tf.train.load_checkpoint(prefix).get_variable_to_dtype_map()["global_step"] == tf.int64


@pytest.mark.parametrize(("file", "damage", "reason"), DAMAGES)
def test_a_damaged_newest_checkpoint_falls_back_and_says_which_file_and_why(
    tmp_path, capsys, file, damage, reason
):
    saved = save(tmp_path, 4, 8)
    damage(tmp_path / "step-8" / file)
    saved.variables["global_step"].assign(0)
    assert saved.restore() == (4, {})
    assert re.search(f"^warning: damaged checkpoint.*{reason}", capsys.readouterr().err)
    assert int(saved.variables["global_step"]) == 4


def test_when_every_checkpoint_is_damaged_it_is_an_error_and_nothing_changes(tmp_path):
    saved = save(tmp_path, 4, 8)
    for step in (4, 8):
        truncate(tmp_path / f"step-{step}" / f"model.ckpt-{step}.index")
    with pytest.raises(ValueError, match=r"2 damaged \(steps 4, 8\)\. Remove the folder"):
        saved.restore()
    assert int(saved.variables["global_step"]) == 8


def test_a_damaged_checkpoint_takes_no_good_ones_place_and_is_replaced_in_time(tmp_path):
    saved = save(tmp_path, 4, 8)
    truncate(tmp_path / "step-8/model.ckpt-8.index")
    saved.keep_max = 1
    saved.save(6)
    assert names(tmp_path) == ["step-6", "step-8"]
    saved.save(8)
    assert names(tmp_path) == ["step-8"]
    assert saved.latest() == (8, str(tmp_path / "step-8"))


@pytest.mark.parametrize(("keep_max", "kept"), [(1, [30]), (3, [2, 20, 30]), (9, [1, 2, 20, 30])])
def test_the_newest_are_kept_by_number_not_by_name(tmp_path, keep_max, kept):
    save(tmp_path, 1, 2, 20, 30, keep_max=keep_max)
    assert checkpoints.Checkpoints(tmp_path, {}).steps() == kept


@pytest.mark.parametrize("everything", [0, "all"])
def test_all_are_kept_on_request(tmp_path, everything):
    save(tmp_path, *range(1, 9), keep_max=everything)
    assert len(names(tmp_path)) == 8


def test_no_checkpoint_at_all_is_none(tmp_path):
    assert checkpoints.Checkpoints(tmp_path / "absent", variables()).restore() is None
    assert checkpoints.Checkpoints(tmp_path, variables()).restore() is None


def test_what_a_killed_save_left_is_not_a_checkpoint_and_goes_with_the_next(tmp_path):
    saved = save(tmp_path, 4)
    left = tmp_path / "step-8.unfinished-0123abcd"
    shutil.copytree(tmp_path / "step-4", left)
    assert saved.latest() == (4, str(tmp_path / "step-4"))
    saved.save(8)
    assert names(tmp_path) == ["step-4", "step-8"]


def test_saving_a_step_again_replaces_it(tmp_path):
    saved = save(tmp_path, 4)
    saved.variables["bert/pooler/dense/bias"].assign([7.0, 8.0, 9.0])
    saved.save(4)
    assert names(tmp_path) == ["step-4"]
    saved.variables["bert/pooler/dense/bias"].assign([0.0, 0.0, 0.0])
    saved.restore()
    np.testing.assert_array_equal(saved.variables["bert/pooler/dense/bias"], [7, 8, 9])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_weight_that_is_not_finite_is_never_saved(tmp_path, bad):
    saved = save(tmp_path, 4)
    saved.variables["bert/pooler/dense/bias"].assign([1.0, bad, 1.0])
    with pytest.raises(ValueError, match=r"Step 8: .*finite.*bert/pooler/dense/bias"):
        saved.save(8)
    assert names(tmp_path) == ["step-4"]


def test_restoring_asks_for_exactly_the_same_names_and_shapes(tmp_path):
    save(tmp_path, 4)
    held = variables(0.0)
    held["new"] = held.pop("bert/pooler/dense/bias")
    held["bert/pooler/dense/kernel"] = tf.Variable(tf.zeros([4, 2]))
    with pytest.raises(ValueError) as error:
        checkpoints.Checkpoints(tmp_path, held).restore()
    assert "1 missing: new" in str(error.value)
    assert "1 not in this model: bert/pooler/dense/bias" in str(error.value)
    assert "bert/pooler/dense/kernel (model [4, 2], file [4, 3])" in str(error.value)
    np.testing.assert_array_equal(held["new"], [0, 1, 2])


def test_complete_json_describes_the_files_beside_it(tmp_path):
    save(tmp_path, 4)
    complete = json.loads((tmp_path / "step-4/complete.json").read_text())
    assert complete["step"] == 4
    assert set(complete["files"]) == set(names(tmp_path / "step-4")) - {"complete.json"}
    for name, written in complete["files"].items():
        assert (tmp_path / "step-4" / name).stat().st_size == written["bytes"]
    assert checkpoint_files.problem(str(tmp_path / "step-4")) is None


@pytest.mark.parametrize("metric", ["accuracy", "masked_lm_loss"])
def test_the_best_is_kept_alone_and_remembered_over_a_restart(tmp_path, metric):
    values = {1: 0.3, 2: 0.7, 3: 0.5, 4: float("nan"), 5: 0.7, 6: 0.8}
    sign = -1 if metric.endswith("loss") else 1
    kept = []
    for step, value in values.items():
        best = checkpoints.BestCheckpoint(tmp_path, variables(), metric)  # As after a restart.
        best.offer(step, {metric: sign * value, "other": 1.0})
        kept.append(names(tmp_path))
    assert kept == [[f"step-{step}"] for step in (1, 2, 2, 2, 2, 6)]


def test_a_best_metric_that_is_not_measured_is_refused_with_those_that_are(tmp_path):
    best = checkpoints.BestCheckpoint(tmp_path, variables(), "f1")
    with pytest.raises(ValueError, match=r"\['accuracy', 'loss'\].*Received: 'f1'"):
        best.offer(1, {"loss": 1.0, "accuracy": 0.5})


@pytest.mark.parametrize("keep_max", [-1, "five", 2.5])
def test_a_keep_limit_that_is_no_count_is_refused(tmp_path, keep_max):
    with pytest.raises(ValueError, match=f"`keep_max` must be a count.*Received: {keep_max!r}"):
        checkpoints.Checkpoints(tmp_path, {}, keep_max)
