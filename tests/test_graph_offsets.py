import numpy as np
import pytest
import tensorflow as tf
from made_tokenizers import (
    MARKED_TEXTS,
    NUMBERS,
    english_lines,
    foreign_model,
    odd_strings,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)

from data import graph_tokenization, text_normalization, tokenization

TEXTS = [
    *map(text_normalization.without_surrogates, odd_strings()),
    *(
        "",
        " ",
        "\u0301",
        " \u0301 a\u0301\u0327\u200d\u0301 \u200b\u0301b",
        "▁▁ a▁",
        "\u200b \u200bx",
    ),
    *("ΟΔΟΣ", "İstanbul ǅΣ", "ﬁne ½ ㎏", "a\x0bb\x0c \x85c", "[CLS]\x00[MASK]", "2,013, 3,, x9,y"),
    *MARKED_TEXTS,
    NUMBERS,
    *[line for line in english_lines()[:100] if len(set(line)) > 1],
]
BOTH = (False, True)
WORDS = ("the", "walk", "##ing", "a", "##a", "##b", "é", "e", "ß", "ς", "σ", "##ς", "##σ", "1")


def with_offsets(tokenizer, texts):
    """Runs the twin inside a graph: a list of (ids, starts, ends)."""
    twin = graph_tokenization.of_tokenizer(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def run(texts):
        return twin.encode_with_offsets(texts)

    found = run(tf.constant([text.encode() for text in texts], tf.string))
    return list(zip(*(values.to_list() for values in found), strict=True))


def assert_twins(tokenizer, texts=TEXTS):
    for text, found in zip(texts, with_offsets(tokenizer, texts), strict=True):
        expected = [np.asarray(values).tolist() for values in tokenizer.encode_with_offsets(text)]
        assert list(found) == expected, repr(text)


@pytest.mark.parametrize("keep_accents", BOTH)
@pytest.mark.parametrize("lower", BOTH)
def test_offsets_of_sentencepiece_are_the_hosts_on_odd_strings(lower, keep_accents):
    settings = {"lower": lower, "keep_accents": keep_accents, "digit_comma_split": lower}
    model = sentencepiece_tokenizer().model_bytes
    assert_twins(tokenization.SentencePieceTokenizer(model, settings))


@pytest.mark.parametrize(
    "options",
    [
        {"user_defined_symbols": ["[CLS]", "[SEP]", "[MASK]"]},
        {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "normalization_rule_name": "identity"},
        {
            "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
            "byte_fallback": True,
            "remove_extra_whitespaces": False,
        },
    ],
)
def test_offsets_are_the_hosts_with_models_of_others(options):
    settings = {"lower": True, "keep_accents": False, "digit_comma_split": True}
    tokenizer = tokenization.SentencePieceTokenizer(foreign_model(pad_id=3, **options), settings)
    # U+0000 ends a text for TensorFlow; what stands for it has other bytes.
    has_bytes = "byte_fallback" in options
    assert_twins(tokenizer, [text for text in TEXTS if not (has_bytes and "\0" in text)])


@pytest.mark.parametrize("keep_accents", BOTH)
@pytest.mark.parametrize("lower", BOTH)
def test_offsets_of_wordpiece_are_the_hosts_on_odd_strings(lower, keep_accents):
    long_words = ["a" * 200, "é" + "a" * 201 + " the", "walkinga " * 30]
    tokenizer = wordpiece_tokenizer(WORDS, lower=lower, keep_accents=keep_accents)
    assert_twins(tokenizer, [*TEXTS, *long_words])


def test_no_texts_have_no_pieces():
    for tokenizer in (sentencepiece_tokenizer(), wordpiece_tokenizer()):
        assert with_offsets(tokenizer, []) == []
        assert_twins(tokenizer, ["", " \t", "\u200b"])
