import math

import conftest
import keras
import numpy as np
import pytest
import tensorflow as tf
from made_models import random_batch, random_model, small_config

from modeling import losses
from modeling.config import SIZES, AlbertConfig, size
from modeling.models import PretrainingModel

GOLDEN = conftest.golden_folder("tf1_checkpoint")
VARIANTS = sorted(path.parent.name for path in GOLDEN.glob("*/forward.npz"))


def num_parameters(config):
    """Counts (encoder with pooler, encoder without, whole model); makes no weights."""
    with keras.StatelessScope(initialize_variables=False):
        model = PretrainingModel(config)
    # Keras would make them, gigabytes of them, at the end of the next such scope.
    keras.utils.clear_session()

    def count(layer):
        return sum(math.prod(variable.shape) for variable in layer.trainable_variables)

    return count(model.encoder), count(model.encoder) - count(model.encoder.pooler), count(model)


# Encoder with pooler and whole model, at 30,000 pieces. The encoders' numbers of ALBERT's four
# are KerasHub's, digit for digit; the paper's Table 1 rounds them (it has 235M for xxlarge, which
# the released architecture does not give).
PARAMETERS = {
    "tiny": (4_120_832, 4_167_858),
    "small": (4_794_624, 4_858_290),
    "base": (11_683_584, 11_813_810),
    "large": (17_683_968, 17_847_474),
    "xlarge": (58_724_864, 59_021_490),
    "xxlarge": (222_595_584, 223_158_450),
    "xxlarge_24": (222_595_584, 223_158_450),
    "h6144": (495_518_208, 496_347_314),
    "bert_base": (109_081_344, 109_705_010),
    "bert_large": (334_607_360, 335_691_058),
}


def test_every_size_has_its_number_of_parameters():
    counted = {name: num_parameters(size(name, vocab_size=30_000)) for name in SIZES}
    assert {name: (full, model) for name, (full, _, model) in counted.items()} == PARAMETERS
    assert counted["bert_base"][1] == 108_490_752


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base", 10_547_968),
        ("large", 16_548_352),
        ("xlarge", 57_589_248),
        ("xxlarge", 221_459_968),
    ],
)
def test_chinese_models_have_their_number_of_parameters(name, expected):
    assert num_parameters(size(name, vocab_size=21_128))[0] == expected


# Millions, with the pooler and without. The paper rounds now the one, now the other.
TABLES_3_AND_4 = {
    ("none", 64): (87.65, 87.06),
    ("none", 128): (89.65, 89.06),
    ("none", 256): (93.65, 93.06),
    ("none", 768): (109.08, 108.49),
    ("all", 64): (9.68, 9.09),
    ("all", 128): (11.68, 11.09),
    ("all", 256): (15.69, 15.10),
    ("all", 768): (31.11, 30.52),
    ("attention", 768): (83.08, 82.49),
    ("ffn", 768): (57.12, 56.53),
    ("attention", 128): (63.65, 63.06),
    ("ffn", 128): (37.69, 37.10),
}


@pytest.mark.parametrize(("sharing", "embedding_size"), TABLES_3_AND_4)
def test_tables_3_and_4_of_the_paper_have_their_numbers_of_parameters(sharing, embedding_size):
    config = size("base", 30_000, sharing=sharing, embedding_size=embedding_size)
    with_pooler, without, _ = num_parameters(config)
    expected = TABLES_3_AND_4[sharing, embedding_size]
    assert (round(with_pooler / 1e6, 2), round(without / 1e6, 2)) == expected


@pytest.fixture(scope="module", params=VARIANTS)
def golden(request):
    """Returns (model with the original's weights, batch, the original's numbers, its folder)."""
    folder = GOLDEN / request.param
    arrays = dict(np.load(folder / "forward.npz"))
    model = PretrainingModel(AlbertConfig.from_json_file(folder / "albert_config.json"))
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt-best"))
    variables = model.named_variables()
    assert set(variables) == set(reader.get_variable_to_shape_map())
    for name, variable in variables.items():
        variable.assign(reader.get_tensor(name))
    features = ("input_ids", "input_mask", "segment_ids", "next_sentence_labels")
    batch = {
        name: tf.constant(array)
        for name, array in arrays.items()
        if name in features or name.startswith("masked_lm")
    }
    batch["next_sentence_labels"] = tf.reshape(batch["next_sentence_labels"], [-1])
    batch["example_weights"] = tf.ones_like(batch["next_sentence_labels"], tf.float32)
    return model, batch, arrays, folder


def close(ours, original, tolerance):
    ours = np.asarray(ours)
    np.testing.assert_allclose(ours.reshape(original.shape), original, rtol=0, atol=tolerance)


def test_golden_embeddings_and_every_layer_are_the_originals(golden):
    model, batch, expected, _ = golden
    embeddings = model.encoder.embeddings
    close(
        tf.gather(embeddings.word.value, batch["input_ids"]), expected["word_embedding_output"], 0
    )
    embedded = embeddings(batch["input_ids"], batch["segment_ids"])
    close(embedded, expected["embedding_output"], 3e-5)
    outputs = tf.function(model.encoder)(batch, return_hidden_states=True)
    layers = [name for name in expected if name.startswith("layer_")]
    assert len(outputs["hidden_states"]) == len(layers) + 1
    for name in layers:
        close(outputs["hidden_states"][1 + int(name.removeprefix("layer_"))], expected[name], 3e-5)


