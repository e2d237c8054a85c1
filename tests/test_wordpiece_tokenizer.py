import json

from conftest import golden_folder
from made_tokenizers import wordpiece_tokenizer

from data import wordpiece_tokenizer as wordpiece

GOLDEN = golden_folder("tokenization")
IDS = {piece: number for number, piece in enumerate(["un", "##aff", "##able", "##a", "b", "##b"])}


def test_a_golden_word_list_with_odd_lines_is_read_as_the_original_reads_it():
    text = (GOLDEN / "vocab_odd.txt").read_bytes().decode()
    pieces = wordpiece.read_vocabulary(text)
    expected = json.loads((GOLDEN / "vocab_odd_loaded.json").read_text())
    assert {piece: number for number, piece in enumerate(pieces)} == expected


def test_a_word_list_may_have_windows_line_ends_and_a_byte_order_mark():
    plain = wordpiece_tokenizer()
    mended = type(plain)(
        b"\xef\xbb\xbf" + plain.model_bytes.replace(b"\n", b"\r\n"),
        {"lower": True, "keep_accents": False},
    )
    assert mended.pieces == plain.pieces


def test_the_longest_piece_is_taken_first():
    assert wordpiece.longest_matches("unaffable", IDS, "?") == ["un", "##aff", "##able"]
    assert wordpiece.longest_matches("unaab", IDS, "?") == ["un", "##a", "##a", "##b"]


def test_a_word_that_cannot_be_cut_is_unknown_as_a_whole():
    assert wordpiece.longest_matches("unaffx", IDS, "?") == ["?"]


def test_a_word_of_more_than_200_characters_is_unknown():
    assert wordpiece.longest_matches("b" * 200, IDS, "?") == ["b"] + ["##b"] * 199
    assert wordpiece.longest_matches("b" * 201, IDS, "?") == ["?"]


def test_a_long_run_is_cut_like_a_short_one():
    tokenizer = wordpiece_tokenizer()
    run = "北京" * wordpiece.LONGEST_CACHED_RUN
    assert tokenizer.encode(run) == tokenizer.encode("北京") * wordpiece.LONGEST_CACHED_RUN


def test_a_continuation_starts_no_word():
    tokenizer = wordpiece_tokenizer()
    ids = tokenizer.encode("the walking")
    assert tokenizer.word_starts[ids].tolist() == [True, True, False]
    assert tokenizer.word_starts[list(tokenizer.special_ids)].all()
