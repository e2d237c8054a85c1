"""The records of a run, and --dynamic_masking: what it takes from them, refuses and does."""

import dataclasses
import json
import pathlib
import shutil

import created_data
import made_folders
import made_records
import made_tokenizers
import numpy as np
import programs
import pytest
import tensorflow as tf

from data import input_pipeline, pretraining_examples, record_reading, tokenization
from data.pretraining_examples import ExampleSettings
from folders import model_folder
from runs import pretraining_records

ASKED = dict.fromkeys(("max_seq_length", "max_predictions_per_seq", "sentence_objective"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def vocabulary(folder):
    return str(programs.write_word_list(folder))


@pytest.fixture(scope="module")
def toy(folder, vocabulary):
    """The path of the toy text's records, masked as nothing else is: one piece of four."""
    path = folder / "records" / "train.tfrecord"
    examples = {"ngram": 2, "masked_lm_prob": 0.25, "dupe_factor": 2}
    created_data.create(vocabulary, programs.write_toy_text(folder), path, examples=examples)
    return str(path)


@pytest.fixture(scope="module")
def bare(folder, toy):
    """The same records in a folder of their own, as the original leaves them."""
    path = folder / "bare" / "train.tfrecord"
    path.parent.mkdir()
    return made_records.write_raw(path, record_reading.read([toy]).as_numpy_iterator())


def find(train, tokenizer=None, **asked):
    return pretraining_records.find(train, None, asked=ASKED | asked, tokenizer=tokenizer)


def test_ours_tell_their_lengths_tokenizer_and_masking(toy, vocabulary):
    found = find(toy)
    assert found.lengths == {"max_seq_length": 32, "max_predictions_per_seq": 8}
    assert found.sentence_objective == "sop" and found.vocab_size == programs.VOCAB_SIZE
    assert found.tokenizer.fingerprint == tokenization.load(vocabulary).fingerprint
    told = found.masking_settings()
    assert set(told) == set(pretraining_examples.OF_MASKING)
    assert (told["ngram"], told["masked_lm_prob"]) == (2, 0.25)
    masking = pretraining_records.dynamic(found, ExampleSettings(**told, **found.lengths), seed=1)
    assert masking.swaps and masking.marks is None
    assert (masking.policy.ngram, masking.policy.max_predictions) == (2, 8)


def test_the_originals_need_a_tokenizer_to_be_masked_anew(bare, vocabulary):
    settings = ExampleSettings(max_seq_length=32, max_predictions_per_seq=8)
    found = find(bare)
    assert found.vocab_size is None and found.masking_settings() == {}
    with pytest.raises(ValueError, match="`tokenizer` must name .*Received: none"):
        pretraining_records.dynamic(found, settings, seed=1)
    found = find(bare, vocabulary)
    assert found.vocab_size == programs.VOCAB_SIZE
    marks = pretraining_records.dynamic(found, settings, seed=1).marks
    assert marks.shape == (programs.VOCAB_SIZE,)


def test_another_tokenizer_is_refused_by_its_print_or_its_special_pieces(
    toy, bare, vocabulary, tmp_path
):
    pieces = tokenization.load(vocabulary).pieces
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join([pieces[9], *pieces[1:9], pieces[0], *pieces[10:]]))
    with pytest.raises(ValueError, match="records of .*, but .* in .*`tokenizer`"):
        find(toy, str(other))
    other.write_text("\n".join([*pieces[:2], "near", *pieces[3:9], "[CLS]", *pieces[10:]]))
    settings = ExampleSettings(max_seq_length=32, max_predictions_per_seq=8)
    with pytest.raises(ValueError, match=r"\[CLS\] and \[SEP\] of `tokenizer`, 9 and 3.*: 2, 3, 3"):
        pretraining_records.dynamic(find(bare, str(other)), settings, seed=1)


def test_weights_of_another_tokenizer_than_that_of_bare_records_are_refused(
    bare, vocabulary, tmp_path
):
    made_folders.write(tmp_path, "pretraining", tokenizer=made_tokenizers.wordpiece_tokenizer())
    config = model_folder.read_config(tmp_path)
    pretraining_records.check_config(config, find(bare), tmp_path)  # Nothing tells theirs.
    found = dataclasses.replace(find(bare, vocabulary), described=None)
    config = dataclasses.replace(config, vocab_size=programs.VOCAB_SIZE)
    with pytest.raises(ValueError, match="records of .*, but .* beside the weights in"):
        pretraining_records.check_config(config, found, tmp_path)


def test_the_records_tokenizer_is_that_of_the_weights_or_there_is_a_warning(
    toy, vocabulary, tmp_path, capsys
):
    records = tmp_path / "records"
    shutil.copytree(pathlib.Path(toy).parent, records)
    shutil.rmtree(records / "tokenizer")
    found = find(str(records / "train.tfrecord"))
    assert found.tokenizer is None
    made_folders.write(tmp_path, "pretraining", tokenizer=tokenization.load(vocabulary))
    output = str(tmp_path / "output")
    with_theirs = pretraining_records.with_tokenizer(found, tmp_path, output)
    assert with_theirs.tokenizer.fingerprint == found.tokenizer_sha256
    assert capsys.readouterr().out == ""
    for weights in (None, tmp_path / "records"):
        assert pretraining_records.with_tokenizer(found, weights, output) == found
        assert "warning: nothing tells" in capsys.readouterr().out


@pytest.mark.parametrize("objective", ["nsp", "none"])
def test_only_segments_of_sop_are_swapped(bare, vocabulary, objective):
    found = find(bare, vocabulary, sentence_objective=objective)
    settings = ExampleSettings(max_seq_length=32, max_predictions_per_seq=8)
    assert not pretraining_records.dynamic(found, settings, seed=1).swaps


def test_an_objective_that_the_records_contradict_is_refused(toy):
    with pytest.raises(ValueError, match="`sentence_objective`.*sop in .*, but nsp"):
        find(toy, sentence_objective="nsp")


def train(output, input_file, **settings):
    return programs.call(
        "run_pretraining",
        input_file=input_file,
        output_dir=output,
        albert_config_file=programs.write_config(output.parent, programs.VOCAB_SIZE),
        **{
            "num_train_steps": 4,
            "save_checkpoints_steps": 2,
            "train_batch_size": 8,
            "num_warmup_steps": 0,
            "learning_rate": 0.01,
            "iterations_per_loop": 1,
            **settings,
        },
    )


def last_weights(folder):
    (index,) = folder.glob("checkpoints/step-4/*.index")
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map() if "bert" in n}


