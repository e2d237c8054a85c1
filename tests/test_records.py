"""The bytes of serialized examples, and that files appear only when they are complete."""

import glob
import os
import signal

import made_records
import numpy as np
import pytest
import tensorflow as tf

import command_line
from data import records


def parsed_by_protobuf(record):
    features = tf.train.Example.FromString(record).features.feature
    return {
        name: list(feature.float_list.value or feature.int64_list.value)
        for name, feature in features.items()
    }


def extreme_examples():
    """Examples with the smallest and largest numbers of each number of bytes of a varint."""
    examples = made_records.random_examples(40, max_seq_length=130, max_predictions_per_seq=90)
    edges = [0, 1] + [2**bits + change for bits in (7, 14, 21, 28) for change in (-1, 0)]
    examples["input_ids"][:, :11] = [*edges, 2**31 - 1]
    examples["masked_lm_ids"][3] = 0
    examples["masked_lm_weights"][0] = 0
    examples["masked_lm_weights"][1, :3] = [0.5, 1e-20, 3e38]
    return examples


def test_serialized_examples_parse_to_the_same_arrays():
    examples = extreme_examples()
    serialized = records.serialize(examples)
    assert len(serialized) == 40
    for i, record in enumerate(serialized):
        parsed = parsed_by_protobuf(record)
        assert set(parsed) == set(records.FEATURES)
        for name, values in parsed.items():
            np.testing.assert_array_equal(values, np.atleast_1d(examples[name][i]), err_msg=name)


def test_serialized_examples_are_the_bytes_of_protocol_buffers():
    """Of a feature at a time, as the order of a map's entries is not fixed."""
    examples = extreme_examples()
    for i, record in enumerate(records.serialize(examples)):
        row = {name: np.atleast_1d(examples[name][i]).tolist() for name in records.FEATURES}
        assert len(record) == len(made_records.original_record(row))
        single = {"input_ids": row["input_ids"]}
        entry = made_records.original_record(single)
        assert entry[entry.index(b"input_ids") :] in record


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.int32, np.int64, bool])
def test_the_integer_type_of_an_array_does_not_matter(dtype):
    examples = made_records.random_examples(5)
    expected = records.serialize(examples)
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        examples[name] = examples[name].astype(dtype)
    assert records.serialize(examples) == expected


def test_no_examples_serialize_to_no_records():
    assert records.serialize(made_records.random_examples(0)) == []


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("input_ids", np.full((3, 16), -1), "`input_ids` must lie in .* from -1 to -1"),
        ("input_ids", np.full((3, 16), 2**31), "`input_ids` must lie in .* 2147483648"),
        ("segment_ids", np.zeros((3, 16)), "`segment_ids` must hold integers.*float64"),
        ("token_boundary", np.zeros((2, 16), int), "`token_boundary` must have as many rows.* 2 "),
        ("segment", np.zeros((3, 16), int), "must have the features .*Received: .*segment"),
    ],
)
def test_arrays_that_are_no_examples_are_refused(name, array, message):
    with pytest.raises(ValueError, match=message):
        records.serialize({**made_records.random_examples(3), name: array})


def stored_ids(path):
    """Returns the numbers of the examples in a file (see `random_examples`)."""
    dataset = tf.data.TFRecordDataset(path)
    return [parsed_by_protobuf(r)["masked_lm_ids"][0] for r in dataset.as_numpy_iterator()]


def test_shards_take_examples_in_turn_across_calls(tmp_path):
    files = [str(tmp_path / "new" / name) for name in ("a.tfrecord", "b.tfrecord", "c.tfrecord")]
    serialized = records.serialize(made_records.random_examples(10))
    with records.ShardWriter(files) as writer:
        writer.write(serialized[:4])
        writer.write([])
        writer.write(serialized[4:])
    assert [stored_ids(path) for path in files] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert writer.num_examples == 10
    assert writer.shards == [
        {"file": path, "num_examples": count, "num_bytes": os.path.getsize(path)}
        for path, count in zip(files, (4, 3, 3), strict=True)
    ]


def test_no_pattern_matches_a_file_before_it_is_complete(tmp_path):
    pattern = str(tmp_path / "*.tfrecord")
    with records.ShardWriter([str(tmp_path / "a.tfrecord")]) as writer:
        writer.write(records.serialize(made_records.random_examples(3)))
        assert len(os.listdir(tmp_path)) == 1
        assert (
            glob.glob(pattern) == glob.glob(str(tmp_path / "*")) == tf.io.gfile.glob(pattern) == []
        )
    assert os.listdir(tmp_path) == ["a.tfrecord"]


def test_an_interrupted_writer_leaves_the_earlier_files_and_nothing_else(tmp_path):
    path = made_records.write_shards(tmp_path, 2)[0]
    with pytest.raises(KeyboardInterrupt), records.ShardWriter([path]) as writer:
        writer.write(records.serialize(made_records.random_examples(5)))
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == [os.path.basename(path)]
    assert stored_ids(path) == [0, 1]


@pytest.mark.parametrize("bad", ["file/b.tfrecord", "folder"])
def test_an_output_that_cannot_be_written_fails_on_entering(tmp_path, bad):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder").mkdir()
    files = [str(tmp_path / "a.tfrecord"), str(tmp_path / bad)]
    with pytest.raises(OSError, match=f"`output_file` must .*Received: {files[1]}"):
        records.ShardWriter(files).__enter__()
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_fewer_examples_than_files_is_an_error_that_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="at least one example. Received: 1 examples for 2 files"):
        made_records.write_shards(tmp_path, 1, num_shards=2)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("files", [[], ["a", "a"]])
def test_output_files_must_be_different_files(files):
    with pytest.raises(ValueError, match="`output_file` must name one or more different files"):
        records.ShardWriter(files)


def test_sigterm_leaves_no_half_written_file(tmp_path, capsys):
    path = tmp_path / "x.tfrecord"
    with (
        pytest.raises(SystemExit) as ending,
        command_line.ended_by_sigterm(),
        records.ShardWriter([str(path)]),
    ):
        assert os.listdir(tmp_path)
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert ending.value.code == 143 and capsys.readouterr().err == "error: terminated.\n"
    assert not os.listdir(tmp_path) and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
