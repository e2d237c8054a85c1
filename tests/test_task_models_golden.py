"""The original's fine-tuning heads: outputs, loss, gradients, and three steps of training."""

import json

import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder

from modeling import task_losses, task_models
from modeling.config import AlbertConfig
from training import config, distribution, optimizers, step

GOLDENS = golden_folder("finetune_heads")
HEADS = sorted(path.name.removesuffix("_outputs.npz") for path in GOLDENS.glob("*_outputs.npz"))
HEADS = [head for head in HEADS if not head.endswith("_train_mode")]
META = json.loads((GOLDENS / "meta.json").read_text())
LABELS = ("label_ids", "start_positions", "end_positions", "is_impossible")
INPUTS = ("input_ids", "input_mask", "segment_ids", "p_mask", *LABELS)


def create_model(head, reader):
    """Returns (a model with the original's weights, its function of losses)."""
    albert = AlbertConfig.from_json_file(GOLDENS / "albert_config.json")
    if head == "squad_v1":
        model, losses = task_models.SpanModel(albert), task_losses.span_losses
    elif head == "squad_v2":
        beams = {name: META[name] for name in ("start_n_top", "end_n_top")}
        model = task_models.AnswerableSpanModel(albert, **beams)
        losses = task_losses.answerable_span_losses
    elif head == "race":
        model, losses = task_models.MultipleChoice(albert), task_losses.choice_losses
    else:
        num_classes = reader.get_variable_to_shape_map()["output_weights"][0]
        model = task_models.Classifier(albert, num_classes)
        regression = head == "regression"
        losses = task_losses.regression_losses if regression else task_losses.classification_losses
    for name, variable in model.named_variables().items():
        variable.assign(reader.get_tensor(name))
    return model, losses


def make_batch(head, arrays):
    """Returns the golden's inputs as our pipeline would give them."""
    batch = {name: arrays[name] for name in INPUTS if name in arrays}
    rows = len(batch["input_ids"])
    if head == "race":
        num_choices = arrays["logits"].shape[1]
        for name in task_models.ENCODER_FEATURES:
            batch[name] = batch[name].reshape(rows, num_choices, -1)
        batch["choice_mask"] = np.ones([rows, num_choices], np.float32)
    batch["example_weights"] = np.ones(rows, np.float32)
    return {name: tf.constant(array) for name, array in batch.items()}


class Golden:
    """One head's files, and our model with its weights."""

    def __init__(self, head):
        self.head = head
        self.reader = tf.train.load_checkpoint(str(GOLDENS / f"{head}-model.ckpt-0"))
        self.model, self.losses = create_model(head, self.reader)
        self.expected = dict(np.load(GOLDENS / f"{head}_outputs.npz"))
        self.batch = make_batch(head, self.expected)

    def file(self, suffix):
        return GOLDENS / f"{self.head}_{suffix}"

    def mean_loss(self, training=False):
        total, count = self.losses(self.model(self.batch, training=training), self.batch)["loss"]
        return total / count


@pytest.fixture(params=HEADS)
def golden(request):
    return Golden(request.param)


def close(ours, original, tolerance=3e-5):
    np.testing.assert_allclose(ours, original, rtol=1e-6, atol=tolerance)


def clear_places(log_probs):
    """Says which beams are more than 1e-4 off both neighbours, so that order tells them."""
    gaps = np.abs(np.diff(log_probs.astype(np.float64), axis=-1)) > 1e-4
    ends = np.ones_like(gaps[..., :1])
    return np.concatenate([ends, gaps], axis=-1) & np.concatenate([gaps, ends], axis=-1)


def test_golden_variables_are_the_originals(golden):
    theirs = set(golden.reader.get_variable_to_shape_map()) - {"global_step"}
    assert set(golden.model.named_variables()) == theirs
    if golden.head == "squad_v2":
        assert theirs == set(META["var_names_v2"])


