"""Files that contradict the training are refused before it begins."""

import os

import made_records
import pytest

from data import record_checks

LENGTHS = {"max_seq_length": made_records.T, "max_predictions_per_seq": made_records.P}
AGREEING = {**LENGTHS, "vocab_size": made_records.V, "tokenizer_sha256": "a" * 64}


@pytest.mark.parametrize("with_metadata", [True, False])
def test_files_that_agree_are_accepted(tmp_path, with_metadata):
    files = made_records.write_shards(tmp_path, 5, num_shards=2, with_metadata=with_metadata)
    record_checks.check(files, **AGREEING, sentence_objective="sop")
    record_checks.check(files, **{**AGREEING, "vocab_size": 1008, "tokenizer_sha256": None})
    assert record_checks.count_examples(files) == {files[0]: 3, files[1]: 2}


def test_files_without_metadata_are_not_read_to_tell_how_many_there_are(tmp_path, monkeypatch):
    """Row X04 of user-demands.md: the first step does not wait for the size of a file."""
    monkeypatch.setattr(record_checks.record_reading, "read", None)
    for with_metadata, told in ((True, 5), (False, None)):
        folder = tmp_path / str(with_metadata)
        folder.mkdir()
        files = made_records.write_shards(folder, 5, num_shards=2, with_metadata=with_metadata)
        assert record_checks.told_examples(files) == told


@pytest.mark.parametrize("with_metadata", [True, False])
@pytest.mark.parametrize(
    ("name", "stored"), [("max_seq_length", 16), ("max_predictions_per_seq", 4)]
)
def test_another_length_is_an_error_with_both_numbers(tmp_path, with_metadata, name, stored):
    files = made_records.write_shards(tmp_path, 2, with_metadata=with_metadata)
    message = f"`{name}` must be the same .*Received: {stored} in {files[0]}, but 20 for training"
    with pytest.raises(ValueError, match=message):
        record_checks.check(files, **{**LENGTHS, name: 20})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vocab_size", 999, "Received: 1000 in .*, but 999 for training. Use the configuration"),
        (
            "tokenizer_sha256",
            "b" * 64,
            "Received: a+ in .*, but b+ for training. Use the tokenizer",
        ),
        ("sentence_objective", "nsp", "Received: sop in .*, but nsp for training"),
    ],
)
def test_a_setting_that_contradicts_the_metadata_is_an_error(tmp_path, name, value, message):
    files = made_records.write_shards(tmp_path, 2, with_metadata=True)
    with pytest.raises(ValueError, match=f"`{name}` must be the same .*{message}"):
        record_checks.check(files, **{name: value})


def test_each_file_of_several_is_checked(tmp_path):
    (tmp_path / "short").mkdir()
    files = made_records.write_shards(tmp_path, 2)
    files += made_records.write_shards(tmp_path / "short", 2, max_seq_length=8)
    with pytest.raises(ValueError, match=f"`max_seq_length`.*Received: 8 in {files[1]}, but 16"):
        record_checks.check(files, **LENGTHS)


def test_a_cut_file_is_refused_without_reading_it(tmp_path):
    files = made_records.write_shards(tmp_path, 4, with_metadata=True)
    size = os.path.getsize(files[0])
    os.truncate(files[0], size // 2)
    message = f"{files[0]} must have the {size} bytes .*Received: {size // 2} bytes"
    with pytest.raises(ValueError, match=message):
        record_checks.check(files, **LENGTHS)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="Received: .*no-such.tfrecord"):
        record_checks.check([str(tmp_path / "no-such.tfrecord")], **LENGTHS)
    with pytest.raises(ValueError, match="`input_file` must name at least one record file"):
        record_checks.check([], **LENGTHS)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "must hold records. Received: an empty file"), (b"text\n" * 9, "must hold TFRecords")],
)
def test_files_that_hold_no_records_are_named(tmp_path, content, message):
    (tmp_path / "a.tfrecord").write_bytes(content)
    with pytest.raises(ValueError, match=f"a.tfrecord {message}"):
        record_checks.check([str(tmp_path / "a.tfrecord")], **LENGTHS)


@pytest.mark.parametrize(
    "record", [b"no example", made_records.original_record({"input_ids": [1], "unique_ids": [2]})]
)
def test_records_of_another_kind_are_named(tmp_path, record):
    path = made_records.write_raw(tmp_path / "squad.tfrecord", [record])
    with pytest.raises(ValueError, match="squad.tfrecord must hold pretraining examples"):
        record_checks.check([path], **LENGTHS)
