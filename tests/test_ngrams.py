import numpy as np
import pytest

from data import ngrams

GENERATOR = np.random.default_rng(0)


def texts(segment_words, pieces_of_a_word, num_examples=1, seed=0):
    """Makes is_text and starts_word of examples: segments of words, a special piece around each.

    Args:
        segment_words: words of each segment.
        pieces_of_a_word: function of (generator, number of words) to the pieces of each.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(num_examples):
        text, starts = [0], [1]
        for num_words in segment_words:
            for size in pieces_of_a_word(generator, num_words):
                text += [1] * int(size)
                starts += [1] + [0] * (int(size) - 1)
            text, starts = [*text, 0], [*starts, 1]
        rows.append((text, starts))
    length = max(len(text) for text, _ in rows)
    padded = [[values + [0] * (length - len(values)) for values in row] for row in rows]
    is_text, starts_word = np.array(padded, bool).transpose(1, 0, 2)
    return is_text, starts_word


def single_pieces(generator, number):
    return np.ones(number, int)


def skewed(generator, number):
    return generator.geometric(0.7, number)


def cut(is_text, starts_word, ngram=3, favor_shorter=True, seed=0):
    tables = ngrams.length_tables(ngram, favor_shorter, is_text.shape[1])
    return ngrams.cut(
        is_text, starts_word, tables, np.random.default_rng(seed).random(is_text.shape)
    )


def shares(lengths, ngram=3):
    return np.bincount(lengths, minlength=ngram + 1)[1:] / len(lengths)


def accepted_lengths(found, words_taken):
    """Returns for each n-gram with a word taken how many of its words are."""
    ends = np.cumsum(found.num_words)
    taken = np.add.reduceat(words_taken.astype(int), ends - found.num_words)
    return taken[taken > 0]


def test_the_probabilities_are_those_of_the_paper():
    np.testing.assert_allclose(ngrams.probabilities(3), [6 / 11, 3 / 11, 2 / 11])
    np.testing.assert_allclose(ngrams.probabilities(3, False), [2 / 11, 3 / 11, 6 / 11])


@pytest.mark.parametrize("favor_shorter", [True, False])
@pytest.mark.parametrize("segment_words", [[12, 15], [40], [200]])
def test_a_text_is_cut_into_ngrams_whose_lengths_are_as_p(segment_words, favor_shorter):
    is_text, starts_word = texts(segment_words, single_pieces, 30_000 // sum(segment_words))
    found = cut(is_text, starts_word, favor_shorter=favor_shorter)
    expected = ngrams.probabilities(3, favor_shorter)
    np.testing.assert_allclose(shares(found.num_words), expected, atol=0.015)


def test_the_ngrams_are_the_whole_text_and_none_spans_a_special_piece():
    """Differs from the original, whose n-grams reach from one segment into the other."""
    is_text, starts_word = texts([5, 9], skewed, 400)
    starts_word[:, 1] = False  # A segment that begins inside a word.
    found = cut(is_text, starts_word, ngram=4)
    np.testing.assert_array_equal(found.place, np.flatnonzero(is_text))
    ends = np.cumsum(found.num_pieces)
    assert ends[-1] == is_text.sum() and found.num_words.sum() == len(found.word_pieces)
    for start, end in zip(ends - found.num_pieces, ends, strict=True):
        assert found.place[end - 1] - found.place[start] == end - 1 - start
    np.testing.assert_array_equal(found.row, found.place[ends - 1] // is_text.shape[1])


def test_every_word_of_a_segment_is_as_often_the_first_of_an_ngram():
    is_text, starts_word = texts([12], single_pieces, 20_000)
    found = cut(is_text, starts_word)
    first = found.place[np.cumsum(found.num_pieces) - found.num_pieces] % is_text.shape[1]
    rates = np.bincount(first, minlength=13)[2:13] / 20_000  # The first word always is.
    np.testing.assert_allclose(rates, rates.mean(), atol=0.03)


def take(found, budgets, seed=1):
    width = 1 + np.bincount(found.row).max()
    return ngrams.take(found, budgets, np.random.default_rng(seed).random((len(budgets), width)))


@pytest.mark.parametrize("pieces", [single_pieces, skewed])
@pytest.mark.parametrize("segment_words, budget", [([40, 40], 15), ([200, 170], 77), ([20, 18], 8)])
def test_accepted_ngrams_have_the_lengths_of_the_paper(segment_words, budget, pieces):
    """Differs from the original, which accepts shorter ones: 0.63, 0.24 and 0.13."""
    is_text, starts_word = texts(segment_words, pieces, 60_000 // sum(segment_words))
    found = cut(is_text, starts_word)
    taken = take(found, np.full(len(is_text), budget))
    np.testing.assert_allclose(
        shares(accepted_lengths(found, taken)), [6 / 11, 3 / 11, 2 / 11], atol=0.03
    )


def test_longer_ngrams_are_accepted_more_often_when_asked():
    is_text, starts_word = texts([200, 170], skewed, 300)
    found = cut(is_text, starts_word, favor_shorter=False)
    taken = take(found, np.full(300, 77))
    np.testing.assert_allclose(
        shares(accepted_lengths(found, taken)), [2 / 11, 3 / 11, 6 / 11], atol=0.04
    )


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 20])
def test_the_budget_is_used_up_exactly(budget):
    is_text, starts_word = texts([25, 25], skewed, 2000)
    found = cut(is_text, starts_word)
    taken = take(found, np.full(2000, budget))
    row = np.repeat(np.repeat(found.row, found.num_words), found.word_pieces)
    sizes = np.bincount(row, np.repeat(taken, found.word_pieces), 2000)
    assert sizes.max() == budget and np.mean(sizes == budget) > 0.999


def test_words_too_long_for_the_budget_are_left_alone():
    is_text, starts_word = texts([10, 10], lambda _, number: np.full(number, 4), 100)
    found = cut(is_text, starts_word)
    assert not take(found, np.full(100, 3)).any()
    assert (
        np.bincount(np.repeat(found.row, found.num_words), take(found, np.full(100, 6))).max() == 1
    )


def test_every_word_is_masked_equally_often():
    is_text, starts_word = texts([10, 14], single_pieces, 20_000)
    found = cut(is_text, starts_word)
    column = found.place % is_text.shape[1]
    rates = np.bincount(column[take(found, np.full(20_000, 5))], minlength=27) / 20_000
    np.testing.assert_allclose(rates[is_text[0]], 5 / 24, atol=0.02)


def test_nothing_is_taken_without_a_budget():
    found = cut(*texts([10, 10], skewed, 5))
    assert not take(found, np.zeros(5, int)).any()


def test_an_example_does_not_depend_on_those_beside_it():
    is_text, starts_word = texts([30, 30], skewed, 50)
    uniforms = GENERATOR.random((50, 2 * is_text.shape[1] + 1))
    tables = ngrams.length_tables(3, True, is_text.shape[1])

    def places_taken(rows):
        found = ngrams.cut(
            is_text[rows], starts_word[rows], tables, uniforms[rows, : is_text.shape[1]]
        )
        budgets = np.full(len(rows), 9)
        taken = ngrams.take(found, budgets, uniforms[rows, is_text.shape[1] :])
        row, column = np.divmod(found.place[np.repeat(taken, found.word_pieces)], is_text.shape[1])
        return {rows[i]: column[row == i].tolist() for i in range(len(rows))}

    together = places_taken(np.arange(50))
    for rows in (np.arange(10, 20), np.array([7]), np.arange(49, -1, -1)):
        assert places_taken(rows) == {row: together[row] for row in rows}
