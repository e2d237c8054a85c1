"""Changes text inside a TensorFlow graph, character by character, as Python's functions do.

What becomes of each character is asked of Python once and kept in tables, so a graph needs no
Unicode library and agrees with the host whatever versions either has. Only the lower case of
the Greek sigma depends on its neighbours; its rule is here.

K: characters of all texts, one text after another.
"""

import functools
import itertools
import typing
import unicodedata

import numpy as np
import tensorflow as tf

NUM_CODES = 0x110000  # Of Unicode.
PAGE = 256  # Code points; most pages are alike and are kept once.
ITSELF = -1  # In a table: the character that is looked up.
SURROGATES = range(0xD800, 0xE000)  # No text in a graph has them.
# What lies beyond is unassigned or private: nothing happens to it.
ASSIGNED = (range(SURROGATES.start), range(SURROGATES.stop, 0x40000), range(0xE0000, 0xF0000))
SIGMA, FINAL_SIGMA, BLANK = 0x3A3, 0x3C2, 0x20
OTHER, CASED, IGNORABLE = 0, 1, 2  # What a character is to a sigma beside it.


class Characters(typing.NamedTuple):
    """Texts as characters.

    codes: int32[K], code points; rows: int64[K], whose text each is in, never decreasing;
    sources: int64[K], which character of the texts as they came it was made of.
    """

    codes: tf.Tensor
    rows: tf.Tensor
    sources: tf.Tensor

    def keep(self, is_kept):
        """Keeps those where bool[K] is True."""
        return Characters(*(tf.boolean_mask(values, is_kept) for values in self))


class Classes:
    """A small number for each code point.

    Args:
        classify: function of a character that returns an int, 0 for those not ASSIGNED.
    """

    def __init__(self, classify):
        numbers = np.zeros(NUM_CODES, np.int32)
        for code in itertools.chain(*ASSIGNED):
            numbers[code] = classify(chr(code))
        pages, page_of = np.unique(numbers.reshape(-1, PAGE), axis=0, return_inverse=True)
        self._numbers, self._page_of = pages.reshape(-1), page_of.reshape(-1).astype(np.int32)

    def look_up(self, codes):
        """Returns the numbers of code points: int32[K] -> int32[K]."""
        page = tf.gather(self._page_of, codes // PAGE)
        return tf.gather(self._numbers, page * PAGE + codes % PAGE)


class Replacements(Classes):
    """What each character becomes: none, one or several characters.

    Args:
        replace: function of a character that returns a str; it is in a table, and so may not
            look at the characters beside.
    """

    def __init__(self, replace):
        numbers = {(ITSELF,): 0}

        def number(character):
            codes = (ITSELF if part == character else ord(part) for part in replace(character))
            return numbers.setdefault(tuple(codes), len(numbers))

        super().__init__(number)
        self._widths = np.array([len(codes) for codes in numbers], np.int64)
        self._starts = np.cumsum(self._widths) - self._widths
        self._codes = np.array([code for codes in numbers for code in codes], np.int32)

    def widths(self, codes):
        """Returns how many characters each becomes: int64[K]."""
        return tf.gather(self._widths, self.look_up(codes))

    def apply(self, characters):
        """Returns the Characters that others become."""
        numbers = self.look_up(characters.codes)
        widths = tf.gather(self._widths, numbers)
        place = tf.range(tf.reduce_sum(widths)) - tf.repeat(
            tf.cumsum(widths, exclusive=True), widths
        )
        was, rows, sources = (tf.repeat(values, widths) for values in characters)
        codes = tf.gather(self._codes, tf.repeat(tf.gather(self._starts, numbers), widths) + place)
        return Characters(tf.where(codes == ITSELF, was, codes), rows, sources)


@functools.cache
def blanks():
    """Returns the Classes of what `str.split` takes for blanks: 1, others 0."""
    return Classes(str.isspace)


@functools.cache
def lower_case():
    """Returns the Replacements of `str.lower`, but for the sigma's final form."""
    return Replacements(str.lower)


@functools.cache
def sigma_neighbours():
    """Returns the Classes of OTHER, CASED and IGNORABLE, as `str.lower` sees them."""

    def classify(character):
        if (character + "\u03a3").lower().endswith("\u03c2"):
            return CASED
        return IGNORABLE if ("a" + character + "\u03a3").lower().endswith("\u03c2") else OTHER

    return Classes(classify)


@functools.cache
def marks():
    """Returns the Classes of combining marks: 1, others 0."""
    return Classes(lambda character: unicodedata.category(character)[0] == "M")


def of_texts(texts):
    """Turns texts into Characters.

    Args:
        texts: string[n], UTF-8; what is none is read as U+FFFD.
    """
    decoded = tf.strings.unicode_decode(texts, "UTF-8")
    count = tf.size(decoded.values, tf.int64)
    return Characters(decoded.values, decoded.value_rowids(), tf.range(count))


def to_texts(characters, num_texts):
    """Turns Characters into string[num_texts]."""
    ragged = tf.RaggedTensor.from_value_rowids(
        characters.codes, characters.rows, nrows=num_texts, validate=False
    )
    return tf.strings.unicode_encode(ragged, "UTF-8")


def collapse_blanks(characters):
    """Does `" ".join(text.split())`; a blank's source is the first of the blanks it stands for."""
    is_blank = blanks().look_up(characters.codes) == 1
    after_blank = shifted(is_blank) | ~continues(characters.rows)
    codes = tf.where(is_blank, BLANK, characters.codes)
    characters = characters._replace(codes=codes).keep(~(is_blank & after_blank))
    is_last = ~continues(characters.rows[::-1])[::-1]
    return characters.keep(~(is_last & (characters.codes == BLANK)))


def shifted(values):
    """Returns the values of the characters before, False for the first: bool[K]."""
    return tf.concat([[False], values], 0)[:-1]


def continues(rows):
    """Says of each character whether it is in the text of the one before it: bool[K]."""
    return tf.concat([[False], rows[1:] == rows[:-1]], 0)[: tf.size(rows)]


def with_final_sigmas(characters):
    """Makes those sigmas final that `str.lower` makes so: after a cased character, not before one.

    Ignorable characters between are passed over; blanks are not ignorable.
    """
    kinds = sigma_neighbours().look_up(characters.codes)
    places = tf.where(kinds != IGNORABLE)[:, 0]
    rows = tf.gather(characters.rows, places)
    is_cased = tf.gather(kinds, places) == CASED
    is_joined = continues(rows) & is_cased & shifted(is_cased)  # Both cased, in one text.
    is_before = tf.concat([is_joined[1:], [False]], 0)[: tf.size(places)]
    is_sigma = tf.gather(characters.codes, places) == SIGMA
    final = tf.boolean_mask(places, is_sigma & is_joined & ~is_before)
    codes = tf.tensor_scatter_nd_update(
        characters.codes, final[:, tf.newaxis], tf.fill(tf.shape(final), FINAL_SIGMA)
    )
    return characters._replace(codes=codes)
