"""Which characters of a text stand behind each character that a tokenizer is shown.

Normalisation changes, adds and drops characters; here it is followed character by
character, so where a piece lies in the text is known, never guessed by comparing.
Differs from the original: it aligns the two texts by a longest common subsequence
(squad_utils.py: convert_examples_to_features), in quadratic time, and drops a question
where that fails.

K: characters after normalisation.
"""

import functools
import re
import unicodedata

import numpy as np

from data import text_normalization

WORD = re.compile(r"\S+")
RUN = re.compile(rf"(?:\S|{text_normalization.CONTROL_BLANKS.pattern})+")


def normalized(text, *, lower=True, keep_accents=False):
    """Finds the characters behind those of `text_normalization.normalize`.

    A blank stands for the first of the blanks that were collapsed.

    Args:
        text: str.
        lower: bool, as of `normalize`.
        keep_accents: bool, as of `normalize`.

    Returns:
        (int32[K], int32[K]): where the stretch of the text begins that a character stands
        for, and where it ends (exclusive). Neither ever decreases.
    """
    count = functools.partial(_normalized_length, lower=lower, keep_accents=keep_accents)
    starts, ends, blank = [], [], None
    for word in WORD.finditer(text):
        if blank is not None:
            starts.append([blank])
            ends.append([blank + 1])
        first, last = stretches(word.group(), count)
        starts.append(first + word.start())
        ends.append(last + word.start())
        blank = word.end()
    return joined(starts), joined(ends)


def basic_tokens(text, *, lower=True, keep_accents=False):
    """Finds the characters behind those of the words of `text_normalization.basic_tokens`.

    Args:
        text: str.
        lower: bool, as of `basic_tokens`.
        keep_accents: bool, as of `basic_tokens`.

    Yields:
        (word, int32[K], int32[K]) for each word or sign: as of `normalized`.
    """
    count = functools.partial(_basic_length, lower=lower, keep_accents=keep_accents)
    for run in RUN.finditer(text):
        visible = text_normalization.CONTROL_BLANKS.sub("", run.group())
        visible = text_normalization.without_surrogates(visible)
        words = text_normalization.basic_tokens(visible, lower=lower, keep_accents=keep_accents)
        starts, ends = stretches(run.group(), count)
        place = 0
        for word in words:
            reach = place + len(word)
            yield word, starts[place:reach] + run.start(), ends[place:reach] + run.start()
            place = reach
        assert place == len(starts)


def covered(bounds, starts, ends):
    """Finds what pieces cover in a text from what they cover after normalisation.

    Args:
        bounds: int[number of pieces, 2]: pieces' first and last (exclusive) characters in
            the normalised text. A piece may cover none, as the mark of a first word.
        starts: int32[K], of `normalized`.
        ends: int32[K].

    Returns:
        (int32, int32), each [number of pieces]: where a piece begins and ends (exclusive)
        in the text. For a piece that covers nothing both are where the next begins.
    """
    begin, end = bounds.T
    after = np.append(starts, ends[-1:] if len(ends) else 0)
    covers = end > begin
    ends = np.where(covers, np.append(0, ends)[end], after[begin])
    return after[begin].astype(np.int32), ends.astype(np.int32)


def stretches(word, count):
    """Shares the characters of a word among those it is normalised to.

    A combining mark that normalisation drops belongs to the character before it, so an
    answer keeps its accents; control and format characters belong to none.

    Args:
        word: str, without blanks.
        count: function of a character: how many it becomes.

    Returns:
        (int32[K], int32[K]), as of `normalized`, from the start of the word.
    """
    if word.isascii() and word.isprintable():
        places = np.arange(len(word), dtype=np.int32)
        return places, places + 1
    counts = np.fromiter(map(count, word), np.int32, len(word))
    starts = np.flatnonzero(counts)
    if not len(starts):
        return np.zeros((2, 0), np.int32)
    owned = [n for n, c in enumerate(word) if counts[n] or unicodedata.category(c)[0] == "M"]
    last = np.searchsorted(owned, np.append(starts[1:], len(word))) - 1
    places = np.stack([starts, np.take(owned, last) + 1]).astype(np.int32)
    return tuple(np.repeat(places, counts[starts], axis=1))


def joined(parts):
    return np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32)


@functools.lru_cache(1 << 16)
def _normalized_length(character, *, lower, keep_accents):
    text = text_normalization.without_surrogates(character)
    if not keep_accents:
        text = unicodedata.normalize("NFKD", text)
        text = "".join(part for part in text if not unicodedata.combining(part))
    return len(text.lower() if lower else text)


@functools.lru_cache(1 << 16)
def _basic_length(character, *, lower, keep_accents):
    if text_normalization.CONTROL_BLANKS.match(character):
        return 0
    character = text_normalization.without_surrogates(character)
    words = text_normalization.basic_tokens(character, lower=lower, keep_accents=keep_accents)
    return sum(map(len, words))
