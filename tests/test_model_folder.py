import json

import made_records
import programs
import pytest

import model_folder
from data import tokenization
from modeling.config import AlbertConfig


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
