"""Four replicas end where one does: steps, evaluation, prediction, a checkpoint, a program.

They are quarters of a CPU, in another process; halves are in `test_distribution`.
"""

import json
import multiprocessing

import made_rows
import numpy as np
import programs
import pytest
import tensorflow as tf
import toy_training as toy
from test_distribution import assert_close, train_mirrored, train_toy
from test_prediction import check_predictions, predict

from training import checkpoints, distribution, loop

SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork.
NUM_REPLICAS = 4


def quarter_cpu():
    """Makes four devices of the CPU; TensorFlow must not have touched it yet."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    quarters = [tf.config.LogicalDeviceConfiguration() for _ in range(NUM_REPLICAS)]
    tf.config.set_logical_device_configuration(cpu, quarters)


@pytest.fixture(scope="module")
def four_cpus():
    """A process with four CPU devices; call as `four_cpus(function, *arguments)`."""
    with SPAWN.Pool(1, initializer=quarter_cpu) as pool:
        yield lambda function, *arguments: pool.apply(function, arguments)


@pytest.mark.parametrize("kind", ["lamb", "adamw"])
def test_four_replicas_take_the_steps_of_one(four_cpus, kind):
    arrays = toy.examples()
    _, (one,) = train_toy("one_device", arrays, 10, optimizer=kind)
    _, states = four_cpus(train_mirrored, arrays, 10, {"optimizer": kind})
    assert len(states) == NUM_REPLICAS
    for state in states:
        assert_close(one, state)


def test_four_replicas_predict_in_order_with_a_partial_last_batch(four_cpus):
    check_predictions(four_cpus(predict, "mirrored", [3, 1, 5, 2, 2], 4))


def batches_by_part(arrays, batch_size):
    """Returns a function of (part, number of parts), as `distribution.distribute` takes it."""

    def of_part(number, num_parts):
        rows = batch_size // num_parts
        part = slice(number * rows, (number + 1) * rows)
        dataset = toy.dataset(arrays, batch_size)
        return dataset.map(
            lambda batch: {n: tf.ensure_shape(v[part], rows) for n, v in batch.items()}
        )

    return of_part


def evaluate_by_part(strategy_name, arrays):
    _, evaluation_step = toy.make(distribution.create_strategy(strategy_name))
    return loop.evaluate(evaluation_step, batches_by_part(arrays, 4))


def test_batches_made_for_each_worker_are_shared_among_its_replicas(four_cpus):
    arrays = toy.examples(12)
    arrays["weights"][:] = [1] * 10 + [0] * 2  # Ten examples, and two rows that fill up.
    expected = evaluate_by_part("one_device", arrays)
    assert_close(four_cpus(evaluate_by_part, "mirrored", arrays), expected)


def train_by_part_and_save(arrays, folder):
    """Trains on batches made for each worker; returns how many the host looked at one by one."""
    strategy = distribution.create_strategy("mirrored")
    train_step, _ = toy.make(strategy)
    iterator = iter(distribution.distribute(batches_by_part(arrays, 8), strategy))
    specs = tf.nest.flatten(iterator.element_spec, expand_composites=True)
    train_step.run(iterator, 4)
    checkpoints.Checkpoints(folder, train_step.state.variables()).save(4)
    return [spec.shape.as_list() for spec in specs]


def test_a_checkpoint_of_four_replicas_goes_on_with_one(four_cpus, tmp_path):
    arrays = toy.examples()
    shapes = four_cpus(train_by_part_and_save, arrays, str(tmp_path))
    assert shapes == [[2]] * 3 * NUM_REPLICAS  # Static, so that steps run on the device.
    train_step, _ = toy.make(distribution.create_strategy("one_device"))
    checkpoints.Checkpoints(tmp_path, train_step.state.variables()).restore()
    train_step.run(iter(toy.dataset({k: v[8 * 4 :] for k, v in arrays.items()})), 6)
    _, (unbroken,) = train_toy("one_device", arrays, 10)
    assert_close(toy.values(train_step.state), unbroken)


def call_program(settings):
    return programs.call("run_classifier", **settings)


def probabilities(folder):
    lines = (folder / "dev_predictions.jsonl").read_text().splitlines()
    return np.array([json.loads(line)["probabilities"] for line in lines])


def test_micro_batches_that_replicas_cannot_share_are_refused_by_programs(four_cpus, tmp_path):
    settings = {
        **made_rows.write_own(tmp_path, num_train=8, num_dev=4),
        **made_rows.encoder(tmp_path),
        **made_rows.TWO_STEPS,
        "train_batch_size": 8,
        "eval_batch_size": 4,
        "gradient_accumulation_steps": 4,  # Of 2 examples on each replica.
        "strategy": "mirrored",
        "output_dir": tmp_path / "output",
    }
    result = four_cpus(call_program, settings)
    (line,) = result.stderr.splitlines()
    assert result.exit_code == 1
    assert "4 replicas, gradient_accumulation_steps=4" in line
    assert not (tmp_path / "output" / "settings.json").exists()


@pytest.mark.slow
def test_a_program_fine_tunes_and_predicts_the_same_on_four_replicas(four_cpus, tmp_path):
    settings = {
        **made_rows.write_own(tmp_path, num_train=21, num_dev=10),
        **made_rows.encoder(tmp_path),
        **made_rows.TWO_STEPS,
        **made_rows.NO_DROPOUT,
        "train_batch_size": 8,
        "eval_batch_size": 4,  # Of ten rows the last batch has two.
    }
    one = programs.succeed(call_program({**settings, "output_dir": tmp_path / "one"}))
    four = {**settings, "output_dir": tmp_path / "four", "strategy": "mirrored"}
    printed = programs.succeed(four_cpus(call_program, four)).stdout
    assert "train_batch_size: 8 examples, 2 on each of 4 replica(s)" in printed
    assert "a device)" in printed and "a device)" not in one.stdout
    found = [probabilities(tmp_path / name) for name in ("one", "four")]
    assert len(found[0]) == 10
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)
