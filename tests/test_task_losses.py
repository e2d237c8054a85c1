import numpy as np
import pytest
import tensorflow as tf
from made_task_models import TASKS, losses_of, random_task_batch, random_task_model

from modeling import task_losses


@pytest.fixture(params=TASKS)
def task(request):
    return request.param


def loss_and_gradients(task, model, batch):
    """Returns (dict of (sum, count), dict of name -> dense gradient of the mean task loss)."""
    variables = model.named_variables()
    with tf.GradientTape() as tape:
        pairs = losses_of(task)(model(batch), batch)
        total, count = pairs["loss"]
        mean = total / count
    gradients = tape.gradient(mean, variables, unconnected_gradients="zero")
    return pairs, {name: tf.convert_to_tensor(g).numpy() for name, g in gradients.items()}


def test_rows_that_fill_up_a_batch_add_nothing_to_loss_or_gradient(task):
    model, batch = random_task_model(task), random_task_batch(task)
    filler = {name: value[:2] * 0 for name, value in batch.items()}
    filled = {name: tf.concat([batch[name], filler[name]], axis=0) for name in batch}
    plain_pairs, plain = loss_and_gradients(task, model, batch)
    pairs, gradients = loss_and_gradients(task, model, filled)
    for name, pair in pairs.items():
        np.testing.assert_allclose(pair, plain_pairs[name], rtol=1e-6, err_msg=name)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, plain[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_sums_over_parts_of_a_batch_are_the_sums_of_the_whole(task):
    model, batch = random_task_model(task), random_task_batch(task)
    whole = losses_of(task)(model(batch), batch)
    parts = [
        losses_of(task)(model(part), part)
        for part in (
            {name: value[rows] for name, value in batch.items()}
            for rows in (slice(0, 1), slice(1, 4))
        )
    ]
    for name, pair in whole.items():
        together = np.sum([part[name] for part in parts], axis=0)
        np.testing.assert_allclose(pair, together, rtol=1e-5, err_msg=name)


def test_the_objectives_are_among_the_losses(task):
    batch = random_task_batch(task)
    assert set(task_losses.OBJECTIVES) <= set(
        losses_of(task)(random_task_model(task)(batch), batch)
    )


def test_every_weight_learns_but_those_that_the_loss_cannot_see(task):
    batch = random_task_batch(task)
    _, gradients = loss_and_gradients(task, random_task_model(task), batch)
    blind = {name for name, gradient in gradients.items() if not gradient.any()}
    pooler = {name for name in gradients if "pooler" in name}
    # Adding the same to all choices, or to all positions, changes no softmax over them; but
    # rounding keeps some of these gradients off 0.
    expected = pooler if task in ("span", "answerable") else set()
    constant = {"output_bias", "cls/squad/output_bias", "start_logits/dense/bias"}
    constant |= {"end_logits/dense_1/bias", *(n for n in gradients if n.endswith("key/bias"))}
    assert expected <= blind <= expected | constant


def mean(pair):
    total, count = pair
    return float(total / count)


def test_a_guess_among_classes_costs_the_log_of_their_number():
    batch = {"label_ids": tf.constant([2, 0]), "example_weights": tf.ones([2])}
    pairs = task_losses.classification_losses({"logits": tf.zeros([2, 3])}, batch)
    assert mean(pairs["loss"]) == pytest.approx(np.log(3))
    assert mean(pairs["accuracy"]) == 0.5


def test_a_padded_choice_takes_no_share_of_the_guess():
    logits = tf.constant([[0.0, 0.0, -1e9], [1.0, -1e9, -1e9]])
    batch = {"label_ids": tf.constant([1, 0]), "example_weights": tf.ones([2])}
    pairs = task_losses.choice_losses({"logits": logits}, batch)
    assert mean(pairs["loss"]) == pytest.approx(np.log(2) / 2)


def test_regression_costs_the_square_of_the_error():
    batch = {
        "label_ids": tf.constant([1.5, -1.0, 9.0]),
        "example_weights": tf.constant([1.0, 1, 0]),
    }
    pairs = task_losses.regression_losses({"logits": tf.constant([[1.0], [2.0], [0.0]])}, batch)
    np.testing.assert_allclose(pairs["loss"], [0.25 + 9, 2])


def test_labels_for_themselves_cost_log_2_each_at_a_guess_whatever_their_number():
    for num_labels in (1, 5):
        labels = tf.ones([2, num_labels])
        batch = {"label_ids": labels, "example_weights": tf.ones([2])}
        pairs = task_losses.multilabel_losses({"logits": labels * 0}, batch)
        assert mean(pairs["loss"]) == pytest.approx(np.log(2))


SPANS = {
    "start_positions": tf.constant([3, 0]),
    "end_positions": tf.constant([4, 0]),
    "is_impossible": tf.constant([0, 1]),
    "example_weights": tf.ones([2]),
}


def test_a_span_costs_the_mean_of_its_edges():
    start = tf.math.log([[0.1, 0.1, 0.1, 0.5, 0.2], [0.2, 0.2, 0.2, 0.2, 0.2]])
    pairs = task_losses.span_losses({"start_logits": start, "end_logits": tf.zeros([2, 5])}, SPANS)
    start_loss = -(np.log(0.5) + np.log(0.2)) / 2
    assert mean(pairs["start_loss"]) == pytest.approx(start_loss)
    assert mean(pairs["loss"]) == pytest.approx((start_loss + np.log(5)) / 2)


def test_an_answerable_span_costs_half_of_each_edge_and_half_of_the_verdict():
    log_probs = tf.math.log([[0.1, 0.1, 0.1, 0.5, 0.2], [0.6, 0.1, 0.1, 0.1, 0.1]])
    outputs = {
        "start_log_probs": log_probs,
        "end_log_probs": log_probs,
        "cls_logits": tf.constant([np.log(0.25 / 0.75), np.log(0.9 / 0.1)], tf.float32),
    }
    pairs = task_losses.answerable_span_losses(outputs, SPANS)
    edges = -np.log([0.5, 0.2]).sum() - 2 * np.log(0.6)
    verdict = -np.log(0.75) - np.log(0.9)
    np.testing.assert_allclose(pairs["loss"], [(edges + verdict) / 2, 2], rtol=1e-5)
    assert mean(pairs["answerability_loss"]) == pytest.approx(verdict / 2)
