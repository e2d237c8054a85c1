"""What is too long is refused, or cut as in training."""

import made_folders
import pytest
from made_folders import CONTEXT

from predictor import from_folder

WORDS = " ".join(["sailor"] * 40)  # A piece each.


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


LONG = {
    "a text": ("classes", lambda p: p.classify(["the", WORDS]), "at most 32 pieces.* 42 pieces"),
    "a pair": ("classes", lambda p: p.classify([("the", WORDS)]), "at most 32 pieces.* 44 pieces"),
    "an embedding": ("span", lambda p: p.embed([WORDS]), "at most 32 pieces.* 42 pieces"),
    "segments": ("pretraining", lambda p: p.order([(WORDS, "a")]), "at most 32 .* 44 pieces"),
    "masks": ("pretraining", lambda p: p.fill_mask([f"[MASK] {WORDS}"]), "at most 32 .* 43 "),
    "a passage": ("choice", lambda p: p.choose(["a"], [["b", "c"]], WORDS), "at most 32 .* 45 "),
    "an option": (
        "choice",
        lambda p: p.choose(["fox " * 10], [["b", "fox fox fox"]], "red"),
        "option must have at most 12 pieces together.* 13 pieces",
    ),
    "a question": ("span", lambda p: p.answer(["fox " * 9], CONTEXT), "at most 8 pieces.* 9 "),
}


@pytest.mark.parametrize("what", LONG)
def test_what_is_too_long_is_refused_with_both_numbers_or_cut(what, made):
    name, ask, numbers = LONG[what]
    folder, _, predictor = made(name)
    with pytest.raises(ValueError, match=numbers):
        ask(predictor)
    cutting = from_folder(folder, long_texts="cut")
    if what == "masks":  # One of them could be lost.
        with pytest.raises(ValueError, match=numbers):
            ask(cutting)
    else:
        assert len(ask(cutting)) in (1, 2)


def test_what_is_cut_is_read_as_its_beginning(made):
    folder, _, predictor = made("classes")
    short = " ".join(["sailor"] * 30)
    (expected,) = predictor.classify([short])
    (found,) = from_folder(folder, long_texts="cut").classify([WORDS])
    assert found == expected


def test_a_longer_text_may_be_asked_for_up_to_the_table_of_positions(made):
    folder, _, _ = made("classes")
    assert len(from_folder(folder, max_seq_length=42).classify([WORDS])) == 1
    with pytest.raises(ValueError, match="max_seq_length=49, max_position_embeddings=48"):
        from_folder(folder, max_seq_length=49)
