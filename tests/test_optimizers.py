import json
import re

import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder

from training import optimizers, schedules

TOY = golden_folder("optimizer")
META = json.loads((TOY / "toy_meta.json").read_text())
KINDS = ("lamb", "adamw")


def excluded_by_the_original(names):
    """The rule of optimization.py:81,90: a search of the whole name."""
    return frozenset(n for n in names if re.search("LayerNorm|layer_norm|bias", n))


def toy(kind):
    """Reads one toy file as (initial weights, gradients, states after each step, other arrays)."""
    arrays = dict(np.load(TOY / f"toy_{kind}.npz"))
    parts = {"init": {}, "grad": {}, "after": {}}
    for key in [key for key in arrays if key.split("/", 1)[0] in parts]:
        part, name = key.split("/", 1)
        parts[part][name] = arrays.pop(key)
    return parts["init"], parts["grad"], parts["after"], arrays


def make(weights, kind, **settings):
    variables = {name: tf.Variable(weight) for name, weight in weights.items()}
    return variables, optimizers.Optimizer(variables, kind=kind, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_golden_toy_weights_slots_rates_and_norms_are_the_originals_at_every_step(kind):
    weights, gradients, after, logged = toy(kind)
    exclude = excluded_by_the_original(weights)  # The toy's names are made to trick the regex.
    variables, optimizer = make(weights, kind, exclude=exclude)
    args = META["optimizer_args"]
    for step in range(META["steps"]):
        rate = schedules.learning_rate(
            tf.constant(step),
            init=args["init_lr"],
            num_train_steps=args["num_train_steps"],
            num_warmup_steps=args["num_warmup_steps"],
        )
        clipped, norm = tf.clip_by_global_norm([gradients[name][step] for name in variables], 1.0)
        np.testing.assert_allclose(rate, logged["learning_rate"][step], rtol=1e-6)
        np.testing.assert_allclose(norm, logged["grad_global_norm"][step], rtol=1e-6)
        optimizer.apply(dict(zip(variables, clipped, strict=True)), rate, tf.constant(True))
        state = {**variables, **optimizer.slots}
        assert set(after) == set(state) | {"global_step"}
        for name, variable in state.items():
            np.testing.assert_allclose(variable, after[name][step], atol=1e-6, err_msg=name)


def test_golden_names_are_excluded_as_the_original_does():
    files = sorted(golden_folder("tf1_checkpoint").glob("*/model.ckpt-best.index"))
    assert files
    for file in files:
        names = tf.train.load_checkpoint(str(file)[: -len(".index")]).get_variable_to_shape_map()
        assert optimizers.default_exclusions(names) == excluded_by_the_original(names)


def test_a_name_that_only_contains_bias_is_decayed():
    """Differs from the original, whose regex excludes "a/unbiased/kernel"."""
    names = ["a/unbiased/kernel", "a/dense/bias", "cls/predictions/output_bias", "LayerNorm/gamma"]
    assert optimizers.default_exclusions(names) == set(names[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients_kernels_shrink_and_biases_and_layer_norms_do_not(kind):
    names = ["dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta", "x/output_bias"]
    weights = {name: np.linspace(-1, 2, 6, dtype=np.float32) for name in names}
    variables, optimizer = make(weights, kind)
    zeros = {name: tf.zeros_like(variable) for name, variable in variables.items()}
    optimizer.apply(zeros, tf.constant(0.1), tf.constant(True))
    shrunk = weights["dense/kernel"] * (1 - 0.1 * (1.0 if kind == "lamb" else 0.01))
    np.testing.assert_allclose(variables["dense/kernel"], shrunk, rtol=1e-6)
    for name in names[1:]:
        np.testing.assert_array_equal(variables[name], weights[name])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e38])
def test_a_step_that_is_not_applied_leaves_every_bit(kind, bad):
    weights, gradients, _, _ = toy(kind)
    variables, optimizer = make(weights, kind, bias_correction=True)
    first = {name: gradient[0] for name, gradient in gradients.items()}
    optimizer.apply(first, tf.constant(0.1), tf.constant(True))
    before = {name: v.numpy().tobytes() for name, v in {**variables, **optimizer.slots}.items()}
    spoilt = {name: tf.fill(v.shape, np.float32(bad)) for name, v in variables.items()}
    optimizer.apply(spoilt, tf.constant(0.1), tf.constant(False))
    after = {name: v.numpy().tobytes() for name, v in {**variables, **optimizer.slots}.items()}
    assert after == before


def test_a_variable_without_a_gradient_stays_with_its_slots():
    weights = {"a/kernel": np.ones(3, np.float32), "b/kernel": np.ones(3, np.float32)}
    variables, optimizer = make(weights, "adamw")
    optimizer.apply({"a/kernel": tf.ones(3), "b/kernel": None}, tf.constant(0.1), tf.constant(True))
    assert (variables["a/kernel"].numpy() < 1).all()
    np.testing.assert_array_equal(variables["b/kernel"], 1)
    np.testing.assert_array_equal(optimizer.slots["b/kernel/adam_v"], 0)


def test_bias_correction_makes_the_first_adamw_step_the_sign_of_the_gradient():
    weights = {"a/kernel": np.zeros(3, np.float32)}
    variables, optimizer = make(weights, "adamw", bias_correction=True)
    for _ in range(3):  # A constant gradient: the corrected means stay g and g squared.
        optimizer.apply(
            {"a/kernel": tf.constant([0.5, -2, 3.0])}, tf.constant(0.1), tf.constant(True)
        )
    assert int(optimizer.slots["optimizer/num_updates"]) == 3
    np.testing.assert_allclose(variables["a/kernel"], [-0.3, 0.3, -0.3], rtol=2e-3)


def test_lamb_moves_a_weight_by_the_rate_times_its_own_norm():
    weights = {"a/kernel": np.array([3.0, 4.0], np.float32)}
    variables, optimizer = make(weights, "lamb")
    optimizer.apply({"a/kernel": tf.constant([1.0, -7.0])}, tf.constant(0.01), tf.constant(True))
    assert np.linalg.norm(variables["a/kernel"] - weights["a/kernel"]) == pytest.approx(0.05, 1e-5)


def test_an_unknown_rule_or_exclusion_is_refused_with_what_was_received():
    with pytest.raises(ValueError, match="`kind` must be.*Received: 'sgd'"):
        make({"a": np.ones(1, np.float32)}, "sgd")
    with pytest.raises(ValueError, match=r"`exclude` must name.*\['b'\]"):
        make({"a": np.ones(1, np.float32)}, "lamb", exclude={"b"})
