import re
import sys
import unicodedata

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

from data import graph_characters, graph_tokenization, text_normalization, tokenization

SIGMAS = [
    "ΟΔΟΣ",
    "ΣΑΣ ΑΣ.",
    "Σ",
    "ΑΣ\u0301Β",
    "ΑΣ\u0301",
    "ΑΣ'Σ'",
    "ǅΣ",
    "1Σ",
    "ΑΣ\u200b",
    "ΑΣ\n\u00adΣ",
]
TEXTS = [
    *map(text_normalization.without_surrogates, odd_strings()),
    *SIGMAS,
    *MARKED_TEXTS,
    NUMBERS,
    *[line for line in english_lines()[:200] if len(set(line)) > 1],
]
BOTH = (False, True)


def encode(tokenizer, texts, allow_markers=False):
    """Runs the twin inside a graph and returns a list of lists of ids."""
    twin = graph_tokenization.of_tokenizer(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def run(texts):
        return twin.encode(texts, allow_markers)

    return run(tf.constant([text.encode() for text in texts], tf.string)).to_list()


def assert_twins(tokenizer, texts=TEXTS, allow_markers=False):
    for text, ids in zip(texts, encode(tokenizer, texts, allow_markers), strict=True):
        assert ids == tokenizer.encode(text, allow_markers), repr(text)


def normalized(texts, twin):
    characters = twin._normalize(graph_characters.of_texts(texts))
    return graph_characters.to_texts(characters, tf.size(texts, tf.int64))


@pytest.mark.parametrize("digit_comma_split", BOTH)
@pytest.mark.parametrize("keep_accents", BOTH)
@pytest.mark.parametrize("lower", BOTH)
def test_sentencepiece_ids_are_the_hosts_on_odd_strings(lower, keep_accents, digit_comma_split):
    settings = {"lower": lower, "keep_accents": keep_accents}
    assert_twins(
        tokenization.SentencePieceTokenizer(
            sentencepiece_tokenizer().model_bytes,
            {**settings, "digit_comma_split": digit_comma_split},
        )
    )


@pytest.mark.parametrize("keep_accents", BOTH)
@pytest.mark.parametrize("lower", BOTH)
def test_wordpiece_ids_are_the_hosts_on_odd_strings(lower, keep_accents):
    words = (
        "the",
        "walk",
        "##ing",
        "a",
        "##a",
        "##b",
        "é",
        "e",
        "ß",
        "ς",
        "σ",
        "##ς",
        "##σ",
        "1",
        "１",
    )
    long_words = ["a" * 199, "a" * 200, "a" * 201, "é" * 200, "a" * 5000, "walkinga " * 30]
    tokenizer = wordpiece_tokenizer(words, lower=lower, keep_accents=keep_accents)
    assert_twins(tokenizer, [*TEXTS, *long_words])


@pytest.mark.parametrize("role", ["user_defined_symbols", "control_symbols"])
def test_markers_stand_for_themselves_only_where_they_are_allowed(role):
    model = foreign_model(pad_id=3, **{role: ["[CLS]", "[SEP]", "[MASK]"]})
    settings = {"lower": True, "keep_accents": False, "digit_comma_split": True}
    texts = [*MARKED_TEXTS, *TEXTS[:200], "", " ", "[MASK]", "a[MASK]", "[MASK] a", "[MASK"]
    for tokenizer in (
        tokenization.SentencePieceTokenizer(model, settings),
        sentencepiece_tokenizer(),
        wordpiece_tokenizer(),
    ):
        for allow_markers in BOTH:
            assert_twins(tokenizer, texts, allow_markers)


def test_no_texts_and_empty_texts_give_no_ids():
    for tokenizer in (sentencepiece_tokenizer(), wordpiece_tokenizer()):
        assert encode(tokenizer, []) == []
        assert encode(tokenizer, ["", " \t\u3000", "\u200b"]) == [
            tokenizer.encode(text) for text in ("", " ", "\u200b")
        ]


@pytest.mark.parametrize("lower", BOTH)
@pytest.mark.parametrize("keep_accents", BOTH)
def test_every_character_is_normalised_as_on_the_host(lower, keep_accents):
    # Between letters, so that neighbours and blanks play their part.
    codes = [code for code in range(sys.maxunicode + 1) if code not in graph_characters.SURROGATES]
    texts = [
        "".join(f"a{chr(code)}Σ " for code in codes[n : n + 512]) for n in range(0, len(codes), 512)
    ]
    settings = {"lower": lower, "keep_accents": keep_accents}
    tokenizer = tokenization.SentencePieceTokenizer(
        sentencepiece_tokenizer().model_bytes, {**settings, "digit_comma_split": True}
    )
    twin = graph_tokenization.of_tokenizer(tokenizer)
    found = normalized(tf.constant([text.encode() for text in texts]), twin).numpy()
    for text, result in zip(texts, found, strict=True):
        assert result.decode() == tokenizer.normalize(text)


@pytest.mark.parametrize("keep_accents", BOTH)
def test_every_character_is_split_into_words_as_on_the_host(keep_accents):
    codes = [code for code in range(sys.maxunicode + 1) if code not in graph_characters.SURROGATES]
    texts = [
        "".join(f"A{chr(code)}Σ" for code in codes[n : n + 512]) for n in range(0, len(codes), 512)
    ]
    tokenizer = wordpiece_tokenizer(keep_accents=keep_accents)
    twin = graph_tokenization.of_tokenizer(tokenizer)
    words = twin._words(tf.constant([text.encode() for text in texts]))
    found = tf.strings.reduce_join(words, axis=1, separator=" ").numpy()
    for text, result in zip(texts, found, strict=True):
        assert result.decode() == tokenizer.normalize(text)


def test_bytes_that_are_no_utf_8_are_read_as_replacement_characters():
    # A graph gets bytes, the host a `str`: what a lenient reader would make of them.
    tokenizer = sentencepiece_tokenizer()
    twin = graph_tokenization.of_tokenizer(tokenizer)
    for wrong in (b"the \xff end", b"\xc3", b"caf\xe9 au", b"\xe2\x82 x", b"\xed\xa0\x80x"):
        expected = tokenizer.encode(wrong.decode("utf-8", "replace"))
        assert twin.encode(tf.constant([wrong])).to_list() == [expected]


def test_equally_likely_pieces_may_come_in_another_order_in_a_run_of_one_character():
    # A difference: the graph's SentencePiece is older and adds its scores in another order.
    tokenizer = sentencepiece_tokenizer()
    texts = ["*" * 21, "-" * 30, *english_lines()[:1000]]
    num_different = 0
    for text, ids in zip(texts, encode(tokenizer, texts), strict=True):
        host = tokenizer.encode(text)
        assert sorted(ids) == sorted(host), text
        assert ids == host or re.search(r"(.)\1{5}", text), text
        num_different += ids != host
    assert num_different < 10


def test_wordpiece_marks_in_a_row_keep_their_order_in_a_graph():
    # The one difference: canonical order swaps marks that are no accents (category Mc), such as
    # Hangul's tones, where two of them follow one another in the wrong order.
    text = "a\u302e\U0001d165"
    assert unicodedata.normalize("NFD", text) == "a\U0001d165\u302e"
    tokenizer = wordpiece_tokenizer(["a", "##\u302e", "##\U0001d165"])
    host = tokenizer.tokenize(text)
    twin = tokenizer.ids_to_pieces(np.array(encode(tokenizer, [text])[0]))
    assert host[0] == twin[0] and host[1:] == twin[:0:-1]
