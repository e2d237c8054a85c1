import json

import made_models
import made_records
import made_weights
import numpy as np
import programs
import pytest
import tensorflow as tf
from conftest import golden_folder

from data import tokenization
from folders import model_folder
from modeling.config import AlbertConfig
from modeling.models import PretrainingModel


@pytest.fixture
def tokenizer(tmp_path):
    return tokenization.load(programs.write_word_list(tmp_path))


def config(**changes):
    return AlbertConfig(**{**programs.TINY, "vocab_size": programs.VOCAB_SIZE, **changes})


def seal(folder, tokenizer, some_config=None):
    model_folder.seal(
        str(folder), config=some_config or config(), tokenizer=tokenizer, settings={"seed": 7}
    )


def other(tokenizer):
    """Returns a tokenizer of the same pieces that gives other ids: it keeps capitals."""
    return type(tokenizer)(
        tokenizer.model_bytes, {"lower": False, "keep_accents": True, "digit_comma_split": True}
    )


def pretend_weights(folder):
    """Makes a folder look as after its first checkpoint."""
    (folder / "checkpoints" / "step-5").mkdir(parents=True)
    (folder / "checkpoints" / "step-5" / "model.ckpt-5.index").touch()


@pytest.mark.parametrize("place", ["{tmp_path}/new/run", "ram://test_model_folder/run"])
def test_a_sealed_folder_gives_back_what_was_put_in(place, tokenizer, tmp_path):
    folder = place.format(tmp_path=tmp_path)
    seal(folder, tokenizer)
    assert model_folder.read_config(folder) == config()
    held = tokenization.load(model_folder.find(folder, model_folder.TOKENIZER))
    assert held.fingerprint == tokenizer.fingerprint
    with model_folder.tf.io.gfile.GFile(f"{folder}/settings.json") as file:
        settings = json.loads(file.read())
    assert settings["seed"] == 7 and settings["versions"]["tensorflow"].startswith("2.")


def test_config_and_tokenizer_are_found_from_a_checkpoints_prefix(tokenizer, tmp_path):
    seal(tmp_path / "run", tokenizer)
    prefix = str(tmp_path / "run" / "model.ckpt-best")
    assert model_folder.read_config(prefix) == config()
    assert model_folder.find(prefix, model_folder.TOKENIZER) == str(tmp_path / "run" / "tokenizer")


def test_labels_come_back_whatever_is_in_them_but_a_line_feed(tmp_path):
    labels = ["red, or blue", "a\u2028b", "c\x85d", "e\rf", "g"]
    model_folder.write_task(str(tmp_path), {}, labels)
    assert model_folder.read_labels(tmp_path) == labels
    with pytest.raises(ValueError, match=r"must be one line. Received: 'a\\nb'"):
        model_folder.write_task(str(tmp_path), {}, ["x", "a\nb"])
    (tmp_path / "labels.txt").write_text("")
    assert model_folder.read_labels(tmp_path) == []


