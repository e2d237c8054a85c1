"""run_pretraining.py from records to a folder: it learns, begins and evaluates as it says."""

import json
import multiprocessing

import made_records
import numpy as np
import programs
import pytest
import tensorflow as tf
from conftest import golden_folder

from data import records

SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork.
GOLDEN = golden_folder("tf1_checkpoint")
VARIANTS = sorted(path.name for path in GOLDEN.iterdir() if (path / "forward.npz").exists())


def rows(folder, split="train"):
    """Returns the rows of metrics.jsonl of training, or those of "eval"."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["split"] == split]


def tensors(folder):
    """Returns {name: array} of the one checkpoint that a run's folder holds."""
    (index,) = folder.glob("checkpoints/step-*/*.index")
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def printed_metrics(result):
    """Returns the last line of an evaluation as {"loss": 1.23, ...}."""
    words = programs.succeed(result).stdout.splitlines()[-1].split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The flags of the toy recipe: 64 sentences in 16 documents, and 300 pieces."""
    folder = tmp_path_factory.mktemp("toy")
    vocabulary = {"vocab_file": programs.write_word_list(folder)}
    return {
        "input_file": programs.write_toy_records(folder, vocabulary, dupe_factor=10),
        # At 0.02 a model as narrow as this stays long where it begins.
        "albert_config_file": programs.write_config(
            folder, programs.VOCAB_SIZE, initializer_range=0.1
        ),
        "optimizer": "adamw",
        "learning_rate": 1e-3,
        "train_batch_size": 16,
        "num_warmup_steps": 100,
        "save_checkpoints_steps": 10_000,
        "iterations_per_loop": 1,
    }


def learn(toy, folder, num_steps):
    """Trains the toy and returns (losses by step, {metric: mean over the last 100 steps})."""
    settings = {**toy, "output_dir": folder, "num_train_steps": num_steps}
    programs.succeed(programs.call("run_pretraining", **settings))
    reported = rows(folder)
    assert len(reported) == num_steps
    names = [name for name in reported[0] if name.endswith(("_loss", "_accuracy"))]
    losses = np.array([[row[name] for name in names if "loss" in name] for row in reported])
    return losses, {name: np.mean([row[name] for row in reported[-100:]]) for name in names}


def assert_sound(losses):
    """Asserts that training begins at a uniform guess, and each loss is finite and >= 0."""
    assert losses.shape[1] == 2 and np.isfinite(losses).all() and (losses >= 0).all()
    assert losses[0] == pytest.approx([np.log(programs.VOCAB_SIZE), np.log(2)], abs=0.5)


def test_the_toy_recipe_leaves_the_plateau_within_400_steps(toy, tmp_path):
    losses, last = learn(toy, tmp_path, 400)
    assert_sound(losses)
    assert last["masked_lm_accuracy"] > 0.35
    assert last["sentence_order_accuracy"] > 0.85


@pytest.mark.slow
def test_the_toy_recipe_is_learnt_by_heart_in_2000_steps(toy, tmp_path):
    losses, last = learn(toy, tmp_path, 2000)
    assert_sound(losses)
    assert last["masked_lm_accuracy"] >= 0.8
    assert last["sentence_order_accuracy"] >= 0.9


@pytest.fixture
def small(tmp_path):
    """The flags of a run of two steps on random records."""
    (tmp_path / "train").mkdir()
    (train,) = made_records.write_shards(tmp_path / "train", 64, with_metadata=True)
    return {
        "input_file": train,
        "albert_config_file": programs.write_config(tmp_path, made_records.V),
        "output_dir": tmp_path / "output",
        "learning_rate": 0.01,
        "num_train_steps": 2,
        "num_warmup_steps": 0,
        "train_batch_size": 8,
        "iterations_per_loop": 1,
    }


@pytest.fixture
def evaluation(tmp_path):
    """The flags of evaluation on ten held-out records."""
    (tmp_path / "heldout").mkdir()
    (heldout,) = made_records.write_shards(tmp_path / "heldout", 10, with_metadata=True, seed=1)
    return {"do_eval": True, "eval_batch_size": 4, "eval_input_file": heldout}


def test_target_weights_of_zero_give_a_masked_lm_loss_of_exactly_zero(small, tmp_path):
    examples = made_records.random_examples(16)
    examples["masked_lm_weights"][:] = 0
    path = made_records.write_raw(tmp_path / "weightless.tfrecord", records.serialize(examples))
    programs.succeed(programs.call("run_pretraining", **{**small, "input_file": path}))
    for row in rows(small["output_dir"]):
        assert row["masked_lm_loss"] == 0 and row["masked_lm_accuracy"] == 0
        assert row["loss"] == row["sentence_order_loss"] > 0
    assert all(np.isfinite(tensor).all() for tensor in tensors(small["output_dir"]).values())


def test_evaluation_counts_each_example_once_whatever_the_batch_and_when(small, evaluation):
    """Of 10 examples, batches of 4 leave 2 for the last one."""
    settings = {**small, **evaluation}
    programs.succeed(programs.call("run_pretraining", **settings))
    (at_the_end,) = rows(small["output_dir"], "eval")
    for batch_size in (4, 10):
        settings |= {"do_train": False, "eval_batch_size": batch_size}
        alone = printed_metrics(programs.call("run_pretraining", **settings))
        assert alone == pytest.approx({name: at_the_end[name] for name in alone}, abs=1e-4)
    # The share of ten examples, not of twelve or eight.
    assert 10 * at_the_end["sentence_order_accuracy"] == pytest.approx(
        round(10 * at_the_end["sentence_order_accuracy"]), abs=1e-5
    )


def test_a_run_in_micro_batches_half_precision_and_recomputed_saves_float32_weights(small):
    settings = {"gradient_accumulation_steps": 2, "precision": "float16", "recompute": True}
    result = programs.succeed(programs.call("run_pretraining", **small, **settings))
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("memory "))
    assert f"(4 x {made_records.T} pieces at a time, float16, recomputed)" in line
    saved = tensors(small["output_dir"])
    assert saved.pop("loss_scale") >= 1 and saved["examples_seen"] == 16
    for name, value in saved.items():
        assert value.dtype in (np.float32, np.int64) and np.isfinite(value).all(), name


def test_a_run_in_batches_of_like_length_counts_its_examples_and_is_refused_on_a_tpu(small):
    settings = {**small, "batch_by_length": True}
    result = programs.succeed(programs.call("run_pretraining", **settings))
    assert tensors(small["output_dir"])["examples_seen"] == 16
    assert "examples/s" in result.stdout and "tokens/s" not in result.stdout
    refused = programs.call("run_pretraining", **settings, use_tpu=True, tpu_name="local")
    assert refused.exit_code == 1 and "`batch_by_length` must be off on TPUs" in refused.stderr


def test_empty_target_slots_change_no_metric(small, tmp_path):
    programs.succeed(programs.call("run_pretraining", **small))
    examples = made_records.random_examples(10)
    padding = ((0, 0), (0, 20 - made_records.P))
    wide = {n: np.pad(v, padding) if "masked_lm" in n else v for n, v in examples.items()}
    measured = []
    for name, some in {"narrow": examples, "wide": wide}.items():
        path = made_records.write_raw(tmp_path / name, records.serialize(some))
        settings = {"do_train": False, "do_eval": True, "eval_input_file": path}
        measured.append(printed_metrics(programs.call("run_pretraining", **{**small, **settings})))
    assert measured[0] == pytest.approx(measured[1], abs=1e-4)


def golden_records(variant, folder):
    """Writes the batch of a variant's forward.npz as records; returns (path, the arrays)."""
    golden = np.load(GOLDEN / variant / "forward.npz")
    features = {name: golden[name] for name in records.FEATURES if name in golden}
    features["next_sentence_labels"] = features["next_sentence_labels"][:, 0]
    features["token_boundary"] = np.zeros_like(features["input_ids"])
    path = made_records.write_raw(folder / "golden.tfrecord", records.serialize(features))
    return path, golden


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_weights_give_the_originals_losses(variant, tmp_path):
    path, golden = golden_records(variant, tmp_path)
    checkpoint = GOLDEN / variant / "model.ckpt-best"
    result = programs.call(
        "run_pretraining",
        do_train=False,
        do_eval=True,
        input_file=path,
        init_checkpoint=checkpoint,
        output_dir=tmp_path / "output",
    )
    measured = printed_metrics(result)
    names = {"loss": "total", "masked_lm_loss": "mlm", "sentence_order_loss": "sop"}
    expected = {name: float(golden[f"{short}_loss"]) for name, short in names.items()}
    assert {name: measured[name] for name in names} == pytest.approx(expected, abs=1e-4)
    num_weights = len(tf.train.load_checkpoint(str(checkpoint)).get_variable_to_shape_map())
    assert f"matched {num_weights} of {num_weights}, ignored 0 optimizer slots" in result.stdout