def test_golden_outputs_and_losses_are_the_originals(golden):
    model, batch, expected, _ = golden
    encoded = tf.function(model.encoder)(batch)
    close(encoded["sequence_output"], expected["sequence_output"], 3e-5)
    close(encoded["pooled_output"], expected["pooled_output"], 3e-5)
    outputs = tf.function(model)(batch)
    masked_lm = tf.nn.log_softmax(outputs["masked_lm_logits"])
    sentence_order = tf.nn.log_softmax(outputs["sentence_order_logits"])
    close(masked_lm, expected["mlm_log_probs"], 3e-5)
    close(sentence_order, expected["sop_log_probs"], 3e-5)
    picked = tf.gather(masked_lm, batch["masked_lm_ids"], batch_dims=2)
    close(-picked, expected["mlm_example_loss"], 3e-5)
    picked = tf.gather(sentence_order, batch["next_sentence_labels"], batch_dims=1)
    close(-picked, expected["sop_example_loss"], 3e-5)
    close(total_loss(outputs, batch), expected["total_loss"], 1e-5)
    pairs = losses.pretraining_losses(outputs, batch)
    total, count = pairs["masked_lm_loss"]
    close(total / (count + 1e-5), expected["mlm_loss"], 1e-5)
    total, count = pairs["sentence_order_loss"]
    close(total / count, expected["sop_loss"], 1e-5)


def total_loss(outputs, batch):
    """Adds up the losses with the original's denominators (run_pretraining.py:334)."""
    pairs = losses.pretraining_losses(outputs, batch)
    (masked_lm, num_masked), (order, num_pairs) = (pairs[name] for name in losses.OBJECTIVES["sop"])
    return masked_lm / (num_masked + 1e-5) + order / num_pairs


def test_golden_gradients_are_the_originals(golden):
    model, batch, _, folder = golden
    expected = np.load(folder / "gradients.npz")

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = total_loss(model(batch), batch)
        return tape.gradient(loss, model.named_variables())

    computed = gradients()
    assert set(computed) == set(expected.files)
    for name, gradient in computed.items():
        np.testing.assert_allclose(gradient, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_named_variables_are_all_there_is_to_train():
    model = random_model(small_config(sharing="attention", inner_group_num=2))
    named = model.named_variables()
    assert len(named) == len(model.trainable_weights) == len(model.weights)
    assert {id(variable) for variable in named.values()} == {
        id(variable.value) for variable in model.trainable_weights
    }


def test_first_weights_are_told_by_the_seed_and_cut_at_two_deviations():
    config = small_config(vocab_size=4000)
    first, again, other = (PretrainingModel(config, seed=seed) for seed in (1, 1, 2))
    for name, variable in first.named_variables().items():
        value = variable.numpy()
        np.testing.assert_array_equal(value, again.named_variables()[name])
        if name.rsplit("/", 1)[-1] in ("bias", "beta", "output_bias"):
            assert not value.any()
        elif name.endswith("gamma"):
            assert (value == 1).all()
        else:
            assert abs(value).max() <= 0.04
            assert (value != other.named_variables()[name].numpy()).any()
    words = first.named_variables()["bert/embeddings/word_embeddings"].numpy()
    # Cut at two deviations, a normal distribution keeps 0.8796 of its deviation.
    assert words.std() == pytest.approx(0.02 * 0.8796, rel=0.02)
    kernels = [value.numpy() for name, value in first.named_variables().items() if "self" in name]
    query, key = (kernel for kernel in kernels[:3:2])
    assert (query != key).all()


def test_a_model_survives_the_keras_format(tmp_path):
    config = small_config(sharing="ffn", hidden_dropout_prob=0.1)
    model, batch = random_model(config, unroll=True), random_batch(config)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.settings == model.settings
    for name, logits in model(batch).items():
        np.testing.assert_array_equal(logits, loaded(batch)[name])


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
def test_fit_trains_every_weight():
    config = small_config(hidden_dropout_prob=0.1)
    model, batch = random_model(config), random_batch(config)
    before = {name: value.numpy() for name, value in model.named_variables().items()}
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    outputs = ("masked_lm_logits", "sentence_order_logits")
    model.compile("sgd", loss=dict.fromkeys(outputs, cross_entropy))
    labels = dict(
        zip(outputs, (batch["masked_lm_ids"], batch["next_sentence_labels"]), strict=True)
    )
    data = tf.data.Dataset.from_tensors((batch, labels)).repeat(20)
    history = model.fit(data, epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0]
    for name, variable in model.named_variables().items():
        # A key's bias adds the same to a whole row of scores, and softmax takes no notice.
        assert (variable.numpy() != before[name]).any() or name.endswith("key/bias"), name


def test_mixed_precision_gives_float32_logits_near_the_exact_ones():
    config = small_config()
    batch = random_batch(config)
    exact = random_model(config)(batch)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        rounded = random_model(config)(batch)
    finally:
        keras.config.set_dtype_policy("float32")
    for name, logits in rounded.items():
        assert logits.dtype == tf.float32
        np.testing.assert_allclose(logits, exact[name], atol=0.1)
        assert not np.array_equal(logits, exact[name])