@pytest.mark.parametrize("path", [None, "", "absent"])
def test_where_nothing_is_nothing_is_found(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_folder.find(path, model_folder.TOKENIZER) is None
    assert model_folder.read_config(path) is None


def test_a_folder_with_weights_refuses_another_config_by_field_and_both_values(tokenizer, tmp_path):
    seal(tmp_path, tokenizer)
    pretend_weights(tmp_path)
    seal(tmp_path, tokenizer)  # The same again is what a run that goes on does.
    with pytest.raises(ValueError, match=r"num_hidden_layers=3, but 2 in .*albert_config\.json"):
        seal(tmp_path, tokenizer, config(num_hidden_layers=3))
    assert model_folder.read_config(str(tmp_path)) == config()


def test_a_folder_with_weights_refuses_another_tokenizer(tokenizer, tmp_path):
    seal(tmp_path, tokenizer)
    pretend_weights(tmp_path)
    with pytest.raises(ValueError, match="tokenizer that is kept") as refused:
        seal(tmp_path, other(tokenizer))
    for one in (tokenizer, other(tokenizer)):
        assert one.fingerprint[:12] in str(refused.value)


def test_a_folder_without_weights_takes_what_the_next_run_brings(tokenizer, tmp_path):
    """Such as after a run that was stopped at once because its model was the wrong one."""
    seal(tmp_path, tokenizer)
    seal(tmp_path, other(tokenizer), config(num_hidden_layers=3))
    assert model_folder.read_config(str(tmp_path)).num_hidden_layers == 3
    assert tokenization.load(tmp_path).fingerprint == other(tokenizer).fingerprint


def test_records_of_another_tokenizer_than_the_weights_are_refused(tokenizer, tmp_path):
    seal(tmp_path, tokenizer)
    model_folder.check_tokenizer(str(tmp_path), tokenizer.fingerprint)
    model_folder.check_tokenizer(None, tokenizer.fingerprint)
    with pytest.raises(ValueError, match="Received: records of aaaaaaaaaaaa"):
        model_folder.check_tokenizer(str(tmp_path), made_records.made_metadata([]).tokenizer_sha256)


def test_config_and_tokenizer_are_found_from_a_checkpoint_of_a_run(tokenizer, tmp_path):
    seal(tmp_path, tokenizer)
    pretend_weights(tmp_path)
    (tmp_path / "best").mkdir()
    for inner in ("checkpoints", "checkpoints/step-5", "checkpoints/step-5/model.ckpt-5", "best"):
        assert model_folder.read_config(tmp_path / inner) == config()
        held = model_folder.read_tokenizer(tmp_path / inner)
        assert held.fingerprint == tokenizer.fingerprint


class TestGooglesCheckpoint:
    """A checkpoint in Google's names with slots, a counter and both heads."""

    @pytest.fixture(scope="class")
    def model(self):
        return made_models.random_model(config())

    @pytest.fixture
    def folder(self, model, tmp_path):
        """A folder whose `checkpoint` file holds a path of another machine."""
        self.write(tmp_path, made_weights.arrays_of(model))
        (tmp_path / "checkpoint").write_text('model_checkpoint_path: "/nowhere/model.ckpt"\n')
        return tmp_path

    def write(self, folder, arrays):
        slots = {f"{name}/{slot}": a for name, a in arrays.items() for slot in ("adam_m", "adam_v")}
        values = {**arrays, **slots, "global_step": np.int64(5)}
        return made_weights.write_checkpoint(folder / "model.ckpt-5", values)

    @pytest.mark.parametrize("part", ["", "model.ckpt-5", "model.ckpt-5.index"])
    def test_prefix_index_and_folder_give_equal_weights(self, part, folder, model):
        loaded = PretrainingModel(config(), seed=1)
        line = model_folder.load_weights(loaded.named_variables(), folder / part)
        num = len(loaded.named_variables())
        assert f"matched {num} of {num}, ignored {2 * num} optimizer slots and 1 (global_" in line
        assert "missing 0, unused 0" in line
        for name, variable in loaded.named_variables().items():
            np.testing.assert_array_equal(variable, model.named_variables()[name], err_msg=name)

    def test_a_renamed_scope_matches_nothing_of_the_encoder_and_ends_the_program(
        self, model, tmp_path, tokenizer
    ):
        arrays = made_weights.arrays_of(model)
        self.write(tmp_path, {name.replace("bert/", "xbert/"): a for name, a in arrays.items()})
        seal(tmp_path, tokenizer)
        result = programs.call("predict", "fill-mask", "a [MASK] .", model_folder=tmp_path)
        heads = sum(name.startswith("cls/") for name in arrays)
        assert result.exit_code == 1 and f"matched {heads} of {len(arrays)}" in result.stderr
        only_encoder = model.encoder.named_variables()
        with pytest.raises(ValueError, match=f"matched 0 of {len(only_encoder)}"):
            model_folder.load_weights(only_encoder, tmp_path)

    def test_a_missing_head_is_listed_by_name_and_what_needs_it_is_told_to_train(
        self, model, tmp_path
    ):
        arrays = made_weights.arrays_of(model)
        names = [name for name in arrays if name.startswith("cls/seq_relationship")]
        self.write(tmp_path, {name: a for name, a in arrays.items() if name not in names})
        loaded = PretrainingModel(config())
        line = model_folder.load_weights(loaded.named_variables(), tmp_path)
        assert f"missing 2 ({', '.join(names)})" in line
        with pytest.raises(ValueError, match=f"trained first.*missing 2 .{names[0]}"):
            model_folder.load_weights(loaded.named_variables(), tmp_path, required_prefix="")


HEADS = sorted(golden_folder("finetune_heads").glob("*-model.ckpt-0.index"))


@pytest.mark.parametrize("index", HEADS, ids=lambda path: path.stem)
def test_golden_checkpoints_of_tasks_give_their_encoder_and_list_their_head(index):
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    names = set(reader.get_variable_to_shape_map()) - {"global_step"}
    model = PretrainingModel(model_folder.read_config(index.parent))
    encoder = model.encoder.named_variables()
    head = sorted(names - set(encoder))
    line = model_folder.load_weights(encoder, index)
    assert head and f"missing 0, unused {len(head)} ({head[0]}" in line
    for name, variable in encoder.items():
        np.testing.assert_array_equal(variable, reader.get_tensor(name), err_msg=name)
