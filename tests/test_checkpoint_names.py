import json

import numpy as np
import pytest
from conftest import golden_folder
from made_models import random_model, small_config
from made_weights import arrays_of

from modeling import checkpoint_names, hugging_face_names
from modeling.config import AlbertConfig
from training.weight_files import Weights

BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
LAYER = "bert/encoder/layer_{}"


def weights_of(arrays):
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    return Weights("file", shapes, arrays.__getitem__)


def shapes_of(arrays):
    return weights_of(arrays).shapes


def translated(arrays, model_arrays):
    """Returns what `translate` says, and the arrays that the model's variables would get."""
    found = checkpoint_names.translate(weights_of(arrays), shapes_of(model_arrays))
    loaded = {
        name: arrays[source].T if is_transposed else arrays[source]
        for name, (source, is_transposed) in found["sources"].items()
    }
    return found, loaded


def assert_same(loaded, arrays):
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name], array, err_msg=name)


def bert_arrays(model_arrays):
    """Puts the weights of a model that shares nothing under the names of Google's BERT."""
    layers = {
        "attention_1/self": "attention/self",
        "attention_1/output/dense": "attention/output/dense",
        "LayerNorm_1": "output/LayerNorm",
        "LayerNorm": "attention/output/LayerNorm",
        "ffn_1/intermediate/output/dense": "output/dense",
        "ffn_1/intermediate/dense": "intermediate/dense",
    }
    arrays = {}
    for name, array in model_arrays.items():
        if "/group_" in name:
            group, rest = name.split("/group_")[1].split("/inner_group_0/")
            ours = next(layer for layer in layers if rest.startswith(f"{layer}/"))
            name = f"{LAYER.format(group)}/{layers[ours]}{rest.removeprefix(ours)}"
        arrays[name] = array
    return arrays


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
        (f"{BLOCK}_2/layer_2/inner_group_0/layer_normalization_5/beta", "not shared"),
    ],
)
def test_a_foreign_layout_is_named(name, layout):
    with pytest.raises(ValueError, match=f"Received: a file with {name}; .*{layout}"):
        checkpoint_names.canonical(name)


def test_a_hub_modules_prefix_and_two_names_for_one_weight():
    arrays = arrays_of(random_model(small_config()))
    hub = {f"module/{name}": array for name, array in arrays.items()}
    _, loaded = translated(hub, arrays)
    assert_same(loaded, arrays)
    with pytest.raises(ValueError, match="one source.*module/bert/pooler/dense/bias"):
        translated({**hub, "bert/pooler/dense/bias": np.zeros(16)}, arrays)


@pytest.mark.parametrize(
    "options",
    [{}, {"num_hidden_groups": 2}, {"inner_group_num": 2}, {"embedding_size": 16}],
)
def test_weights_survive_hugging_faces_names(options):
    arrays = arrays_of(random_model(small_config(**options)))
    state = hugging_face_names.to_hugging_face(arrays)
    kernel = arrays[f"{BLOCK}/ffn_1/intermediate/dense/kernel"]
    ffn = state["albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"]
    np.testing.assert_array_equal(ffn, kernel.T)
    bare = {name.removeprefix("albert."): array for name, array in state.items()}
    for names in (state, bare):
        _, loaded = translated(names, arrays)
        assert_same(loaded, arrays)


def test_where_e_is_h_a_projection_other_than_the_identity_is_refused():
    arrays = arrays_of(random_model(small_config(embedding_size=16)))
    state = hugging_face_names.to_hugging_face(arrays)
    state["albert.encoder.embedding_hidden_mapping_in.bias"][3] = 0.1
    with pytest.raises(ValueError, match="or the identity. Received: file, with another albert"):
        translated(state, arrays)


def test_buffers_and_second_copies_are_ignored_and_an_untied_head_is_refused():
    arrays = arrays_of(random_model(small_config()))
    state = hugging_face_names.to_hugging_face(arrays)
    state["albert.embeddings.position_ids"] = np.arange(20)
    found, _ = translated(state, arrays)
    assert set(found["ignored"]) == {
        "albert.embeddings.position_ids",
        "predictions.decoder.weight",
        "predictions.decoder.bias",
    }
    only_bias = {name: array for name, array in state.items() if name != "predictions.bias"}
    _, loaded = translated(only_bias, arrays)
    assert_same(loaded, arrays)
    state["predictions.decoder.weight"] = state["predictions.decoder.weight"] + 1
    with pytest.raises(ValueError, match=r"embedding table.*predictions\.decoder\.weight is not"):
        translated(state, arrays)


def test_task_heads_get_the_originals_names_and_a_token_classifiers_does_not():
    arrays = arrays_of(random_model(small_config()))
    state = hugging_face_names.to_hugging_face(arrays)
    heads = {
        "classifier.weight": "output_weights",
        "classifier.bias": "output_bias",
        "qa_outputs.weight": "cls/squad/output_weights",
        "qa_outputs.bias": "cls/squad/output_bias",
    }
    state |= {name: np.zeros((2, 16)) for name in heads}
    found, _ = translated(state, arrays)
    for theirs, ours in heads.items():
        assert found["sources"][ours] == (theirs, False)
    assert found["optional"] == ()
    headless = {name: array for name, array in state.items() if "pooler" not in name}
    found, _ = translated(headless, arrays)
    assert found["optional"] == ("bert/pooler/",) and "no pooler" in found["notes"][0]
    assert "output_weights" not in found["sources"]
    assert "cls/squad/output_weights" in found["sources"]


