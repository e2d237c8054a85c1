import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder

from training import checkpoints, initialization

BERT = {"bert/encoder/kernel": (3, 2), "bert/encoder/bias": (2,)}
HEAD = {"cls/predictions/output_bias": (5,)}
EXTRA = {"bert/encoder/kernel/adam_m": (3, 2), "bert/encoder/kernel/adam_v": (3, 2)}


def tensors(shapes, seed=0):
    generator = np.random.default_rng(seed)
    return {n: generator.normal(size=s).astype(np.float32) for n, s in shapes.items()}


def write(prefix, values):
    """Writes a TF1 checkpoint as `tf.compat.v1.train.Saver` does, by names and values."""
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=[tf.constant(value) for value in values.values()],
    )
    return prefix


def model(shapes):
    return {name: tf.Variable(tf.zeros(shape)) for name, shape in shapes.items()}


@pytest.fixture
def google(tmp_path):
    """A folder as downloaded; its `checkpoint` file holds a path of another machine."""
    values = {**tensors({**BERT, **HEAD, **EXTRA}), "global_step": np.int64(5)}
    folder = tmp_path / "albert_tiny"
    folder.mkdir()
    write(folder / "model.ckpt-best", values)
    (folder / "checkpoint").write_text('model_checkpoint_path: "/nowhere/model.ckpt"\n')
    return folder, values


@pytest.mark.parametrize(
    "part",
    [
        "model.ckpt-best",
        "model.ckpt-best.index",
        "model.ckpt-best.data-00000-of-00001",
        "",
        "/",
    ],
)
def test_prefix_index_data_and_folder_load_the_same_weights(google, part):
    folder, values = google
    variables = model({**BERT, **HEAD})
    line = initialization.initialize(variables, f"{folder}/{part}")
    for name, variable in variables.items():
        np.testing.assert_array_equal(variable, values[name])
    assert "matched 3 of 3, ignored 2 optimizer slots, missing 0, unused 0" in line


def test_the_state_files_last_part_chooses_among_several(google):
    folder, _ = google
    other = write(folder / "model.ckpt-3", tensors({**BERT, **HEAD}, seed=3))
    (folder / "checkpoint").write_text('model_checkpoint_path: "/nowhere/run/model.ckpt-3"\n')
    assert initialization.find(folder) == str(other)
    (folder / "checkpoint").unlink()
    assert initialization.find(folder) == str(folder / "model.ckpt-best")


def test_several_checkpoints_without_a_choice_are_listed(tmp_path):
    for name in ("model.ckpt-1", "model.ckpt-2"):
        write(tmp_path / name, tensors(BERT))
    with pytest.raises(ValueError, match=r"name one.*model\.ckpt-1, model\.ckpt-2"):
        initialization.find(tmp_path)


def test_a_renamed_scope_is_an_error_that_counts_nothing_matched(tmp_path):
    values = {name.replace("bert", "xbert"): v for name, v in tensors(BERT).items()}
    variables = model(BERT)
    with pytest.raises(ValueError, match=r"matched 0 of 2.*unused 2 \(xbert/encoder/bias"):
        initialization.initialize(variables, write(tmp_path / "m", values), "bert/")
    for variable in variables.values():
        np.testing.assert_array_equal(variable, 0)


def test_a_missing_head_is_listed_by_name_and_allowed_where_only_the_encoder_is_required(tmp_path):
    prefix = write(tmp_path / "m", tensors(BERT))
    line = initialization.initialize(model({**BERT, **HEAD}), prefix, "bert/")
    assert "matched 2 of 3" in line and "missing 1 (cls/predictions/output_bias)" in line
    with pytest.raises(ValueError, match=r"missing 1 \(cls/predictions/output_bias\)"):
        initialization.initialize(model({**BERT, **HEAD}), prefix)


def test_a_mismatched_shape_is_named_with_both_values_and_nothing_is_loaded(tmp_path):
    prefix = write(tmp_path / "m", tensors({**BERT, "bert/encoder/bias": (768,)}))
    variables = model({**BERT, "bert/encoder/bias": (128,)})
    expected = r"bert/encoder/bias \(model \[128\], checkpoint \[768\]\)"
    with pytest.raises(ValueError, match=expected):
        initialization.initialize(variables, prefix)
    np.testing.assert_array_equal(variables["bert/encoder/kernel"], 0)


def test_names_go_through_rename_and_two_for_one_are_refused(tmp_path):
    values = tensors(BERT)
    hub = write(tmp_path / "hub", {f"module/{name}": value for name, value in values.items()})
    variables = model(BERT)

    def strip(name):
        return name.removeprefix("module/")

    initialization.initialize(variables, hub, rename=strip)
    np.testing.assert_array_equal(variables["bert/encoder/bias"], values["bert/encoder/bias"])
    both = write(tmp_path / "both", {**values, "module/bert/encoder/bias": np.zeros(2, np.float32)})
    with pytest.raises(ValueError, match="one source.*module/bert/encoder/bias"):
        initialization.initialize(variables, both, rename=strip)


def test_our_own_folders_give_their_newest_whole_checkpoint(tmp_path):
    saved = checkpoints.Checkpoints(tmp_path / "checkpoints", model(BERT))
    best = checkpoints.BestCheckpoint(tmp_path / "best", saved.variables, "accuracy")
    for step in (4, 8):
        saved.variables["bert/encoder/bias"].assign([step, step])
        saved.save(step)
    best.offer(8, {"accuracy": 1.0})
    sources = {"": 8, "checkpoints": 8, "checkpoints/step-4": 4, "best": 8}
    for source, step in sources.items():
        variables = model(BERT)
        initialization.initialize(variables, tmp_path / source)
        np.testing.assert_array_equal(variables["bert/encoder/bias"], step, err_msg=source)
    (tmp_path / "checkpoints/step-8/model.ckpt-8.index").unlink()
    assert initialization.find(tmp_path).endswith("step-4/model.ckpt-4")
    with pytest.raises(ValueError, match="must be whole.*index is missing"):
        initialization.find(tmp_path / "checkpoints/step-8")


def test_a_path_without_a_checkpoint_says_what_was_looked_for(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"there is no .*/absent/m\.index"):
        initialization.find(tmp_path / "absent/m")
    with pytest.raises(FileNotFoundError, match="empty, with none"):
        initialization.find(tmp_path / "empty")
    prefix = write(tmp_path / "m", tensors(BERT))
    (tmp_path / "m.data-00000-of-00001").unlink()
    with pytest.raises(FileNotFoundError, match=r"\.data files beside"):
        initialization.find(prefix)


FULL_STATES = sorted(golden_folder("tf1_checkpoint").glob("*/*-model.ckpt-*.index"))


@pytest.mark.parametrize("index", FULL_STATES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_full_states_load_their_weights_and_count_their_slots(index, tmp_path):
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    shapes = reader.get_variable_to_shape_map()
    slots = [name for name in shapes if name.endswith(("/adam_m", "/adam_v"))]
    weights = model({n: s for n, s in shapes.items() if n not in slots and n != "global_step"})
    assert len(slots) == 2 * len(weights)
    for file in index.parent.glob(f"{index.stem}.*"):  # Alone in a folder, as after a download.
        shutil.copy(file, tmp_path)
    line = initialization.initialize(weights, tmp_path)
    assert f"matched {len(weights)} of {len(weights)}, ignored {len(slots)} optimizer slots" in line
    for name, variable in weights.items():
        np.testing.assert_array_equal(variable, reader.get_tensor(name))
