"""Order, coverage and resumption of the stream of examples, and the batches' contents."""

import itertools
import json
import os
import subprocess
import sys

import made_records
import numpy as np
import pytest
import tensorflow as tf
from conftest import REPOSITORY, golden_folder

from data import input_pipeline, records

NUM_EXAMPLES = 50
GOLDEN_CASES = sorted(golden_folder("pretraining_data").glob("*.jsonl"))


def dataset(files, training=True, batch_size=4, **arguments):
    arguments = {"shuffle_buffer": 16, **arguments}
    return input_pipeline.pretraining_dataset(
        files,
        batch_size=batch_size,
        max_seq_length=made_records.T,
        max_predictions_per_seq=made_records.P,
        training=training,
        **arguments,
    )


def example_numbers(batches, num_examples):
    """Returns the numbers of the first examples of a stream (see `random_examples`)."""
    numbers = (batch["masked_lm_ids"][:, 0].tolist() for batch in batches.as_numpy_iterator())
    return list(itertools.islice(itertools.chain.from_iterable(numbers), num_examples))


@pytest.fixture(params=[True, False], ids=["with metadata", "without metadata"])
def files(tmp_path, request):
    return made_records.write_shards(tmp_path, NUM_EXAMPLES, 3, with_metadata=request.param)


def test_each_epoch_holds_each_example_once_in_another_order(files):
    numbers = example_numbers(dataset(files), 3 * NUM_EXAMPLES)
    epochs = [numbers[i * NUM_EXAMPLES : (i + 1) * NUM_EXAMPLES] for i in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(NUM_EXAMPLES))
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("files_at_once", [1, 2, 16])
def test_a_resumed_stream_goes_on_where_the_unbroken_one_would(files, files_at_once, monkeypatch):
    monkeypatch.setattr(input_pipeline, "FILES_AT_ONCE", files_at_once)
    unbroken = example_numbers(dataset(files, seed=5), 360)
    assert sorted(unbroken[NUM_EXAMPLES : 2 * NUM_EXAMPLES]) == list(range(NUM_EXAMPLES))
    for skip_examples in (0, 4, 17, 33, 34, 49, 50, 53, 300):
        resumed = example_numbers(dataset(files, seed=5, skip_examples=skip_examples), 60)
        assert resumed == unbroken[skip_examples:][:60], skip_examples


def test_the_order_depends_on_the_seed_alone(files):
    tf.random.set_seed(6)
    first = example_numbers(dataset(files, seed=1), 60)
    tf.random.set_seed(7)
    assert example_numbers(dataset(files, seed=1), 60) == first
    assert example_numbers(dataset(files, seed=0), 60) != first
    assert example_numbers(dataset(files, seed=2**31 - 2), 60) != first
    assert example_numbers(dataset(files, seed=2), 60) != first


def test_examples_of_all_files_mix_from_the_start(tmp_path):
    files = made_records.write_shards(tmp_path, 200, num_shards=2)
    start = example_numbers(dataset(files, shuffle_buffer=8), 40)
    assert 10 <= sum(number % 2 for number in start) <= 30


def test_evaluation_gives_each_example_once_in_file_order(files):
    numbers = example_numbers(dataset(files, training=False), 1000)
    in_order = [n for first in range(3) for n in range(first, NUM_EXAMPLES, 3)]
    assert numbers == [*in_order, 0, 0]


def test_evaluation_of_10_examples_in_batches_of_4_weighs_exactly_10(tmp_path):
    files = made_records.write_shards(tmp_path, 10)
    batches = list(dataset(files, training=False).as_numpy_iterator())
    assert len(batches) == 3
    assert sum(batch["example_weights"].sum() for batch in batches) == 10
    expected = made_records.random_examples(10)["masked_lm_weights"].sum()
    assert sum(batch["masked_lm_weights"].sum() for batch in batches) == expected
    for values in batches[-1].values():
        assert not values[2:].any()


