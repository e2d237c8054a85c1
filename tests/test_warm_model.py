"""Graphs are built once; layers and poolings are those of the encoder."""

import made_folders
import numpy as np
import pytest
import tensorflow as tf
from made_folders import CONTEXT, MASKED, PAIRS, QUESTIONS, TEXTS

from predictor import from_folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


@pytest.fixture(scope="module", params=made_folders.TASKS)
def any_model(request, made):
    return request.param, made(request.param)


def test_hidden_states_are_layers_plus_1_tensors_of_hidden_width(any_model):
    """Row X17 of user-demands.md: the embedding, too, is returned after projection."""
    _, (folder, model, predictor) = any_model
    config = model.settings["config"]
    found = predictor.embed(TEXTS, pooling="cls", layer="all")
    assert found.shape == (len(TEXTS), config["num_hidden_layers"] + 1, config["hidden_size"])
    assert config["hidden_size"] != config["embedding_size"]
    for text, states in zip(TEXTS, found, strict=True):
        encoded = model.encoder(made_folders.by_hand(folder, text), return_hidden_states=True)
        expected = np.stack([state[0, 0] for state in encoded["hidden_states"]])
        np.testing.assert_allclose(states, expected, atol=1e-5)


def test_each_layer_and_pooling_is_that_of_the_encoder_by_hand(made):
    folder, model, predictor = made("pretraining")
    last = model.settings["config"]["num_hidden_layers"]
    for number, text in enumerate(TEXTS):
        encoded = model.encoder(made_folders.by_hand(folder, text), return_hidden_states=True)
        means = [tf.reduce_mean(state[0], axis=0) for state in encoded["hidden_states"]]
        for layer in (0, last - 1, -2, -1):
            found = predictor.embed(TEXTS, layer=layer)[number]
            np.testing.assert_allclose(found, means[layer], atol=1e-5, err_msg=layer)
        found = predictor.embed(TEXTS, pooling="pooled")[number]
        np.testing.assert_allclose(found, encoded["pooled_output"][0], atol=1e-5)


@pytest.mark.parametrize("layer", [4, -5, "first", 1.0])
def test_a_layer_that_the_model_lacks_is_refused(layer, made):
    _, _, predictor = made("pretraining")
    with pytest.raises(ValueError, match=r"`layer` must lie in \[0, 3\]"):
        predictor.embed(TEXTS, layer=layer)


def test_only_the_last_layer_is_pooled(made):
    _, _, predictor = made("pretraining")
    with pytest.raises(ValueError, match="pooling=pooled, layer=1"):
        predictor.embed(TEXTS, "pooled", 1)
    with pytest.raises(ValueError, match="`pooling` must be one of .*'max'"):
        predictor.embed(TEXTS, "max")
    np.testing.assert_array_equal(
        predictor.embed(TEXTS, "pooled", 3), predictor.embed(TEXTS, "pooled")
    )


ASKED = {
    "pretraining": [
        lambda p, n: p.fill_mask(MASKED[:n]),
        lambda p, n: p.order(PAIRS[:n]),
        lambda p, n: p.embed(TEXTS[:n]),
    ],
    "classes": [lambda p, n: p.classify(TEXTS[:n])],
    "choice": [lambda p, n: p.choose(["the _"] * n, [["a", "b"], ["c", "d", "e"]][:n], CONTEXT)],
    "span": [lambda p, n: p.answer(QUESTIONS[:n], CONTEXT)],
    "answerable": [lambda p, n: p.answer(QUESTIONS[:n], CONTEXT)],
}


@pytest.mark.parametrize("name", ASKED)
def test_a_second_call_reuses_the_graph_whatever_its_size(name, made):
    """Row X13 of user-demands.md: nothing is built or loaded again."""
    folder, _, _ = made(name)
    predictor = from_folder(folder)
    for ask in ASKED[name]:
        for number in (1, 2, 1):
            assert len(ask(predictor, number)) == number
    graphs = predictor.warm.graphs
    assert len(graphs) == len(ASKED[name])
    assert [graph.experimental_get_tracing_count() for graph in graphs.values()] == [1] * len(
        graphs
    )


def test_a_model_that_has_diverged_says_so(tmp_path):
    made_folders.write(tmp_path, "classes")
    predictor = from_folder(tmp_path)
    bias = predictor.trained.model.named_variables()["output_bias"]
    bias.assign(tf.fill(bias.shape, np.nan))
    with pytest.raises(ValueError, match="must be numbers. Received: NaN"):
        predictor.classify(TEXTS)


def test_both_names_of_a_layer_share_a_graph(made):
    predictor = from_folder(made("pretraining")[0])
    for layers in ((-1, 3), (2, -2), (0, -4)):
        first, second = (predictor.embed(TEXTS, layer=layer) for layer in layers)
        np.testing.assert_array_equal(first, second)
    assert len(predictor.warm.graphs) == 3