def test_golden_weights_are_what_a_run_begins_with_at_step_0(tmp_path):
    """The weights after a step at a rate of 0 are those before it. Slots are left aside."""
    index = sorted(GOLDEN.glob("*/lamb-model.ckpt-*.index"))[0]
    path, _ = golden_records(index.parent.name, tmp_path)
    result = programs.call(
        "run_pretraining",
        input_file=path,
        init_checkpoint=index.with_suffix(""),
        albert_config_file=index.parent / "albert_config.json",
        output_dir=tmp_path / "output",
        learning_rate=0,
        num_train_steps=1,
        num_warmup_steps=0,
        train_batch_size=4,
    )
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    names = [n for n in reader.get_variable_to_shape_map() if n != "global_step"]
    weights = [name for name in names if not name.endswith(("/adam_m", "/adam_v"))]
    assert f"matched {len(weights)} of {len(weights)}, ignored {len(names) - len(weights)} " in (
        programs.succeed(result).stdout
    )
    saved = tensors(tmp_path / "output")
    assert saved["global_step"] == 1 != reader.get_tensor("global_step")
    for name in weights:
        np.testing.assert_array_equal(saved[name], reader.get_tensor(name), err_msg=name)


def split_cpu():
    """Makes two devices of the CPU; TensorFlow must not have touched it yet."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
    tf.config.set_logical_device_configuration(cpu, halves)


@pytest.fixture(scope="module")
def two_cpus():
    """A process with two CPU devices that calls programs: `two_cpus(program, settings)`."""
    with SPAWN.Pool(1, initializer=split_cpu) as pool:
        yield lambda program, settings: pool.apply(programs.call, (program,), settings)


def test_one_device_and_two_give_the_same_losses_and_weights(small, evaluation, two_cpus, tmp_path):
    settings = {**small, **evaluation, "num_train_steps": 5, "learning_rate": 1e-3}
    one = programs.call("run_pretraining", **settings, strategy="one_device")
    both = {**settings, "strategy": "mirrored", "output_dir": tmp_path / "two"}
    two = two_cpus("run_pretraining", both)
    assert "train_batch_size: 8 examples, 8 on each of 1 replica(s)" in programs.succeed(one).stdout
    assert "train_batch_size: 8 examples, 4 on each of 2 replica(s)" in programs.succeed(two).stdout
    ours, theirs = tensors(tmp_path / "output"), tensors(tmp_path / "two")
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)
    for split in ("train", "eval"):
        pairs = zip(rows(tmp_path / "output", split), rows(tmp_path / "two", split), strict=True)
        for one_row, two_row in pairs:
            for name in (n for n in one_row if n.endswith(("loss", "accuracy"))):
                assert one_row[name] == pytest.approx(two_row[name], rel=1e-6), (name, one_row)


def test_a_batch_that_two_devices_cannot_share_evenly_is_refused(small, two_cpus):
    settings = {**small, "strategy": "mirrored", "train_batch_size": 7}
    result = two_cpus("run_pretraining", settings)
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 1
    assert "train_batch_size=7, 2 replicas" in line
    assert not small["output_dir"].exists()
