import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy

from training import checkpoints, distribution, loss_scaling, run, step


def test_a_scale_is_halved_by_each_bad_step_and_never_below_1():
    scale = loss_scaling.LossScale()
    assert float(scale.value) == 2**15
    scales = []
    for _ in range(20):
        scale.update(tf.constant(False))
        scales.append(float(scale.value))
    assert scales == [max(2.0 ** (14 - i), 1) for i in range(20)]


def test_a_scale_is_doubled_after_2000_good_steps_in_a_row():
    scale = loss_scaling.LossScale()
    scale.good_steps.assign(1998)
    for finite, expected in ((True, 2**15), (True, 2**16), (True, 2**16), (False, 2**15)):
        scale.update(tf.constant(finite))
        assert float(scale.value) == expected
    assert int(scale.good_steps) == 0


SLOPE = 1024.0  # In float16 this times a scale of 128 is finite, and times 256 / 4 is not.


def make_step(**settings):
    """Returns a step whose gradients overflow float16 at scales above 128."""
    w = tf.Variable(tf.ones([4]))

    def forward(batch, seed):
        seen = tf.cast(tf.cast(w, tf.float16) * SLOPE * batch["factor"], tf.float32)
        return {"loss": (tf.reduce_sum(seen), tf.constant(2.0))}

    chosen = toy.settings(precision="float16", train_batch_size=1, **settings)
    state = run.create_state({"w": w}, chosen)
    strategy = distribution.create_strategy("one_device")
    return step.TrainStep(forward, ["loss"], state=state, config=chosen, strategy=strategy)


def batches(factors):
    return iter(tf.data.Dataset.from_tensor_slices({"factor": tf.constant(factors, tf.float16)}))


def test_overflowing_steps_are_skipped_until_the_scale_fits_and_gradients_are_unscaled():
    train_step = make_step()
    metrics = train_step.run(batches([1.0] * 10), 10)
    state = train_step.state
    # A gradient is 1024 x scale / 2, finite below 65,520: skipped from 2^15 down to 2^7.
    assert int(state.skipped_steps) == 9
    assert metrics["loss_scale"] == float(state.loss_scale.value) == 64
    assert metrics["gradient_norm"] == pytest.approx(SLOPE / 2 * 2)  # Of four of them.
    assert int(state.step) == 10 and int(state.loss_scale.good_steps) == 1


def test_a_run_goes_on_with_its_scale_to_the_bit(tmp_path):
    factors = [1e-3] * 3 + [1.0] * 8 + [1e-3] * 4
    unbroken = make_step(max_skipped_steps=20)
    unbroken.run(batches(factors), 15)
    assert 0 < int(unbroken.state.skipped_steps) < 10
    first, second = make_step(max_skipped_steps=20), make_step(max_skipped_steps=20)
    first.run(batches(factors[:6]), 6)
    checkpoints.Checkpoints(tmp_path, first.state.variables()).save(6)
    checkpoints.Checkpoints(tmp_path, second.state.variables()).restore()
    second.run(batches(factors[6:]), 9)
    ours, theirs = toy.values(second.state), toy.values(unbroken.state)
    assert {"loss_scale", "loss_scale_good_steps"} < set(ours)
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_other_precisions_have_no_scale():
    state = run.create_state({"w": tf.Variable([1.0])}, toy.settings(precision="bfloat16"))
    assert not any("scale" in name for name in state.variables())
