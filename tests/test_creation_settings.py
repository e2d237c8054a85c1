import os

import pytest
from created_data import english_tokenizer, write_text

from data import create_pretraining_data
from data.creation_settings import CreationSettings
from data.pretraining_examples import ExampleSettings


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    english_tokenizer().save(str(folder))
    return str(folder)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"output_file": ""}, "`output_file` must name"),
        ({"input_file": ""}, "`input_file` must name"),
        ({"heldout_fraction": 1.5}, "`heldout_fraction` must lie"),
        ({"num_workers": 0}, "`num_workers` must lie"),
        ({"beam_options": "--streaming"}, "`beam_options` are for --runner=beam"),
        ({"runner": "beam", "output_file": "a,b"}, "`output_file` must be one name"),
        ({"runner": "beam", "heldout_file": "c,d"}, "`heldout_file` must be one name.*c,d"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CreationSettings(**{"input_file": "a", "output_file": "b", **settings})


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"heldout_file": "{}/x.tfrecord"}, "different files"),
        ({"output_file": "{0}/x,{0}/y", "num_shards": 2}, "`num_shards` must be 1"),
        ({"tokenizer": ""}, "`tokenizer` must be given"),
        ({"spm_model_file": "{}/a.model"}, "`tokenizer` must be given"),
        ({"tokenizer": "{}/nowhere"}, "nowhere"),
        ({"input_file": "{}/*.nothing"}, r"`.*/\*\.nothing`"),
        ({"output_file": "{}/text.txt/x.tfrecord"}, "`output_file` must be writable"),
    ],
)
def test_a_mistake_stops_before_any_work(tmp_path, tokenizer_folder, settings, message):
    text = write_text(tmp_path / "text.txt")
    chosen = {
        "tokenizer": tokenizer_folder,
        "input_file": str(text),
        "output_file": "{}/x.tfrecord",
        **settings,
    }
    chosen = {
        name: value.format(tmp_path) if isinstance(value, str) else value
        for name, value in chosen.items()
    }
    with pytest.raises((ValueError, OSError), match=message):
        create_pretraining_data.run(CreationSettings(**chosen), ExampleSettings())
    assert os.listdir(tmp_path) == ["text.txt"]
