"""Settings of fine-tuning: what flags, recipes and folders tell, and which of them comes first."""

import contextlib
import json

import made_rows
import numpy as np
import programs
import pytest
from absl import flags
from absl.testing import flagsaver

import recipes
from data.features import Features
from modeling.config import AlbertConfig
from runs import fine_tuning

MRPC = {**recipes.fine_tuning("MRPC", 768), "best_metric": "accuracy"}
OWN = {**recipes.fine_tuning("custom", 768, recipes.OWN_DATA), "best_metric": "accuracy"}


def tuning(**settings):
    return fine_tuning.FineTuneConfig(**{"output_dir": "x", "from_scratch": True, **settings})


@contextlib.contextmanager
def given(**values):
    """Gives run_classifier.py flags."""
    with programs.imported("run_classifier"), flagsaver.flagsaver():
        flags.FLAGS(["run_classifier", *programs.flag_words(values)])
        yield


def settings_of(recipe, num_examples=100, **values):
    with given(**values):
        names = {"num_train_epochs", "warmup_proportion"} & values.keys()
        chosen = tuning(**{name: values[name] for name in names})
        return fine_tuning.choose_settings(recipe, chosen, num_examples)


def steps_of(settings):
    return settings.num_train_steps, settings.num_warmup_steps


def test_without_flags_the_steps_are_the_recipes_and_ten_evaluations_share_them():
    settings = settings_of(MRPC)
    assert steps_of(settings) == (800, 200)
    assert (settings.save_checkpoints_steps, settings.iterations_per_loop) == (80, 40)
    assert (settings.optimizer, settings.learning_rate) == ("adamw", 2e-5)


def test_epochs_are_whole_passes_over_the_training_set():
    assert steps_of(settings_of(OWN, 100)) == (12, 1)  # 3 x 4 batches of 32 at most.
    assert steps_of(settings_of(MRPC, 100, num_train_epochs=5.0)) == (20, 2)
    assert steps_of(settings_of(OWN, 100, train_batch_size=10)) == (30, 3)
    warm = settings_of(OWN, 100, train_batch_size=10, warmup_proportion=0.5)
    assert steps_of(warm) == (30, 15)


def test_other_steps_keep_the_recipes_share_of_warm_up():
    assert steps_of(settings_of(MRPC, num_train_steps=40)) == (40, 10)
    assert steps_of(settings_of(OWN, num_train_steps=40)) == (40, 4)
    assert steps_of(settings_of(MRPC, num_train_steps=40, warmup_proportion=0.05)) == (40, 2)
    assert steps_of(settings_of(MRPC, warmup_proportion=0.1)) == (800, 80)


def test_flags_come_before_the_recipe():
    values = {"num_train_steps": 40, "num_warmup_steps": 0, "optimizer": "lamb"}
    values |= {"learning_rate": 0.5, "save_checkpoints_steps": 7, "best_metric": "loss"}
    settings = settings_of(MRPC, **values)
    assert values.items() <= vars(settings).items()


def test_own_rows_have_bias_correction_and_the_papers_tasks_have_not():
    assert settings_of(OWN).bias_correction
    assert not settings_of(OWN, bias_correction=False).bias_correction
    assert not settings_of(MRPC).bias_correction
    assert settings_of(MRPC, bias_correction=True).bias_correction


def test_steps_and_epochs_contradict_each_other():
    with pytest.raises(ValueError, match="both, 40 and 2.0"):
        settings_of(MRPC, num_train_steps=40, num_train_epochs=2.0)


@pytest.fixture
def folder(tmp_path):
    """A folder as a run leaves it but for the weights."""
    config = AlbertConfig(**programs.TINY, vocab_size=programs.VOCAB_SIZE)
    config.to_json_file(tmp_path / "albert_config.json")
    programs.write_word_list(tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps({"max_seq_length": 24, "seed": 3}))
    return tmp_path


def test_the_longest_sequence_is_the_flags_the_trained_runs_or_the_recipes(folder):
    config = AlbertConfig(**programs.TINY, vocab_size=programs.VOCAB_SIZE)
    trained = tuning(from_scratch=False, do_train=False, init_checkpoint=str(folder))
    assert fine_tuning.choose_length(tuning(), MRPC, config) == 32  # The model takes no more.
    assert fine_tuning.choose_length(tuning(), {"max_seq_length": 20}, config) == 20
    assert fine_tuning.choose_length(tuning(max_seq_length=8), MRPC, config) == 8
    assert fine_tuning.choose_length(trained, MRPC, config) == 24


