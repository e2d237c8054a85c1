"""transformers loads what is written in its form, without code, and computes the same."""

import json
import os

import made_sources
import made_tokenizers
import numpy as np
import pytest
import tensorflow as tf

from conversion import model_comparison, model_sources, model_writers
from modeling import foreign_configs, hugging_face_names, hugging_face_states

os.environ.setdefault("HF_HUB_OFFLINE", "1")
CLASSES = {  # Kind -> AutoModel's class, its outputs and ours.
    "encoder": ("", {"last_hidden_state": "sequence_output", "pooler_output": "pooled_output"}),
    "pretraining": (
        "ForPreTraining",
        {"prediction_logits": "masked_lm_logits", "sop_logits": "sentence_order_logits"},
    ),
    "classes": ("ForSequenceClassification", {"logits": "logits"}),
    "number": ("ForSequenceClassification", {"logits": "logits"}),
    "multilabel": ("ForSequenceClassification", {"logits": "logits"}),
    "choice": ("ForMultipleChoice", {"logits": "logits"}),
    "span": ("ForQuestionAnswering", {"start_logits": "start_logits", "end_logits": "end_logits"}),
}
FAMILIES = {
    "albert": {},
    "groups": {"num_hidden_groups": 2, "inner_group_num": 2, "hidden_act": "relu"},
    "narrow": {"embedding_size": 16, "hidden_act": "gelu_erf"},
    "bert": made_sources.BERT_LIKE,
}


# The plans of the layers are the encoder's affair, whatever the head.
PAIRS = [(kind, family) for kind in CLASSES for family in ("albert", "bert")]
PAIRS += [("pretraining", "groups"), ("encoder", "narrow"), ("choice", "narrow")]


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch")
    return pytest.importorskip("transformers")


def outputs_there(model, source, batch):
    """Runs one of transformers' models on our batch: dict of its outputs by name."""
    import torch

    names = ("input_ids", "input_mask", "segment_ids")
    tensors = [torch.tensor(batch[name].numpy()) for name in names]
    if source.kind == "choice":
        tensors = [tensor[None] for tensor in tensors]
    keys = ("input_ids", "attention_mask", "token_type_ids")
    with torch.no_grad():
        return model.eval()(**dict(zip(keys, tensors, strict=True)))


