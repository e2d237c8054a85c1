import numpy as np
import pytest
import tensorflow as tf
from made_models import random_batch, random_model, small_config

from modeling import losses

DROPOUT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}


def encode(model, batch, **options):
    return tf.function(model.encoder)(batch, **options)


def loss_and_gradients(model, batch):
    def loss():
        outputs = model(batch, training=True, dropout_seed=tf.constant([3, 4]))
        pairs = losses.pretraining_losses(outputs, batch)
        return sum(pairs[name][0] for name in losses.OBJECTIVES["sop"])

    return differentiated(loss, model)


def differentiated(loss, model):
    """Returns loss() and its gradients by name."""

    @tf.function
    def run():
        with tf.GradientTape() as tape:
            value = loss()
        return value, tape.gradient(value, model.named_variables())

    return run()


def assert_same_gradients(gradients, expected, rtol=1e-5):
    """Compares gradients to a share of the largest element of each."""
    for name, gradient in gradients.items():
        if gradient is not None:
            atol = rtol * max(1, abs(expected[name].numpy()).max())
            np.testing.assert_allclose(gradient, expected[name], rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"inner_group_num": 2}, DROPOUT])
def test_the_loop_computes_what_layer_after_layer_does(options):
    config = small_config(**options)
    batch = random_batch(config)
    looped, unrolled = (random_model(config, unroll=unroll) for unroll in (False, True))
    loss, gradients = loss_and_gradients(looped, batch)
    other_loss, other_gradients = loss_and_gradients(unrolled, batch)
    np.testing.assert_allclose(loss, other_loss, rtol=1e-6)
    assert_same_gradients(gradients, other_gradients)


def test_the_graph_of_shared_layers_does_not_grow_with_their_number():
    def graph_sizes(num_layers, **options):
        config = small_config(num_hidden_layers=num_layers, **options)
        model, batch = random_model(config), random_batch(config)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model.encoder(batch)["pooled_output"])
            return tape.gradient(loss, model.encoder.trainable_variables)

        graph = step.get_concrete_function().graph.as_graph_def()
        return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)

    assert graph_sizes(2) == graph_sizes(12)
    assert graph_sizes(2, sharing="attention") < graph_sizes(4, sharing="attention")


def test_shared_layers_add_no_variables():
    """Layers that quietly make their own weights lose the sharing (google-research/albert 241)."""

    def num_variables(num_layers, **options):
        return len(random_model(small_config(num_hidden_layers=num_layers, **options)).variables)

    assert num_variables(2) == num_variables(12)
    assert num_variables(4, num_hidden_groups=2) == num_variables(6, num_hidden_groups=2)


@pytest.mark.parametrize(
    ("options", "num_attention", "num_feed_forward"),
    [
        ({"sharing": "all"}, 1, 1),
        ({"sharing": "attention"}, 1, 4),
        ({"sharing": "ffn"}, 4, 1),
        ({"sharing": "none"}, 4, 4),
        ({"num_hidden_groups": 2}, 2, 2),
        ({"sharing": "attention", "inner_group_num": 2}, 2, 8),
    ],
)
def test_a_sharing_plan_makes_as_many_blocks_as_it_names(options, num_attention, num_feed_forward):
    config = small_config(num_hidden_layers=4, **options)
    model = random_model(config)
    kernels = [name for name in model.named_variables() if name.endswith("kernel")]
    assert sum(name.endswith("query/kernel") for name in kernels) == num_attention
    assert sum("intermediate/dense" in name for name in kernels) == num_feed_forward
    _, gradients = loss_and_gradients(model, random_batch(config))
    idle = [name for name, gradient in gradients.items() if not np.any(gradient)]
    # A key's bias adds the same to a whole row of scores, and softmax takes no notice.
    assert all(name.endswith("key/bias") for name in idle)


