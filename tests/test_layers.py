import numpy as np
import pytest
import tensorflow as tf

from modeling import activations, layers
from modeling.config import HIDDEN_ACTS


def original_gelu(x):
    """The tanh form, modeling.py:311 of the original."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def test_every_activation_a_config_may_name_is_there():
    assert set(activations.ACTIVATIONS) == set(HIDDEN_ACTS)


def test_gelu_is_the_tanh_form():
    x = np.linspace(-8, 8, 401)
    np.testing.assert_allclose(activations.gelu(x.astype("float32")), original_gelu(x), atol=1e-6)
    np.testing.assert_allclose(activations.gelu_erf(tf.constant([1.0]))[0], 0.841344746, atol=1e-6)


@pytest.mark.parametrize("name", activations.ACTIVATIONS)
def test_the_gradients_of_activations_are_the_numerical_ones(name):
    x = tf.constant([-3.0, -1.1, -0.3, 0.2, 0.9, 2.5], tf.float64)
    theory, numeric = tf.test.compute_gradient(activations.ACTIVATIONS[name], [x], delta=1e-5)
    np.testing.assert_allclose(theory, numeric, atol=1e-8)


def test_a_normalised_row_has_mean_beta_and_deviation_gamma():
    x = np.random.default_rng(0).normal(5, 3, (4, 1000)).astype("float32")
    y = layers.layer_norm(tf.constant(x), tf.fill([1000], 2.0), tf.fill([1000], 0.5)).numpy()
    np.testing.assert_allclose(y.mean(-1), 0.5, atol=1e-5)
    np.testing.assert_allclose(y.std(-1), 2.0, rtol=1e-5)


def test_the_gradient_of_layer_norm_is_the_numerical_one():
    rng = np.random.default_rng(0)
    arguments = [tf.constant(rng.standard_normal(s)) for s in ((2, 3, 5), (5,), (5,))]
    theory, numeric = tf.test.compute_gradient(layers.layer_norm, arguments, delta=1e-5)
    for ours, other in zip(theory, numeric, strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-8)


def test_gradients_are_the_same_in_a_loop():
    gamma, beta, x = tf.fill([6], 1.1), tf.fill([6], 0.1), tf.reshape(tf.range(24.0), [4, 6])

    def body(index, x):
        return index + 1, layers.layer_norm(activations.gelu(x) + x, gamma, beta)

    def looped():
        return tf.while_loop(
            lambda index, _: index < 3, body, (tf.constant(0), x), maximum_iterations=3
        )[1]

    def unrolled():
        return body(2, body(1, body(0, x)[1])[1])[1]

    @tf.function
    def gradients(run):
        with tf.GradientTape() as tape:
            tape.watch([x, gamma, beta])
            loss = tf.reduce_sum(run()[:, 0] ** 2)
        return tape.gradient(loss, [x, gamma, beta])

    for ours, other in zip(gradients(looped), gradients(unrolled), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-5, atol=1e-6)


def test_mixed_precision_normalises_in_float32():
    x = np.random.default_rng(0).normal(300, 1, (2, 64)).astype("float32")
    half = tf.cast(x, tf.bfloat16)
    exact = layers.layer_norm(tf.cast(half, tf.float32), tf.ones([64]), tf.zeros([64]))
    ones, zeros = tf.ones([64], tf.bfloat16), tf.zeros([64], tf.bfloat16)
    rounded = layers.layer_norm(half, ones, zeros)
    assert rounded.dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(rounded, tf.float32), exact, rtol=0.01, atol=0.01)


def test_the_gradient_of_a_lookup_is_dense_and_sums_repeated_ids():
    table = tf.Variable(tf.random.stateless_normal([5, 3], [0, 0]))
    with tf.GradientTape() as tape:
        picked = layers.lookup(table, tf.constant([[1, 4], [1, 1]]))
        loss = tf.reduce_sum(picked)
    np.testing.assert_array_equal(picked[0, 1], table[4])
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.Tensor)
    np.testing.assert_array_equal(gradient, np.array([[0], [3], [0], [0], [1]]) * np.ones(3))


def test_an_id_outside_the_table_is_an_error_on_a_cpu():
    with pytest.raises(tf.errors.InvalidArgumentError, match="5 is not in"):
        layers.lookup(tf.zeros([5, 3]), tf.constant([5]))


def test_dropout_zeroes_its_share_and_keeps_the_mean():
    x = tf.ones([400, 500])
    y = layers.dropout(x, 0.1, tf.constant([1, 2]), site=3).numpy()
    assert abs((y == 0).mean() - 0.1) < 0.003  # Four and a half deviations.
    np.testing.assert_allclose(y[y != 0], 1 / 0.9, rtol=1e-6)


def test_dropout_is_told_by_its_seed_and_its_site():
    def dropped(seed, site):
        return layers.dropout(tf.ones([64]), 0.5, tf.constant(seed), site).numpy()

    np.testing.assert_array_equal(dropped([1, 2], 0), dropped([1, 2], 0))
    assert (dropped([1, 2], 0) != dropped([1, 2], 1)).any()
    assert (dropped([1, 2], 0) != dropped([1, 3], 0)).any()


def test_dropout_drops_the_same_under_xla():
    def dropped():
        return layers.dropout(tf.ones([64, 64]), 0.3, tf.constant([1, 2]), tf.constant(7))

    np.testing.assert_array_equal(dropped(), tf.function(dropped, jit_compile=True)())


def test_dropout_of_rate_0_or_without_a_seed_adds_nothing():
    x = tf.ones([3])
    assert layers.dropout(x, 0.0, tf.constant([1, 2]), 0) is x
    assert layers.dropout(x, 0.5, None, 0) is x
