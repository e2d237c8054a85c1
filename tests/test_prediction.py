"""Batches of several lengths: trained on, and predicted in the order of the examples."""

import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy
from test_distribution import SPAWN, split_cpu

from training import distribution, loop, step


def uneven(arrays, batch_size=8):
    """Returns the toy's batches with no static shape, as batches of several lengths have none."""
    signature = {name: tf.TensorSpec([None], array.dtype) for name, array in arrays.items()}
    return tf.data.Dataset.from_generator(
        lambda: iter(toy.dataset(arrays, batch_size).as_numpy_iterator()),
        output_signature=signature,
    )


def test_steps_that_the_host_starts_are_those_that_run_on_the_device():
    results = []
    for make_dataset in (toy.dataset, uneven):
        train_step, _ = toy.make(distribution.create_strategy("one_device"), dropout=0.3)
        metrics = train_step.run(iter(make_dataset(toy.examples())), 10)
        results.append((metrics, toy.values(train_step.state)))
    (on_device, expected), (by_host, values) = results
    assert on_device == pytest.approx(by_host, rel=1e-5)
    for name in expected:
        np.testing.assert_allclose(values[name], expected[name], rtol=1e-5, atol=1e-7)


def test_the_host_stops_after_too_many_skipped_steps():
    arrays = toy.examples()
    arrays["weights"][16:] = np.inf
    train_step, _ = toy.make(distribution.create_strategy("one_device"), max_skipped_steps=3)
    train_step.run(iter(uneven(arrays)), 9)
    assert int(train_step.state.step) == 5


def rows_of(lengths, batch_size):
    """Yields batches of rows `[i, i, ...]`, the longest first, the last one filled up."""
    order = np.argsort(-np.array(lengths), kind="stable")
    for start in range(0, len(order), batch_size):
        index = order[start : start + batch_size]
        filled = np.concatenate([index, np.full(batch_size - len(index), -1)]).astype(np.int32)
        width = max(lengths[i] for i in index)
        yield {
            "values": np.tile(filled[:, None].astype(np.float32), width),
            "example_index": filled,
        }


def predict(strategy_name, lengths, batch_size):
    return predict_with(distribution.create_strategy(strategy_name), lengths, batch_size)


def predict_with(strategy, lengths, batch_size):
    signature = {
        "values": tf.TensorSpec([batch_size, None], tf.float32),
        "example_index": tf.TensorSpec([batch_size], tf.int32),
    }
    dataset = tf.data.Dataset.from_generator(
        lambda: rows_of(lengths, batch_size), output_signature=signature
    )
    prediction_step = step.PredictionStep(
        lambda batch: {"twice": 2 * batch["values"], "sum": tf.reduce_sum(batch["values"], 1)},
        strategy,
    )
    return loop.predict(prediction_step, dataset)


def check_predictions(found):
    lengths = [3, 1, 5, 2, 2]
    assert found["twice"].shape == (5, 5)
    for i in range(5):
        assert (found["twice"][i, : lengths[i]] == 2 * i).all()
    assert found["twice"][1, -1] == loop.UNREACHED  # Its batch had rows of 3 and 2 at most.
    assert found["sum"][2] == 10 and found["sum"][0] == 0


def test_predictions_come_in_the_examples_order_without_the_rows_that_fill_up():
    check_predictions(predict("one_device", [3, 1, 5, 2, 2], 2))


def test_two_replicas_predict_the_same():
    with SPAWN.Pool(1, initializer=split_cpu) as pool:
        check_predictions(pool.apply(predict, ("mirrored", [3, 1, 5, 2, 2], 2)))


def test_a_doubled_example_is_an_error():
    batches = tf.data.Dataset.from_tensors({"example_index": [0, 0]})
    prediction_step = step.PredictionStep(
        lambda batch: {"same": batch["example_index"]}, distribution.create_strategy("one_device")
    )
    with pytest.raises(ValueError, match="each example once"):
        loop.predict(prediction_step, batches)
