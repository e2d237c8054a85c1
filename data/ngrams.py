"""Cuts texts into n-grams of whole words and takes some of them, for many examples at once.

Everything is computed over flat arrays: no loop runs over pieces, words or examples.

n: examples, T: tokens; over all examples, M: pieces of text, W: words, G: n-grams.
"""

import dataclasses
import functools

import numpy as np

# By trial: with it accepted lengths are within 0.03 of p(n) for budgets of 5 to 77 pieces, also
# where words have two pieces on average; without a correction they are up to 0.1 off.
CORRECTION = 0.8


def probabilities(ngram, favor_shorter=True):
    """Returns p(1), ..., p(ngram) ~ 1/n (ALBERT, 3.1), or the same turned round."""
    weights = 1 / np.arange(1, ngram + 1)
    if not favor_shorter:
        weights = weights[::-1]
    return weights / weights.sum()


@functools.lru_cache(maxsize=8)
def length_tables(ngram, favor_shorter, max_words):
    """Says with which probabilities to draw n-grams so that they come out as p(n).

    A segment is cut as a window into an endless row of n-grams is. Its two ends may cut one
    short, so drawn as p(n) they would come out too short. A window of w words into an
    endless row with lengths of q(n) shows, on average and up to a factor, q(l) (w - l + 1)
    whole n-grams of l words and 2 (q(l+1) + q(l+2) + ...) that an end cuts to l words.
    The q of which this is p(l) follows, from the longest down. In windows of hardly
    more than `ngram` words it would be negative; it is 0 there.

    Args:
        ngram: int, words of the longest n-gram.
        favor_shorter: bool.
        max_words: int, words of the longest window.

    Returns:
        (float64[max_words + 1, ngram], float64[max_words + 1, ngram]): for each length of a
        window the cumulative probabilities of the words that the first n-gram shows,
        and of the lengths of the others.
    """
    shown = np.zeros((max_words + 1, ngram))
    drawn = np.zeros((max_words + 1, ngram))
    for num_words in range(1, max_words + 1):
        longest = min(ngram, num_words)
        wanted = probabilities(ngram, favor_shorter)[:longest]
        wanted = wanted / wanted.sum()
        row = np.zeros(ngram)
        for length in range(longest, 0, -1):
            cut = 2 * row.sum()
            row[length - 1] = max(0, wanted[length - 1] - cut) / (num_words - length + 1)
        drawn[num_words] = row / row.sum()
        at_least = np.cumsum(row[::-1])[::-1]  # An end is anywhere in an n-gram, evenly.
        shown[num_words] = at_least / at_least.sum()
    return np.cumsum(shown, axis=1), np.cumsum(drawn, axis=1)


@dataclasses.dataclass(frozen=True)
class Ngrams:
    """The n-grams that the texts of n examples are cut into, in the order of the text.

    Attributes:
        row: int64[G], the example of each.
        num_words, num_pieces: int64[G].
        word_pieces: int64[W], pieces of each word.
        place: int64[M], where each piece stands in a flattened [n, T].
    """

    row: np.ndarray
    num_words: np.ndarray
    num_pieces: np.ndarray
    word_pieces: np.ndarray
    place: np.ndarray


def row_starts(row, num_rows):
    """Returns where each example begins in flat values whose examples are `row`, rising."""
    return np.searchsorted(row, np.arange(num_rows))


def running_sum(values, row, num_rows):
    """Returns the cumulative sum of flat values, beginning anew with each example."""
    total = np.concatenate([[0], np.cumsum(values)])
    return total[1:] - total[row_starts(row, num_rows)[row]]


def running_count(row, num_rows):
    """Returns which value of its example each flat value is, from 0."""
    return np.arange(len(row)) - row_starts(row, num_rows)[row]


def cut(is_text, starts_word, tables, uniforms):
    """Cuts every segment of text into n-grams of random lengths.

    Differs from the original: no n-gram reaches from the first segment into the second
    (create_pretraining_data.py:437-448 lets it).

    Args:
        is_text: bool[n, T], True but on special pieces and padding.
        starts_word: bool[n, T]; a segment's first piece starts one in any case.
        tables: as of `length_tables`.
        uniforms: float64[n, T] in [0, 1).

    Returns:
        Ngrams.
    """
    place = np.flatnonzero(is_text)  # int64[M]
    starts_segment = np.diff(place, prepend=-2) != 1  # Special pieces stand between segments.
    word = np.flatnonzero(starts_word.ravel()[place] | starts_segment)  # int64[W], into M.
    row = place[word] // is_text.shape[1]  # int64[W]
    is_first = starts_segment[word]  # bool[W]
    segment_start = np.flatnonzero(is_first)  # Into W.
    segment = np.cumsum(is_first) - 1  # int64[W]
    num_words = np.diff(segment_start, append=len(word))[segment]  # int64[W], of the segment.

    draws = uniforms[row, running_count(row, len(is_text))]
    length = np.ones_like(row)
    for first_column, column in zip(*(table.T[:-1] for table in tables), strict=True):
        length += draws >= np.where(is_first, first_column[num_words], column[num_words])
    start = running_sum(length, segment, len(segment_start)) - length  # Words into the segment.
    is_used = start < num_words
    first_word = (segment_start[segment] + start)[is_used]  # int64[G], into W.
    return Ngrams(
        row=row[is_used],
        num_words=np.diff(first_word, append=len(word)),
        num_pieces=np.diff(word[first_word], append=len(place)),
        word_pieces=np.diff(word, append=len(place)),
        place=place,
    )


