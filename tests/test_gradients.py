"""Micro-batches take the step of one large batch, and cost no more than their own passes."""

import made_models
import numpy as np
import pytest
import tensorflow as tf
import toy_training as toy

from data import features as data_features
from data import length_batches
from modeling import losses
from training import distribution, gradients, run, step


def train(num_steps=10, arrays=None, **settings):
    """Returns (metrics of each step, final state) of the toy."""
    strategy = distribution.create_strategy("one_device")
    train_step, _ = toy.make(strategy, **settings)
    iterator = iter(distribution.distribute(toy.dataset(arrays or toy.examples()), strategy))
    metrics = [train_step.run(iterator, 1) for _ in range(num_steps)]
    return metrics, toy.values(train_step.state)


def assert_close(ours, theirs, atol=1e-6):
    assert set(ours) == set(theirs)
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], atol=atol, err_msg=name)


@pytest.mark.parametrize(("kind", "num_parts"), [("lamb", 2), ("adamw", 8)])
def test_micro_batches_take_the_steps_of_one_batch(kind, num_parts):
    counts = toy.examples()["weights"].reshape(-1, num_parts, 8 // num_parts).sum(-1)
    assert any(len(set(parts)) > 1 for parts in counts)  # The parts count unequally.
    whole_metrics, whole = train(optimizer=kind)
    metrics, state = train(optimizer=kind, gradient_accumulation_steps=num_parts)
    for ours, theirs in zip(metrics, whole_metrics, strict=True):
        assert_close(ours, theirs, atol=2e-6)
    assert_close(state, whole)
    assert state["global_step"] == 10 and state["examples_seen"] == 80


def test_a_non_finite_micro_batch_skips_the_whole_step():
    arrays = toy.examples()
    arrays["weights"][8 * 2 + 7] = np.nan
    _, state = train(arrays=arrays, gradient_accumulation_steps=4)
    _, whole = train(arrays=arrays)
    assert state["skipped_steps"] == 1
    assert_close(state, whole)


def test_each_micro_batch_has_dropout_of_its_own():
    seeds = []

    def forward(batch, seed):
        kept = tf.random.stateless_uniform([4], seed)
        tf.numpy_function(lambda x: seeds.append(tuple(x)), [kept], [])
        return {"loss": (tf.reduce_sum(kept * w) * tf.reduce_sum(batch), tf.constant(4.0))}

    w = tf.Variable(tf.ones([4]))
    found = gradients.LossGradients(forward, ["loss"], variables={"w": w}, num_micro_batches=3)
    for _ in range(2):
        tf.function(found.of)(tf.ones([6]), tf.constant([1, 2]))
    # One of the four is for the counts; a numpy_function, unlike a model, stays in the graph.
    assert len(seeds) == 8 and len(set(seeds)) == 4


def test_the_counts_cost_no_forward_pass_and_idle_variables_have_no_gradient():
    passes = []

    def look(x):
        passes.append(len(x))
        return x

    def forward(batch, seed):
        seen = tf.numpy_function(look, [batch * w], tf.float32, stateful=False)
        total = tf.reduce_sum(tf.ensure_shape(seen, batch.shape)) + tf.reduce_sum(batch * w)
        return {"loss": (total, tf.reduce_sum(batch)), "idle": (v, v)}

    w, v = tf.Variable(2.0), tf.Variable(3.0)
    loss_gradients = gradients.LossGradients(
        forward, ["loss"], variables={"v": v, "w": w}, num_micro_batches=3
    )
    totals, found = tf.function(loss_gradients.of)(tf.ones([6]), tf.constant([1, 2]))
    assert passes == [2, 2, 2]
    assert set(found) == {"w"} and float(found["w"]) == pytest.approx(1)
    assert [float(part) for part in totals["loss"]] == [24, 6]


def needed_operations(graph):
    """Returns the types of what outputs and effects of a graph depend on: no more is run."""
    needed, waiting = set(), [t.op for t in graph.outputs] + list(graph.control_outputs)
    while waiting:
        operation = waiting.pop()
        if operation not in needed:
            needed.add(operation)
            waiting += [t.op for t in operation.inputs] + list(operation.control_inputs)
    return {operation.type for operation in needed}


def test_an_alberts_counts_need_no_product_outside_the_loop():
    config = made_models.small_config(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    model, batch = made_models.random_model(config), made_models.random_batch(config)

    def forward(batch, seed):
        outputs = model(batch, training=True, dropout_seed=seed)
        return losses.pretraining_losses(outputs, batch)

    def operations(num_parts):
        loss_gradients = gradients.LossGradients(
            forward,
            losses.OBJECTIVES["sop"],
            variables=model.named_variables(),
            num_micro_batches=num_parts,
        )
        run = tf.function(loss_gradients.of)
        return needed_operations(run.get_concrete_function(batch, tf.constant([1, 2])).graph)

    products = {"MatMul", "BatchMatMulV2", "GatherV2"}
    assert products & operations(1) and not products & operations(2)


def test_an_albert_is_trained_by_micro_batches_as_by_one():
    config = made_models.small_config()
    strategy = distribution.create_strategy("one_device")
    states = []
    for num_parts in (1, 2):
        settings = toy.settings(
            train_batch_size=4, learning_rate=0.01, gradient_accumulation_steps=num_parts
        )
        model = made_models.random_model(config)
        state = run.create_state(model.named_variables(), settings)
        train_step = step.TrainStep(
            lambda batch, seed, model=model: losses.pretraining_losses(model(batch), batch),
            losses.OBJECTIVES["none"],  # The sentence head has no gradient.
            state=state,
            config=settings,
            strategy=strategy,
        )
        batch = made_models.random_batch(config)
        train_step.run(iter(tf.data.Dataset.from_tensors(batch).repeat()), 3)
        states.append(toy.values(state))
    whole, parts = states
    for name in whole:  # The true gradient of a key's bias is 0: its update is of rounding noise.
        atol = 3e-4 if "/self/key/bias" in name else 1e-6
        np.testing.assert_allclose(parts[name], whole[name], atol=atol, err_msg=name)


def test_batches_of_several_lengths_are_split_too():
    lengths = np.array([3, 20, 5, 14, 18, 4, 7, 3])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.arange(offsets[-1]) % 30
    made = data_features.Features(
        sequences={"input_ids": ids, "segment_ids": ids % 2},
        offsets=offsets,
        columns={"label_ids": np.arange(8, dtype=np.int32) % 3},
    )
    batches = length_batches.training_batches(made, batch_size=4, max_seq_length=24)
    strategy = distribution.create_strategy("one_device")
    states = []
    for num_parts in (1, 4):
        settings = toy.settings(train_batch_size=4, gradient_accumulation_steps=num_parts)
        table = tf.Variable(tf.random.stateless_normal([30, 3], [1, 2]))

        def forward(batch, seed, table=table):
            words = tf.gather(table, batch["input_ids"])  # float32[B, T, 3]
            mask = tf.cast(batch["input_mask"], tf.float32)[..., tf.newaxis]
            logits = tf.reduce_sum(words * mask, axis=1)
            return {"loss": toy.cross_entropy(logits, batch["label_ids"], batch["example_weights"])}

        state = run.create_state({"table": table}, settings)
        train_step = step.TrainStep(
            forward, ["loss"], state=state, config=settings, strategy=strategy
        )
        train_step.run(iter(batches), 6)
        states.append(toy.values(state))
    assert_close(*states)


def test_a_batch_that_cannot_be_split_evenly_is_refused():
    with pytest.raises(ValueError, match="divisible by `gradient_accumulation_steps`.*8 and 3"):
        toy.settings(gradient_accumulation_steps=3)
    with pytest.raises(ValueError, match="`gradient_accumulation_steps` must be greater than 0"):
        toy.settings(gradient_accumulation_steps=0)
