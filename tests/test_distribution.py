"""One replica and two give the same numbers. The two are halves of a CPU, in another process."""

import json
import multiprocessing
import os
import socket

import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy
from conftest import golden_folder

from training import checkpoints, distribution, initialization, loop, optimizers, step

SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork.


def split_cpu():
    """Makes two devices of the CPU; TensorFlow must not have touched it yet."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    halves = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
    tf.config.set_logical_device_configuration(cpu, halves)


@pytest.fixture(scope="module")
def two_cpus():
    """A process with two CPU devices; call as `two_cpus(function, *arguments)`."""
    with SPAWN.Pool(1, initializer=split_cpu) as pool:
        yield lambda function, *arguments: pool.apply(function, arguments)


def train_toy(strategy_name, arrays, num_steps, **settings):
    """Returns (metrics of each step, final state of each replica, number of replicas)."""
    strategy = distribution.create_strategy(strategy_name)
    train_step, _ = toy.make(strategy, **settings)
    iterator = iter(distribution.distribute(toy.dataset(arrays), strategy))
    metrics = [train_step.run(iterator, 1) for _ in range(num_steps)]
    states = [
        {
            name: strategy.experimental_local_results(v)[replica].numpy()
            for name, v in train_step.state.variables().items()
        }
        for replica in range(strategy.num_replicas_in_sync)
    ]
    return metrics, states


def assert_close(ours, theirs, atol=1e-6):
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=atol, err_msg=name)


@pytest.mark.parametrize("kind", ["lamb", "adamw"])
def test_one_and_two_replicas_take_the_same_steps(two_cpus, kind):
    arrays = toy.examples()  # The two halves of a batch count 2 and 3 examples, or 3 and 2.
    halves = arrays["weights"].reshape(-1, 2, 4).sum(-1)
    assert (halves[:, 0] != halves[:, 1]).any()
    one_metrics, (one,) = train_toy("one_device", arrays, 10, optimizer=kind)
    two_metrics, (first, second) = two_cpus(train_mirrored, arrays, 10, {"optimizer": kind})
    for ours, theirs in zip(one_metrics, two_metrics, strict=True):
        assert_close(ours, theirs, atol=2e-6)
    assert_close(one, first)
    for name in first:
        assert first[name].tobytes() == second[name].tobytes()


def train_mirrored(arrays, num_steps, settings):
    return train_toy("mirrored", arrays, num_steps, **settings)


def test_micro_batches_of_two_replicas_take_the_steps_of_one_batch(two_cpus):
    arrays = toy.examples()
    _, (one,) = train_toy("one_device", arrays, 5)
    _, (first, second) = two_cpus(train_mirrored, arrays, 5, {"gradient_accumulation_steps": 2})
    assert_close(one, first)
    assert_close(first, second, atol=0)


def refuse_uneven_micro_batches():
    with pytest.raises(ValueError, match="8, 2 replica.s., 8 micro-batches"):
        toy.make(distribution.create_strategy("mirrored"), gradient_accumulation_steps=8)


def test_micro_batches_that_replicas_cannot_share_are_refused(two_cpus):
    two_cpus(refuse_uneven_micro_batches)


def test_a_non_finite_half_batch_skips_the_step_on_both_replicas(two_cpus):
    arrays = toy.examples()
    arrays["weights"][8 * 2 + 1] = np.nan  # Step 2, first replica.
    arrays["weights"][8 * 4 + 7] = np.inf  # Step 4, second replica.
    _, (one,) = train_toy("one_device", arrays, 6)
    _, (first, second) = two_cpus(train_mirrored, arrays, 6, {})
    assert int(first["skipped_steps"]) == 2
    assert_close(one, first)
    assert_close(first, second, atol=0)


def evaluate_mirrored(arrays):
    _, evaluation_step = toy.make(distribution.create_strategy("mirrored"))
    return loop.evaluate(evaluation_step, toy.dataset(arrays, 4))


def test_two_replicas_evaluate_each_example_once(two_cpus):
    arrays = toy.examples(12)
    arrays["weights"][:] = [1] * 10 + [0] * 2  # Ten examples, and two rows that fill up.
    _, evaluation_step = toy.make(distribution.create_strategy("one_device"))
    one = loop.evaluate(evaluation_step, toy.dataset(arrays, 12))
    assert_close(two_cpus(evaluate_mirrored, arrays), one)
    assert one["word_accuracy"] * 10 == pytest.approx(round(one["word_accuracy"] * 10))


def save_mirrored(arrays, folder):
    strategy = distribution.create_strategy("mirrored")
    train_step, _ = toy.make(strategy)
    train_step.run(iter(distribution.distribute(toy.dataset(arrays), strategy)), 4)
    checkpoints.Checkpoints(folder, train_step.state.variables()).save(4)


def test_a_checkpoint_of_two_replicas_goes_on_with_one(two_cpus, tmp_path):
    arrays = toy.examples()
    two_cpus(save_mirrored, arrays, str(tmp_path))
    train_step, _ = toy.make(distribution.create_strategy("one_device"))
    checkpoints.Checkpoints(tmp_path, train_step.state.variables()).restore()
    train_step.run(iter(toy.dataset({k: v[8 * 4 :] for k, v in arrays.items()})), 6)
    _, (unbroken,) = train_toy("one_device", arrays, 10)
    assert_close(toy.values(train_step.state), unbroken)


def restore_mirrored(folder):
    train_step, _ = toy.make(distribution.create_strategy("mirrored"))
    checkpoints.Checkpoints(folder, train_step.state.variables()).restore()
    return [[copy.numpy() for copy in v.values] for v in train_step.state.variables().values()]


def test_restoring_reaches_every_replica(two_cpus, tmp_path):
    train_step, _ = toy.make(distribution.create_strategy("one_device"))
    train_step.run(iter(toy.dataset(toy.examples())), 3)
    checkpoints.Checkpoints(tmp_path, train_step.state.variables()).save(3)
    restored = two_cpus(restore_mirrored, str(tmp_path))
    for copies, value in zip(restored, toy.values(train_step.state).values(), strict=True):
        assert [copy.tobytes() for copy in copies] == [value.tobytes()] * 2


def train_albert(variant, strategy_name, num_steps=4):
    """Trains a golden variant's ALBERT; returns metrics, weights and counts of half batches."""
    from modeling import config as model_config
    from modeling import losses, models

    strategy = distribution.create_strategy(strategy_name)
    with strategy.scope():
        model = models.PretrainingModel(
            model_config.AlbertConfig.from_json_file(os.path.join(variant, "albert_config.json"))
        )
        variables = model.named_variables()
        state = step.TrainingState(variables, optimizers.Optimizer(variables, kind="lamb"))
    initialization.initialize(variables, os.path.join(variant, "model.ckpt-best"))
    arrays = dict(np.load(os.path.join(variant, "train_batches.npz")))
    arrays["next_sentence_labels"] = arrays["next_sentence_labels"][..., 0]
    arrays["example_weights"] = np.ones_like(arrays["next_sentence_labels"], np.float32)
    train_step = step.TrainStep(
        lambda batch, dropout_seed: losses.pretraining_losses(model(batch), batch),
        losses.OBJECTIVES["sop"],
        state=state,
        config=toy.settings(train_batch_size=4, learning_rate=0.01),
        strategy=strategy,
    )
    iterator = iter(distribution.distribute(tf.data.Dataset.from_tensor_slices(arrays), strategy))
    metrics = [train_step.run(iterator, 1) for _ in range(num_steps)]
    counts = arrays["masked_lm_weights"][:num_steps].reshape(num_steps, 2, -1).sum(-1)
    return metrics, toy.values(state), counts


