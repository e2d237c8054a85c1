"""What `metadata.json` keeps of the runs that wrote into a folder."""

import json

import made_records
import pytest

from data import metadata


def shards(folder, *names):
    return [{"file": str(folder / name), "num_examples": 2, "num_bytes": 90} for name in names]


def test_metadata_is_read_back_as_it_was_written(tmp_path):
    rows = shards(tmp_path, "a", "b")
    written = made_records.made_metadata(rows, settings={"dupe_factor": 3, "input_file": "bücher"})
    metadata.write(written)
    found = metadata.read([rows[1]["file"], rows[0]["file"]])
    assert found[0] == found[1]
    assert found[0].settings == written.settings
    assert found[0].shard(rows[1]["file"]) == {"file": "b", "num_examples": 2, "num_bytes": 90}
    assert [path.name for path in tmp_path.iterdir()] == ["metadata.json"]


def test_training_and_held_out_records_may_share_a_folder(tmp_path):
    train, held_out = shards(tmp_path, "train-0", "train-1"), shards(tmp_path, "held_out")
    metadata.write(made_records.made_metadata(train, counts={"num_documents": 9}))
    metadata.write(made_records.made_metadata(held_out, counts={"num_documents": 1}))
    found = metadata.read([train[0]["file"], held_out[0]["file"]])
    assert [row.counts["num_documents"] for row in found] == [9, 1]


def test_files_left_from_a_larger_earlier_run_are_refused(tmp_path):
    metadata.write(made_records.made_metadata(shards(tmp_path, "train-0", "train-1")))
    metadata.write(made_records.made_metadata(shards(tmp_path, "train-0")))
    assert metadata.read([str(tmp_path / "train-0")])[0].shards == [
        {"file": "train-0", "num_examples": 2, "num_bytes": 90}
    ]
    with pytest.raises(ValueError, match="train-1 must be listed in the metadata.json beside it"):
        metadata.read([str(tmp_path / "train-1")])


def test_the_same_output_in_another_number_of_shards_is_the_same_set(tmp_path):
    for names in (
        ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"],
        ["train-00000-of-00001.tfrecord"],
        ["train.tfrecord"],
        ["train-a.tfrecord"],
    ):
        metadata.write(made_records.made_metadata(shards(tmp_path, *names)))
    listed = [row["file"] for old in metadata.read_folder(str(tmp_path)) for row in old.shards]
    assert listed == ["train.tfrecord", "train-a.tfrecord"]


def test_each_folder_lists_its_own_shards(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    files = [tmp_path / "one" / "a", tmp_path / "two" / "b"]
    metadata.write(made_records.made_metadata(shards(tmp_path, "one/a", "two/b")))
    for path, row in zip(files, metadata.read([str(path) for path in files]), strict=True):
        assert [shard["file"] for shard in row.shards] == [path.name]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / ".metadata.json.partial").mkdir()
    with pytest.raises(OSError, match="must be writable. Received: .*metadata.json"):
        metadata.write(made_records.made_metadata(shards(tmp_path, "a")))


def test_records_of_the_original_have_no_metadata(tmp_path):
    assert metadata.read([str(tmp_path / "train.tfrecord")]) == [None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting property name"),
        (json.dumps({"format_version": 9, "sets": []}), "format_version 9"),
        (json.dumps({"sets": []}), "format_version"),
        (json.dumps({"format_version": 1, "sets": [{"shards": []}]}), "missing 8 required"),
        (json.dumps([1]), "indices must be"),
        (b"\xff\xfe{", "invalid start byte|can't decode"),
    ],
)
def test_a_malformed_metadata_file_is_named_with_what_to_do(tmp_path, content, message):
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "metadata.json").write_bytes(content)
    message = f"metadata.json must be of format_version 1.*({message}).*Move that file away"
    with pytest.raises(ValueError, match=message):
        metadata.read([str(tmp_path / "a")])
