"""The same random weights in transformers' PyTorch model give the same numbers."""

import numpy as np
import pytest
import tensorflow as tf
from made_models import random_batch, random_model, small_config

from modeling import hugging_face_names

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def hugging_face_twin(config, model):
    """Returns transformers' AlbertForPreTraining with the model's weights."""
    settings = {
        name: getattr(config, name)
        for name in (
            "vocab_size",
            "embedding_size",
            "hidden_size",
            "num_hidden_layers",
            "num_hidden_groups",
            "num_attention_heads",
            "intermediate_size",
            "inner_group_num",
            "max_position_embeddings",
        )
    }
    activation = {"gelu": "gelu_new", "gelu_erf": "gelu"}.get(config.hidden_act, config.hidden_act)
    twin = transformers.AlbertForPreTraining(
        transformers.AlbertConfig(**settings, hidden_act=activation)
    )
    arrays = {name: variable.numpy() for name, variable in model.named_variables().items()}
    state = hugging_face_names.to_hugging_face(arrays)
    twin.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return twin.eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_hidden_groups": 2, "num_hidden_layers": 5},
        {"sharing": "none"},
        {"inner_group_num": 2},
        {"embedding_size": 16},
        {"hidden_act": "gelu_erf"},
        {"hidden_act": "relu"},
    ],
)
def test_hugging_face_computes_the_same(options):
    config = small_config(**options)
    model, batch = random_model(config), random_batch(config)
    twin = hugging_face_twin(config, model)
    with torch.no_grad():
        expected = twin(
            input_ids=torch.tensor(batch["input_ids"].numpy()),
            attention_mask=torch.tensor(batch["input_mask"].numpy()),
            token_type_ids=torch.tensor(batch["segment_ids"].numpy()),
            output_hidden_states=True,
        )
    outputs = tf.function(model)(batch)
    masked_lm = np.take_along_axis(
        expected.prediction_logits.numpy(),
        batch["masked_lm_positions"].numpy()[:, :, np.newaxis],
        axis=1,
    )
    np.testing.assert_allclose(outputs["masked_lm_logits"], masked_lm, atol=1e-5)
    np.testing.assert_allclose(
        outputs["sentence_order_logits"], expected.sop_logits.numpy(), atol=1e-5
    )
    states = tf.function(model.encoder)(batch, return_hidden_states=True)["hidden_states"]
    assert len(states) == len(expected.hidden_states)
    for ours, theirs in zip(states, expected.hidden_states, strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-5)
