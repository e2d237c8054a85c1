"""What a folder holds, and what its model may be asked."""

import json
import shutil

import made_folders
import made_weights
import numpy as np
import pytest
import tensorflow as tf
from made_folders import CONTEXT, MASKED, PAIRS, QUESTIONS, TEXTS

from predictor import from_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


@pytest.fixture(scope="module", params=made_folders.TASKS)
def any_model(request, made):
    return request.param, made(request.param)


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


def without_heads(source, target):
    """Copies the folder of a pretrained model, but for the weights of its heads and pooler."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("model.ckpt*"))
    reader = tf.train.load_checkpoint(str(source / "model.ckpt-1"))
    names = [n for n in reader.get_variable_to_shape_map() if n.startswith("bert/")]
    arrays = {name: reader.get_tensor(name) for name in names}
    made_weights.write_checkpoint(target / "model.ckpt-1", arrays)


def test_an_encoder_alone_embeds_and_no_more(made, tmp_path):
    without_heads(made("pretraining")[0], tmp_path / "encoder")
    predictor = from_folder(tmp_path / "encoder")
    np.testing.assert_array_equal(predictor.embed(TEXTS), made("pretraining")[2].embed(TEXTS))
    for method in ("fill_mask", "order", "classify"):
        with pytest.raises(ValueError, match="has no task.json and no head of pretraining; train"):
            HEADS[method][1](predictor)


def test_a_tokenizer_of_more_pieces_than_the_model_has_rows_is_refused(tmp_path):
    made_folders.write(tmp_path, "pretraining")
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "vocab_size": 200}))
    with pytest.raises(ValueError, match="vocab_size=200, a tokenizer of 300 pieces"):
        from_folder(tmp_path)


@pytest.mark.parametrize("name", ["classes", "choice", "span", "answerable"])
def test_a_model_that_others_fine_tuned_is_known_by_its_weights(name, made, tmp_path):
    folder, _, predictor = made(name)
    shutil.copytree(folder, tmp_path / "of_others", ignore=shutil.ignore_patterns("task.json"))
    if name == "choice":  # Its head has the names of a regression's.
        with pytest.raises(ValueError, match="head of one output"):
            from_folder(tmp_path / "of_others")
        return
    theirs = from_folder(tmp_path / "of_others").trained
    assert theirs.task["kind"] == predictor.trained.task["kind"]
    assert theirs.task["labels"] == predictor.trained.task["labels"]
    assert type(theirs.model) is type(predictor.trained.model)


def test_labels_that_nobody_names_are_numbers(made, tmp_path):
    folder, _, predictor = made("classes")
    left_out = shutil.ignore_patterns("task.json", "labels.txt")
    shutil.copytree(folder, tmp_path / "of_others", ignore=left_out)
    (found,) = from_folder(tmp_path / "of_others").classify(TEXTS[:1])
    assert list(found["probabilities"]) == ["0", "1", "2"]
    (expected,) = predictor.classify(TEXTS[:1])
    assert found["probability"] == pytest.approx(expected["probability"], abs=1e-6)
    names = {str(number): label for number, label in enumerate(made_folders.LABELS)}
    theirs = {"model_type": "albert", "id2label": names}
    (tmp_path / "of_others" / "config.json").write_text(json.dumps(theirs))
    (found,) = from_folder(tmp_path / "of_others").classify(TEXTS[:1])
    assert found["label"] == expected["label"]
