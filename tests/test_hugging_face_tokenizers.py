"""AutoTokenizer, on the files that are written, gives the ids that the tokenizer itself gives."""

import json
import unicodedata

import made_tokenizers
import pytest
from conftest import spm_model_file

from data import hugging_face_tokenizers, tokenization
from folders import model_folder

TEXTS = [
    *made_tokenizers.odd_strings(),
    *made_tokenizers.english_lines()[:1500],
    *made_tokenizers.MARKED_TEXTS,
    made_tokenizers.NUMBERS,
    "ΟΔΥΣΣΕΥΣ Σ ΑΣ. ``quoted'' 1,000,000 and 3,50",
    "x" * 150,
]
TEXTS = [text.replace("\ud800", "\ufffd") for text in TEXTS]  # Rust's strings hold no halves.
# With accents kept, a mark behind a ligature is joined to its last letter there, and not here.
TEXTS = [text for text in TEXTS if "\ufb01\u0301" not in text]


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def auto(transformers, tokenizer, folder):
    """Returns what AutoTokenizer loads from a folder that holds no code and an ALBERT's config."""
    (folder / "config.json").write_text(json.dumps({"model_type": "albert"}))
    hugging_face_tokenizers.write(str(folder), tokenizer, 512)
    return transformers.AutoTokenizer.from_pretrained(folder)


def different(tokenizer, theirs, texts=TEXTS):
    return [
        text
        for text in texts
        if tokenizer.encode(text, allow_markers=True)
        != theirs(text, add_special_tokens=False)["input_ids"]
    ]


def made(kind, **settings):
    if kind == "wordpiece":
        return made_tokenizers.wordpiece_tokenizer(**settings)
    trained = made_tokenizers.sentencepiece_tokenizer()
    settings = {"digit_comma_split": True, "keep_accents": False, "lower": True, **settings}
    return type(trained)(trained.model_bytes, settings)


SETTINGS = [
    ("wordpiece", {}),
    ("wordpiece", {"lower": False}),
    ("wordpiece", {"keep_accents": True}),
    ("sentencepiece", {}),
    ("sentencepiece", {"lower": False}),
    ("sentencepiece", {"digit_comma_split": False}),
    ("sentencepiece", {"keep_accents": True}),
]


@pytest.mark.parametrize(("kind", "settings"), SETTINGS, ids=str)
def test_auto_tokenizer_gives_equal_ids_and_our_reader_the_same_tokenizer(
    kind, settings, tmp_path, transformers
):
    tokenizer = made(kind, **settings)
    theirs = auto(transformers, tokenizer, tmp_path)
    texts = TEXTS
    if kind == "sentencepiece":  # Runs of one sign can be cut in ways that are equally likely.
        texts = [text for text in texts if not any(6 * sign in text for sign in "=*-+~^_.")]
    assert len(texts) > 2000 and different(tokenizer, theirs, texts) == []
    again = model_folder.read_tokenizer(tmp_path)
    assert again.fingerprint == tokenizer.fingerprint


@pytest.mark.parametrize("keep_accents", [False, True])
def test_the_released_vocabulary_gives_equal_ids_on_every_odd_string(
    keep_accents, tmp_path, transformers
):
    tokenizer = tokenization.load(spm_model_file(), keep_accents=keep_accents)
    assert different(tokenizer, auto(transformers, tokenizer, tmp_path)) == []


def test_pairs_have_markers_and_segments_and_batches_are_padded(tmp_path, transformers):
    tokenizer = made("sentencepiece")
    theirs = auto(transformers, tokenizer, tmp_path)
    first, second = tokenizer.encode("a question"), tokenizer.encode("an answer or two")
    found = theirs(["a question", "?"], ["an answer or two", "!"], padding=True)
    expected = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
    assert found["input_ids"][0] == expected
    assert found["token_type_ids"][0] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert found["input_ids"][1][-1] == tokenizer.pad_id and not found["attention_mask"][1][-1]
    assert theirs.mask_token_id == tokenizer.mask_id and theirs.model_max_length == 512


def test_the_marks_that_are_dropped_are_those_with_a_combining_class():
    import re

    pattern = hugging_face_tokenizers.combining_marks()
    pattern = re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: chr(int(m[1], 16)), pattern)
    dropped = re.compile(f"[{pattern}]")
    for number in range(0x110000):
        assert bool(dropped.match(chr(number))) == bool(unicodedata.combining(chr(number)))


def test_a_model_of_another_kind_is_refused(tmp_path):
    symbols = {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "pad_id": 3}
    model = made_tokenizers.foreign_model(model_type="bpe", **symbols)
    settings = {"lower": True, "keep_accents": False, "digit_comma_split": True}
    tokenizer = tokenization.SentencePieceTokenizer(model, settings)
    with pytest.raises(ValueError, match="unigram"):
        hugging_face_tokenizers.write(str(tmp_path), tokenizer, 512)
