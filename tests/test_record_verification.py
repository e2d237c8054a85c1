"""Damaged and impossible records are found, with their file and number."""

import os

import made_records
import numpy as np
import pytest
import tensorflow as tf

from data import input_pipeline, record_verification, records

NUM_EXAMPLES = 300  # More than a block.


def test_sound_files_have_no_problem(tmp_path):
    files = made_records.write_shards(tmp_path, NUM_EXAMPLES, num_shards=2, with_metadata=True)
    assert record_verification.verify(files) == []


@pytest.mark.parametrize("with_metadata", [True, False])
@pytest.mark.parametrize("bad_record", [0, 1, 255, 256, 299])
def test_one_flipped_bit_is_found_with_file_and_record(tmp_path, with_metadata, bad_record):
    files = made_records.write_shards(tmp_path, 2 * NUM_EXAMPLES, 2, with_metadata)
    good, bad = files
    sizes = [len(r) + records.FRAME_BYTES for r in tf.data.TFRecordDataset(bad).as_numpy_iterator()]
    made_records.flip_byte(bad, sum(sizes[:bad_record]) + sizes[bad_record] // 2)
    ((path, problem),) = record_verification.verify(files)
    assert path == bad
    expected = f"record {bad_record} cannot be read" if bad_record or with_metadata else "TFRecords"
    assert expected in problem and "{{" not in problem
    assert good not in problem


def test_a_cut_file_is_found(tmp_path):
    files = made_records.write_shards(tmp_path, NUM_EXAMPLES, with_metadata=True)
    os.truncate(files[0], os.path.getsize(files[0]) - 5)
    assert "record 299 cannot be read: truncated" in record_verification.verify(files)[0][1]


def test_a_file_cut_between_records_is_found_by_its_metadata(tmp_path):
    files = made_records.write_shards(tmp_path, NUM_EXAMPLES, with_metadata=True)
    raw = list(tf.data.TFRecordDataset(files).as_numpy_iterator())
    made_records.write_raw(files[0], raw[:-1])
    expected = [(files[0], "299 records where metadata.json says 300")]
    assert record_verification.verify(files) == expected


def test_a_missing_file_is_listed(tmp_path):
    path = str(tmp_path / "a")
    assert record_verification.verify([path]) == [(path, "no such file")]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("input_ids", made_records.V, "must have `input_ids` in the vocabulary"),
        ("masked_lm_ids", made_records.V, "must have `masked_lm_ids` in the vocabulary"),
        ("input_mask", 2, "must have 0 or 1 as `input_mask`"),
        ("segment_ids", 2, "must have 0 or 1 as `segment_ids`"),
        ("token_boundary", 2, "must have 0 or 1 as `token_boundary`"),
        ("next_sentence_labels", 2, "must have 0 or 1 as `next_sentence_labels`"),
        ("masked_lm_weights", np.nan, "must have 0 or 1 as `masked_lm_weights`"),
        ("masked_lm_positions", made_records.T, "must have `masked_lm_positions` inside the text"),
    ],
)
def test_impossible_values_are_found(tmp_path, name, value, problem):
    examples = made_records.random_examples(NUM_EXAMPLES)
    examples[name][270] = value
    path = made_records.write_raw(tmp_path / "a", records.serialize(examples))
    found = record_verification.verify([path], vocab_size=made_records.V)
    assert found == [(path, f"record 270 {problem}")]


def test_a_target_on_padding_is_found_but_a_filler_is_none(tmp_path):
    examples = made_records.random_examples(2)
    examples["input_mask"][:, 8:] = 0
    examples["masked_lm_positions"][:] = 9
    examples["masked_lm_weights"][:] = 0
    path = made_records.write_raw(tmp_path / "a", records.serialize(examples))
    assert record_verification.verify([path]) == []
    examples["masked_lm_weights"][1, 2] = 1
    path = made_records.write_raw(tmp_path / "b", records.serialize(examples))
    assert record_verification.verify([path]) == [
        (path, "record 1 must have `masked_lm_positions` inside the text")
    ]


def test_a_record_of_other_lengths_is_found(tmp_path):
    serialized = records.serialize(made_records.random_examples(3))
    serialized += records.serialize(made_records.random_examples(1, max_predictions_per_seq=5))
    path = made_records.write_raw(tmp_path / "a", serialized)
    ((_, problem),) = record_verification.verify([path])
    assert problem.startswith("record 3 must have the lengths")
    assert (
        "it has {'masked_lm_positions': 5, 'masked_lm_ids': 5, 'masked_lm_weights': 5}" in problem
    )


@pytest.mark.parametrize("training", [True, False])
def test_an_error_while_reading_is_traced_to_its_file(tmp_path, training):
    files = made_records.write_shards(tmp_path, 12, num_shards=3)
    made_records.flip_byte(files[1], os.path.getsize(files[1]) - 20)
    dataset = input_pipeline.pretraining_dataset(
        files,
        batch_size=4,
        max_seq_length=made_records.T,
        max_predictions_per_seq=made_records.P,
        training=training,
    )
    with pytest.raises(tf.errors.DataLossError) as caught:
        list(dataset.take(10))
    message = record_verification.describe_data_error(files, caught.value)
    assert message.startswith(f"{files[1]} must hold sound records. Received: record 3 cannot be")


def test_an_id_outside_the_models_vocabulary_is_traced_to_its_file(tmp_path):
    files = made_records.write_shards(tmp_path, 12, num_shards=2)
    error = tf.errors.InvalidArgumentError(None, None, "`input_ids` must lie in [0, 200)")
    message = record_verification.describe_data_error(files, error, vocab_size=200)
    assert message.startswith(files[0]) and "`input_ids` in the vocabulary" in message


def test_an_error_that_no_file_explains_keeps_its_words(tmp_path):
    files = made_records.write_shards(tmp_path, 2)
    error = tf.errors.UnavailableError(None, None, "{{node x}} no route to host [Op:y] name: ")
    assert record_verification.describe_data_error(files, error).endswith("sound: no route to host")