def test_a_run_that_masks_anew_goes_on_where_it_was_and_keeps_how_it_masked(toy, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    result = programs.succeed(train(whole, toy, dynamic_masking=True))
    assert "25% of the pieces, n-grams of up to 2 words" in result.stdout
    sealed = json.loads((whole / "settings.json").read_text())
    assert sealed["dynamic_masking"] and sealed["ngram"] == 2
    shutil.copytree(whole, parts)
    shutil.rmtree(parts / "checkpoints" / "step-4")
    result = programs.succeed(train(parts, toy, dynamic_masking=True))
    assert "going on from step 2" in result.stdout
    ours, theirs = map(last_weights, (parts, whole))
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("flags", "said", "most"),
    [
        ({"masked_lm_prob": 0.4}, "40% of the pieces, n-grams", 13),
        (
            {"masked_lm_prob": 0.4, "max_predictions_per_seq": 4},
            "40% of the pieces (but 4 at most, 12.5% of 32), n-grams",
            4,
        ),
    ],
)
def test_masks_drawn_anew_are_as_many_as_is_said(toy, tmp_path, flags, said, most):
    """The records have 8 places for a share of 25 %; evaluation keeps these."""
    evaluation = {"do_eval": True, "eval_input_file": toy, "max_eval_steps": 1}
    output = tmp_path / "output"
    result = train(output, toy, dynamic_masking=True, num_train_steps=1, **evaluation, **flags)
    assert said in programs.succeed(result).stdout
    sealed = json.loads((output / "settings.json").read_text())
    assert sealed["max_predictions_per_seq"] == most
    assert sealed["masked_lm_prob"] == 0.4


def test_a_batch_masked_anew_has_the_places_of_its_own_share(toy):
    found = find(toy)
    settings = ExampleSettings(max_seq_length=32, masked_lm_prob=0.5)
    (batch,) = input_pipeline.pretraining_dataset(
        found.train,
        **found.lengths,
        batch_size=64,
        training=True,
        masking=pretraining_records.dynamic(found, settings, seed=1),
    ).take(1)
    assert batch["masked_lm_positions"].shape == batch["masked_lm_ids"].shape == (64, 16)
    num_masked = batch["masked_lm_weights"].numpy().sum(axis=1)
    length = batch["input_mask"].numpy().sum(axis=1)
    np.testing.assert_allclose(num_masked.sum() / length.sum(), 0.5, atol=0.03)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"ngram": 2}, "`ngram` is for `dynamic_masking`"),
        (
            {"dynamic_masking": True, "do_train": False, "do_eval": True},
            "`dynamic_masking` is for training",
        ),
    ],
)
def test_flags_that_would_do_nothing_are_refused(toy, tmp_path, flags, said):
    result = train(tmp_path / "output", toy, **flags)
    assert result.exit_code == 1 and said in result.stderr
    assert not (tmp_path / "output").exists()


def test_the_benchmark_of_reading_measures_both_sides(toy, tmp_path):
    file = tmp_path / "input.json"
    sizes = {"batch_size": 8, "num_batches": 2, "rounds": 1}
    result = programs.call("benchmarks.input_pipeline", input_file=toy, json=file, **sizes)
    assert "dynamic / static" in programs.succeed(result).stdout
    (measured,) = json.loads(file.read_text())
    assert measured["static"]["examples_per_second"] > 0 < len(measured["dynamic"])
