import json

import pytest
from made_models import small_config

from modeling.config import SIZES, AlbertConfig, layer_plan, size

RELEASED = {  # albert_config.json of a released model, unused keys and all.
    "attention_probs_dropout_prob": 0,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0,
    "embedding_size": 128,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "num_hidden_groups": 1,
    "net_structure_type": 0,
    "layers_to_keep": [],
    "gap_size": 0,
    "num_memory_blocks": 0,
    "inner_group_num": 1,
    "down_scale_factor": 1,
    "type_vocab_size": 2,
    "vocab_size": 30000,
}


def test_a_released_config_is_the_size_of_that_name():
    assert AlbertConfig.from_dict(RELEASED) == size("base", vocab_size=30_000)


def test_a_config_needs_a_vocabulary_and_takes_the_originals_defaults_for_the_rest():
    config = AlbertConfig.from_dict({"vocab_size": 30_000})
    assert config == size("xxlarge", vocab_size=30_000)
    with pytest.raises(ValueError, match="`vocab_size` .* Received: None"):
        AlbertConfig.from_dict({})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hidden_size": 10, "num_attention_heads": 3}, "hidden_size=10, num_attention_heads=3"),
        ({"hidden_act": "swish"}, "`hidden_act` must be one of .* Received: 'swish'"),
        ({"hidden_dropout_prob": 1.0}, r"`hidden_dropout_prob` must lie in \[0, 1\)"),
        ({"attention_probs_dropout_prob": "0.1"}, "must be a number. Received: '0.1'"),
        ({"num_hidden_layers": 0}, "`num_hidden_layers` must be a whole number > 0. Received: 0"),
        ({"vocab_size": 50.0}, "`vocab_size` must be a whole number > 0. Received: 50.0"),
        ({"initializer_range": 0}, "`initializer_range` must be > 0"),
        ({"sharing": "some"}, "`sharing` must be one of .* Received: 'some'"),
        ({"num_hidden_groups": 4}, "num_hidden_groups=4, num_hidden_layers=3"),
        ({"num_hidden_groups": 2, "sharing": "all"}, "sharing='all', num_hidden_groups=2"),
        ({"num_hidden_groups": 2, "sharing": "ffn"}, "sharing='ffn', num_hidden_groups=2"),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        small_config(**values)


def test_an_unknown_key_is_refused_with_the_file_that_holds_it(tmp_path):
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps({**RELEASED, "hiden_size": 768}))
    with pytest.raises(ValueError, match=r"albert_config.json: .* Received: \['hiden_size'\]"):
        AlbertConfig.from_json_file(path)
    path.write_text("{")
    with pytest.raises(ValueError, match="albert_config.json: "):
        AlbertConfig.from_json_file(path)
    with pytest.raises(FileNotFoundError, match="Received: .*absent.json"):
        AlbertConfig.from_json_file(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"num_hidden_groups": 2},
        {"sharing": "none"},
        {"sharing": "attention"},
        {"sharing": "ffn", "inner_group_num": 2},
        {"sharing": "group", "num_hidden_groups": 3},
    ],
)
def test_a_config_survives_its_file(values, tmp_path):
    config = small_config(**values)
    config.to_json_file(tmp_path / "albert_config.json")
    assert AlbertConfig.from_json_file(tmp_path / "albert_config.json") == config


def test_the_file_says_sharing_only_where_the_originals_keys_cannot(tmp_path):
    path = tmp_path / "albert_config.json"

    def written(**values):
        small_config(**values).to_json_file(path)
        return json.loads(path.read_text())

    assert "sharing" not in written()
    assert "sharing" not in written(num_hidden_groups=2)
    unshared = written(sharing="none")
    assert "sharing" not in unshared and unshared["num_hidden_groups"] == 3
    assert written(sharing="attention")["sharing"] == "attention"


def test_groups_are_the_integer_floor_of_their_share():
    # The original's floats put layer 15 of 22 in group 14 and leave group 15 empty.
    assert layer_plan("group", 22, 22) == layer_plan("none", 22)
    assert layer_plan("group", 5, 2) == [(0, 0), (0, 0), (0, 0), (1, 1), (1, 1)]
    assert layer_plan("group", 4, 1) == layer_plan("all", 4)


def test_an_unknown_size_lists_the_known_ones():
    with pytest.raises(ValueError, match="'xxlarge_24'.* Received: 'huge'"):
        size("huge", vocab_size=30_000)


def test_a_size_takes_other_values_for_its_fields():
    assert size("base", 30_000, hidden_dropout_prob=0.1).hidden_dropout_prob == 0.1
    assert {size(name, 100).vocab_size for name in SIZES} == {100}