@pytest.mark.parametrize("training", [True, False])
def test_batches_hold_the_examples_in_the_models_types(tmp_path, training):
    files = made_records.write_shards(tmp_path, 4)
    batches = dataset(files, training=training, batch_size=4)
    assert all(spec.shape.is_fully_defined() for spec in batches.element_spec.values())
    batch = next(batches.as_numpy_iterator())
    order = batch["masked_lm_ids"][:, 0]
    examples = made_records.random_examples(4)
    del examples["token_boundary"]
    assert batch.pop("example_weights").tolist() == [1, 1, 1, 1]
    assert set(batch) == set(examples)
    for name, values in batch.items():
        assert values.dtype == (np.float32 if name == "masked_lm_weights" else np.int32)
        np.testing.assert_array_equal(values, examples[name][order], err_msg=name)


@pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda path: path.stem)
def test_golden_records_of_the_original_are_read_as_they_were_written(tmp_path, case):
    rows = [json.loads(line) for line in case.read_text().splitlines()]
    path = made_records.write_raw(tmp_path / "a", map(made_records.original_record, rows))
    batches = input_pipeline.pretraining_dataset(
        [path],
        batch_size=len(rows),
        max_seq_length=len(rows[0]["input_ids"]),
        max_predictions_per_seq=len(rows[0]["masked_lm_ids"]),
        training=False,
    )
    (batch,) = batches.as_numpy_iterator()
    for name in input_pipeline.BATCH_FEATURES:
        expected = np.array([row[name] for row in rows])
        np.testing.assert_array_equal(batch[name], expected.reshape(batch[name].shape))


@pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda path: path.stem)
def test_golden_records_of_the_original_are_what_we_serialize(case):
    rows = [json.loads(line) for line in case.read_text().splitlines()]
    assert set(rows[0]) == set(records.FEATURES)
    examples = {name: np.array([row[name] for row in rows]) for name in records.FEATURES}
    for row, record in zip(rows, records.serialize(examples), strict=True):
        theirs = tf.train.Example.FromString(made_records.original_record(row))
        assert tf.train.Example.FromString(record) == theirs


def test_data_of_5_targets_is_refused_for_a_training_with_20(tmp_path):
    """Case A5 of the users' demands."""
    files = made_records.write_shards(tmp_path, 8, max_predictions_per_seq=5)
    with pytest.raises(ValueError, match="`max_predictions_per_seq`.*Received: 5 in .* but 20 for"):
        input_pipeline.pretraining_dataset(
            files, batch_size=4, max_seq_length=16, max_predictions_per_seq=20, training=True
        )


def test_an_id_outside_the_models_vocabulary_is_an_error(tmp_path):
    files = made_records.write_shards(tmp_path, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`input_ids` must lie in \[0, 200\)"):
        next(iter(dataset(files, vocab_size=200)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch_size", 0), ("seed", -1), ("skip_examples", -1), ("shuffle_buffer", 0)],
)
def test_numbers_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be at least .*Received: {value}"):
        dataset(["never read"], **{name: value})


STREAM_OF_TWO_REPLICAS = """
import sys
import tensorflow as tf
from data import input_pipeline
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for training, num_batches in ((True, 20), (False, 13)):
    dataset = input_pipeline.pretraining_dataset(
        sys.argv[1:], batch_size=4, max_seq_length=16, max_predictions_per_seq=4,
        training=training, shuffle_buffer=16)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    for _ in range(num_batches):
        shares = strategy.experimental_local_results(next(batches)["masked_lm_ids"])
        print(*(number for share in shares for number in share[:, 0].numpy()), len(shares))
"""


def test_two_replicas_see_the_batches_that_one_sees(tmp_path):
    files = made_records.write_shards(tmp_path, NUM_EXAMPLES, 3)
    output = subprocess.run(
        [sys.executable, "-c", STREAM_OF_TWO_REPLICAS, *files],
        capture_output=True,
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        text=True,
    ).stdout
    one_replica = [
        [*batch["masked_lm_ids"][:, 0], 2]
        for training, num_batches in ((True, 20), (False, 13))
        for batch in dataset(files, training).take(num_batches).as_numpy_iterator()
    ]
    assert [[int(word) for word in line.split()] for line in output.splitlines()] == one_replica
