import keras
import numpy as np
import pytest
import tensorflow as tf
from made_models import randomize, small_config
from made_task_models import TASKS, padded, random_task_batch, random_task_model

from modeling import task_losses, task_models


@pytest.fixture(params=TASKS)
def task(request):
    return request.param


def assert_same(outputs, expected, tolerance=1e-5):
    assert set(outputs) == set(expected)
    for name, value in outputs.items():
        np.testing.assert_allclose(
            value, expected[name], rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_named_variables_are_all_there_is_to_train(task):
    model = random_task_model(task)
    named = model.named_variables()
    assert len(named) == len(model.trainable_weights) == len(model.weights)
    assert {id(variable) for variable in named.values()} == {
        id(variable.value) for variable in model.trainable_weights
    }


def test_the_weights_of_a_head_are_told_by_the_seed():
    first, again, other = (
        task_models.AnswerableSpanModel(small_config(), seed=seed).named_variables()
        for seed in (1, 1, 2)
    )
    for name in ("start_logits/dense/kernel", "answer_class/dense_1/kernel"):
        np.testing.assert_array_equal(first[name], again[name])
        assert (first[name].numpy() != other[name].numpy()).any()


def test_padding_adds_nothing(task):
    model, batch = random_task_model(task), random_task_batch(task)
    plain, longer = model(batch), dict(model(padded(batch, 5)))
    for name in ("start_logits", "end_logits", "start_log_probs", "end_log_probs"):
        if name in longer:  # One for each position.
            longer[name] = longer[name][:, :12]
    assert_same(longer, plain)


def test_padding_is_no_answer_even_where_p_mask_forgets_it():
    model, batch = random_task_model("answerable"), random_task_batch("answerable")
    careless = {**batch, "p_mask": batch["p_mask"] * batch["input_mask"]}
    assert_same(model(careless), model(batch), tolerance=0)


def test_a_padded_choice_never_wins_and_learns_nothing():
    model, batch = random_task_model("choice"), random_task_batch("choice")
    model.classifier.output_bias.assign([-1e6])
    batch["choice_mask"] = tf.constant([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 1, 1]], tf.float32)
    real = batch["choice_mask"].numpy() > 0
    logits = model(batch)["logits"].numpy()
    assert np.isfinite(logits).all()
    assert real[np.arange(4), logits.argmax(-1)].all()
    assert (tf.nn.softmax(logits).numpy()[~real] == 0).all()


def test_what_stands_in_a_padded_choice_changes_no_gradient():
    model, batch = random_task_model("choice"), random_task_batch("choice")
    batch["choice_mask"] = tf.constant([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]], tf.float32)
    mask = tf.cast(batch["choice_mask"], tf.int32)[..., tf.newaxis]
    empty = {**batch, **{name: batch[name] * mask for name in task_models.ENCODER_FEATURES}}

    def gradients(batch):
        with tf.GradientTape() as tape:
            total, _ = task_losses.choice_losses(model(batch), batch)["loss"]
        return tape.gradient(total, model.named_variables())

    expected = gradients(batch)
    for name, gradient in gradients(empty).items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_choices_are_scored_each_for_itself():
    model, batch = random_task_model("choice"), random_task_batch("choice")
    turned = {
        name: value[:, ::-1] if value.shape.rank > 1 else value for name, value in batch.items()
    }
    np.testing.assert_allclose(model(turned)["logits"], model(batch)["logits"][:, ::-1], atol=1e-5)


def test_the_beams_of_a_start_are_the_likeliest_ends_given_that_start():
    model, batch = random_task_model("answerable"), random_task_batch("answerable")
    outputs = model(batch)
    order = np.argsort(-outputs["start_log_probs"].numpy(), axis=-1, kind="stable")[:, :3]
    np.testing.assert_array_equal(outputs["start_top_index"], order)
    for i in range(3):
        given = model({**batch, "start_positions": outputs["start_top_index"][:, i]})
        ends = given["end_log_probs"].numpy()
        order = np.argsort(-ends, axis=-1, kind="stable")[:, :2]
        np.testing.assert_array_equal(outputs["end_top_index"][:, 2 * i : 2 * i + 2], order)
        np.testing.assert_allclose(
            outputs["end_top_log_probs"][:, 2 * i : 2 * i + 2],
            np.take_along_axis(ends, order, axis=-1),
            rtol=1e-5,
        )


