"""What data creation refuses to write beside: other records, another tokenizer, other metadata."""

import json

import pytest
from created_data import create, english_tokenizer, write_text
from made_tokenizers import sentencepiece_tokenizer

from data import metadata, tokenization


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    english_tokenizer().save(str(folder))
    return str(folder)


def contents_of(folder):
    """Returns dict by path of the bytes of all files in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(folder, message, *arguments, **settings):
    """Asserts that data creation refuses something, before it looks at the text or writes."""
    before = contents_of(folder)
    with pytest.raises(ValueError, match=message):
        create(*arguments, **settings)
    assert contents_of(folder) == before


def test_a_tokenizer_beside_the_records_is_not_lost_to_another_one(tmp_path, tokenizer_folder):
    """What was trained there stays, and what other records were made with."""
    text = write_text(tmp_path / "text.txt")
    one, two = tmp_path / "one.tfrecord", tmp_path / "two.tfrecord"
    trained = tmp_path / "tokenizer"
    sentencepiece_tokenizer().save(str(trained))
    (trained / "vocabulary.json").write_text("{}")
    message = "`tokenizer` beside `output_file` must be free.*/tokenizer, which holds another one"
    assert_refused(tmp_path, message, tokenizer_folder, text, one)
    create(str(trained), text, one)
    assert_refused(tmp_path, message, tokenizer_folder, text, one)
    (trained / "vocabulary.json").unlink()  # As data creation leaves it.
    (trained / "settings.json").write_text(
        json.dumps(json.loads((trained / "settings.json").read_text()))
    )
    create(str(trained), text, two)
    assert_refused(tmp_path, message, tokenizer_folder, text, one)
    (tmp_path / "metadata.json").unlink()
    create(str(trained), text, one)
    create(tokenizer_folder, text, one)  # None but the replaced set needs the other.
    assert tokenization.load(trained).fingerprint == english_tokenizer().fingerprint


def test_records_made_anew_in_other_shards_do_not_mix_with_the_old(tmp_path, tokenizer_folder):
    text, output = write_text(tmp_path / "text.txt"), tmp_path / "train.tfrecord"
    heldout = tmp_path / "heldout.tfrecord"
    create(tokenizer_folder, text, output, num_shards=3, heldout_file=str(heldout))
    message = "must be gone before.*: 4 files .*: train-00000-of-00003.tfrecord, .*heldout.tfrecord"
    assert_refused(tmp_path, message, tokenizer_folder, text, output, num_shards=2)
    message = "must be gone before.*: 1 files .*: heldout.tfrecord. Remove them"
    assert_refused(tmp_path, message, tokenizer_folder, text, output, num_shards=3)
    for path in tmp_path.glob("train-*"):
        path.unlink()
    create(tokenizer_folder, text, output, num_shards=2, heldout_file=str(heldout))
    listed = {row["file"] for old in metadata.read_folder(str(tmp_path)) for row in old.shards}
    assert listed == {path.name for path in tmp_path.glob("*.tfrecord")}


def test_metadata_of_something_else_is_met_before_any_work(tmp_path, tokenizer_folder):
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "metadata.json").write_text('{"name": "my project"}')
    heldout = str(tmp_path / "held" / "heldout.tfrecord")
    message = "held/metadata.json must be of format_version 1.*Move that file away"
    output, text = tmp_path / "x.tfrecord", write_text(tmp_path / "text.txt")
    assert_refused(tmp_path, message, tokenizer_folder, text, output, heldout_file=heldout)