def take(ngrams, budgets, uniforms):
    """Chooses n-grams at random that together have as many pieces as asked for.

    Of each length the same share should be taken, so that accepted lengths are as p(n).
    The budget's share of the text would be it if n-grams of a length had as many pieces
    among those taken as in the text; but short words fit more often. So a trial run finds
    the share of n-grams that the budget holds, and the final run corrects by it. Single
    words then use the budget up; where none fits, so do words of longer n-grams.
    Differs from the original: it tries ever shorter n-grams and drops those that
    meet another, so that it accepts shorter ones than p(n)
    (create_pretraining_data.py:486-521).

    Args:
        ngrams: Ngrams.
        budgets: int64[n], pieces to take of each example.
        uniforms: float64[n, 1 + T] in [0, 1).

    Returns:
        bool[W], the words taken.
    """
    row, num_rows = ngrams.row, len(budgets)
    keys = uniforms[row, 1 + running_count(row, num_rows)]
    longest = ngrams.num_words.max(initial=1)
    order = np.argsort((longest - ngrams.num_words) * num_rows + row + keys)
    ends = np.cumsum(np.bincount(longest - ngrams.num_words, minlength=longest))
    candidates = [
        (row[some], ngrams.num_pieces[some]) for some in np.split(order, ends[:-1])
    ]  # From the longest down, by example, in random order.

    share = budgets / np.maximum(1, np.bincount(row, ngrams.num_pieces, num_rows))
    trial, _ = take_shares(candidates, budgets, uniforms[:, 0], share)
    num_taken = np.bincount(row[order], trial, num_rows)
    num_ngrams = np.maximum(1, np.bincount(row, minlength=num_rows))
    share += CORRECTION * (num_taken / num_ngrams - share)
    in_order, room = take_shares(candidates, budgets, uniforms[:, 0], share)
    taken = np.zeros(len(row), bool)
    taken[order] = in_order
    return fill_with_words(ngrams, np.repeat(taken, ngrams.num_words), room, keys)


def take_shares(candidates, budgets, uniforms, share):
    """Takes a share of the n-grams of each length, from the longest down, and single words.

    An n-gram that does not fit gives way to another of the same length.

    Args:
        candidates: for each length (row int64[k], pieces int64[k]) of the n-grams, in the
            order to try them; the last are single words.
        budgets: int64[n], pieces.
        uniforms: float64[n] in [0, 1): which of the ways to round the numbers of n-grams,
            all lengths together.
        share: float64[n], of n-grams; single words are taken while they fit.

    Returns:
        (bool[G], int64[n]): of all candidates those taken, what is left of the budgets.
    """
    room, carry, taken = budgets.copy(), uniforms, []
    for row, num_pieces in candidates[:-1]:
        wanted = carry + share * np.bincount(row, minlength=len(budgets))
        quota = wanted.astype(np.int64)
        carry = wanted - quota
        taken.append(fill(num_pieces, row, room, quota))
    row, num_pieces = candidates[-1]
    taken.append(fill(num_pieces, row, room, budgets))
    return np.concatenate(taken), room


def fill_with_words(ngrams, taken, room, keys):
    """Takes words of the n-grams left over where the budget is not used up yet.

    Args:
        ngrams: Ngrams.
        taken: bool[W], the words taken so far.
        room: int64[n], pieces left of each example's budget.
        keys: float64[G] in [0, 1), the random order of the n-grams.

    Returns:
        bool[W].
    """
    row = np.repeat(ngrams.row, ngrams.num_words)  # int64[W]
    rest = np.flatnonzero(~taken & (room[row] > 0))
    places = row[rest] + np.repeat(keys, ngrams.num_words)[rest]
    rest = rest[np.argsort(places, kind="stable")]  # The words of an n-gram share its key.
    taken[rest] = fill(ngrams.word_pieces[rest], row[rest], room, room.copy())
    return taken


def fill(num_pieces, row, room, quota):
    """Takes, in order, whatever fits into the room that its example has left.

    Args:
        num_pieces, row: int64[k], of the candidates; `row` rises.
        room: int64[n], pieces left of each example's budget; what is taken goes off.
        quota: int64[n], the most candidates to take.

    Returns:
        bool[k].
    """
    taken = running_sum(num_pieces, row, len(room)) <= room[row]
    taken &= running_count(row, len(room)) < quota[row]
    room -= np.bincount(row, num_pieces * taken, len(room)).astype(np.int64)
    quota = quota - np.bincount(row, taken, len(room)).astype(np.int64)

    def still_fit(some):
        return some[~taken[some] & (num_pieces[some] <= room[row[some]]) & (quota[row[some]] > 0)]

    fitting = still_fit(np.arange(len(row)))
    while len(fitting):
        chosen = fitting[np.diff(row[fitting], prepend=-1) > 0]  # The first of each example.
        taken[chosen] = True
        room[row[chosen]] -= num_pieces[chosen]
        quota[row[chosen]] -= 1
        fitting = still_fit(fitting)
    return taken
