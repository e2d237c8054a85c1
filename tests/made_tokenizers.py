"""Text and small vocabularies for the tests, made on the spot."""

import functools
import io
import pydoc_data.topics
import random

import sentencepiece

from data import tokenization, vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NUMBERS = "On May 8, 2017, 2,013 runners left gate 12, and 7,045, more in 1999, 2000, and 2001."
ODD_PARTS = (
    *'aBéßİ\u01c5\u0301\u0327\ufb01½²①ＡＢ，１２北京😀👨👩\u200d\ufe0f▁#[]_<>()"-–£€.,',
    *" \t\n\r\x0b\x00\x07\x85\xa0\u3000\u2028\u200b\ufeff\ufffd\xad\u202e\ud800",
    *(
        "ひらがな",
        "한국어",
        "हिन्दी",
        "שלום",
        "مرحبا",
        "ไทย",
        "3,",
        "00,",
        "1987,",
        " 2,013 ",
        "the",
        "[MASK]",
    ),
)
MARKED_TEXTS = (
    "[CLS] a [SEP] b [MASK] c",
    "x[MASK]y",
    "<pad> [PAD] <unk> [UNK]",
    "[mask] [cls] [sep]",
    "[MASK][MASK],",
)


@functools.cache
def english_lines():
    """Returns 4,000 lines of Python's own documentation."""
    text = "\n".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    return [line.strip() for line in text.splitlines() if line.strip()][:4000]


def odd_strings(number=1000, seed=0):
    """Returns strings of up to 20 parts from many scripts, with marks, blanks and controls."""
    generator = random.Random(seed)
    lengths = (generator.randrange(20) for _ in range(number))
    return ["".join(generator.choices(ODD_PARTS, k=length)) for length in lengths]


def config(**settings):
    """Returns the settings of a small vocabulary."""
    return vocabulary.VocabularyConfig(
        **{"input_file": "-", "output_dir": "-", "vocab_size": 600, **settings}
    )


@functools.cache
def sentencepiece_tokenizer(**settings):
    """Trains a small vocabulary on English, with numbers that commas follow."""
    return vocabulary.train([*english_lines(), *[NUMBERS] * 50], config(**settings))


def wordpiece_tokenizer(words=("the", "walk", "##ing", "a", "##a"), **settings):
    """Makes a WordPiece vocabulary of some words, the ASCII signs and some Chinese."""
    pieces = [*SPECIAL, *words, *"[]_<>(),.-3", "北", "京"]
    return tokenization.WordPieceTokenizer(
        "\n".join(pieces).encode(), {"lower": True, "keep_accents": False, **settings}
    )


def foreign_model(lines=None, **options):
    """Trains a SentencePiece model with the library's defaults, and returns its bytes."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines or english_lines()),
        model_writer=model,
        minloglevel=2,
        **{"vocab_size": 400, **options},
    )
    return model.getvalue()