def test_hidden_states_are_the_projected_embeddings_and_each_blocks_output():
    config = small_config(inner_group_num=2)
    model, batch = random_model(config), random_batch(config)
    outputs = encode(model, batch, return_hidden_states=True)
    states = outputs["hidden_states"]
    assert [state.shape.as_list() for state in states] == [[4, 12, 16]] * (1 + 3 * 2)
    np.testing.assert_array_equal(states[-1], outputs["sequence_output"])
    embedded = model.encoder.embeddings(batch["input_ids"], batch["segment_ids"])
    rows = tf.reshape(embedded, [-1, config.embedding_size])
    projected = tf.reshape(model.encoder.projection(rows), [4, 12, 16])
    np.testing.assert_allclose(states[0], projected, atol=1e-6)
    plain = encode(model, batch)
    assert set(plain) == {"sequence_output", "pooled_output"}
    np.testing.assert_allclose(plain["sequence_output"], states[-1], atol=1e-5)


def test_an_embedding_of_the_hidden_width_is_not_projected():
    config = small_config(embedding_size=16)
    model = random_model(config)
    assert not any("mapping" in name for name in model.named_variables())
    batch = random_batch(config)
    states = encode(model, batch, return_hidden_states=True)["hidden_states"]
    embedded = model.encoder.embeddings(batch["input_ids"], batch["segment_ids"])
    np.testing.assert_allclose(states[0], embedded, atol=1e-6)


def test_what_stands_in_the_padding_changes_no_real_output():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    padding = 1 - batch["input_mask"]
    noise = batch["input_ids"] + padding * 7
    before = encode(model, batch)
    after = encode(model, {**batch, "input_ids": noise})
    real = batch["input_mask"].numpy().astype(bool)
    assert not np.array_equal(noise, batch["input_ids"])
    np.testing.assert_array_equal(before["pooled_output"], after["pooled_output"])
    np.testing.assert_array_equal(
        before["sequence_output"].numpy()[real], after["sequence_output"].numpy()[real]
    )


def test_more_padding_changes_no_real_output():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    longer = {
        name: tf.pad(batch[name], [[0, 0], [0, 5]])
        for name in ("input_ids", "input_mask", "segment_ids")
    }
    before, after = encode(model, batch), encode(model, longer)
    real = batch["input_mask"].numpy().astype(bool)
    np.testing.assert_allclose(before["pooled_output"], after["pooled_output"], atol=1e-6)
    np.testing.assert_allclose(
        before["sequence_output"].numpy()[real],
        after["sequence_output"][:, :12].numpy()[real],
        atol=2e-6,
    )


def test_examples_of_a_batch_do_not_see_each_other():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    order = [2, 0, 3, 1]
    permuted = {name: tf.gather(value, order) for name, value in batch.items()}
    np.testing.assert_allclose(
        encode(model, permuted)["sequence_output"],
        tf.gather(encode(model, batch)["sequence_output"], order),
        atol=1e-6,
    )


def test_one_graph_takes_every_batch_size_and_length():
    config = small_config()
    model = random_model(config)
    names = ("input_ids", "input_mask", "segment_ids")
    run = tf.function(
        lambda batch: model.encoder(batch)["sequence_output"],
        input_signature=[{name: tf.TensorSpec([None, None], tf.int32) for name in names}],
    )
    for batch_size, length in [(1, 5), (3, 20)]:
        full = random_batch(config, batch_size, length)
        batch = {name: full[name] for name in names}
        np.testing.assert_allclose(run(batch), encode(model, batch)["sequence_output"], atol=2e-6)


def test_a_sequence_longer_than_the_position_table_is_refused():
    config = small_config()
    with pytest.raises(ValueError, match="length 21, max_position_embeddings=20"):
        random_model(config).encoder(random_batch(config, length=21))


