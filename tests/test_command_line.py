"""What a user sees: flags that become settings, and one line for each mistake."""

import dataclasses
import json
import sys
from unittest import mock

import made_records
import programs
import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver

import command_line
from data import records

VARIANTS_OF_CONFIG = {  # File -> how it differs from that of the folder's run.
    "odd_heads.json": {"num_attention_heads": 3},
    "unknown_key.json": {"hiden_size": 64},
    "fewer_pieces.json": {"vocab_size": 500},
    "few_positions.json": {"max_position_embeddings": 8},
    "three_layers.json": {"num_hidden_layers": 3},
    "narrow.json": {"hidden_size": 32},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with records good and bad, configs good and bad, and the folder of a run."""
    folder = tmp_path_factory.mktemp("place")
    for part in ("good", "corrupt", "twenty"):
        (folder / part).mkdir()
    made_records.write_shards(folder / "good", 32, with_metadata=True)
    made_records.write_shards(folder / "twenty", 32, max_predictions_per_seq=20)
    (corrupt,) = made_records.write_shards(folder / "corrupt", 32, with_metadata=True)
    made_records.flip_byte(corrupt, offset=5000)
    plain = records.serialize(made_records.random_examples(32))  # Without metadata.
    made_records.write_raw(folder / "plain.tfrecord", plain)
    (folder / "text.tfrecord").write_text("Not a record.\n" * 100)
    (folder / "empty.tfrecord").touch()
    (folder / "half.json").write_text('{"vocab_size": 10')
    config = programs.write_config(folder, made_records.V)
    for name, changes in VARIANTS_OF_CONFIG.items():
        (folder / name).write_text(json.dumps({**json.loads(config.read_text()), **changes}))
    run = {**GOOD, "output_dir": "{place}/run"}
    programs.succeed(programs.call("run_pretraining", **filled(run, folder)))
    return folder


GOOD = {
    "input_file": "{place}/good/train-0.tfrecord",
    "albert_config_file": "{place}/config.json",
    "output_dir": "{place}/output",
    "learning_rate": 0.01,
    "num_train_steps": 4,
    "num_warmup_steps": 0,
    "train_batch_size": 8,
}


def filled(settings, place):
    """Puts the folder into the paths, and leaves out what is None."""
    given = {name: value for name, value in settings.items() if value is not None}
    return {n: v.format(place=place) if isinstance(v, str) else v for n, v in given.items()}


# Each: what is changed in the flags above, and what the one line must hold.
MISTAKES = {
    "a file that is not there": ({"input_file": "{place}/absent"}, ["{place}/absent"]),
    "a pattern that matches nothing": ({"input_file": "{place}/x*"}, ["`{place}/x*`"]),
    "a held-out pattern that matches nothing": (
        {"do_eval": True, "eval_input_file": "{place}/y*"},
        ["`{place}/y*`"],
    ),
    "no input": ({"input_file": None}, ["`input_file`", "nothing"]),
    "no held-out records": ({"do_eval": True}, ["`eval_input_file`", "nothing"]),
    "no output": ({"output_dir": None}, ["`output_dir`", "nothing"]),
    "nothing to do": ({"do_train": False}, ["`do_train`", "`do_eval`"]),
    "another length": ({"max_seq_length": 128}, ["`max_seq_length`", "16", "128", "train-0"]),
    "fewer target slots in the data": (
        {"max_predictions_per_seq": 20},
        ["`max_predictions_per_seq`", "4 in {place}/good", "20", "create the data again"],
    ),
    "held-out data with more target slots": (
        {"do_eval": True, "eval_input_file": "{place}/twenty/train-0.tfrecord"},
        ["`max_predictions_per_seq`", "20 in {place}/twenty", "4 for training"],
    ),
    "a length of 0": ({"max_seq_length": 0}, ["--max_seq_length=0"]),
    "a model with fewer pieces": (
        {"albert_config_file": "{place}/fewer_pieces.json"},
        ["`vocab_size`", "500", "1000"],
    ),
    "a model with fewer positions": (
        {"albert_config_file": "{place}/few_positions.json"},
        ["`max_position_embeddings`", "8", "16"],
    ),
    "text for records": ({"input_file": "{place}/text.tfrecord"}, ["{place}/text.tfrecord"]),
    "an empty file": ({"input_file": "{place}/empty.tfrecord"}, ["{place}/empty.tfrecord"]),
    "a folder for a file": ({"input_file": "{place}/good"}, ["{place}/good"]),
    "an output folder within a file": (
        {"output_dir": "{place}/config.json/output"},
        ["{place}/config.json/output", "Not a directory"],
    ),
    "a file for the output folder": (
        {"output_dir": "{place}/config.json"},
        ["{place}/config.json"],
    ),
    "heads that do not divide the width": (
        {"albert_config_file": "{place}/odd_heads.json"},
        ["odd_heads.json", "hidden_size=64", "num_attention_heads=3"],
    ),
    "an unknown key": (
        {"albert_config_file": "{place}/unknown_key.json"},
        ["unknown_key.json", "['hiden_size']"],
    ),
    "half a config": ({"albert_config_file": "{place}/half.json"}, ["{place}/half.json"]),
    "no such config": ({"albert_config_file": "{place}/no.json"}, ["{place}/no.json"]),
    "a model told twice": ({"model": "tiny"}, ["tiny", "{place}/config.json"]),
    "a model not told": ({"albert_config_file": None}, ["`model`", "`albert_config_file`"]),
    "a size whose vocabulary nothing tells": (
        {"albert_config_file": None, "model": "tiny", "input_file": "{place}/plain.tfrecord"},
        ["`albert_config_file`", "metadata.json", "tiny"],
    ),
    "another config for a run": (
        {"output_dir": "{place}/run", "albert_config_file": "{place}/three_layers.json"},
        ["num_hidden_layers=3", "2 in {place}/run", "`output_dir`"],
    ),
    "an unknown flag": ({"num_train_step": 3}, ["num_train_step'", "--help"]),
    "a word for a number": ({"num_train_steps": "many"}, ["--num_train_steps=many"]),
    "no such optimizer": ({"optimizer": "sgd"}, ["--optimizer=sgd", "lamb|adamw"]),
    "no such size": ({"model": "huge"}, ["--model=huge", "tiny|small|base"]),
    "no steps": ({"num_train_steps": 0}, ["`num_train_steps`", "0"]),
    "a negative seed": ({"seed": -1}, ["`seed`", "-1"]),
    "held-out records and no evaluation": (
        {"eval_input_file": "{place}/good/train-0.tfrecord"},
        ["`eval_input_file` is for evaluation", "without do_eval"],
    ),
    "patience and no evaluation": (
        {"early_stopping_patience": 2},
        ["`early_stopping_patience` is for evaluation"],
    ),
    "a metric and no evaluation": ({"best_metric": "loss"}, ["`best_metric` is for evaluation"]),
    "a layout of batches and no training": (
        {"do_train": False, "do_eval": True, "batch_by_length": True},
        ["`batch_by_length` is for training", "without do_train"],
    ),
    "no such metric": (
        {
            "do_eval": True,
            "eval_input_file": "{place}/good/train-0.tfrecord",
            "best_metric": "f1",
        },
        ["`best_metric`", "masked_lm_accuracy, sentence_order_loss", "'f1'"],
    ),
    "a metric of a head that is not trained": (
        {
            "do_eval": True,
            "input_file": "{place}/plain.tfrecord",
            "eval_input_file": "{place}/plain.tfrecord",
            "sentence_objective": "none",
            "best_metric": "sentence_order_accuracy",
        },
        ["`best_metric`", "sentence_objective=none"],
    ),
    "a store that cannot be reached": (
        {"input_file": "s3://bucket/x.tfrecord"},
        ["File system scheme 's3' not implemented", "s3://bucket/x.tfrecord"],
    ),
    "a rate for another optimizer": (
        {"learning_rate": None, "optimizer": "adamw"},
        ["`learning_rate`", "lamb", "optimizer=adamw"],
    ),
}
# These show only when a file is read or the model is there.
LATER_MISTAKES = {
    "a corrupt record": (
        {"input_file": "{place}/corrupt/train-0.tfrecord"},
        ["{place}/corrupt/train-0.tfrecord", "record 15 cannot be read"],
    ),
    "ids out of range": (
        {
            "input_file": "{place}/plain.tfrecord",
            "albert_config_file": "{place}/fewer_pieces.json",
        },
        ["{place}/plain.tfrecord", "record 0", "`input_ids`", "vocabulary"],
    ),
    "weights of another shape": (
        {"init_checkpoint": "{place}/run", "albert_config_file": "{place}/narrow.json"},
        ["hidden_size is 64, and 32 in the config"],
    ),
    "no such weights": ({"init_checkpoint": "{place}/absent"}, ["{place}/absent"]),
    "nothing to evaluate": (
        {"do_train": False, "do_eval": True, "output_dir": "{place}/absent"},
        ["{place}/absent"],
    ),
    "a rate at which training diverges": (
        {"learning_rate": 1e38, "max_skipped_steps": 2},
        ["step 3", "last 2 steps", "`learning_rate`"],
    ),
}


def assert_one_line(result, words, place):
    """Asserts exit code 1 and a single line on stderr that holds all the words."""
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word.format(place=place) in line


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_costs_one_line_before_anything_is_written(name, place):
    changes, words = MISTAKES[name]
    before = sorted(place.rglob("*"))
    result = programs.call("run_pretraining", **filled({**GOOD, **changes}, place))
    assert_one_line(result, words, place)
    assert "train " not in result.stdout
    assert sorted(place.rglob("*")) == before


@pytest.mark.parametrize("name", LATER_MISTAKES)
def test_a_mistake_that_shows_later_costs_one_line_too(name, place, tmp_path):
    changes, words = LATER_MISTAKES[name]
    settings = {**GOOD, "output_dir": str(tmp_path / "output"), **changes}
    result = programs.call("run_pretraining", **filled(settings, place))
    assert_one_line(result, words, place)
    assert not list(tmp_path.glob("output/checkpoints/*"))


@pytest.mark.parametrize("name", ["an unknown flag", "a folder for a file"])
def test_a_mistake_costs_one_line_in_a_process_of_its_own(name, place):
    """The first shows before TensorFlow is there, the second after."""
    changes, words = MISTAKES[name]
    result = programs.run("run_pretraining", **filled({**GOOD, **changes}, place))
    assert_one_line(result, words, place)
    assert result.stdout == ""


def test_an_error_of_an_operation_keeps_its_traceback():
    """What `tf.io.gfile` raises is the user's affair; the same error of a graph is ours."""

    def main():
        raise tf.errors.UnimplementedError(None, None, "no such kernel")

    argv = mock.patch.object(sys, "argv", ["program"])
    with flagsaver.flagsaver(), argv, pytest.raises(tf.errors.UnimplementedError):
        command_line.run(main)


@pytest.mark.parametrize(
    ("strategy", "ending"),
    [("multi_worker", SystemExit), ("mirrored", tf.errors.UnavailableError)],
)
def test_a_worker_that_is_gone_ends_the_others_with_one_line_and_the_code_of_sigterm(
    strategy, ending, capsys
):
    def main():
        raise tf.errors.UnavailableError(None, None, "Connection reset by peer")

    argv = mock.patch.object(sys, "argv", ["program", f"--strategy={strategy}"])
    with (
        programs.imported("run_classifier"),
        flagsaver.flagsaver(),
        argv,
        pytest.raises(ending) as caught,
    ):
        command_line.run(main)
    if ending is SystemExit:
        assert caught.value.code == 143
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("stopped: another worker is gone (UnavailableError); start all")


def test_words_that_are_no_flags_are_refused():
    assert_one_line(programs.call("run_pretraining", "train"), ["Received: train"], None)


def test_a_larger_vocabulary_than_the_datas_is_allowed_and_noted(place, tmp_path):
    config = programs.write_config(tmp_path, made_records.V + 24)
    changes = {"albert_config_file": str(config), "output_dir": str(tmp_path / "output")}
    result = programs.call("run_pretraining", **filled({**GOOD, **changes}, place))
    (note,) = (line for line in programs.succeed(result).stdout.splitlines() if "note" in line)
    assert "1024" in note and "1000" in note


def test_a_smaller_batch_lowers_lambs_rate_by_the_square_root_and_says_so(place, tmp_path):
    """The paper's 0.00176 is for 4096 examples; 8 are 1/512 of them."""
    changes = {"learning_rate": None, "output_dir": str(tmp_path / "output")}
    result = programs.call("run_pretraining", **filled({**GOOD, **changes}, place))
    assert "0.00176 x sqrt(8/4096) = 7.778e-05" in programs.succeed(result).stdout
    settings = json.loads((tmp_path / "output" / "settings.json").read_text())
    assert settings["learning_rate"] == pytest.approx(0.00176 / 512**0.5)
    assert settings["train_batch_size"] == 8 and settings["max_seq_length"] == 16
    assert settings["input_file"] == f"{place}/good/train-0.tfrecord"


@dataclasses.dataclass(frozen=True)
class Settings:
    """One setting of each kind, under names that no program has."""

    some_count: int = dataclasses.field(default=1, metadata={"help": "A count."})
    some_rate: float | None = dataclasses.field(default=None, metadata={"help": "A rate."})
    some_kind: str = dataclasses.field(
        default="a", metadata={"help": "A kind.", "choices": ("a", "b")}
    )
    some_switch: bool = dataclasses.field(default=False, metadata={"help": "A switch."})


command_line.define_flags(Settings)


@pytest.mark.parametrize(
    ("words", "recipe", "expected"),
    [
        ([], {}, Settings()),
        ([], {"some_count": 2, "some_kind": "b"}, Settings(some_count=2, some_kind="b")),
        (["--some_count=1"], {"some_count": 2}, Settings(some_count=1)),
        (["--some_rate=0", "--some_switch"], {}, Settings(some_rate=0.0, some_switch=True)),
        (["--nosome_switch"], {"some_switch": True}, Settings()),
    ],
)
def test_the_users_flags_come_before_the_recipe_and_that_before_the_defaults(
    words, recipe, expected
):
    with flagsaver.flagsaver():
        flags.FLAGS(["program", *words])
        assert command_line.from_flags(Settings, **recipe) == expected


def test_under_tpu_all_local_paths_are_refused_at_once_before_anything_starts(tmp_path):
    settings = {
        "input_file": f"gs://bucket/a*.tfrecord,{tmp_path}/b.tfrecord",
        "eval_input_file": "gs://bucket/heldout.tfrecord",
        "albert_config_file": "file:///config.json",
        "init_checkpoint": "weights",
        "output_dir": tmp_path / "output",
    }
    for tpu in ({"use_tpu": True}, {"strategy": "tpu", "tpu_name": "pod"}):
        result = programs.call("run_pretraining", **settings, **tpu)
        (line,) = result.stderr.splitlines()
        assert result.exit_code == 1 and "must be remote" in line
        for path in (f"{tmp_path}/b.tfrecord", "file:///config.json", "=weights", "/output"):
            assert path in line
        assert "gs://bucket/a*" not in line and "heldout" not in line
    assert not (tmp_path / "output").exists()


def test_a_tpu_in_this_machine_takes_local_paths(tmp_path):
    settings = {"use_tpu": True, "tpu_name": "local", "input_file": tmp_path / "absent"}
    result = programs.call("run_pretraining", **settings, output_dir=tmp_path / "output")
    assert result.exit_code == 1
    assert "must be remote" not in result.stderr and "needs a TPU" in result.stderr
