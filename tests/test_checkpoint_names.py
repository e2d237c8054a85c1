import numpy as np
import pytest
from made_models import random_model, small_config

from modeling import checkpoint_names

BLOCK = "bert/encoder/transformer/group_0/inner_group_0"


def arrays_of(model):
    return {name: variable.numpy() for name, variable in model.named_variables().items()}


def test_the_models_names_are_canonical():
    for name in random_model(
        small_config(num_hidden_groups=2, inner_group_num=2)
    ).named_variables():
        assert checkpoint_names.canonical(name) == name
        assert checkpoint_names.canonical(f"module/{name}") == name


def test_old_scopes_are_renamed():
    name = checkpoint_names.canonical(f"{BLOCK}/attention_12/self/query/kernel")
    assert name == f"{BLOCK}/attention_1/self/query/kernel"
    name = checkpoint_names.canonical(f"{BLOCK}/ffn_7/intermediate/output/dense/bias")
    assert name == f"{BLOCK}/ffn_1/intermediate/output/dense/bias"


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("bert/embeddings/word_embeddings_2", "albert_zh"),
        ("bert/encoder/layer_shared/attention/self/query/kernel", "albert_zh"),
        ("bert/encoder/layer_3/attention/self/query/kernel", "BERT's"),
        (f"{BLOCK}_2/layer_2/inner_group_0/layer_normalization_5/beta", "not shared"),
    ],
)
def test_a_foreign_layout_is_named(name, layout):
    with pytest.raises(ValueError, match=f"Received: a file with {name}; .*{layout}"):
        checkpoint_names.canonical(name)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_hidden_groups": 2}, {"inner_group_num": 2}, {"embedding_size": 16}],
)
def test_weights_survive_hugging_faces_names(options):
    arrays = arrays_of(random_model(small_config(**options)))
    state = checkpoint_names.to_hugging_face(arrays)
    kernel = arrays[f"{BLOCK}/ffn_1/intermediate/dense/kernel"]
    ffn = state["albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"]
    np.testing.assert_array_equal(ffn, kernel.T)
    back = checkpoint_names.from_hugging_face(state)
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)


def test_an_unknown_name_among_hugging_faces_is_refused():
    with pytest.raises(ValueError, match=r"Received: \['qa_outputs.weight'\]"):
        checkpoint_names.from_hugging_face({"qa_outputs.weight": np.zeros(1)})