def test_one_and_two_replicas_train_the_same_albert(two_cpus):
    variant = sorted(golden_folder("tf1_checkpoint").glob("*/train_batches.npz"))[0].parent
    one_metrics, one, counts = train_albert(variant, "one_device")
    assert (counts[:, 0] != counts[:, 1]).all()
    two_metrics, two, _ = two_cpus(train_albert, str(variant), "mirrored")
    for ours, theirs in zip(one_metrics, two_metrics, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-6)
    # The true gradient of a key's bias is 0, so its update is that of rounding noise.
    for name in one:
        atol = 3e-4 if "/self/key/bias" in name else 1e-6
        np.testing.assert_allclose(one[name], two[name], atol=atol, err_msg=name)


def shares(batch_size):
    return distribution.check_divisible(batch_size, distribution.create_strategy("mirrored"))


def test_the_batch_is_the_global_one_and_must_be_divisible(two_cpus, capsys):
    assert two_cpus(shares, 8) == 4
    with pytest.raises(ValueError, match="divisible.*train_batch_size=7, 2 replicas"):
        two_cpus(shares, 7)
    one = distribution.create_strategy("one_device")
    assert distribution.check_divisible(8, one, num_micro_batches=8) == 8
    with pytest.raises(ValueError, match="1 replicas, gradient_accumulation_steps=3"):
        distribution.check_divisible(8, one, num_micro_batches=3)
    assert "8 examples, 8 on each of 1 replica" in capsys.readouterr().out


