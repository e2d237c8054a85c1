import json

import numpy as np
import pytest
from conftest import golden_folder
from made_tokenizers import (
    MARKED_TEXTS,
    NUMBERS,
    config,
    english_lines,
    foreign_model,
    odd_strings,
    sentencepiece_tokenizer,
)

from data import tokenization, vocabulary
from data.sentencepiece_tokenizer import WORD_START, SentencePieceTokenizer

GOLDEN = golden_folder("tokenization")
SETTINGS = {"lower": False, "keep_accents": False, "digit_comma_split": True}
FRENCH = [
    "Où êtes-vous né, à l'école ou à l'hôtel ?",
    "Le garçon a mangé là-bas.",
    "où ou a à la là",
]


def ends_in_digit_comma(piece):
    return piece[-1:] == "," and piece[-2:-1].isdigit()


def without_stray_marks(raw_pieces, pieces):
    """Takes the marks out of the original's pieces that SentencePiece's own do not have."""
    rest, expected = iter(pieces), []
    for raw in raw_pieces:
        if not ends_in_digit_comma(raw):
            expected.append(next(rest))
            continue
        parts = [next(rest)]
        while parts[-1] != ",":
            parts.append(next(rest))
        if not raw.startswith(WORD_START):
            parts[0] = parts[0].removeprefix(WORD_START)
        expected += [part for part in parts if part]
    return expected


def test_golden_digits_and_commas_are_split_without_a_stray_mark():
    # A difference on purpose: the original leaves a word-start mark in a piece that has none.
    tokenizer = tokenization.load(GOLDEN / "spm_small.model")
    num_mended = 0
    for case in json.loads((GOLDEN / "spm_small_digit_comma.json").read_text()):
        expected = without_stray_marks(case["sentencepiece_raw_pieces"], case["pieces"])
        assert tokenizer.normalize(case["text"]) == case["preprocessed"]
        assert tokenizer.tokenize(case["text"]) == expected
        assert tokenizer.encode(case["text"]) == tokenizer.pieces_to_ids(expected)
        assert "".join(expected) == "".join(case["sentencepiece_raw_pieces"])
        if expected == case["pieces"]:
            assert tokenizer.encode(case["text"]) == case["ids"]
        num_mended += expected != case["pieces"]
    assert num_mended


def test_golden_pieces_are_sentencepieces_own_without_the_digit_comma_rule():
    tokenizer = tokenization.load(GOLDEN / "spm_small.model", digit_comma_split=False)
    for case in json.loads((GOLDEN / "spm_small_digit_comma.json").read_text()):
        assert tokenizer.tokenize(case["text"]) == case["sentencepiece_raw_pieces"]


def test_numbers_with_commas_are_split_and_joined_without_loss():
    tokenizer = sentencepiece_tokenizer()
    text = "On 8, May 2,013 runners left gate 12, and 7,045, more."
    pieces, ids = tokenizer.tokenize(text), tokenizer.encode(text)
    assert all(type(piece) is str for piece in pieces)
    assert "".join(pieces).replace(WORD_START, " ").strip() == text.lower()
    assert sum(piece.startswith(WORD_START) for piece in pieces) == 11
    assert not any(ends_in_digit_comma(piece) for piece in pieces)
    assert tokenizer.pieces_to_ids(tokenizer.ids_to_pieces(ids)) == ids
    assert tokenizer.unk_id not in ids


def test_a_comma_after_a_number_is_a_piece_of_its_own():
    whole = sentencepiece_tokenizer(digit_comma_split=False).tokenize(NUMBERS)
    assert any(ends_in_digit_comma(piece) for piece in whole)
    pieces = sentencepiece_tokenizer().tokenize(NUMBERS)
    assert "".join(pieces) == "".join(whole)
    assert pieces.count(",") == NUMBERS.count(", ") + NUMBERS.count("2,0") + NUMBERS.count("7,0")


def test_a_word_has_one_word_start_mark():
    tokenizer = sentencepiece_tokenizer()
    for line in [*english_lines()[:500], NUMBERS, "unknown∮ ∮ letters ∮inside"]:
        ids = np.array(tokenizer.encode(line))
        num_words = len(tokenizer.normalize(line).split())
        assert np.count_nonzero(tokenizer.word_starts[ids]) == num_words, line


def test_every_part_of_a_piece_with_several_commas_is_split():
    symbols = ["[CLS]", "[SEP]", "[MASK]", "1,2,3,", "2,"]
    model = foreign_model(pad_id=3, user_defined_symbols=symbols, vocab_size=500)
    pieces = SentencePieceTokenizer(model, SETTINGS).tokenize("x1,2,3, 2,")
    assert "".join(pieces) == "▁x1,2,3,▁2,"
    assert not any(ends_in_digit_comma(piece) for piece in pieces)


@pytest.mark.parametrize("role", ["user_defined_symbols", "control_symbols"])
def test_raw_text_gives_no_special_id_whatever_the_model_takes_special_pieces_for(role):
    symbols = ["[CLS]", "[SEP]", "[MASK]"]
    tokenizer = SentencePieceTokenizer(foreign_model(pad_id=3, **{role: symbols}), SETTINGS)
    forbidden = tokenizer.special_ids - {tokenizer.unk_id}
    lines = [*MARKED_TEXTS, *odd_strings(200)]
    ids, offsets = tokenizer.encode_lines(lines)
    assert not forbidden & set(ids.tolist())
    for line, start, end in zip(lines, offsets[:-1], offsets[1:], strict=True):
        assert tokenizer.encode(line) == ids[start:end].tolist()
        assert tokenizer.pieces_to_ids(tokenizer.tokenize(line)) == ids[start:end].tolist()


def test_an_unknown_stretch_that_spells_a_marker_is_unknown():
    model = foreign_model(
        ["a b c", "b c a"] * 9,
        pad_id=3,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        vocab_size=100,
        hard_vocab_limit=False,
    )
    tokenizer = SentencePieceTokenizer(model, SETTINGS)
    assert tokenizer.encode("a [MASK]")[-1] == tokenizer.unk_id
    assert tokenizer.tokenize("a [MASK]")[-1] == "<unk>"


def test_accented_text_decodes_to_itself_when_accents_are_kept():
    options = {"keep_accents": True, "lower": False, "vocab_size": 100, "soft_vocab_limit": True}
    tokenizer = vocabulary.train(FRENCH * 20, config(**options))
    for line in FRENCH:
        assert tokenizer.decode(tokenizer.encode(line)) == line
    assert tokenizer.encode("où") != tokenizer.encode("ou")
