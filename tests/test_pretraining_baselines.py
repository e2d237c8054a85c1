"""Guesses by counting, on examples small enough to count by hand."""

import numpy as np
import pytest

from evaluation import pretraining_baselines as baselines

CLS, SEP, MASK = 2, 3, 4


@pytest.fixture
def examples():
    """Two examples; `10` between `11` and `12` is masked, once as [MASK], once kept."""
    return {
        "input_ids": np.array(
            [
                [CLS, 11, MASK, 12, SEP, 11, 20, SEP, 0, 0],
                [CLS, 11, 10, SEP, 30, 31, MASK, 33, 34, SEP],
            ],
            np.int32,
        ),
        "input_mask": np.array([[1] * 8 + [0] * 2, [1] * 10], np.int32),
        "segment_ids": np.array([[0] * 5 + [1] * 3 + [0] * 2, [0] * 4 + [1] * 6], np.int32),
        "masked_lm_positions": np.array([[2, 0], [2, 6]], np.int32),
        "masked_lm_ids": np.array([[10, 0], [10, 32]], np.int32),
        "masked_lm_weights": np.array([[1, 0], [1, 1]], np.float32),
    }


def test_restoring_puts_labels_back_and_leaves_filling_slots_alone(examples):
    ids = baselines.restored_ids(examples)
    np.testing.assert_array_equal(ids[0], [CLS, 11, 10, 12, SEP, 11, 20, SEP, 0, 0])
    np.testing.assert_array_equal(ids[1], [CLS, 11, 10, SEP, 30, 31, 32, 33, 34, SEP])
    assert examples["input_ids"][0, 2] == MASK


def test_only_weighted_slots_are_labels_and_the_constant_is_the_most_frequent(examples):
    labels = baselines.masked_labels(examples)
    np.testing.assert_array_equal(labels, [10, 10, 32])
    assert baselines.most_frequent(labels) == 10


def test_lengths_count_pieces_without_markers_and_padding(examples):
    np.testing.assert_array_equal(baselines.segment_lengths(examples), [[3, 2], [2, 5]])


def test_bags_count_restored_pieces_of_b_less_those_of_a(examples):
    dense = np.zeros([2, 40], int)
    rows, pieces, signs = baselines.bag_differences(examples)
    np.add.at(dense, (rows, pieces), signs)
    assert {piece: dense[0, piece] for piece in dense[0].nonzero()[0]} == {10: -1, 12: -1, 20: 1}
    assert dense[1].nonzero()[0].tolist() == [10, 11, 30, 31, 32, 33, 34]


def test_ends_are_the_restored_pieces_about_where_the_segments_meet(examples):
    for row, names in enumerate(baselines.end_pieces(examples, num_ends=1)):
        ids = baselines.restored_ids(examples)[row]
        length = int(examples["input_mask"][row].sum())
        num_a = int((examples["segment_ids"][row][:length] == 0).sum())
        a, b = ids[1 : num_a - 1], ids[num_a : length - 1]
        assert names == [
            f"first of A 0 {a[0]}",
            f"last of A 0 {a[-1]}",
            f"first of B 0 {b[0]}",
            f"last of B 0 {b[-1]}",
            f"meet 0 0 {a[-1]} {b[0]}",
        ]


def test_a_table_gives_the_most_frequent_piece_of_each_context_and_its_share():
    contexts = np.array([7, 7, 7, 5, 5, 9])
    pieces = np.array([1, 2, 2, 4, 3, 0])
    table = baselines.GuessTable.count(contexts, pieces)
    guesses, shares = table.look_up(np.array([5, 7, 9, 6, 10]))
    np.testing.assert_array_equal(guesses[:3], [3, 2, 0])
    np.testing.assert_allclose(shares, [1 / 2, 2 / 3, 1, 0, 0])


def one_masked_example(left, right):
    """Returns an example whose only task is the piece between `left` and `right`."""
    return {
        "input_ids": np.array([[CLS, left, MASK, right, SEP]]),
        "input_mask": np.ones([1, 5], int),
        "segment_ids": np.zeros([1, 5], int),
        "masked_lm_positions": np.array([[2]]),
        "masked_lm_ids": np.array([[99]]),
        "masked_lm_weights": np.ones([1, 1]),
    }


def unmasked_examples(rows):
    n, length = np.shape(rows)
    return {
        "input_ids": np.array(rows),
        "input_mask": np.ones([n, length], int),
        "segment_ids": np.zeros([n, length], int),
        "masked_lm_positions": np.zeros([n, 1], int),
        "masked_lm_ids": np.zeros([n, 1], int),
        "masked_lm_weights": np.zeros([n, 1]),
    }


@pytest.mark.parametrize(
    ("left", "right", "guess"),
    [
        (11, 12, 10),  # The pair was seen, twice with 10 and once with 15.
        (11, 77, 10),  # The left neighbour alone: 10 in two of three.
        (77, 12, 10),
        (11, 14, 13),  # Left gives 10 in two of three, right gives 13 always: the surer one.
        (77, 78, 11),  # Neither was seen: the most frequent piece, smallest id.
    ],
)
def test_neighbours_guess_by_pair_then_by_the_surer_one_then_by_frequency(left, right, guess):
    tables = baselines.NeighbourTables.count(
        unmasked_examples(
            [
                [CLS, 11, 10, 12, SEP],
                [CLS, 11, 10, 12, SEP],
                [CLS, 11, 15, 12, SEP],
                [CLS, 16, 13, 14, SEP],
            ]
        )
    )
    assert tables.guess(one_masked_example(left, right)).tolist() == [guess]


def test_neighbours_are_seen_as_the_model_sees_them(examples):
    tables = baselines.NeighbourTables.count(examples)
    guesses, shares = tables.left.look_up(np.array([MASK, 32]))
    assert guesses[0] == 12  # What stood behind the first [MASK]; 33, behind the second, is larger.
    assert shares.tolist() == [0.5, 0]  # 32 itself was never to be seen.


def test_the_neighbour_table_is_exact_where_two_neighbours_decide():
    """The piece in the middle is a function of both neighbours, and of neither alone."""
    generator = np.random.Generator(np.random.Philox(1))
    left, right = generator.integers(10, 30, [2, 4000])
    centre = 50 + (left + right) % 50
    rows = np.stack([np.full(4000, CLS), left, centre, right, np.full(4000, SEP)], axis=1)
    train = unmasked_examples(rows)
    heldout = {**unmasked_examples(rows[:500])}
    heldout["masked_lm_positions"] = np.full([500, 1], 2)
    heldout["masked_lm_ids"] = centre[:500, None]
    heldout["masked_lm_weights"] = np.ones([500, 1])
    truth = baselines.masked_labels(heldout)
    guesses = baselines.NeighbourTables.count(train).guess(heldout)
    assert baselines.accuracy(guesses, truth) == (1.0, 0.0)
    assert baselines.accuracy(baselines.most_frequent(truth), truth)[0] < 0.1


def test_the_standard_error_is_that_of_a_share():
    share, error = baselines.accuracy(np.zeros(400), np.arange(400) % 4)
    assert share == 0.25
    assert error == pytest.approx(np.sqrt(0.25 * 0.75 / 400))
