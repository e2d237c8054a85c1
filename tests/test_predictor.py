"""What a predictor says is what its model, called by hand, and the task's own program say."""

import json

import made_folders
import numpy as np
import programs
import pytest
import tensorflow as tf

from data import tokenization
from evaluation import metrics, prediction_files
from predictor import from_folder

TEXTS = ["the old fox .", "then the sailor paints the river near the garden .", "first"]
PAIRS = [("the old fox .", "later the young fox ."), ("red", "the blue horse opens a letter .")]
MASKED = ["the [MASK] fox .", "first [MASK] sailor [MASK] the old [MASK] .", "[MASK]"]
CONTEXT = "the old fox finds the river . then the young sailor opens the letter near the window ."
QUESTIONS = ["the letter", "old fox river"]
WORDS = " ".join(["sailor"] * 40)  # A piece each.


@pytest.fixture(scope="module", params=made_folders.TASKS)
def any_model(request, made):
    return request.param, made(request.param)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function from a name of made_folders.TASKS to (folder, model by hand, predictor)."""
    kept = {}

    def make(name):
        if name not in kept:
            folder = tmp_path_factory.mktemp(name)
            model = made_folders.write(folder, name)
            kept[name] = folder, model, from_folder(folder, batch_size=2)
        return kept[name]

    return make


def by_hand(folder, *texts, marked=False):
    """Returns the batch of one text or pair, unpadded."""
    tokenizer = tokenization.load(folder / "tokenizer")
    ids, segments = [tokenizer.cls_id], [0]
    for number, text in enumerate(texts):
        pieces = [*tokenizer.encode(text, allow_markers=marked), tokenizer.sep_id]
        ids, segments = ids + pieces, segments + [number] * len(pieces)
    batch = {"input_ids": [ids], "input_mask": [[1] * len(ids)], "segment_ids": [segments]}
    return {name: tf.constant(values, tf.int32) for name, values in batch.items()}


def test_masks_get_the_pieces_and_probabilities_of_the_model(made):
    folder, model, predictor = made("pretraining")
    pieces = predictor.trained.tokenizer.pieces
    for text, masks in zip(MASKED, predictor.fill_mask(MASKED, top_k=4), strict=True):
        batch = by_hand(folder, text, marked=True)
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
        pooled = model.encoder(by_hand(folder, *pair))["pooled_output"]
        expected = tf.nn.softmax(model.sentence_order(pooled))[0, 1]
        assert probability == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("kind", ["classes", "multilabel", "number"])
def test_texts_and_pairs_are_classified_as_by_hand(kind, made):
    folder, model, predictor = made(kind)
    asked = [TEXTS[0], PAIRS[0], TEXTS[1], PAIRS[1]]
    for text, found in zip(asked, predictor.classify(asked), strict=True):
        texts = [text] if isinstance(text, str) else text
        logits = model(by_hand(folder, *texts))["logits"].numpy()
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


def test_classes_are_those_of_run_classifier(made, tmp_path):
    folder, _, predictor = made("classes")
    rows = "".join(f"{text}\tgood\n" for text in TEXTS)
    (tmp_path / "dev.tsv").write_text(f"text\tlabel\n{rows}")
    columns = {"text_columns": "text", "label_column": "label", "labels": "bad,fair,good"}
    result = programs.call(
        "run_classifier",
        task="custom",
        dev_file=tmp_path / "dev.tsv",
        do_train=False,
        init_checkpoint=folder,
        output_dir=tmp_path / "out",
        **columns,
    )
    programs.succeed(result)
    theirs = prediction_files.read(prediction_files.path_of(tmp_path / "out", "dev"))
    for row, found in zip(theirs, predictor.classify(TEXTS), strict=True):
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
    flags |= {name: made_folders.SETTINGS[name] for name in ("start_n_top", "end_n_top")}
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


def test_hidden_states_are_layers_plus_1_tensors_of_hidden_width(any_model):
    """Row X17 of user-demands.md: the embedding, too, is returned after projection."""
    _, (folder, model, predictor) = any_model
    config = model.settings["config"]
    found = predictor.embed(TEXTS, pooling="cls", layer="all")
    assert found.shape == (len(TEXTS), config["num_hidden_layers"] + 1, config["hidden_size"])
    assert config["hidden_size"] != config["embedding_size"]
    for text, states in zip(TEXTS, found, strict=True):
        encoded = model.encoder(by_hand(folder, text), return_hidden_states=True)
        expected = np.stack([state[0, 0] for state in encoded["hidden_states"]])
        np.testing.assert_allclose(states, expected, atol=1e-5)


def test_each_layer_and_pooling_is_that_of_the_encoder_by_hand(made):
    folder, model, predictor = made("pretraining")
    last = model.settings["config"]["num_hidden_layers"]
    for number, text in enumerate(TEXTS):
        encoded = model.encoder(by_hand(folder, text), return_hidden_states=True)
        means = [tf.reduce_mean(state[0], axis=0) for state in encoded["hidden_states"]]
        for layer in range(-last - 1, last + 1):
            found = predictor.embed(TEXTS, layer=layer)[number]
            np.testing.assert_allclose(found, means[layer], atol=1e-5, err_msg=layer)
        found = predictor.embed(TEXTS, pooling="pooled")[number]
        np.testing.assert_allclose(found, encoded["pooled_output"][0], atol=1e-5)


@pytest.mark.parametrize("layer", [4, -5, "first", 1.0])
def test_a_layer_that_the_model_lacks_is_refused(layer, made):
    _, _, predictor = made("pretraining")
    with pytest.raises(ValueError, match=r"`layer` must lie in \[0, 3\]"):
        predictor.embed(TEXTS, layer=layer)


def test_only_the_last_layer_is_pooled(made):
    _, _, predictor = made("pretraining")
    with pytest.raises(ValueError, match="pooling=pooled, layer=1"):
        predictor.embed(TEXTS, "pooled", 1)
    with pytest.raises(ValueError, match="`pooling` must be one of .*'max'"):
        predictor.embed(TEXTS, "max")
    np.testing.assert_array_equal(
        predictor.embed(TEXTS, "pooled", 3), predictor.embed(TEXTS, "pooled")
    )


ASKED = {
    "pretraining": [
        lambda p, n: p.fill_mask(MASKED[:n]),
        lambda p, n: p.order(PAIRS[:n]),
        lambda p, n: p.embed(TEXTS[:n]),
    ],
    "classes": [lambda p, n: p.classify(TEXTS[:n])],
    "choice": [lambda p, n: p.choose(["the _"] * n, [["a", "b"], ["c", "d", "e"]][:n], CONTEXT)],
    "span": [lambda p, n: p.answer(QUESTIONS[:n], CONTEXT)],
    "answerable": [lambda p, n: p.answer(QUESTIONS[:n], CONTEXT)],
}


@pytest.mark.parametrize("name", ASKED)
def test_a_second_call_reuses_the_graph_whatever_its_size(name, made):
    """Row X13 of user-demands.md: nothing is built or loaded again."""
    folder, _, _ = made(name)
    predictor = from_folder(folder)
    for ask in ASKED[name]:
        for number in (1, 2, 1):
            assert len(ask(predictor, number)) == number
    graphs = predictor.warm.graphs
    assert len(graphs) == len(ASKED[name])
    assert [graph.experimental_get_tracing_count() for graph in graphs.values()] == [1] * len(
        graphs
    )


HEADS = {
    "fill_mask": ("pretraining", lambda p: p.fill_mask(MASKED), "run_pretraining.py"),
    "order": ("pretraining", lambda p: p.order(PAIRS), "run_pretraining.py"),
    "classify": ("classes", lambda p: p.classify(TEXTS), "run_classifier.py"),
    "choose": ("choice", lambda p: p.choose(["a"], [["b", "c"]], CONTEXT), "run_race.py"),
    "answer": ("span", lambda p: p.answer(QUESTIONS, CONTEXT), "run_squad.py"),
}


@pytest.mark.parametrize("method", HEADS)
def test_a_model_without_the_head_says_what_it_was_trained_for(method, any_model):
    """Row K08 of user-demands.md."""
    name, (folder, _, predictor) = any_model
    needed, ask, program = HEADS[method]
    alike = {"multilabel": "classes", "number": "classes", "answerable": "span"}
    if alike.get(name, name) == needed:
        return
    with pytest.raises(ValueError, match=f"train first, with {program}") as caught:
        ask(predictor)
    trained_for = {
        "pretraining": "masked words and sentence order",
        "choice": "RACE (choice)",
        "span": "SQuAD 1.1 (span)",
        "answerable": "SQuAD 2.0 (span)",
    }
    assert trained_for.get(name, f"custom ({name})") in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_folder_whose_file_lacks_the_tasks_head_is_refused(made, tmp_path):
    made_folders.write(tmp_path, "pretraining")
    for name in ("task.json", "labels.txt"):
        (tmp_path / name).write_bytes((made("classes")[0] / name).read_bytes())
    with pytest.raises(ValueError, match="trained for custom, head and all; train first"):
        from_folder(tmp_path)


def test_an_order_head_that_has_learnt_nothing_is_refused(tmp_path):
    made_folders.write(tmp_path, "pretraining", sentence_objective="nsp")
    with pytest.raises(ValueError, match="sentence_objective=nsp"):
        from_folder(tmp_path).order(PAIRS)


ORDER = "cls/seq_relationship/output_bias"


def test_an_order_head_without_a_step_is_refused(made):
    folder, _, _ = made("pretraining")
    predictor = from_folder(folder)
    bias = predictor.trained.model.named_variables()[ORDER]
    bias.assign(tf.zeros_like(bias))
    with pytest.raises(ValueError, match="sentence_objective=none"):
        predictor.order(PAIRS)


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