@pytest.mark.parametrize(("kind", "family"), PAIRS)
def test_transformers_computes_the_same_and_what_it_saves_is_bit_equal(
    kind, family, tmp_path, transformers
):
    """K10, K12: the order head, too, whose output 0 is "in order" on both sides."""
    source = made_sources.random_source(kind, **FAMILIES[family])
    model_writers.write(source, "huggingface", str(tmp_path / "ours"))
    class_name, names = CLASSES[kind]
    auto = getattr(transformers, f"AutoModel{class_name}")
    twin, info = auto.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    assert type(twin).__name__.startswith("Bert" if family == "bert" else "Albert")
    batch = model_comparison.fixed_batch(source.config)
    theirs, ours = outputs_there(twin, source, batch), model_comparison.outputs(source, batch)
    for name, our_name in names.items():
        name = "seq_relationship_logits" if (name, family) == ("sop_logits", "bert") else name
        np.testing.assert_allclose(theirs[name].numpy(), ours[our_name], atol=1e-5)
    twin.save_pretrained(tmp_path / "theirs")
    back = model_sources.read(tmp_path / "theirs")
    if kind == "span":  # Their class has no pooler and leaves it behind.
        kept = {n: a for n, a in source.arrays.items() if not n.startswith("bert/pooler/")}
        source.arrays.clear()
        source.arrays.update(kept)
    made_sources.assert_same_model(back, source)


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_a_masked_lm_alone_is_theirs_for_masked_lm_with_the_table_as_output(
    family, tmp_path, transformers
):
    """K11."""
    without = ["cls/seq_relationship", "bert/pooler"]
    source = made_sources.random_source("pretraining", without=without, **FAMILIES[family])
    model_writers.write(source, "huggingface", str(tmp_path))
    twin, info = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert twin.get_output_embeddings().weight is twin.get_input_embeddings().weight
    batch = model_comparison.fixed_batch(source.config)
    found = outputs_there(twin, source, batch).logits.numpy()
    expected = model_comparison.outputs(source, batch)["masked_lm_logits"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_text_is_classified_there_as_here_from_the_folder_alone(family, tmp_path, transformers):
    source = made_sources.random_source(
        "classes", made_tokenizers.wordpiece_tokenizer(), **FAMILIES[family]
    )
    model_writers.write(source, "huggingface", str(tmp_path))
    mode = (tmp_path / "model.safetensors").stat().st_mode
    assert mode & 0o44 == (tmp_path / "config.json").stat().st_mode & 0o44
    classify = transformers.pipeline("text-classification", str(tmp_path), top_k=None)
    found = {row["label"]: row["score"] for row in classify(["The walking, a."])[0]}
    ids = source.tokenizer.encode("The walking, a.")
    ids = tf.constant([[source.tokenizer.cls_id, *ids, source.tokenizer.sep_id]])
    batch = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": tf.zeros_like(ids)}
    logits = model_sources.build(source)(batch)["logits"]
    expected = dict(zip(source.labels, tf.nn.softmax(logits)[0].numpy(), strict=True))
    assert found == pytest.approx(expected, abs=1e-5)


def test_the_config_says_what_the_classes_are(tmp_path, transformers):
    for kind, problem in (("classes", "single_label"), ("multilabel", "multi_label")):
        source = made_sources.random_source(kind)
        model_writers.write(source, "huggingface", str(tmp_path / kind))
        config = transformers.AutoConfig.from_pretrained(tmp_path / kind)
        assert config.problem_type == f"{problem}_classification"
        assert list(config.id2label.values()) == source.labels
        assert config.num_labels == len(source.labels)
        assert config.label2id[source.labels[1]] == 1
    model_writers.write(made_sources.random_source("number"), "huggingface", str(tmp_path / "n"))
    config = transformers.AutoConfig.from_pretrained(tmp_path / "n")
    assert config.problem_type == "regression" and config.num_labels == 1


@pytest.mark.parametrize("family", ["albert", "bert"])
def test_the_dropout_before_the_head_goes_there_and_comes_back(family, tmp_path):
    source = made_sources.random_source("classes", **FAMILIES[family])
    source.settings["classifier_dropout_prob"] = 0.25
    there = made_sources.hop(source, "huggingface", tmp_path / "hf")
    values = json.loads((tmp_path / "hf" / "config.json").read_text())
    key = "classifier_dropout_prob" if family == "albert" else "classifier_dropout"
    assert values[key] == 0.25
    back = made_sources.hop(there, "folder", tmp_path / "folder")
    assert back.settings["classifier_dropout_prob"] == 0.25


@pytest.mark.parametrize(("kind", "family"), PAIRS)
def test_every_name_is_the_inverse_of_the_readers(kind, family):
    source = made_sources.random_source(kind, **FAMILIES[family])
    state = hugging_face_states.state_dict(source.arrays, family == "bert")
    back = {hugging_face_names.model_name(name): array for name, array in state.items()}
    found = {name: array.T if turned else array for (name, turned), array in back.items()}
    for name, array in source.arrays.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_groups_that_floating_point_puts_elsewhere_are_refused():
    """transformers and the original find a layer's group by floating-point division."""

    def config(layers, groups):
        return made_sources.small_config(num_hidden_layers=layers, num_hidden_groups=groups)

    with pytest.raises(ValueError, match="Hugging Face.*18 layers, 14 groups"):
        foreign_configs.to_hugging_face(config(18, 14))
    with pytest.raises(ValueError, match="Google.*22 layers, 22 groups"):
        foreign_configs.check_google(config(22, 22))
    foreign_configs.to_hugging_face(config(22, 22))
    foreign_configs.check_google(config(18, 14))


def test_our_activations_have_their_names_there():
    for ours, theirs in {"gelu": "gelu_new", "gelu_erf": "gelu", "relu": "relu"}.items():
        values = foreign_configs.to_hugging_face(made_sources.small_config(hidden_act=ours))
        assert values["hidden_act"] == theirs
        assert foreign_configs.from_hugging_face(values).hidden_act == ours


def test_half_precision_of_theirs_comes_as_float32(tmp_path, transformers):
    import torch

    source = made_sources.random_source("encoder")
    model_writers.write(source, "huggingface", str(tmp_path / "ours"))
    twin = transformers.AutoModel.from_pretrained(tmp_path / "ours", dtype=torch.bfloat16)
    twin.save_pretrained(tmp_path / "half")
    half = model_sources.read(tmp_path / "half")
    again = made_sources.hop(half, "google", tmp_path / "google")
    made_sources.assert_same_model(again, half)
    assert all(array.dtype == np.float32 for array in again.arrays.values())
