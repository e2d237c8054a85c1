"""Answers from a graph are the host's: windows first, then the whole way from text."""

import functools
import json
import random

import made_folders
import made_tokenizers
import numpy as np
import pytest
import tensorflow as tf

from data import (
    graph_tokenization,
    graph_windows,
    length_batches,
    span_windows,
    text_normalization,
)
from predictor import from_folder
from serving import exported_model, prediction_features, trained_models

STORY = "the old fox finds the river . then the young sailor opens the letter ,"
WORDS = STORY.split()
ODD = [
    text
    for text in map(text_normalization.without_surrogates, made_tokenizers.odd_strings(60))
    if text
]


def contexts(seed=0):
    """Returns texts of no piece, of one window, and of several, odd ones among them."""
    generator = random.Random(seed)
    long = [" ".join(generator.choices(WORDS + ODD, k=size)) for size in (3, 30, 60, 9, 90)]
    blanks = ["", " \t\u3000", "\u200b", "  the   fox \u3000 finds\n\n", "the\u0301 fo\u0301x"]
    return [*long, *blanks, "北京 is Ｂｅｉｊｉｎｇ 👩\u200d👩 .", *ODD[:9]]


def questions(number):
    generator = random.Random(number)
    return [" ".join(generator.choices(WORDS, k=number % 14)) for number in range(number)]


def strings(values):
    return tf.constant([value.encode() for value in values])


@pytest.mark.parametrize("doc_stride", [1, 6, 100])
def test_windows_are_the_hosts(doc_stride):
    tokenizer = made_tokenizers.sentencepiece_tokenizer()
    settings = span_windows.WindowSettings(40, doc_stride, 12)
    asked = prediction_features.question_set(questions(20), contexts())
    made, windows, _ = span_windows.make_windows(asked, tokenizer, settings)
    twin = graph_tokenization.of_tokenizer(tokenizer)
    batch, found = graph_windows.make_windows(
        twin.encode(strings([question.text for question in asked.questions])),
        twin.encode_with_offsets(strings(contexts())),
        twin.special_ids,
        settings,
    )
    assert found.question_index.numpy().tolist() == windows.question_index.tolist()
    expected = length_batches.pad(made, np.arange(len(made)), len(made), 40)
    for name, values in batch.items():
        np.testing.assert_array_equal(values, expected[name][:, : values.shape[1]], name)
    for number in range(len(windows)):
        here = slice(windows.offsets[number], windows.offsets[number + 1])
        length = here.stop - here.start
        for name in ("character_starts", "character_ends", "is_max_context"):
            row = getattr(found, name)[number].numpy()
            np.testing.assert_array_equal(row[:length], getattr(windows, name)[here], name)
            assert (row[length:] <= 0).all()


@functools.cache
def tokenizers():
    return {
        "sentencepiece": made_tokenizers.sentencepiece_tokenizer(),
        "wordpiece": made_tokenizers.wordpiece_tokenizer(WORDS),
    }


def write(folder, kind, name, threshold):
    """Writes a model folder of one of the tokenizers."""
    made_folders.write(folder, kind, tokenizer=tokenizers()[name])
    if threshold is not None:
        kept = {"value": threshold, "source": "tuned on dev"}
        (folder / "null_threshold.json").write_text(json.dumps(kept))


@pytest.mark.parametrize("name", ["sentencepiece", "wordpiece"])
@pytest.mark.parametrize("kind", ["span", "answerable"])
def test_answers_are_those_of_predict(kind, name, tmp_path):
    write(tmp_path, kind, name, None)
    expected = from_folder(tmp_path, long_texts="cut").answer(questions(20), contexts())
    threshold = None
    if kind == "answerable":
        threshold = float(np.median([row["null_odds"] for row in expected]) + 1e-4)
        write(tmp_path, kind, name, threshold)
        expected = from_folder(tmp_path, long_texts="cut").answer(questions(20), contexts())
    exported = exported_model.ExportedModel(trained_models.load(tmp_path))
    run = tf.function(exported.from_text, autograph=False)
    found = run(question=strings(questions(20)), context=strings(contexts()))
    found = {name: values.numpy() for name, values in found.items()}
    unanswered = 0
    for number, row in enumerate(expected):
        assert found["answer"][number].decode() == (row["answer"] or "")
        assert found["best"][number].decode() == (row["best"] or "")
        unanswered += row["answer"] is None
        for place in ("start", "end"):
            assert found[place][number] == (-1 if row[place] is None else row[place])
        for figure in ("probability", "null_odds", "threshold"):
            if figure in row:
                assert found[figure][number] == pytest.approx(row[figure], abs=1e-5)
        context, start, end = contexts()[number], found["start"][number], found["end"][number]
        assert context[max(start, 0) : max(end, 0)] == found["best"][number].decode()
    assert unanswered >= (10 if kind == "answerable" else 1)
