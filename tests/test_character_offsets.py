import itertools

import numpy as np
import pytest
from conftest import shared_data, spm_model_file
from made_tokenizers import (
    MARKED_TEXTS,
    NUMBERS,
    english_lines,
    odd_strings,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)

from data import character_offsets, text_normalization, tokenization

SETTINGS = [
    {"lower": lower, "keep_accents": keep_accents}
    for lower, keep_accents in itertools.product((True, False), repeat=2)
]


def tokenizers():
    yield sentencepiece_tokenizer()
    yield sentencepiece_tokenizer(keep_accents=True, lower=False)
    yield wordpiece_tokenizer()
    yield wordpiece_tokenizer(lower=False)


def parts(tokenizer, text):
    """Returns the pieces, and what each of them covers in the text."""
    ids, starts, ends = tokenizer.encode_with_offsets(text)
    covered = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return tokenizer.ids_to_pieces(ids), covered


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_normalised_character_has_a_place_in_the_text(settings):
    for text in odd_strings(300):
        starts, ends = character_offsets.normalized(text, **settings)
        assert len(starts) == len(ends) == len(text_normalization.normalize(text, **settings))
        assert np.all(starts < ends) and np.all(np.diff(starts) >= 0) and np.all(np.diff(ends) >= 0)
        found = list(character_offsets.basic_tokens(text, **settings))
        runs = text_normalization.split_at_blanks(text)
        words = [w for run in runs for w in text_normalization.basic_tokens(run, **settings)]
        assert [word for word, *_ in found] == words
        assert all(len(word) == len(starts) == len(ends) for word, starts, ends in found)


def test_a_character_is_normalised_to_those_that_stand_for_it():
    text = "  Cafe\u0301 ﬁn ½ São\t\u3000№5"
    starts, ends = character_offsets.normalized(text)
    pairs = zip(text_normalization.normalize(text), starts, ends, strict=True)
    covered = [(character, text[start:end]) for character, start, end in pairs]
    assert covered[:4] == [("c", "C"), ("a", "a"), ("f", "f"), ("e", "e\u0301")]
    assert covered[4:8] == [(" ", " "), ("f", "ﬁ"), ("i", "ﬁ"), ("n", "n")]
    assert covered[9:12] == [("1", "½"), ("\u2044", "½"), ("2", "½")]
    assert covered[16:] == [(" ", "\t"), ("n", "№"), ("o", "№"), ("5", "5")]


def test_the_ids_are_those_without_offsets():
    texts = [*odd_strings(200), *MARKED_TEXTS, NUMBERS, *english_lines()[:100], ""]
    for tokenizer in tokenizers():
        for text in texts:
            ids, starts, ends = tokenizer.encode_with_offsets(text)
            assert ids == tokenizer.encode(text)
            assert len(ids) == len(starts) == len(ends)
            assert np.all(starts <= ends) and np.all(np.diff(starts) >= 0)
            assert np.all(np.diff(ends) >= 0)
            assert starts.dtype == ends.dtype == np.int32


def test_pieces_cover_plain_text_without_a_gap():
    for text in [*english_lines()[:200], NUMBERS]:
        pieces, covered = parts(sentencepiece_tokenizer(), text)
        assert "".join(covered).split() == text.split()
        for piece, characters in zip(pieces, covered, strict=True):
            assert piece == "<unk>" or piece.lstrip("\u2581") == characters.strip().lower()


def test_a_number_and_its_comma_are_cut_from_the_text_apart():
    text = "On 8, May 2,013 runners, and 7,045, more."
    pieces, covered = parts(sentencepiece_tokenizer(), text)
    assert [p for p, c in zip(pieces, covered, strict=True) if c == ","] == [","] * text.count(",")
    assert "".join(covered) == text


def test_wordpieces_cover_their_words_and_unknown_ones_all_of_them():
    pieces, covered = parts(wordpiece_tokenizer(), "The walking, caf\u00e9 \u5317\u4eac!")
    assert pieces == ["the", "walk", "##ing", ",", "[UNK]", "\u5317", "\u4eac", "[UNK]"]
    assert covered == ["The", "walk", "ing", ",", "caf\u00e9", "\u5317", "\u4eac", "!"]


def test_a_dropped_mark_goes_with_the_character_before_and_a_control_character_with_none():
    text = "\x00wa\u0301lk\u200bing\u0301\u0302 a\x1c\u0301a\xad"
    pieces, covered = parts(wordpiece_tokenizer(), text)
    assert pieces == ["walk", "##ing", "a", "##a"]
    assert covered == ["wa\u0301lk", "ing\u0301\u0302", "a\x1c\u0301", "a"]


def test_full_width_punctuation_is_covered_as_it_is():
    tokenizer = tokenization.load(shared_data("spm/vocab_chinese.txt"))
    text = "主教（１９１９年，生）是Ｎｅｘｏｎ的。"
    _, covered = parts(tokenizer, text)
    assert "".join(covered) == text


def test_the_released_models_pieces_cover_all_but_what_it_takes_for_blanks():
    tokenizer = tokenization.load(spm_model_file())
    pieces, covered = parts(tokenizer, "北京 x\u200by ﬁne \u200b \u2581a 2010, Ⅳ ㎏")
    assert pieces[:2] == ["\u2581", "<unk>"]
    assert covered[:2] == ["", "北京"]
    assert covered[2:5] == [" x", "\u200b", "y"]
    assert covered[5:] == [" ﬁne", "\u2581a", " 2010", ",", " Ⅳ", " ㎏"]