def test_googles_bert_fills_a_model_that_shares_nothing():
    config = small_config(sharing="none", embedding_size=16, hidden_act="gelu_erf")
    arrays = arrays_of(random_model(config))
    named = bert_arrays(arrays)
    assert f"{LAYER.format(2)}/attention/output/LayerNorm/gamma" in named
    found, loaded = translated(named, arrays)
    assert_same(loaded, arrays)
    assert found["notes"] == []


def test_old_berts_of_hugging_face_call_a_norms_weights_gamma_and_beta():
    name = "bert.encoder.layer.3.attention.output.LayerNorm.gamma"
    expected = f"{BLOCK}/LayerNorm/gamma".replace("group_0/inner", "group_3/inner")
    assert hugging_face_names.model_name(name) == (expected, False)


def test_a_config_of_another_family_is_refused_by_each_field_and_both_values():
    """BERT's, of E = H and layers that share nothing, where ALBERT's defaults were meant."""
    bert = small_config(sharing="none", embedding_size=16, vocab_size=60, intermediate_size=40)
    named = bert_arrays(arrays_of(random_model(bert)))
    with pytest.raises(ValueError, match="`sharing` none.*Received: file, where") as refused:
        translated(named, arrays_of(random_model(small_config())))
    for field, theirs, ours in [
        ("vocab_size", 60, 50),
        ("embedding_size", 16, 8),
        ("intermediate_size", 40, 24),
        ("num_hidden_groups", 3, 1),
    ]:
        assert f"{field} is {theirs}, and {ours} in the config" in str(refused.value)


@pytest.mark.parametrize(
    ("ours", "theirs", "field"),
    [
        ({"num_hidden_groups": 3}, {"num_hidden_groups": 2}, "num_hidden_groups is 2, and 3"),
        ({}, {"num_hidden_groups": 2}, "num_hidden_groups is 2, and 1"),
        ({"sharing": "ffn"}, {"sharing": "attention"}, "num_hidden_groups is 1, and 3"),
        ({}, {"inner_group_num": 2}, "inner_group_num is 2, and 1"),
        ({"hidden_size": 32}, {}, "hidden_size is 16, and 32"),
        ({"max_position_embeddings": 30}, {}, "max_position_embeddings is 20, and 30"),
        ({"type_vocab_size": 3}, {}, "type_vocab_size is 2, and 3"),
    ],
)
def test_each_field_that_shapes_tell_is_compared(ours, theirs, field):
    named = arrays_of(random_model(small_config(**theirs)))
    with pytest.raises(ValueError, match=f"Received: file, where .*{field} in the config"):
        translated(named, arrays_of(random_model(small_config(**ours))))


def test_berts_only_layer_does_not_fill_four():
    one = bert_arrays(arrays_of(random_model(small_config(num_hidden_layers=1, embedding_size=16))))
    four = small_config(num_hidden_layers=4, embedding_size=16, sharing="none")
    with pytest.raises(ValueError, match="num_hidden_groups is 1, and 4"):
        translated(one, arrays_of(random_model(four)))


MAPS = json.loads((golden_folder("finetune_heads") / "assignment_map.json").read_text())


@pytest.mark.parametrize("name", MAPS)
def test_golden_assignment_maps_say_where_each_weight_comes_from(name):
    """From one group to two as well: the second is filled from the first."""
    variant, _, groups = name.split()
    num_groups = int(groups.removeprefix("model_groups="))
    path = golden_folder("tf1_checkpoint") / variant / "albert_config.json"
    if not path.exists():
        pytest.skip(f"needs {path}")
    values = json.loads(path.read_text())
    given = arrays_of(random_model(AlbertConfig.from_dict(values)))
    model = AlbertConfig.from_dict({**values, "num_hidden_groups": num_groups})
    found, _ = translated(given, arrays_of(random_model(model)))
    maps = MAPS[name]["assignment_map"]
    pairs = [pair for m in (maps if isinstance(maps, list) else [maps]) for pair in m.items()]
    encoder = {n: s for n, s in found["sources"].items() if n.startswith("bert/")}
    assert set(encoder) == set(MAPS[name]["initialized"])
    for source, target in pairs:
        assert encoder[target] == (source, False)
    # Differs from the original: group 0 keeps what is its own.
    lost = set(encoder) - {target for _, target in pairs}
    for lost_name in lost:
        assert "/group_0/" in lost_name and encoder[lost_name] == (lost_name, False)
    filled = sum(source != target for source, target in pairs)
    assert bool(lost) == bool(filled)
    notes = [
        f"Of those matched, {filled} in group 1 were filled from group 0, the file's only one."
    ]
    assert found["notes"] == (notes if filled else [])
