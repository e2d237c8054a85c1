import itertools

import numpy as np
import pytest

from data import features, length_batches, static_lengths

LABELS_SORTED = np.repeat(np.arange(2, dtype=np.int32), 150)


def made(lengths, num_choices=1, **columns):
    """Returns features whose sequences count up from 1."""
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    ids = np.concatenate([np.arange(1, length + 1) for length in lengths]).astype(np.int32)
    return features.Features(
        {"input_ids": ids, "segment_ids": np.zeros_like(ids)}, offsets, columns, num_choices
    )


def random_features(num_examples=300, seed=0):
    lengths = np.random.default_rng(seed).integers(3, 60, num_examples)
    return made(lengths, label_ids=LABELS_SORTED[:num_examples])


def taken(dataset, number):
    return [
        {name: tensor.numpy() for name, tensor in batch.items()}
        for batch in itertools.islice(dataset, number)
    ]


def training(source, number, **others):
    options = {"batch_size": 16, "max_seq_length": 64, **others}
    return taken(length_batches.training_batches(source, **options), number)


def examples_of(batches):
    index = np.concatenate([batch["example_index"] for batch in batches])
    return index[index >= 0]


def test_an_epoch_has_each_example_once_and_the_next_in_another_order():
    batches = training(random_features(), 38)
    first, second = examples_of(batches[:19]), examples_of(batches[19:])
    assert sorted(first) == sorted(second) == list(range(300))
    assert not np.array_equal(first, second)


def test_a_file_sorted_by_label_gives_both_labels_in_every_early_batch():
    for batch in training(random_features(), 10):
        assert {0, 1} == set(batch["label_ids"][batch["example_weights"] > 0])


def test_rows_hold_their_example_and_nothing_after_its_end():
    source = random_features()
    for batch in training(source, 19):
        for row, example in enumerate(batch["example_index"]):
            sequence = source.sequence("input_ids", example) if example >= 0 else []
            length = len(sequence)
            assert batch["input_ids"][row, :length].tolist() == list(sequence)
            assert not batch["input_ids"][row, length:].any()
            assert batch["input_mask"][row].tolist() == [
                int(place < length) for place in range(batch["input_ids"].shape[1])
            ]
            assert batch["example_weights"][row] == (example >= 0)


def test_batches_are_padded_to_few_lengths_and_hold_little_padding():
    source = random_features(3000 // 10)
    batches = training(source, 19)
    assert {batch["input_ids"].shape[1] for batch in batches} <= set(static_lengths.LENGTHS)
    padded = sum(batch["input_ids"].size for batch in batches)
    assert source.offsets[-1] / padded > 0.7  # Unsorted and padded to 64: 0.5.


def test_a_run_goes_on_with_the_batches_of_an_unbroken_one():
    whole = training(random_features(), 45, seed=3)
    rest = training(random_features(), 20, seed=3, skip_batches=25)
    for ours, theirs in zip(rest, whole[25:], strict=True):
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_the_seed_tells_the_order():
    one, other = (examples_of(training(random_features(), 19, seed=seed)) for seed in (1, 2))
    assert not np.array_equal(one, other)


def test_prediction_has_each_example_once_the_longest_first():
    source = random_features()
    batches = taken(
        length_batches.prediction_batches(source, batch_size=64, max_seq_length=64), None
    )
    index = examples_of(batches)
    assert sorted(index) == list(range(300))
    assert (np.diff(source.lengths()[index]) <= 0).all()
    assert batches[-1]["example_weights"].sum() == 300 % 64


def test_choices_share_an_example_and_an_absent_one_is_masked():
    source = made([5, 7, 4, 6, 3, 0], num_choices=3, label_ids=np.array([2, 0], np.int32))
    (batch,) = taken(
        length_batches.prediction_batches(source, batch_size=2, max_seq_length=64), None
    )
    assert batch["input_ids"].shape == (2, 3, 16)
    assert batch["input_mask"].sum(axis=2).tolist() == [[5, 7, 4], [6, 3, 0]]
    assert batch["choice_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch["label_ids"].tolist() == [2, 0]


def test_padding_is_no_answer():
    source = made([5, 3])
    source.sequences["p_mask"] = np.zeros(8, np.int32)
    (batch,) = taken(
        length_batches.prediction_batches(source, batch_size=3, max_seq_length=64), None
    )
    assert batch["p_mask"].sum(axis=1).tolist() == [11, 13, 16]


def test_a_sequence_longer_than_the_model_takes_is_refused():
    with pytest.raises(ValueError, match="60 pieces, max_seq_length=32"):
        length_batches.training_batches(made([60]), batch_size=2, max_seq_length=32)


def test_no_example_is_refused():
    nothing = np.zeros(0, np.int32)
    source = features.Features(
        {"input_ids": nothing, "segment_ids": nothing}, np.zeros(1, np.int64)
    )
    with pytest.raises(ValueError, match="at least one example"):
        length_batches.training_batches(source, batch_size=2, max_seq_length=32)


def test_what_drops_an_iterator_does_not_wait_for_the_tuner():
    dataset = length_batches.training_batches(random_features(), batch_size=16, max_seq_length=64)
    assert dataset.options().autotune.enabled is False
