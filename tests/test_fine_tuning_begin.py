"""Where a run of fine-tuning begins: the encoder of another run, and never its head."""

import json
import re

import made_records
import made_rows
import numpy as np
import programs
import pytest
import tensorflow as tf

from modeling import task_models
from modeling.config import AlbertConfig
from runs import fine_tuning, fine_tuning_run
from training.config import TrainConfig

STILL = made_rows.STILL


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return made_rows.encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def three_classes(encoder, tmp_path_factory):
    """The folder of a run whose head is of three classes, and of its data."""
    folder = tmp_path_factory.mktemp("three")
    own = made_rows.write_own(folder, made_rows.CLASSES[:3], 12, 6)
    result = programs.call("run_classifier", **own, **encoder, **STILL, output_dir=folder / "run")
    programs.succeed(result)
    return folder


@pytest.fixture(scope="module")
def pretrained(encoder, tmp_path_factory):
    """The folder of a pretraining run, config and tokenizer in it."""
    folder = tmp_path_factory.mktemp("pretrained")
    (records,) = made_records.write_shards(folder, 8)
    config = programs.write_config(folder, made_records.V, initializer_range=0.1)
    settings = {"num_train_steps": 1, "num_warmup_steps": 0, "learning_rate": 0.01}
    programs.succeed(
        programs.call(
            "run_pretraining",
            input_file=records,
            albert_config_file=config,
            output_dir=folder / "run",
            train_batch_size=8,
            **settings,
        )
    )
    (folder / "config.json").unlink()
    return folder / "run"


def tensors(folder):
    """Returns {name: array} of the one checkpoint of a folder."""
    (index,) = folder.glob("checkpoints/step-*/*.index")
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def is_slot(name):
    return name.endswith(("adam_m", "adam_v"))


def assert_same_encoder(folder, source):
    ours, theirs = tensors(folder), tensors(source)
    names = [name for name in theirs if name.startswith("bert/") and not is_slot(name)]
    assert len(names) > 20
    for name in names:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_a_run_begins_with_the_encoder_of_another_task_and_leaves_its_head(three_classes, tmp_path):
    own = made_rows.write_own(tmp_path, made_rows.CLASSES[:2], 12, 6)
    flags = {**own, **STILL, "init_checkpoint": three_classes / "run", "output_dir": tmp_path / "b"}
    printed = programs.succeed(programs.call("run_classifier", **flags, seed=5)).stdout
    assert_same_encoder(tmp_path / "b", three_classes / "run")
    assert tensors(three_classes / "run")["output_weights"].shape == (3, 64)
    assert tensors(tmp_path / "b")["output_weights"].shape == (2, 64)
    assert re.search(r"matched \d+ of \d+", printed)


def test_a_head_of_the_same_shape_is_left_too(three_classes, encoder):
    config = AlbertConfig.from_json_file(encoder["albert_config_file"])
    toy = fine_tuning_run.Task(
        make_model=lambda config, seed: task_models.Classifier(config, 3, seed=seed),
        **dict.fromkeys(("losses", "score", "chance_loss", "stops_at_chance", "description")),
    )
    run = fine_tuning_run.Run(toy, config, TrainConfig(seed=5), 16)
    variables = run.model.named_variables()
    before = {name: variable.numpy() for name, variable in variables.items()}
    source = tensors(three_classes / "run")
    tuning = fine_tuning.FineTuneConfig(output_dir="x", init_checkpoint=str(three_classes / "run"))
    fine_tuning_run.begin(run, tuning)
    for name, variable in variables.items():
        expected = source[name] if name.startswith("bert/") else before[name]
        np.testing.assert_array_equal(variable, expected, err_msg=name)
    assert np.abs(source["output_weights"] - before["output_weights"]).min() > 0


def test_a_run_begins_with_a_pretraining_run_whose_config_is_in_its_folder(
    pretrained, encoder, tmp_path
):
    own = made_rows.write_own(tmp_path, made_rows.CLASSES[:2], 12, 6)
    flags = {**own, **STILL, "init_checkpoint": pretrained, "output_dir": tmp_path / "run"}
    result = programs.call("run_classifier", **flags, tokenizer=encoder["tokenizer"])
    printed = programs.succeed(result).stdout
    assert_same_encoder(tmp_path / "run", pretrained)
    assert "warning: the model's table has rows that no piece uses" in printed


def test_a_pretrained_model_without_a_head_is_not_scored(
    pretrained, encoder, three_classes, tmp_path
):
    flags = {"task": "custom", "dev_file": three_classes / "dev.tsv", "do_train": False}
    flags |= {"init_checkpoint": pretrained, "output_dir": tmp_path, "labels": "fox,horse,river"}
    result = programs.call("run_classifier", **flags, tokenizer=encoder["tokenizer"])
    assert result.exit_code == 1
    assert "must hold a model that was trained for custom, head and all" in result.stderr
    assert "output_weights" in result.stderr


def test_a_folder_of_another_task_is_not_gone_on_with(three_classes, encoder, tmp_path):
    own = made_rows.write_own(tmp_path, made_rows.CLASSES[2:5], 12, 6)
    flags = {**own, **encoder, **STILL, "output_dir": three_classes / "run"}
    result = programs.call("run_classifier", **flags)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "The `labels` of a trained model must be that of the run" in line
    labels = json.loads((three_classes / "run" / "task.json").read_text())["labels"]
    assert labels == sorted(made_rows.CLASSES[:3])
