"""What an export makes of text is what predict.py makes of it."""

import sys

import made_exports
import made_folders
import made_tokenizers
import numpy as np
import pytest
import tensorflow as tf
from made_exports import STORY, strings

from data import text_normalization
from predictor import from_folder

ODD = [text_normalization.without_surrogates(text) for text in made_tokenizers.odd_strings(1000)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_exports.maker(tmp_path_factory)


@pytest.mark.parametrize("kind", ["classes", "number"])
def test_odd_strings_give_what_predict_gives(kind, made):
    folder, out, _ = made(kind)
    served = tf.saved_model.load(str(out)).signatures["text"]
    predictor = from_folder(folder, long_texts="cut")
    for texts in (ODD[:1], ODD[:3], ODD):
        others = ["", *texts[:-1]]
        found = served(text=strings(texts), text_b=strings(others))
        expected = predictor.classify(list(zip(texts, others, strict=True)))
        if kind == "number":
            numbers = [row["number"] for row in expected]
            np.testing.assert_allclose(found["number"], numbers, atol=1e-5)
            continue
        wanted = [
            [row["probabilities"][label] for label in made_folders.LABELS] for row in expected
        ]
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)
        assert [label.decode() for label in found["label"].numpy()] == [
            row["label"] for row in expected
        ]


@pytest.mark.parametrize("kind", ["span", "answerable"])
def test_a_fresh_process_answers_as_predict_does(kind, made, tmp_path):
    folder, out, _ = made(kind)
    asked = ["who opens the letter ?", "", "who finds it ?", "what ?"]
    contexts = [STORY * 5, STORY, "ＴＨＥ ó́ld 👩‍👩 fox , 北京　the river .", " "]
    given = {"question": asked, "context": contexts}
    cases = {
        f"text-0/{name}": strings(texts).numpy().astype(bytes) for name, texts in given.items()
    }
    np.savez(tmp_path / "given.npz", **cases)
    files = (tmp_path / f"{name}.npz" for name in made_exports.FILES)
    made_exports.succeed([sys.executable, "-c", made_exports.SERVE, out, *files], tmp_path)
    found = np.load(tmp_path / "found.npz")
    for number, row in enumerate(from_folder(folder).answer(asked, contexts)):
        assert found["text-0/answer"][number] == (row["answer"] or "")
        assert found["text-0/start"][number] == (-1 if row["start"] is None else row["start"])
        assert found["text-0/probability"][number] == pytest.approx(row["probability"], abs=1e-5)
        if kind == "answerable":
            odds = found["text-0/null_odds"][number]
            assert odds == pytest.approx(row["null_odds"], abs=1e-5)


def test_long_texts_are_read_in_windows_where_the_model_was_trained_so(tmp_path_factory):
    make = made_exports.maker(tmp_path_factory)
    folder, out, exported = make("classes", long_texts="windows")
    assert exported.reading.long_texts == from_folder(folder).reading.long_texts == "windows"
    texts = [" ".join([STORY] * 5), STORY, "", "fox", " ".join(["fox"] * 31)]
    others = ["", " ".join([STORY] * 2), " ".join([STORY] * 5), "river", "the"]
    served = tf.saved_model.load(str(out)).signatures["text"]
    found = served(text=strings(texts), text_b=strings(others))["probabilities"].numpy()
    pairs = list(zip(texts, others, strict=True))
    rows = from_folder(folder).classify(pairs)
    expected = [list(row["probabilities"].values()) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_several_labels_are_told_apart(made):
    folder, out, _ = made("multilabel")
    texts = [STORY, "the fox .", "a river"]
    found = tf.saved_model.load(str(out)).signatures["text"](
        text=strings(texts), text_b=strings([""] * 3)
    )
    names = np.array([label.decode() for label in found["labels"].numpy()])
    for row, expected in zip(
        found["is_label"].numpy(), from_folder(folder).classify(texts), strict=True
    ):
        assert names[row].tolist() == expected["labels"]


def test_masks_vectors_and_order_are_those_of_predict(made):
    folder, out, _ = made("pretraining")
    served = tf.saved_model.load(str(out)).signatures["text"]
    predictor = from_folder(folder)
    texts = ["the old [MASK] .", "[MASK] fox [MASK][MASK] river .", "the fox ."]
    found = {n: t.numpy() for n, t in served(text=strings(texts), text_b=strings([""] * 3)).items()}
    assert found["num_masks"].tolist() == [1, 3, 0]
    for number, masks in enumerate(predictor.fill_mask(texts[:2])):
        for place, ranked in enumerate(masks):
            pieces = [piece.decode() for piece in found["mask_pieces"][number, place]]
            assert pieces == [row["piece"] for row in ranked]
            np.testing.assert_allclose(
                found["mask_probabilities"][number, place],
                [row["probability"] for row in ranked],
                atol=1e-6,
            )
    for pooling in ("mean", "pooled"):
        vectors = predictor.embed(["the fox ."], pooling)
        np.testing.assert_allclose(found[pooling][2:], vectors, atol=1e-5)
    pair = ("the fox .", "the river .")
    order = served(text=strings(pair[:1]), text_b=strings(pair[1:]))["order"][0, 1]
    assert float(order) == pytest.approx(predictor.order([pair])[0], abs=1e-6)


def test_choices_are_those_of_predict_in_blanks_and_behind(made):
    folder, out, _ = made("choice")
    questions = [
        "the _ fox",
        " what does ___ find and __ ? ",
        "who opens the letter ?",
        "\u3000_\uff3f",
        " the _ fox finds the river . then the young sailor opens the letter near the window",
        "the fox _ finds the river then the sailor opens the letter near the old window",
    ]
    options = [[" old ", "young", "red"], ["the fox", "sailor", "a"], ["the sailor", "fox", ""]]
    options += [["river", "b _ c", "\t9"], ["old", " red ", ""], ["red", "blue", "sailor"]]
    contexts = [STORY, STORY * 4, "the fox .", "", STORY, STORY]
    served = tf.saved_model.load(str(out)).signatures["text"]
    found = served(
        context=strings(contexts),
        question=strings(questions),
        options=tf.stack([strings(row) for row in options]),
    )
    predictor = from_folder(folder, long_texts="cut")
    there = [[option for option in row if option] for row in options]
    for number, row in enumerate(predictor.choose(questions, there, contexts)):
        size = len(there[number])
        probabilities = found["probabilities"].numpy()[number]
        np.testing.assert_allclose(probabilities[:size], row["probabilities"], atol=1e-5)
        assert not probabilities[size:].any()
        assert int(found["choice"][number]) == row["choice"]
