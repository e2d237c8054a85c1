"""Half precision: what it rounds, what it leaves alone, and that nothing of it reaches a file."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy
from made_models import random_batch, random_model, small_config

from modeling import activations, losses, models, precision
from training import checkpoints, distribution, initialization, run, step


@pytest.fixture(params=["bfloat16", "float16"])
def half(request):
    return request.param


def half_model(half, **config):
    with precision.scope(half):
        return random_model(small_config(**config))


def test_a_scope_ends_and_float32_is_no_other_policy():
    with pytest.raises(KeyError), precision.scope("float8"):
        pass
    with precision.scope("float16"):
        assert models.PretrainingModel(small_config()).encoder.pooler.compute_dtype == "float16"
    assert keras.config.dtype_policy().name == "float32"


def test_products_are_rounded_and_the_logits_are_float32_near_the_exact_ones(half):
    model, batch = half_model(half), random_batch(small_config())
    assert {variable.dtype for variable in model.named_variables().values()} == {tf.float32}
    assert model.encoder(batch)["sequence_output"].dtype == half
    exact = random_model(small_config())(batch)
    for name, logits in model(batch).items():
        assert logits.dtype == tf.float32
        np.testing.assert_allclose(logits, exact[name], atol=0.3)
        assert (logits.numpy() != exact[name].numpy()).any()


def test_a_row_that_is_all_padding_is_finite_and_so_are_its_gradients(half):
    """NaN in the original's heirs (optimum-habana 287, flax 982, PaddleNLP 1585)."""
    model, batch = half_model(half), random_batch(small_config())
    batch["input_mask"] *= tf.constant([[1], [0], [1], [0]])
    with tf.GradientTape() as tape:
        outputs = model(batch)
        pairs = losses.pretraining_losses(outputs, batch)
        loss = sum(pairs[name][0] for name in losses.OBJECTIVES["sop"])
    gradients = tape.gradient(loss, model.named_variables())
    for value in (*outputs.values(), loss, *gradients.values()):
        assert np.isfinite(value).all()
    assert {gradient.dtype for gradient in gradients.values()} == {tf.float32}


def test_gelu_of_large_numbers_has_a_finite_gradient_in_float16():
    x = tf.constant([-3000.0, -80.0, 80.0, 3000.0], tf.float16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = activations.gelu(x)
    np.testing.assert_array_equal(y, [0, 0, 80, 3000])
    np.testing.assert_array_equal(tape.gradient(y, x), [0, 0, 1, 1])


def test_weights_trained_in_half_precision_are_float32_wherever_they_go(half, tmp_path):
    model, batch = half_model(half), random_batch(small_config())
    before = model.named_variables()["bert/pooler/dense/kernel"].numpy()
    settings = toy.settings(train_batch_size=4, learning_rate=0.01, precision=half)
    state = run.create_state(model.named_variables(), settings)
    train_step = step.TrainStep(
        lambda batch, seed: losses.pretraining_losses(model(batch), batch),
        losses.OBJECTIVES["sop"],
        state=state,
        config=settings,
        strategy=distribution.create_strategy("one_device"),
    )
    metrics = train_step.run(iter(tf.data.Dataset.from_tensors(batch).repeat()), 5)
    assert metrics["loss"] < 30
    assert int(state.skipped_steps) <= (3 if half == "float16" else 0)  # At the first loss scales.
    assert (model.named_variables()["bert/pooler/dense/kernel"].numpy() != before).any()

    checkpoints.Checkpoints(tmp_path / "run", state.variables()).save(5)
    (index,) = (tmp_path / "run").glob("*/*.index")
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    dtypes = reader.get_variable_to_dtype_map()
    assert {dtypes[name] for name in model.named_variables()} == {tf.float32}
    exact = models.PretrainingModel(small_config(), seed=1)
    told = initialization.initialize(exact.named_variables(), str(index))
    assert told.endswith("unused 0.")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    exact.export(tmp_path / "saved", verbose=False, input_signature=[signature(batch)])
    artifact = tf.saved_model.load(str(tmp_path / "saved"))
    served = artifact.serve(batch)
    for name, logits in model(batch).items():
        np.testing.assert_array_equal(loaded(batch)[name], logits)
        np.testing.assert_allclose(exact(batch)[name], logits, atol=0.3)
        np.testing.assert_allclose(served[name], exact(batch)[name], atol=1e-5)


def signature(batch):
    return {name: tf.TensorSpec(value.shape, value.dtype) for name, value in batch.items()}