def test_an_unknown_strategy_and_a_missing_cluster_are_refused(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="`strategy` must be one of.*Received: 'two'"):
        distribution.create_strategy("two")
    with pytest.raises(ValueError, match="TF_CONFIG.*Received: nothing"):
        distribution.create_strategy("multi_worker")


@pytest.mark.parametrize(
    "told",
    [
        "{bad",
        "{}",
        "[]",
        '{"cluster": {"worker": ["localhost:1"]}}',
        '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker"}}',
        '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": -1}}',
        '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "evaluator", "index": 0}}',
    ],
)
def test_a_cluster_that_does_not_hold_this_machine_is_refused(told, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", told)
    with pytest.raises(ValueError, match="TF_CONFIG.*`cluster`.*`task`.*Received: ") as caught:
        distribution.create_strategy("multi_worker")
    assert told in str(caught.value)


def train_deterministically(arrays, folder, num_steps):
    """Trains from the newest checkpoint of `folder` to `num_steps`, saves, returns the bytes."""
    distribution.make_deterministic(0)
    train_step, _ = toy.make(
        distribution.create_strategy("one_device"), dropout=0.2, deterministic=True
    )
    saved = checkpoints.Checkpoints(folder, train_step.state.variables())
    saved.restore()
    done = int(train_step.state.step)
    unseen = {name: array[8 * done :] for name, array in arrays.items()}
    train_step.run(iter(toy.dataset(unseen)), num_steps - done)
    saved.save(num_steps)
    return {name: value.tobytes() for name, value in toy.values(train_step.state).items()}


def in_a_new_process(function, *arguments):
    with SPAWN.Pool(1) as pool:
        return pool.apply(function, arguments)


@pytest.mark.slow
def test_deterministic_processes_agree_to_the_bit_also_when_one_of_them_was_stopped(tmp_path):
    arrays, whole, halved = toy.examples(), str(tmp_path / "whole"), str(tmp_path / "halved")
    unbroken = in_a_new_process(train_deterministically, arrays, whole, 10)
    in_a_new_process(train_deterministically, arrays, halved, 4)
    assert in_a_new_process(train_deterministically, arrays, halved, 10) == unbroken


def train_as_worker(index, ports, arrays):
    """Trains, evaluates and predicts as one of several machines.

    Returns:
        (weights, bool: whether it is the chief, metrics, predictions).
    """
    from test_prediction import predict_with

    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": index}}
    )
    strategy = distribution.create_strategy("multi_worker")
    train_step, evaluation_step = toy.make(strategy)
    iterator = iter(distribution.distribute(toy.dataset(arrays), strategy))
    train_step.run(iterator, 10)
    metrics = loop.evaluate(evaluation_step, toy.dataset(arrays))
    predictions = predict_with(strategy, [3, 1, 5, 2, 2], 2)
    return (
        toy.values(train_step.state),
        distribution.is_chief(strategy),
        metrics,
        predictions,
    )


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.mark.slow
def test_two_machines_take_the_steps_of_one(tmp_path):
    from test_prediction import check_predictions

    arrays, ports = toy.examples(), free_ports(2)
    with SPAWN.Pool(2, maxtasksperchild=1) as pool:
        workers = [pool.apply_async(train_as_worker, (i, ports, arrays)) for i in range(2)]
        results = [worker.get(1200) for worker in workers]
    train_step, evaluation_step = toy.make(distribution.create_strategy("one_device"))
    train_step.run(iter(toy.dataset(arrays)), 10)
    metrics = loop.evaluate(evaluation_step, toy.dataset(arrays))
    assert [is_chief for _, is_chief, _, _ in results] == [True, False]
    for values, _, evaluated, predicted in results:
        assert_close(values, toy.values(train_step.state))
        assert evaluated == pytest.approx(metrics, rel=1e-6)
        check_predictions(predicted)
    assert_close(results[0][0], results[1][0], atol=0)


@pytest.mark.parametrize("error", [tf.errors.NotFoundError, tf.errors.UnimplementedError])
def test_a_tpu_that_is_not_there_is_the_users_mistake(error, monkeypatch):
    from official.common import distribute_utils

    def connect(name, tpu_address):
        raise error(None, None, f"TPUs not found in the cluster {tpu_address}\nmore lines")

    monkeypatch.setattr(distribute_utils, "get_distribution_strategy", connect)
    with pytest.raises(ValueError, match="needs a TPU that `tpu_name` reaches.*'far'") as caught:
        distribution.create_strategy("tpu", "far")
    assert "\n" not in str(caught.value)
