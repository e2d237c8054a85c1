import numpy as np
import pytest
from made_weights import (
    BERT,
    tensors,
    variables,
    write_checkpoint,
    write_safetensors,
    write_shards,
)

from training import checkpoints, weight_files

VALUES = tensors(BERT)


def assert_holds(path, values=VALUES):
    """Checks that `path` opens as exactly these weights."""
    weights = weight_files.open_weights(path)
    assert {n: list(s) for n, s in weights.shapes.items()} == {
        n: list(v.shape) for n, v in values.items()
    }
    for name, value in values.items():
        np.testing.assert_array_equal(weights.read(name), value, err_msg=name)


@pytest.fixture
def google(tmp_path):
    """A folder as downloaded; its `checkpoint` file holds a path of another machine."""
    folder = tmp_path / "albert_tiny"
    folder.mkdir()
    write_checkpoint(folder / "model.ckpt-best", VALUES)
    (folder / "checkpoint").write_text('model_checkpoint_path: "/nowhere/model.ckpt"\n')
    return folder


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
def test_prefix_index_data_and_folder_hold_the_same_weights(google, part):
    assert_holds(f"{google}/{part}")


@pytest.mark.parametrize("part", ["", "/model.safetensors"])
def test_safetensors_open_by_their_folder_and_by_their_name(part, tmp_path):
    write_safetensors(tmp_path / "model.safetensors", VALUES)
    (tmp_path / "pytorch_model.bin").write_bytes(b"of no interest then")
    assert_holds(f"{tmp_path}{part}")


@pytest.mark.parametrize("part", ["", "/model.safetensors.index.json"])
def test_shards_open_together(part, tmp_path):
    write_shards(tmp_path, VALUES)
    assert_holds(f"{tmp_path}{part}")


def test_the_weights_of_a_hub_module_are_in_a_folder_of_their_own(tmp_path):
    (tmp_path / "variables").mkdir()
    write_checkpoint(tmp_path / "variables" / "variables", VALUES)
    assert_holds(tmp_path)


def test_the_state_files_last_part_chooses_among_several(google):
    other = write_checkpoint(google / "model.ckpt-3", tensors(BERT, seed=3))
    (google / "checkpoint").write_text('model_checkpoint_path: "/nowhere/run/model.ckpt-3"\n')
    assert weight_files.find(google) == str(other)
    (google / "checkpoint").unlink()
    assert weight_files.find(google) == str(google / "model.ckpt-best")


def test_several_checkpoints_without_a_choice_are_listed(tmp_path):
    for name in ("model.ckpt-1", "model.ckpt-2"):
        write_checkpoint(tmp_path / name, VALUES)
    with pytest.raises(ValueError, match=r"name one.*model\.ckpt-1, model\.ckpt-2"):
        weight_files.find(tmp_path)


def test_a_runs_folder_gives_its_best_weights_or_else_its_newest_whole_ones(tmp_path):
    saved = checkpoints.Checkpoints(tmp_path / "checkpoints", variables(BERT))
    for step in (4, 8):
        saved.variables["bert/encoder/bias"].assign([step, step])
        saved.save(step)
    assert weight_files.find(tmp_path).endswith("checkpoints/step-8/model.ckpt-8")
    best = checkpoints.BestCheckpoint(tmp_path / "best", saved.variables, "accuracy")
    saved.variables["bert/encoder/bias"].assign([6, 6])
    best.offer(6, {"accuracy": 1.0})
    for source, step in {"": 6, "checkpoints": 8, "checkpoints/step-4": 4, "best": 6}.items():
        weights = weight_files.open_weights(tmp_path / source)
        np.testing.assert_array_equal(weights.read("bert/encoder/bias"), step, err_msg=source)
    (tmp_path / "checkpoints/step-8/model.ckpt-8.index").unlink()
    assert weight_files.find(tmp_path / "checkpoints").endswith("step-4/model.ckpt-4")
    with pytest.raises(ValueError, match="must be whole.*index is missing"):
        weight_files.find(tmp_path / "checkpoints/step-8")


def test_a_path_without_weights_says_what_was_looked_for(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"there is no .*/absent/m\.index"):
        weight_files.find(tmp_path / "absent/m")
    with pytest.raises(FileNotFoundError, match="empty, with none"):
        weight_files.find(tmp_path / "empty")
    prefix = write_checkpoint(tmp_path / "m", VALUES)
    (tmp_path / "m.data-00000-of-00001").unlink()
    with pytest.raises(FileNotFoundError, match=r"\.data files beside"):
        weight_files.find(prefix)


def damaged(content, is_cut):
    """Returns a file's content cut short, or with one byte changed."""
    half = len(content) // 2
    rest = b"" if is_cut else bytes([content[half] ^ 1]) + content[half + 1 :]
    return content[:half] + rest


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
def test_a_damaged_checkpoint_is_told_by_the_file(ending, is_cut, google):
    path = google / f"model.ckpt-best.{ending}"
    path.write_bytes(damaged(path.read_bytes(), is_cut))
    with pytest.raises(ValueError, match=rf"{path} must be whole\. Received: \w.*Copy it again"):
        weights = weight_files.open_weights(google)
        for name in weights.shapes:
            weights.read(name)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "tf_model.h5"])
def test_a_pickle_is_refused_with_the_remedy(name, tmp_path):
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(ValueError, match=rf"{name}, .*Save them as safetensors.*save_pretr"):
            weight_files.open_weights(path)


def test_damaged_safetensors_and_missing_shards_are_named(tmp_path):
    path = write_safetensors(tmp_path / "model.safetensors", VALUES)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match=r"model\.safetensors must be whole safetensors"):
        weight_files.open_weights(tmp_path)
    path.unlink()
    write_shards(tmp_path, VALUES)
    (tmp_path / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"index\.json needs .*model-00001-of-00002"):
        weight_files.open_weights(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", '{"weight_map": {"a": "../other"}}', "broken"])
def test_a_list_of_shards_names_files_beside_it(content, tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"index\.json must hold `weight_map`"):
        weight_files.open_weights(path)
