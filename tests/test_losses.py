import numpy as np
import tensorflow as tf
from made_models import random_batch, random_model, small_config

from modeling import losses


def test_a_uniform_guess_costs_log_v_nats():
    loss, count = losses.cross_entropy(
        tf.zeros([1, 4, 30_000]), tf.zeros([1, 4], tf.int32), tf.ones([1, 4])
    )
    np.testing.assert_allclose(loss / count, np.log(30_000), rtol=1e-6)


def test_what_weighs_nothing_counts_nothing():
    logits = tf.constant([[[9.0, 0.0], [0.0, 9.0]]])
    labels, weights = tf.constant([[0, 0]]), tf.constant([[1.0, 0.0]])
    loss, count = losses.cross_entropy(logits, labels, weights)
    np.testing.assert_allclose([loss, count], [np.log1p(np.exp(-9)), 1], rtol=1e-3)
    right, count = losses.accuracy(logits, labels, weights)
    np.testing.assert_array_equal([right, count], [1, 1])


def test_accuracy_counts_where_the_largest_logit_is_the_labels():
    logits = tf.constant([[0.1, 0.2, 0.0], [3.0, -1.0, 2.0], [0.0, 0.0, 1.0]])
    right, count = losses.accuracy(logits, tf.constant([1, 2, 2]), tf.ones([3]))
    np.testing.assert_array_equal([right, count], [2, 3])


def test_without_masked_positions_every_masked_lm_sum_is_exactly_0():
    config = small_config()
    batch = random_batch(config)
    batch["masked_lm_weights"] *= 0
    pairs = losses.pretraining_losses(random_model(config)(batch), batch)
    for name in ("masked_lm_loss", "masked_lm_accuracy"):
        np.testing.assert_array_equal(pairs[name], [0, 0])


def test_no_loss_is_negative():
    config = small_config()
    model = random_model(config)
    for seed in range(5):
        batch = random_batch(config, seed=seed)
        pairs = losses.pretraining_losses(model(batch), batch)
        assert all(total >= 0 for total, _ in pairs.values())


def test_rows_that_fill_up_a_batch_add_nothing():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    filler = random_batch(config, batch_size=2, seed=1)
    filler["masked_lm_weights"] *= 0
    filler["example_weights"] *= 0
    filled = {name: tf.concat([batch[name], filler[name]], axis=0) for name in batch}
    plain = losses.pretraining_losses(model(batch), batch)
    for name, pair in losses.pretraining_losses(model(filled), filled).items():
        np.testing.assert_allclose(pair, plain[name], rtol=1e-6, err_msg=name)


def test_sums_over_parts_of_a_batch_are_the_sums_of_the_whole():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    whole = losses.pretraining_losses(model(batch), batch)
    halves = [
        losses.pretraining_losses(model(half), half)
        for half in (
            {name: value[rows] for name, value in batch.items()}
            for rows in (slice(0, 2), slice(2, 4))
        )
    ]
    for name, pair in whole.items():
        together = np.sum([half[name] for half in halves], axis=0)
        np.testing.assert_allclose(pair, together, rtol=1e-6, err_msg=name)


def test_every_objective_is_among_the_losses():
    config = small_config()
    batch = random_batch(config)
    pairs = losses.pretraining_losses(random_model(config)(batch), batch)
    assert {name for names in losses.OBJECTIVES.values() for name in names} <= set(pairs)