@pytest.mark.parametrize("length", [0, 33])
def test_a_length_beyond_the_table_of_positions_names_both(length):
    config = AlbertConfig(**programs.TINY, vocab_size=programs.VOCAB_SIZE)
    both = f"max_seq_length={length}, max_position_embeddings=32"
    with pytest.raises(ValueError, match=both):
        fine_tuning.choose_length(tuning(max_seq_length=length), MRPC, config)


def test_a_folder_tells_what_it_was_trained_with(folder):
    kept = fine_tuning.as_trained(str(folder), ("max_seq_length", "doc_stride"))
    assert kept == {"max_seq_length": 24}
    (folder / "empty").mkdir()
    assert fine_tuning.as_trained(str(folder / "empty"), ("seed",)) == {}


def test_config_and_tokenizer_are_those_of_the_encoders_folder(folder):
    begins = tuning(from_scratch=False, init_checkpoint=str(folder), hidden_dropout_prob=0.3)
    config, tokenizer = fine_tuning.choose_encoder(begins, {"dropout": 0.1})
    assert config.hidden_size == 64 and tokenizer.vocab_size == programs.VOCAB_SIZE
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.3, 0.1)


def test_evaluation_leaves_the_config_as_it_is(folder):
    trained = tuning(from_scratch=False, do_train=False, init_checkpoint=str(folder))
    config, _ = fine_tuning.choose_encoder(trained, {"dropout": 0.1})
    assert config == AlbertConfig.from_json_file(folder / "albert_config.json")


@pytest.mark.parametrize("name", ["albert_config_file", "tokenizer"])
def test_what_no_folder_tells_must_be_given(name, tmp_path):
    parts = made_rows.encoder(tmp_path)
    rest = {part: str(parts[part]) for part in ("albert_config_file", "tokenizer") if part != name}
    with pytest.raises(FileNotFoundError, match=f"`{name}` must be given"):
        fine_tuning.choose_encoder(tuning(**rest), MRPC)


def test_a_tokenizer_with_more_pieces_than_the_table_is_refused(folder, tmp_path):
    few = programs.write_config(tmp_path, 50)
    begins = tuning(albert_config_file=str(few), tokenizer=str(folder / "vocab.txt"))
    with pytest.raises(ValueError, match="vocab_size=50, a tokenizer of 300 pieces"):
        fine_tuning.choose_encoder(begins, MRPC)


def test_the_model_trained_here_comes_before_the_one_it_began_with(tmp_path):
    both = {"output_dir": str(tmp_path), "init_checkpoint": "y", "from_scratch": False}
    trained = tuning(do_train=False, **both)
    assert fine_tuning.trained_folder(trained) == "y"
    (tmp_path / "best" / "step-5").mkdir(parents=True)
    (tmp_path / "best" / "step-5" / "model.ckpt-5.index").touch()
    assert fine_tuning.trained_folder(trained) == str(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"from_scratch": False}, "learn far less"),
        ({"init_checkpoint": "x"}, "give one of them"),
        ({"output_dir": None}, "`output_dir` must name a folder"),
        ({"do_train": False, "do_eval": False}, "none of them"),
        ({"seeds": 0}, "`seeds` must be at least 1. Received: 0"),
        ({"seeds": 2, "do_train": False}, "seeds=2, do_train=False"),
        ({"num_train_epochs": 0.0}, "`num_train_epochs` must be greater than 0. Received: 0.0"),
        ({"num_train_epochs": -2.0}, "Received: -2.0"),
        ({"num_train_epochs": float("nan")}, "Received: nan"),
        ({"warmup_proportion": 3.0}, r"`warmup_proportion` must lie in \[0, 1\]. Received: 3.0"),
        ({"warmup_proportion": -0.1}, "Received: -0.1"),
        ({"classifier_dropout_prob": 1.0}, r"must lie in \[0, 1\). Received: 1.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        tuning(**settings)


@pytest.mark.parametrize(("share", "is_warned"), [(0.5, False), (0.75, True)])
def test_most_examples_cut_are_warned_of(share, is_warned, capsys):
    ids = np.zeros(6, np.int32)
    made = Features({"input_ids": ids, "segment_ids": ids}, np.array([0, 2, 6]))
    fine_tuning.describe_features(
        Features(made.sequences, made.offsets, truncated_share=share), "dev", 16
    )
    printed = capsys.readouterr().out
    assert printed.startswith("dev: 2 examples of 3 pieces in the mean")
    assert ("warning: most examples of dev are cut" in printed) == is_warned
