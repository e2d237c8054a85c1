import json
import unicodedata

import pytest
from conftest import golden_folder

from data import text_normalization

GOLDEN = golden_folder("tokenization")


@pytest.mark.parametrize(("name", "lower"), [("lower", True), ("cased", False)])
def test_golden_text_is_normalized_as_the_original_does(name, lower):
    for line in (GOLDEN / "spm.jsonl").read_text().splitlines():
        case = json.loads(line)
        normalized = text_normalization.normalize(case["text"], lower=lower)
        assert normalized == case[name]["preprocessed"]


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("  two \t\n words ", "two words"),
        ("Ｆｕｌｌ，１２", "full,12"),
        ("e\u0301\u0327 é", "e e"),
        ("ΣΊΣΥΦΟΣ", "σισυφος"),
        ("half \ud800 character", "half \ufffd character"),
    ],
)
def test_text_is_normalized(text, normalized):
    assert text_normalization.normalize(text) == normalized


def test_kept_accents_leave_text_composed():
    text = "Vi\u1ec7t ＡＢ"
    assert text_normalization.normalize(text, lower=False, keep_accents=True) == text


@pytest.mark.parametrize(
    ("run", "tokens"),
    [
        ("Don't", ["don", "'", "t"]),
        ("a^b$c`d", ["a", "^", "b", "$", "c", "`", "d"]),
        ("mix中文text", ["mix", "中", "文", "text"]),
        ("ひらがな", ["ひらかな"]),
        ("한국어", [unicodedata.normalize("NFD", "한국어")]),
        ("na\xefve\u200b\ufffd", ["naive"]),
        ("\x7f\x00", []),
        ("“quoted”—", ["“", "quoted", "”", "—"]),
    ],
)
def test_words_and_signs_stand_apart(run, tokens):
    assert text_normalization.basic_tokens(run) == tokens


def test_accents_of_cased_words_stay():
    assert text_normalization.basic_tokens("Éa", lower=False) == ["Éa"]
    assert text_normalization.basic_tokens("Éa") == ["ea"]
    assert text_normalization.basic_tokens("Éa", keep_accents=True) == ["éa"]


def test_control_characters_that_look_like_blanks_do_not_split():
    assert text_normalization.split_at_blanks("a\x0bb\x85c d\u2028e\xa0f") == ["abc", "d", "e", "f"]