def test_dropout_needs_training_and_its_seed_tells_it():
    config = small_config(**DROPOUT)
    model, batch = random_model(config), random_batch(config)

    def pooled(seed, training=True):
        return model.encoder(batch, training=training, dropout_seed=tf.constant(seed))[
            "pooled_output"
        ].numpy()

    np.testing.assert_array_equal(pooled([1, 2], training=False), pooled([3, 4], training=False))
    np.testing.assert_array_equal(pooled([1, 2]), pooled([1, 2]))
    assert not np.array_equal(pooled([1, 2]), pooled([1, 3]))
    drawn = [model.encoder(batch, training=True)["pooled_output"].numpy() for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_a_model_without_dropout_draws_no_random_numbers():
    config = small_config()
    model, batch = random_model(config), random_batch(config)

    def operations(**options):
        concrete = tf.function(model.encoder).get_concrete_function(batch, **options)
        graph = concrete.graph.as_graph_def()
        nodes = list(graph.node) + [n for f in graph.library.function for n in f.node_def]
        return {node.op for node in nodes}

    trained = operations(training=True, dropout_seed=tf.constant([1, 2]))
    assert trained == operations(training=False)
    assert not any("Random" in operation for operation in trained)


@pytest.mark.parametrize(
    ("options", "unroll"),
    [({}, False), ({"inner_group_num": 2}, False), ({"sharing": "ffn"}, True)],
)
def test_the_last_layer_gives_what_is_read_as_if_it_had_computed_all(options, unroll):
    config = small_config(**options)
    model, batch = random_model(config, unroll=unroll), random_batch(config)
    positions = tf.constant([[3, 1, 1], [0, 2, 3], [3, 3, 0], [1, 0, 2]])
    weights = tf.random.stateless_normal([4, 3, 16], [1, 2])

    def loss(narrow):
        outputs = model.encoder(batch, positions=positions if narrow else None)
        picked = outputs["sequence_output"]
        if not narrow:
            picked = tf.gather(picked, positions, batch_dims=1)
        return tf.reduce_sum(picked * weights) + tf.reduce_sum(outputs["pooled_output"])

    narrow, gradients = differentiated(lambda: loss(True), model)
    full, expected = differentiated(lambda: loss(False), model)
    np.testing.assert_allclose(narrow, full, rtol=1e-6)
    assert_same_gradients(gradients, expected)


def test_the_last_layer_computes_nothing_that_is_not_read():
    config = small_config()
    model = random_model(config)

    def flops(**options):
        run = tf.function(lambda batch: model.encoder(batch, **options))
        graph = run.get_concrete_function(random_batch(config, 2, 20)).graph
        products = [op for op in graph.get_operations() if op.type in ("MatMul", "BatchMatMulV2")]
        return sum(int(np.prod(product.outputs[0].shape)) for product in products)

    # Beside the loop: keys and values of all 40 rows, and of [CLS] alone the others.
    rows = 2 * 20
    projection, pooler = rows * 16, 2 * 16
    cls_alone = 2 * (16 + 16 + 24 + 16) + 2 * 2 * 20 + 2 * 16
    assert flops() == projection + pooler
    nowhere = flops(positions=tf.zeros([2, 0], tf.int32))
    assert nowhere == projection + pooler + 2 * rows * 16 + cls_alone


def test_hidden_states_are_whole_wherever_the_heads_read():
    config = small_config()
    model, batch = random_model(config), random_batch(config)
    full = encode(model, batch, return_hidden_states=True)
    asked = encode(model, batch, return_hidden_states=True, positions=batch["masked_lm_positions"])
    for state, expected in zip(asked["hidden_states"], full["hidden_states"], strict=True):
        np.testing.assert_array_equal(state, expected)
    picked = tf.gather(full["sequence_output"], batch["masked_lm_positions"], batch_dims=1)
    np.testing.assert_array_equal(asked["sequence_output"], picked)


@pytest.mark.parametrize(("options", "unroll"), [({}, False), ({"sharing": "none"}, True)])
def test_recomputed_layers_give_the_same_gradients_with_dropout_too(options, unroll):
    config = small_config(**DROPOUT, **options)
    batch = random_batch(config)
    kept, again = (random_model(config, unroll=unroll) for _ in range(2))
    again.encoder.recompute = True
    loss, gradients = loss_and_gradients(again, batch)
    other_loss, other_gradients = loss_and_gradients(kept, batch)
    np.testing.assert_allclose(loss, other_loss, rtol=1e-6)
    assert_same_gradients(gradients, other_gradients)
