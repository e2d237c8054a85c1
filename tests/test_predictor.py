"""What a predictor says is what its model, called by hand, and the task's own program say."""

import json

import made_folders
import numpy as np
import programs
import pytest
import tensorflow as tf
from made_folders import CONTEXT, MASKED, PAIRS, QUESTIONS, TEXTS

from evaluation import metrics, prediction_files
from predictor import from_folder

WORDS = " ".join(["sailor"] * 40)  # A piece each.


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


def test_masks_get_the_pieces_and_probabilities_of_the_model(made):
    folder, model, predictor = made("pretraining")
    pieces = predictor.trained.tokenizer.pieces
    for text, masks in zip(MASKED, predictor.fill_mask(MASKED, top_k=4), strict=True):
        batch = made_folders.by_hand(folder, text, marked=True)
        mask_id = predictor.trained.tokenizer.mask_id
        places = np.flatnonzero(batch["input_ids"][0] == mask_id)
        batch["masked_lm_positions"] = tf.constant([places], tf.int32)
        expected = tf.nn.softmax(model(batch)["masked_lm_logits"][0]).numpy()
        assert len(masks) == len(places) == text.count("[MASK]")
        for ranked, row in zip(masks, expected, strict=True):
            best = np.argsort(-row)[:4]
            assert [one["piece"] for one in ranked] == [pieces[i] for i in best]
            found = [one["probability"] for one in ranked]
            np.testing.assert_allclose(found, row[best], rtol=1e-5)


def test_all_pieces_may_be_ranked_and_their_probabilities_add_up_to_1(made):
    _, _, predictor = made("pretraining")
    ((ranked,),) = predictor.fill_mask(["the [MASK] ."], top_k=10**6)
    assert sorted(one["piece"] for one in ranked) == sorted(predictor.trained.tokenizer.pieces)
    assert sum(one["probability"] for one in ranked) == pytest.approx(1, abs=1e-5)


def test_order_is_the_probability_that_the_segments_are_swapped(made):
    folder, model, predictor = made("pretraining")
    found = predictor.order(PAIRS)
    for pair, probability in zip(PAIRS, found, strict=True):
        pooled = model.encoder(made_folders.by_hand(folder, *pair))["pooled_output"]
        expected = tf.nn.softmax(model.sentence_order(pooled))[0, 1]
        assert probability == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("kind", ["classes", "multilabel", "number"])
def test_texts_and_pairs_are_classified_as_by_hand(kind, made):
    folder, model, predictor = made(kind)
    asked = [TEXTS[0], PAIRS[0], TEXTS[1], PAIRS[1]]
    for text, found in zip(asked, predictor.classify(asked), strict=True):
        texts = [text] if isinstance(text, str) else text
        logits = model(made_folders.by_hand(folder, *texts))["logits"].numpy()
        if kind == "number":
            assert found == {"number": pytest.approx(float(logits[0, 0]), abs=1e-5)}
            continue
        expected = metrics.probabilities(logits, kind)[0]
        assert list(found["probabilities"]) == list(made_folders.LABELS)
        values = list(found["probabilities"].values())
        np.testing.assert_allclose(values, expected, atol=1e-6)
        if kind == "classes":
            best = made_folders.LABELS[np.argmax(expected)]
            assert (found["label"], found["probability"]) == (best, max(values))
        else:
            names = [n for n, p in zip(made_folders.LABELS, expected, strict=True) if p > 0.5]
            assert found["labels"] == names


@pytest.mark.parametrize("long_texts", ["refuse", "cut", "windows", "as trained"])
def test_classes_are_those_of_run_classifier(long_texts, made, tmp_path):
    folder, _, _ = made("classes")
    theirs = {"long_texts": "cut" if long_texts == "refuse" else long_texts}
    if long_texts == "as trained":  # The folder of a run with windows says so.
        folder, long_texts, theirs = tmp_path / "model", None, {}
        folder.mkdir()
        made_folders.write(folder, "classes", long_texts="windows")
    texts = TEXTS if long_texts == "refuse" else [*TEXTS, "old fox " * 30, "red sailor " * 16]
    rows = "".join(f"{text}\tgood\n" for text in texts)
    (tmp_path / "dev.tsv").write_text(f"text\tlabel\n{rows}")
    columns = {"text_columns": "text", "label_column": "label", "labels": "bad,fair,good"}
    result = programs.call(
        "run_classifier",
        task="custom",
        dev_file=tmp_path / "dev.tsv",
        do_train=False,
        init_checkpoint=folder,
        output_dir=tmp_path / "out",
        **theirs,
        **columns,
    )
    printed = programs.succeed(result).stdout
    in_windows = long_texts in (None, "windows")
    assert in_windows == (f"dev: {len(texts)} examples" not in printed)
    theirs = prediction_files.read(prediction_files.path_of(tmp_path / "out", "dev"))
    predictor = from_folder(folder, long_texts=long_texts, batch_size=2)
    assert predictor.reading.long_texts == (long_texts or "windows")
    for row, found in zip(theirs, predictor.classify(texts), strict=True):
        assert row["prediction"] == found["label"]
        values = list(found["probabilities"].values())
        np.testing.assert_allclose(values, row["probabilities"], atol=2e-6)


