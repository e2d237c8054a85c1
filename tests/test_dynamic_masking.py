"""Masks and orders drawn while records are read: sound, as often as static ones, repeatable."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder
from scipy import stats

from data import (
    counted_randomness,
    dynamic_masking,
    graph_ngrams,
    input_pipeline,
    masking,
    ngrams,
    records,
)

VOCAB_SIZE = 1000
PAD, UNK, CLS, SEP, MASK = range(5)
T, P = 64, 10
POLICY = masking.MaskPolicy(
    masked_lm_prob=0.15,
    max_predictions=P,
    ngram=3,
    favor_shorter_ngram=True,
    whole_words=True,
    replacement_unit="piece",
    mask_id=MASK,
    ordinary_ids=np.arange(5, VOCAB_SIZE, dtype=np.int32),
)
SETTINGS = dynamic_masking.DynamicMasking(POLICY, swaps=True, marks=None, seed=3)
LEAST_P = 1e-3  # Of a statistic of the fixed seeds, were both of one distribution.


def make_texts(num_examples, length=T, num_segments=2, seed=0):
    """Makes records of random words in one segment or two, with padding, nothing masked yet."""
    generator = np.random.default_rng(seed)
    shape, columns = (num_examples, length), np.arange(length)
    end = generator.integers(length * 3 // 4, length, (num_examples, 1))
    middle = generator.integers(length // 4, length // 2, (num_examples, 1))
    if num_segments == 1:
        middle = end
    input_mask = columns <= end
    is_text = (columns > 0) & (columns < end) & (columns != middle)
    ids = np.where(is_text, generator.integers(5, VOCAB_SIZE, shape), SEP)
    ids[:, 0] = CLS
    return {
        "input_ids": np.where(input_mask, ids, PAD),
        "input_mask": input_mask.astype(int),
        "segment_ids": (input_mask & (columns > middle)).astype(int),
        "token_boundary": (input_mask & ((generator.random(shape) < 0.7) | ~is_text)).astype(int),
        "masked_lm_positions": np.zeros((num_examples, P), int),
        "masked_lm_ids": np.zeros((num_examples, P), int),
        "masked_lm_weights": np.zeros((num_examples, P), np.float32),
        "next_sentence_labels": generator.integers(0, 2, (num_examples, 1)),
        "is_text": is_text,
    }


def masked_once(texts, policy=POLICY, seed=0):
    """Returns the records with static masks."""
    num_examples, length = texts["input_ids"].shape
    width = masking.num_uniforms(length, policy.max_predictions)
    uniforms = np.random.default_rng(seed).random((num_examples, width))
    return texts | masking.mask(texts, policy, uniforms)


def draw(texts, numbers=None, policy=POLICY, **changes):
    """Returns the records masked anew, as arrays."""
    settings = dataclasses.replace(SETTINGS, policy=policy, **changes)
    numbers = np.arange(len(texts["input_ids"])) if numbers is None else numbers
    drawn = dynamic_masking.draw_anew(
        {name: tf.constant(texts[name]) for name in records.FEATURES},
        tf.constant(numbers, tf.int64),
        settings,
    )
    return {name: values.numpy() for name, values in drawn.items()}


def labels_put_back(drawn):
    ids = drawn["input_ids"].copy()
    row, slot = np.nonzero(drawn["masked_lm_weights"])
    ids[row, drawn["masked_lm_positions"][row, slot]] = drawn["masked_lm_ids"][row, slot]
    return ids


def is_masked(drawn):
    places = np.zeros(drawn["input_ids"].shape, bool)
    row, slot = np.nonzero(drawn["masked_lm_weights"])
    places[row, drawn["masked_lm_positions"][row, slot]] = True
    return places


def segments(ids, segment_ids, input_mask):
    """Returns the two segments of a record, each with its [SEP]."""
    length, in_second = int(input_mask.sum()), int(segment_ids.sum())
    return ids[1 : length - in_second].tolist(), ids[length - in_second : length].tolist()


def words(texts):
    """Returns int[n, T], the same number on the pieces of a word; 0 elsewhere."""
    is_text = texts["is_text"]
    before = np.pad(is_text, ((0, 0), (1, 0)))[:, :-1]
    starts = is_text & ((texts["token_boundary"] == 1) | ~before)
    return np.cumsum(starts).reshape(starts.shape) * is_text


def test_records_masked_before_give_what_unmasked_ones_do():
    texts = make_texts(300)
    before, after = draw(texts), draw(masked_once(texts))
    assert before.keys() == after.keys() == set(records.FEATURES) - {"token_boundary"}
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)


def test_the_segments_stand_as_the_label_says_and_their_text_is_whole():
    texts = make_texts(300)
    drawn = draw(texts)
    ids, labels = labels_put_back(drawn), drawn["next_sentence_labels"][:, 0]
    assert 110 < labels.sum() < 190
    for row, label in enumerate(labels):
        before, after = (
            segments(some_ids[row], of["segment_ids"][row], of["input_mask"][row])
            for some_ids, of in ((texts["input_ids"], texts), (ids, drawn))
        )
        is_swapped = label != texts["next_sentence_labels"][row, 0]
        assert after == (before[::-1] if is_swapped else before)
        assert ids[row, 0] == CLS and not ids[row, int(drawn["input_mask"][row].sum()) :].any()


@pytest.mark.parametrize("max_predictions", [3, P])
def test_as_many_pieces_are_masked_as_statically_and_positions_rise(max_predictions):
    texts, policy = make_texts(500), dataclasses.replace(POLICY, max_predictions=max_predictions)
    drawn = draw(texts | {"masked_lm_weights": np.zeros((500, P), np.float32)}, policy=policy)
    weights, positions = drawn["masked_lm_weights"], drawn["masked_lm_positions"]
    budgets = masking.num_to_predict(texts["input_mask"].sum(axis=1), 0.15, max_predictions)
    np.testing.assert_array_equal(weights.sum(axis=1), budgets)
    assert (np.diff(weights, axis=1) <= 0).all()
    assert (np.diff(positions, axis=1)[weights[:, 1:] == 1] > 0).all()
    assert not positions[weights == 0].any() and not drawn["masked_lm_ids"][weights == 0].any()


def test_all_pieces_of_a_word_are_masked_together_unless_told_otherwise():
    texts = make_texts(500)
    word = words(texts)
    size = np.bincount(word.ravel())[1:]
    for whole_words in (True, False):
        policy = dataclasses.replace(POLICY, whole_words=whole_words)
        drawn = draw(texts, policy=policy, swaps=False)
        taken = np.bincount(word[is_masked(drawn)], minlength=len(size) + 1)[1:]
        is_parted = (taken > 0) & (taken < size)
        assert is_parted.any() != whole_words
        assert not (is_masked(drawn) & ~texts["is_text"]).any()


def test_nothing_is_masked_without_a_share_and_all_that_fits_with_the_whole():
    texts = make_texts(50)
    for share, expected in ((0.0, 0), (1.0, P)):
        drawn = draw(texts, policy=dataclasses.replace(POLICY, masked_lm_prob=share))
        assert (drawn["masked_lm_weights"].sum(axis=1) == expected).all()
    policy = dataclasses.replace(POLICY, masked_lm_prob=1.0, max_predictions=T)
    drawn = draw(texts, policy=policy)
    np.testing.assert_array_equal(drawn["masked_lm_weights"].sum(axis=1), texts["is_text"].sum(1))


def test_one_segment_is_masked_and_labels_stay_where_nothing_is_swapped():
    texts = make_texts(100, num_segments=1)
    drawn = draw(masked_once(texts), swaps=False)
    np.testing.assert_array_equal(labels_put_back(drawn), texts["input_ids"])
    for name in ("segment_ids", "next_sentence_labels", "input_mask"):
        np.testing.assert_array_equal(drawn[name], texts[name])
    assert (is_masked(drawn) & texts["is_text"]).any(axis=1).all()


def test_a_records_masks_depend_on_its_number_and_the_seed_alone():
    texts = make_texts(60)
    together = draw(texts, np.arange(60) + 10**12)
    for rows in (np.arange(20, 30), np.array([7]), np.arange(59, -1, -1)):
        some = draw({name: values[rows] for name, values in texts.items()}, rows + 10**12)
        for name in together:
            np.testing.assert_array_equal(some[name], together[name][rows], err_msg=name)
    others = draw(texts, np.arange(60)), draw(texts, np.arange(60) + 10**12, seed=4)
    for other in others:
        assert (is_masked(other) != is_masked(together)).any(axis=1).all()


LONG = dataclasses.replace(POLICY, max_predictions=38)  # For texts of 256 pieces.


@pytest.fixture(scope="module")
def texts():
    """Texts nearly as long as those that are trained on, of words with 1.4 pieces on average."""
    return make_texts(3000, length=256, seed=1)


@pytest.fixture(scope="module")
def static(texts):
    return masked_once(texts, LONG)


@pytest.fixture(scope="module")
def dynamic(texts):
    return draw(texts, policy=LONG, swaps=False)


def static_lengths(texts):
    """Returns of how many words the n-grams are that static masking accepts."""
    length = texts["is_text"].shape[1]
    uniforms = np.random.default_rng(0).random((len(texts["is_text"]), 2 * length + 1))
    tables = ngrams.length_tables(LONG.ngram, LONG.favor_shorter_ngram, length)
    found = ngrams.cut(texts["is_text"], texts["token_boundary"] == 1, tables, uniforms[:, :length])
    num_pieces = texts["input_mask"].sum(axis=1)
    room = masking.num_to_predict(num_pieces, LONG.masked_lm_prob, LONG.max_predictions)
    taken = ngrams.take(found, room, uniforms[:, length:])
    lengths = np.add.reduceat(taken.astype(int), np.cumsum(found.num_words) - found.num_words)
    return lengths[lengths > 0]


def dynamic_ngrams(texts):
    """Returns (words of the n-grams that are accepted, the n-gram of each word of the text)."""
    length = tf.constant(texts["input_mask"].sum(axis=1, keepdims=True), tf.int32)
    in_second = tf.constant(texts["segment_ids"].sum(axis=1, keepdims=True), tf.int32)
    streams = counted_randomness.streams(5, tf.range(len(texts["is_text"]), dtype=tf.int64))
    starts_word = tf.constant(texts["token_boundary"], tf.int32)
    found = graph_ngrams.find_words(starts_word, length - in_second - 1, length - 1, LONG, streams)
    taken = graph_ngrams.take(found, dynamic_masking.budgets(length, LONG), LONG, streams)
    of_row = np.arange(len(texts["is_text"]))[:, np.newaxis] * texts["is_text"].shape[1]
    lengths = np.bincount((found.ngram.numpy() + of_row).ravel(), taken.numpy().ravel())
    return lengths[lengths > 0].astype(int), found


def test_accepted_ngrams_have_the_lengths_of_static_masking_and_of_the_paper(texts):
    lengths, _ = dynamic_ngrams(texts)
    counts = [np.bincount(found)[1:] for found in (static_lengths(texts), lengths)]
    np.testing.assert_allclose(counts[1] / len(lengths), [6 / 11, 3 / 11, 2 / 11], atol=0.01)
    assert stats.chi2_contingency(counts).pvalue > LEAST_P


def test_no_ngram_reaches_over_the_first_sep():
    texts = make_texts(300)
    _, found = dynamic_ngrams(texts)
    ngram = np.take_along_axis(found.ngram.numpy(), found.of_token.numpy(), axis=1)
    is_sep = (texts["input_ids"] == SEP)[:, 1:-1] & (texts["segment_ids"][:, 1:-1] == 0)
    row, column = np.nonzero(is_sep)
    assert len(row) > 250
    assert (ngram[row, column] < ngram[row, column + 2]).all()


def runs_of_masked_words(drawn, texts):
    """Returns how often 1, 2, ..., 6 and more words in a row are masked."""
    word = words(texts)
    masked = np.zeros(word.max() + 2, int)
    masked[word[is_masked(drawn)]] = 1
    masked[np.unique(word[:, 1])] = 0  # The first of an example ends a run.
    ends = np.flatnonzero(np.diff(masked) == -1) - np.flatnonzero(np.diff(masked) == 1)
    return np.bincount(np.minimum(ends, 6), minlength=7)[1:]


def outcomes(drawn, texts):
    """Returns how many masked pieces became [MASK], stayed, or became another."""
    places = is_masked(drawn)
    ids, before = drawn["input_ids"][places], texts["input_ids"][places]
    num_masks, num_kept = (ids == MASK).sum(), (ids == before).sum()
    return np.array([num_masks, num_kept, len(ids) - num_masks - num_kept])


def test_masks_fall_as_often_on_each_length_of_run_as_static_ones(texts, static, dynamic):
    table = [runs_of_masked_words(drawn, texts) for drawn in (static, dynamic)]
    assert stats.chi2_contingency(table).pvalue > LEAST_P, table


def test_eight_of_ten_become_masks_one_stays_and_one_is_random(texts, static, dynamic):
    table = [outcomes(drawn, texts) for drawn in (static, dynamic)]
    assert stats.chi2_contingency(table).pvalue > LEAST_P, table
    # Of a thousand ordinary pieces one random one is the same by chance.
    expected = np.array([0.8, 0.1 + 0.1 / 995, 0.1 - 0.1 / 995]) * table[1].sum()
    assert stats.chisquare(table[1], expected).pvalue > LEAST_P


def test_every_place_is_masked_as_often(texts, dynamic):
    rates = is_masked(dynamic)[:, 2:60].mean(axis=0)  # All of the first segment's text.
    error = np.sqrt(0.15 * 0.85 / len(texts["is_text"]))
    assert abs(rates - rates.mean()).max() < 4.5 * error


def test_words_of_one_piece_and_of_more_are_masked_as_often_as_statically(texts, static, dynamic):
    word = words(texts)
    size = np.bincount(word.ravel())[word]
    for pieces in (1, 2, 3):
        rates = [
            is_masked(drawn)[texts["is_text"] & (size == pieces)] for drawn in (static, dynamic)
        ]
        error = np.sqrt(2 * pieces * rates[0].var() / len(rates[0]))
        assert abs(rates[0].mean() - rates[1].mean()) < 4 * error, pieces


def test_random_replacements_are_never_special_and_all_other_pieces_occur_as_often(texts):
    policy = dataclasses.replace(LONG, masked_lm_prob=0.5, max_predictions=128)
    drawn = draw(texts, policy=policy, swaps=False)
    places = is_masked(drawn) & (drawn["input_ids"] != texts["input_ids"])
    replacements = drawn["input_ids"][places & (drawn["input_ids"] != MASK)]
    assert len(replacements) > 25_000
    assert set(np.unique(replacements)) == set(range(5, VOCAB_SIZE))
    assert stats.chisquare(np.bincount(replacements)[5:]).pvalue > LEAST_P


def test_an_ngram_shares_its_outcome_when_told_to():
    texts = make_texts(1000)
    texts["token_boundary"] = np.tile(np.arange(T) % 3 == 1, (1000, 1)).astype(int)
    for unit in ("piece", "ngram"):
        policy = dataclasses.replace(POLICY, replacement_unit=unit, ngram=1)
        drawn = draw(texts, policy=policy, swaps=False)
        word, places = words(texts), is_masked(drawn)
        num_masked = np.bincount(word[places])
        num_masks = np.bincount(
            word[places & (drawn["input_ids"] == MASK)], minlength=len(num_masked)
        )
        is_mixed = (num_masks > 0) & (num_masks < num_masked)
        assert is_mixed.any() == (unit == "piece")


def test_the_label_is_a_fair_coin_and_independent_of_the_old_one_and_the_pass():
    texts = make_texts(4000)
    passes = [draw(texts, np.arange(4000) + 4000 * i)["next_sentence_labels"] for i in (0, 1)]
    columns = [texts["next_sentence_labels"], *passes]
    for labels in passes:
        assert stats.binomtest(int(labels.sum()), 4000).pvalue > LEAST_P
    for first, second in itertools.combinations(columns, 2):
        table = np.histogram2d(first[:, 0], second[:, 0], bins=2)[0]
        assert stats.chi2_contingency(table).pvalue > LEAST_P


def test_words_are_found_by_the_pieces_where_the_records_marks_are_not_trusted():
    """Pieces below 300 start a word; those from 900 on are each one, as Chinese ones are."""
    texts = make_texts(300)
    pieces = np.arange(VOCAB_SIZE)
    marks = dynamic_masking.word_marks(pieces < 300, pieces >= 900)
    drawn = draw(texts | {"token_boundary": np.zeros((300, T), int)}, marks=marks, swaps=False)
    ids = texts["input_ids"]
    before = np.pad(ids, ((0, 0), (1, 0)))[:, :-1]
    texts["token_boundary"] = ((ids < 300) | (ids >= 900) | (before >= 900)).astype(int)
    size = np.bincount(words(texts).ravel())[1:]
    taken = np.bincount(words(texts)[is_masked(drawn)], minlength=len(size) + 1)[1:]
    assert (taken > 0).any() and ((taken == 0) | (taken == size)).all()


@pytest.mark.parametrize("case", ["default", "random_next", "wordpiece"])
def test_the_originals_records_get_their_text_back(case):
    path = golden_folder("pretraining_data") / f"{case}.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    texts = {name: np.array([row[name] for row in rows]) for name in records.FEATURES}
    first = texts["input_ids"][0]
    cls, sep = first[0], first[texts["input_mask"][0].sum() - 1]
    mask_id = np.bincount(texts["input_ids"][is_masked(texts)]).argmax()
    policy = dataclasses.replace(
        POLICY,
        mask_id=int(mask_id),
        max_predictions=texts["masked_lm_ids"].shape[1],
        ordinary_ids=np.arange(5, 100, dtype=np.int32),
    )
    drawn = draw(texts, policy=policy)
    ids = labels_put_back(drawn)
    assert not (ids == mask_id).any() and not np.isin(drawn["masked_lm_ids"], [cls, sep]).any()
    for row, label in enumerate(drawn["next_sentence_labels"][:, 0]):
        before, after = (
            segments(some_ids[row], of["segment_ids"][row], of["input_mask"][row])
            for some_ids, of in ((labels_put_back(texts), texts), (ids, drawn))
        )
        assert before[0][-1] == before[1][-1] == sep
        assert after == (before[::-1] if label != texts["next_sentence_labels"][row, 0] else before)


def stream(files, num_batches, **arguments):
    """Returns the first batches of training, masked anew: dict of arrays."""
    arguments = {"batch_size": 8, "shuffle_buffer": 16, "seed": 5, "masking": SETTINGS, **arguments}
    batches = input_pipeline.pretraining_dataset(
        files, max_seq_length=T, max_predictions_per_seq=P, training=True, **arguments
    )
    taken = list(batches.take(num_batches).as_numpy_iterator())
    return {name: np.concatenate([batch[name] for batch in taken]) for name in taken[0]}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of 40 records together, masked once."""
    examples = {name: masked_once(make_texts(40))[name] for name in records.FEATURES}
    folder = tmp_path_factory.mktemp("records")
    paths = [str(folder / f"{i}.tfrecord") for i in range(3)]
    with records.ShardWriter(paths) as writer:
        writer.write(records.serialize(examples))
    return paths


@pytest.fixture(scope="module")
def unbroken(files):
    return stream(files, 15)


@pytest.mark.parametrize("skipped", [20, 72])
def test_a_stream_that_goes_on_is_the_unbroken_one_bit_for_bit(files, unbroken, skipped):
    resumed = stream(files, 4, skip_examples=skipped)
    for name in unbroken:
        np.testing.assert_array_equal(resumed[name], unbroken[name][skipped:][:32], err_msg=name)


def test_an_example_gets_other_masks_in_each_epoch(unbroken):
    seen = {}
    for row, ids in enumerate(labels_put_back(unbroken)):
        seen.setdefault(tuple(sorted(ids)), []).append(is_masked(unbroken)[row])
    assert len(seen) == 40
    for masks in seen.values():
        assert len(masks) == 3 == len({places.tobytes() for places in masks})