def test_beams_beyond_the_legal_positions_are_finite_and_come_last():
    model, batch = random_task_model("answerable"), random_task_batch("answerable")
    p_mask = np.ones([4, 12], np.int32)
    p_mask[:, 0] = 0  # [CLS] is always legal ...
    p_mask[1, 4] = 0  # ... and here one more.
    outputs = model({**batch, "p_mask": tf.constant(p_mask)})
    assert all(np.isfinite(value).all() for value in outputs.values())
    log_probs = outputs["start_top_log_probs"].numpy()
    assert ((log_probs > -1e29).sum(axis=-1) == [1, 2, 1, 1]).all()
    legal = np.take_along_axis(p_mask, outputs["start_top_index"].numpy(), axis=-1) == 0
    np.testing.assert_array_equal(log_probs > -1e29, legal)
    ends = outputs["end_top_log_probs"].numpy()[:, :2]  # Of the first start.
    assert ((ends > -1e29).sum(axis=-1) == [1, 2, 1, 1]).all()


def test_beams_of_a_text_shorter_than_they_are_those_of_the_padded_text():
    beams = {"start_n_top": 20, "end_n_top": 15}
    model = randomize(task_models.AnswerableSpanModel(small_config(), **beams))
    batch = random_task_batch("answerable")
    short, longer = model(batch), model(padded(batch, 8))
    for name, number in (("start", 20), ("end", 12 * 15)):  # The ends of the 12 real starts.
        log_probs, places = f"{name}_top_log_probs", f"{name}_top_index"
        assert short[log_probs].shape == longer[log_probs].shape
        np.testing.assert_allclose(
            short[log_probs][:, :number], longer[log_probs][:, :number], rtol=1e-5, atol=1e-5
        )
        expected = np.minimum(longer[places][:, :number], 11)
        np.testing.assert_array_equal(short[places][:, :number], expected)


def test_end_log_probs_need_starts_and_beams_need_none():
    model, batch = random_task_model("answerable"), random_task_batch("answerable")
    labelled, trained = model(batch), model(batch, training=True, dropout_seed=[0, 1])
    del batch["start_positions"]
    unlabelled = model(batch)
    assert set(labelled) - set(unlabelled) == {"end_log_probs"}
    assert set(trained) == {"start_log_probs", "end_log_probs", "cls_logits"}


@pytest.mark.parametrize("task", ["classes", "choice", "answerable"])
def test_dropout_of_the_head_is_told_by_its_seed_and_off_outside_training(task):
    model, batch = random_task_model(task), random_task_batch(task)
    name = "cls_logits" if task == "answerable" else "logits"
    plain = model(batch, dropout_seed=[0, 1])[name].numpy()
    first, again, other = (
        model(batch, training=True, dropout_seed=tf.constant(seed))[name].numpy()
        for seed in ([0, 1], [0, 1], [0, 2])
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any() and (first != plain).any()
    np.testing.assert_array_equal(plain, model(batch)[name])
    drawn = [model(batch, training=True)[name].numpy() for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()


def test_dropout_of_the_head_drops_a_tenth_and_keeps_the_mean():
    model, batch = random_task_model("classes"), random_task_batch("classes", batch_size=1)
    batch = {name: tf.repeat(value, 3000, axis=0) for name, value in batch.items()}
    model.classifier.output_weights.assign(np.eye(3, 16, dtype=np.float32))
    plain = model(batch)["logits"].numpy()
    dropped = model(batch, training=True, dropout_seed=[1, 2])["logits"].numpy()
    gone = np.isclose(dropped, model.classifier.output_bias.numpy())
    assert gone.mean() == pytest.approx(0.1, abs=0.01)
    np.testing.assert_allclose(dropped.mean(0), plain.mean(0), atol=0.02)


def test_a_model_survives_the_keras_format(task, tmp_path):
    model, batch = random_task_model(task), random_task_batch(task)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    assert loaded.settings == model.settings
    assert_same(loaded(batch), model(batch), tolerance=0)


def test_one_graph_serves_batches_of_any_shape(task):
    model, batch = random_task_model(task), random_task_batch(task)
    signature = {
        name: tf.TensorSpec([None] * value.shape.rank, value.dtype) for name, value in batch.items()
    }
    graph = tf.function(model).get_concrete_function(signature)
    assert_same(graph(batch), model(batch))
    batch = random_task_batch(task, batch_size=2, length=9, seed=1)
    assert_same(graph(batch), model(batch))


def test_mixed_precision_gives_float32_outputs_near_the_exact_ones(task):
    batch = random_task_batch(task)
    exact = random_task_model(task)(batch)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        rounded = random_task_model(task)(batch)
    finally:
        keras.config.set_dtype_policy("float32")
    for name, value in rounded.items():
        assert value.dtype == exact[name].dtype
        if "top" not in name:  # Beams may change places.
            np.testing.assert_allclose(value, exact[name], atol=0.25, rtol=1e-6)