def test_choices_are_those_of_run_race(made, tmp_path):
    folder, model, predictor = made("choice")
    questions, options = ["the _ fox", "then _ . the sailor"], [["old", "red horse"], list("abc")]
    passage = {"id": "p", "article": CONTEXT, "questions": questions, "options": options}
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "all.txt").write_text(json.dumps(passage))
    flags = {"do_train": False, "do_eval": False, "do_predict": True, "init_checkpoint": folder}
    result = programs.call("run_race", data_dir=tmp_path, output_dir=tmp_path / "out", **flags)
    programs.succeed(result)
    theirs = prediction_files.read(prediction_files.path_of(tmp_path / "out", "test"))
    found = predictor.choose(questions, options, CONTEXT)
    for row, one, texts in zip(theirs, found, options, strict=True):
        assert (row["prediction"], texts[row["prediction"]]) == (one["choice"], one["option"])
        np.testing.assert_allclose(one["probabilities"], row["probabilities"], atol=2e-6)
        assert one["probability"] == max(one["probabilities"])


@pytest.mark.parametrize("kind", ["span", "answerable"])
def test_answers_are_those_of_run_squad_and_stand_where_they_say(kind, made, tmp_path):
    folder, _, predictor = made(kind)
    qas = [{"id": str(n), "question": text} for n, text in enumerate(QUESTIONS)]
    content = {"data": [{"paragraphs": [{"context": CONTEXT, "qas": qas}]}]}
    (tmp_path / "asked.json").write_text(json.dumps(content))
    flags = {"do_train": False, "init_checkpoint": folder, "output_dir": tmp_path / "out"}
    result = programs.call("run_squad", predict_file=tmp_path / "asked.json", **flags)
    programs.succeed(result)
    n_best = json.loads((tmp_path / "out" / "nbest_predictions.json").read_text())
    predictions = json.loads((tmp_path / "out" / "predictions.json").read_text())
    for number, found in enumerate(predictor.answer(QUESTIONS, CONTEXT)):
        best = n_best[str(number)][0]
        assert found["best"] == best["text"] == CONTEXT[found["start"] : found["end"]]
        assert found["probability"] == pytest.approx(best["probability"], abs=1e-5)
        assert predictions[str(number)] == (found["answer"] or "")
    if kind == "answerable":
        null_odds = json.loads((tmp_path / "out" / "null_odds.json").read_text())
        for number, found in enumerate(predictor.answer(QUESTIONS, CONTEXT)):
            assert found["null_odds"] == pytest.approx(null_odds[str(number)], abs=1e-5)
            assert found["threshold"] == 0
            assert (found["answer"] is None) == (found["null_odds"] > 0)


def test_a_context_of_no_text_has_no_answer(made):
    for kind in ("span", "answerable"):
        _, _, predictor = made(kind)
        (found,) = predictor.answer(["the letter"], " ")
        assert found["answer"] is None and found["start"] is None


def test_a_threshold_that_was_tuned_for_the_model_decides(tmp_path):
    made_folders.write(tmp_path, "answerable")
    kept = {"value": 1e9, "source": "tuned on dev.json"}
    (tmp_path / "null_threshold.json").write_text(json.dumps(kept))
    (found,) = from_folder(tmp_path).answer(QUESTIONS[:1], [CONTEXT])
    assert found["threshold"] == 1e9 and found["answer"] == found["best"] is not None


MISTAKES = {
    "a text by itself": (lambda p: p.classify("the"), "A list of at least one text.*'the'"),
    "no text": (lambda p: p.embed([]), "A list of at least one text"),
    "three texts": (lambda p: p.embed([("a", "b", "c")]), "a pair of them"),
    "a number": (lambda p: p.embed([["a", 3]]), "a pair of them"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_what_is_no_list_of_texts_is_refused(what, made):
    ask, message = MISTAKES[what]
    with pytest.raises(ValueError, match=message):
        ask(made("classes")[2])


def test_a_segment_alone_has_no_order(made):
    for pair in ("the", ("the", "")):
        with pytest.raises(ValueError, match="Two segments must be given"):
            made("pretraining")[2].order([pair])


def test_contexts_and_options_must_be_as_many_as_they_must(made):
    with pytest.raises(ValueError, match="2 contexts, 1 questions"):
        made("span")[2].answer(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="must be 2 to 5. Received: 1"):
        made("choice")[2].choose(["a"], [["b"]], "c")
    with pytest.raises(ValueError, match="1 lists of options, 2 questions"):
        made("choice")[2].choose(["a", "b"], [["b", "c"]], "c")


def test_settings_out_of_range_are_refused(made):
    folder, _, predictor = made("pretraining")
    with pytest.raises(ValueError, match="`batch_size`"):
        from_folder(folder, batch_size=0)
    with pytest.raises(ValueError, match="`long_texts`.*'drop'"):
        from_folder(folder, long_texts="drop")
    with pytest.raises(ValueError, match="`top_k`"):
        predictor.fill_mask(MASKED, top_k=0)
