import dataclasses

import numpy as np
import pytest

from data import masking

VOCAB_SIZE = 1000
PAD, UNK, CLS, SEP, MASK = SPECIAL = range(5)
POLICY = masking.MaskPolicy(
    masked_lm_prob=0.15,
    max_predictions=77,
    ngram=3,
    favor_shorter_ngram=True,
    whole_words=True,
    replacement_unit="piece",
    mask_id=MASK,
    ordinary_ids=np.arange(5, VOCAB_SIZE, dtype=np.int32),
)


def make_examples(num_examples, max_seq_length=64, seed=0):
    """Makes examples of two segments of random pieces, of random lengths, with padding."""
    generator = np.random.default_rng(seed)
    shape = num_examples, max_seq_length
    columns = np.arange(max_seq_length)
    middle = generator.integers(2, max_seq_length // 2, (num_examples, 1))
    end = generator.integers(max_seq_length // 2 + 1, max_seq_length, (num_examples, 1))
    input_mask = columns <= end
    is_text = input_mask & (columns > 0) & (columns != middle) & (columns != end)
    ids = np.where(is_text, generator.integers(5, VOCAB_SIZE, shape), SEP)
    ids[:, 0] = CLS
    return {
        "input_ids": np.where(input_mask, ids, PAD).astype(np.int32),
        "input_mask": input_mask.astype(np.uint8),
        "token_boundary": (input_mask & ((generator.random(shape) < 0.7) | ~is_text)).astype(
            np.uint8
        ),
        "is_text": is_text,
    }


def mask(examples, seed=0, **changes):
    policy = dataclasses.replace(POLICY, **changes)
    num_examples, length = examples["input_ids"].shape
    width = masking.num_uniforms(length, policy.max_predictions)
    return masking.mask(examples, policy, np.random.default_rng(seed).random((num_examples, width)))


def restored(masked):
    """Puts the labels back at their places."""
    ids = masked["input_ids"].copy()
    row, slot = np.nonzero(masked["masked_lm_weights"])
    ids[row, masked["masked_lm_positions"][row, slot]] = masked["masked_lm_ids"][row, slot]
    return ids


def is_masked(masked):
    """Returns bool[n, T], the masked places."""
    places = np.zeros(masked["input_ids"].shape, bool)
    row, slot = np.nonzero(masked["masked_lm_weights"])
    places[row, masked["masked_lm_positions"][row, slot]] = True
    return places


def words(examples):
    """Returns int[n, T], the same number on the pieces of a word; 0 elsewhere."""
    is_text = examples["is_text"]
    before = np.zeros_like(is_text)
    before[:, 1:] = is_text[:, :-1]
    starts = is_text & (examples["token_boundary"].astype(bool) | ~before)
    return np.cumsum(starts).reshape(starts.shape) * is_text


def test_the_labels_put_back_give_the_text():
    examples = make_examples(500)
    masked = mask(examples)
    np.testing.assert_array_equal(restored(masked), examples["input_ids"])
    assert (masked["input_ids"] != examples["input_ids"]).any()


def test_no_label_is_the_mask_and_no_masked_place_is_special():
    examples = make_examples(500)
    masked = mask(examples)
    labels = masked["masked_lm_ids"][masked["masked_lm_weights"] == 1]
    assert not np.isin(labels, [MASK, PAD, CLS, SEP]).any()
    assert not (is_masked(masked) & ~examples["is_text"]).any()


def test_positions_rise_and_empty_slots_are_zero():
    masked = mask(make_examples(500))
    weights, positions = masked["masked_lm_weights"], masked["masked_lm_positions"]
    assert set(np.unique(weights)) == {0, 1}
    assert (np.diff(weights, axis=1) <= 0).all()
    assert (np.diff(positions, axis=1)[weights[:, 1:] == 1] > 0).all()
    assert not positions[weights == 0].any() and not masked["masked_lm_ids"][weights == 0].any()


@pytest.mark.parametrize("max_predictions", [3, 77])
def test_fifteen_percent_are_masked_up_to_the_limit(max_predictions):
    examples = make_examples(500)
    weights = mask(examples, max_predictions=max_predictions)["masked_lm_weights"]
    expected = [
        min(max_predictions, max(1, round(int(size) * 0.15)))
        for size in examples["input_mask"].sum(axis=1)
    ]
    assert weights.shape == (500, max_predictions)
    np.testing.assert_array_equal(weights.sum(axis=1), expected)


def test_halves_are_rounded_to_even_as_python_does():
    sizes = np.array([10, 30, 50, 70, 2, 1])  # 1.5, 4.5, 7.5, 10.5, 0.3, 0.15
    expected = [max(1, round(int(size) * 0.15)) for size in sizes]
    np.testing.assert_array_equal(masking.num_to_predict(sizes, 0.15, 77), expected)
    assert expected[1] == 4


def test_without_a_share_nothing_is_masked():
    examples = make_examples(20)
    masked = mask(examples, masked_lm_prob=0.0)
    assert not masked["masked_lm_weights"].any()
    np.testing.assert_array_equal(masked["input_ids"], examples["input_ids"])


def test_all_pieces_of_a_word_are_masked_together():
    examples = make_examples(500)
    word, masked = words(examples), is_masked(mask(examples))
    size = np.bincount(word.ravel())
    taken = np.bincount(word[masked], minlength=len(size))
    assert set(np.unique(taken[1:] / size[1:])) == {0, 1}
    assert (size[1:] > 1).any()


def test_without_whole_words_pieces_are_masked_one_by_one():
    examples = make_examples(500)
    word, masked = words(examples), is_masked(mask(examples, whole_words=False))
    size = np.bincount(word.ravel())
    taken = np.bincount(word[masked], minlength=len(size))
    assert np.mean((taken > 0) & (taken < size)) > 0.05


def test_eight_of_ten_are_masks_one_is_kept_and_one_is_random():
    examples = make_examples(4000)
    masked = mask(examples)
    places, ids = is_masked(masked), masked["input_ids"]
    kept = np.mean(ids[places] == examples["input_ids"][places])
    assert abs(np.mean(ids[places] == MASK) - 0.8) < 0.01
    assert abs(kept - 0.1) < 0.01


def test_of_fifty_thousand_random_replacements_none_is_special_and_all_others_occur():
    """Differs from the original, which draws from the whole vocabulary."""
    examples = make_examples(20_000, 128, seed=1)
    drawn = []
    for seed in range(2):
        masked = mask(examples, seed)
        is_random = is_masked(masked) & (masked["input_ids"] != MASK)
        is_random &= masked["input_ids"] != examples["input_ids"]
        drawn.append(masked["input_ids"][is_random])
    drawn = np.concatenate(drawn)
    assert len(drawn) > 50_000
    assert not np.isin(drawn, SPECIAL).any()
    assert len(np.unique(drawn)) == VOCAB_SIZE - 5


def kinds_of_a_word(unit):
    """Masks words of three pieces; returns for each whether each piece is [MASK], bool[k, 3]."""
    examples = make_examples(4000, seed=2)
    examples["is_text"] = examples["input_mask"].astype(bool)
    examples["is_text"][:, 0] = False
    examples["is_text"][:, 61:] = False
    examples["is_text"] &= examples["input_mask"].sum(axis=1, keepdims=True) > 61
    examples["token_boundary"] = np.tile(np.arange(64) % 3 == 1, (4000, 1))
    masked = mask(examples, replacement_unit=unit, ngram=1)
    row, column = np.nonzero(is_masked(masked))
    return (masked["input_ids"][row, column] == MASK).reshape(-1, 3)


def test_the_choice_is_made_for_each_piece_or_for_the_ngram():
    by_piece, by_ngram = kinds_of_a_word("piece"), kinds_of_a_word("ngram")
    np.testing.assert_allclose(np.mean(by_piece.all(axis=1)), 0.8**3, atol=0.05)
    assert (by_ngram.all(axis=1) | ~by_ngram.any(axis=1)).all()
    np.testing.assert_allclose(by_ngram.mean(), 0.8, atol=0.05)


def test_other_random_numbers_mask_other_places():
    examples = make_examples(50)
    first, again, other = (is_masked(mask(examples, seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(axis=1).all()