def test_golden_outputs_and_loss_are_the_originals(golden):
    outputs, expected = tf.function(golden.model)(golden.batch), golden.expected
    close(golden.mean_loss(), expected["loss"])
    compared = set(outputs) & set(expected)
    assert compared
    for name in compared - {"start_top_index", "end_top_index"}:
        close(np.reshape(outputs[name], expected[name].shape), expected[name])
    if "probabilities" in expected and golden.head != "regression":
        close(tf.nn.softmax(outputs["logits"]), expected["probabilities"])
        np.testing.assert_array_equal(
            np.argmax(outputs["logits"], axis=-1), expected["predictions"]
        )


@pytest.mark.skipif("squad_v2" not in HEADS, reason="the set has no squad_v2")
def test_golden_beams_and_train_mode_are_the_originals():
    golden = Golden("squad_v2")
    outputs, expected = golden.model(golden.batch), golden.expected
    shapes = {
        "start": [-1, META["start_n_top"]],
        "end": [-1, META["start_n_top"], META["end_n_top"]],
    }
    for edge, shape in shapes.items():
        clear = clear_places(expected[f"{edge}_top_log_probs"].reshape(shape))
        assert clear.any()
        ours, theirs = (
            np.reshape(arrays[f"{edge}_top_index"], shape)[clear] for arrays in (outputs, expected)
        )
        np.testing.assert_array_equal(ours, theirs)
    trained = golden.model(golden.batch, training=False)
    for name, array in np.load(golden.file("train_mode_outputs.npz")).items():
        close(trained[name], array)


def test_golden_gradients_are_the_originals(golden):
    variables = golden.model.named_variables()

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = golden.mean_loss()
        computed = tape.gradient(loss, variables)
        return {name: tf.convert_to_tensor(g) for name, g in computed.items() if g is not None}

    computed, expected = gradients(), np.load(golden.file("gradients.npz"))
    assert set(computed) == set(expected.files)
    for name, gradient in computed.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_golden_steps_of_adamw_are_the_originals(golden):
    arguments, log = META["optimizer"], json.loads(golden.file("log.json").read_text())
    settings = config.TrainConfig(
        optimizer=arguments["optimizer"],
        learning_rate=arguments["init_lr"],
        num_train_steps=arguments["num_train_steps"],
        num_warmup_steps=arguments["num_warmup_steps"],
    )
    strategy = distribution.create_strategy("one_device")
    with strategy.scope():
        model, losses = create_model(golden.head, golden.reader)
        variables = model.named_variables()
        state = step.TrainingState(variables, optimizers.Optimizer(variables, kind="adamw"))
    train_step = step.TrainStep(
        lambda batch, dropout_seed: losses(model(batch), batch),
        task_losses.OBJECTIVES,
        state=state,
        config=settings,
        strategy=strategy,
    )
    dataset = tf.data.Dataset.from_tensors(golden.batch).repeat()
    iterator = iter(distribution.distribute(dataset, strategy))
    for before in log:
        metrics = train_step.run(iterator, 1)
        assert metrics["loss"] == pytest.approx(before["loss"], abs=3e-5)
        assert metrics["learning_rate"] == pytest.approx(before["learning_rate"], rel=1e-6)
    expected = dict(np.load(golden.file(f"after_{len(log)}_adamw_steps.npz")))
    expected.pop("global_step", None)
    assert set(expected) == set(variables)
    learning = set(np.load(golden.file("gradients.npz")).files)
    for name, value in expected.items():
        tolerance = 1e-4 if name.endswith("key/bias") else 2e-5
        np.testing.assert_allclose(variables[name], value, rtol=0, atol=tolerance, err_msg=name)
        if name not in learning:
            first = golden.reader.get_tensor(name)
            np.testing.assert_array_equal(variables[name], first, err_msg=name)
            assert not state.optimizer.slots[f"{name}/adam_m"].numpy().any()
