"""Random weights that transformers has written give here the numbers that they give there."""

import json

import numpy as np
import pytest
import tensorflow as tf
from made_models import random_batch
from made_weights import write_checkpoint

from folders import model_folder
from modeling.models import PretrainingModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
ALBERT = transformers.AlbertConfig(**SIZES, embedding_size=8, classifier_dropout_prob=0.3)
BERT = transformers.BertConfig(**SIZES)
HEADS = ("ForSequenceClassification", "ForMultipleChoice", "ForQuestionAnswering")
TASKS = (*HEADS, "ForTokenClassification")
CLASSES = ("Model", "ForPreTraining", "ForMaskedLM", *TASKS)
WITHOUT_POOLER = ("ForMaskedLM", "ForQuestionAnswering", "ForTokenClassification")


def random_twin(config, class_name):
    """Returns one of transformers' models, each of whose weights is random and matters."""
    torch.manual_seed(0)
    family = {"albert": "Albert", "bert": "Bert"}[config.model_type]
    twin = getattr(transformers, f"{family}{class_name}")(config).eval()
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            centre = 1.0 if "LayerNorm.weight" in name or "layer_norm.weight" in name else 0.0
            parameter.copy_(centre + 0.3 * torch.randn(parameter.shape))
    return twin


def outputs_of(twin, batch):
    """Returns (last hidden state, pooled output or None) of the twin's encoder."""
    encoder = getattr(twin, twin.base_model_prefix, twin)
    with torch.no_grad():
        outputs = encoder(**inputs_of(batch))
    return outputs.last_hidden_state.numpy(), outputs.pooler_output


def inputs_of(batch):
    names = {
        "input_ids": "input_ids",
        "attention_mask": "input_mask",
        "token_type_ids": "segment_ids",
    }
    return {theirs: torch.tensor(batch[ours].numpy()) for theirs, ours in names.items()}


def read(folder, **options):
    """Returns the model that a folder holds, and the line that says what was matched."""
    model = PretrainingModel(model_folder.read_config(folder))
    return model, model_folder.load_weights(model.named_variables(), folder, **options)


def assert_same_encoder(model, twin, batch):
    encoded = model.encoder(batch)
    states, pooled = outputs_of(twin, batch)
    np.testing.assert_allclose(encoded["sequence_output"], states, atol=1e-4)
    if pooled is not None:
        np.testing.assert_allclose(encoded["pooled_output"], pooled.numpy(), atol=1e-4)


@pytest.mark.parametrize("class_name", CLASSES)
@pytest.mark.parametrize("config", [ALBERT, BERT], ids=["albert", "bert"])
def test_the_encoder_of_each_of_hugging_faces_models_computes_the_same(
    config, class_name, tmp_path
):
    twin = random_twin(config, class_name)
    twin.save_pretrained(tmp_path)
    model, line = read(tmp_path)
    assert_same_encoder(model, twin, random_batch(ALBERT))
    assert ("no pooler" in line) == (class_name in WITHOUT_POOLER)
    head = "qa_outputs" if class_name == "ForQuestionAnswering" else "classifier"
    listed = f"2 ({head}.bias, {head}.weight)" if class_name in TASKS else "0"
    assert f"unused {listed}" in line


@pytest.mark.parametrize("class_name", ["ForPreTraining", "ForMaskedLM"])
@pytest.mark.parametrize("config", [ALBERT, BERT], ids=["albert", "bert"])
def test_the_heads_of_pretraining_compute_the_same_with_the_table_as_output(
    config, class_name, tmp_path
):
    twin = random_twin(config, class_name)
    twin.save_pretrained(tmp_path)
    model, _ = read(tmp_path, required_prefix=("bert/", "cls/predictions/"))
    batch = random_batch(ALBERT)
    positions = batch["masked_lm_positions"].numpy()[:, :, np.newaxis]
    with torch.no_grad():
        expected = twin(**inputs_of(batch))
    words = expected.logits if class_name == "ForMaskedLM" else expected.prediction_logits
    words = np.take_along_axis(words.numpy(), positions, axis=1)
    found = model(batch)
    np.testing.assert_allclose(found["masked_lm_logits"], words, atol=1e-4)
    if class_name == "ForPreTraining":
        name = "sop_logits" if config is ALBERT else "seq_relationship_logits"
        np.testing.assert_allclose(found["sentence_order_logits"], expected[name], atol=1e-4)


@pytest.mark.parametrize("class_name", HEADS)
@pytest.mark.parametrize("config", [ALBERT, BERT], ids=["albert", "bert"])
def test_the_heads_of_tasks_come_under_the_originals_names(config, class_name, tmp_path):
    twin = random_twin(config, class_name)
    twin.save_pretrained(tmp_path)
    head = twin.classifier if hasattr(twin, "classifier") else twin.qa_outputs
    prefix = "cls/squad/" if class_name == "ForQuestionAnswering" else ""
    model = PretrainingModel(model_folder.read_config(tmp_path))
    variables = {
        **model.encoder.named_variables(),
        f"{prefix}output_weights": tf.Variable(tf.zeros(head.weight.shape)),
        f"{prefix}output_bias": tf.Variable(tf.zeros(head.bias.shape)),
    }
    model_folder.load_weights(variables, tmp_path, required_prefix="")
    np.testing.assert_array_equal(variables[f"{prefix}output_weights"], head.weight.detach())
    np.testing.assert_array_equal(variables[f"{prefix}output_bias"], head.bias.detach())
    variables[f"{prefix}output_weights"].assign(tf.zeros(head.weight.shape))
    line = model_folder.load_weights(variables, tmp_path, leave=("output_", "cls/squad/"))
    assert f"left as they were 2 ({prefix}output_weights, {prefix}output_bias)" in line
    np.testing.assert_array_equal(variables[f"{prefix}output_weights"], 0)


def test_shards_and_half_precision_load(tmp_path):
    twin = random_twin(ALBERT, "Model").to(torch.bfloat16)
    twin.save_pretrained(tmp_path, max_shard_size=2000)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    model, _ = read(tmp_path)
    assert_same_encoder(model, twin.float(), random_batch(ALBERT))


@pytest.mark.parametrize("options", [{"num_hidden_groups": 3}, {"inner_group_num": 2}])
@pytest.mark.parametrize("act", ["gelu", "relu"])
def test_other_plans_and_activations_are_read_from_the_config(options, act, tmp_path):
    config = transformers.AlbertConfig(**SIZES, embedding_size=8, hidden_act=act, **options)
    twin = random_twin(config, "Model")
    twin.save_pretrained(tmp_path)
    model, _ = read(tmp_path)
    assert_same_encoder(model, twin, random_batch(ALBERT))


def google_bert(twin):
    """Puts a twin's weights under the names of Google's BERT, as its TF1 checkpoints have them."""
    arrays = {}
    for name, parameter in twin.named_parameters():
        array = parameter.detach().numpy()
        name = name.replace(".layer.", ".layer_").replace(".", "/")
        if name == "cls/predictions/bias":
            name = "cls/predictions/output_bias"
        elif name.startswith("cls/seq_relationship/"):
            name = name.replace("weight", "output_weights").replace("/bias", "/output_bias")
        elif "LayerNorm" in name:
            name = name.replace("/weight", "/gamma").replace("/bias", "/beta")
        elif name.endswith("embeddings/weight"):
            name = name.removesuffix("/weight")
        elif name.endswith("/weight"):
            name, array = name.replace("/weight", "/kernel"), array.T
        arrays[name] = array
        arrays[f"{name}/adam_m"] = arrays[f"{name}/adam_v"] = np.zeros_like(array)
    return arrays


def test_googles_berts_compute_what_hugging_faces_do(tmp_path):
    twin = random_twin(BERT, "ForPreTraining")
    write_checkpoint(tmp_path / "bert_model.ckpt", google_bert(twin))
    values = {name: getattr(BERT, name) for name in (*SIZES, "type_vocab_size")}
    config = {**values, "hidden_act": "gelu", "directionality": "bidi", "pooler_fc_size": 768}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    model, line = read(tmp_path, required_prefix="")
    num_weights = len(model.named_variables())
    assert f"matched {num_weights} of {num_weights}, ignored {2 * num_weights} opt" in line
    batch = random_batch(ALBERT)
    assert_same_encoder(model, twin, batch)
    with torch.no_grad():
        expected = twin(**inputs_of(batch)).seq_relationship_logits
    found = model(batch)["sentence_order_logits"]
    np.testing.assert_allclose(found, expected, atol=1e-4)


TEXTS = ("The Walking walks, a [MASK] naïve CAFÉ 北京!", "a-b (3.5)", "unknowable 東京 a")


@pytest.mark.parametrize("settings", [{}, {"do_lower_case": False}, {"strip_accents": False}])
def test_a_saved_bert_tokenizer_gives_the_ids_of_hugging_faces(settings, tmp_path):
    pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] the walk ##ing ##s a caf ##e ##é cafe café naive naïve"
    pieces = f"{pieces} Caf CAFÉ The W ##alking 北 京 ! ( ) - . , 3 5 b".split()
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), **settings)
    theirs.save_pretrained(tmp_path / "saved")
    for name in ("vocab.txt", None):  # None: `tokenizer.json` holds the pieces.
        if name:
            (tmp_path / "saved" / name).write_bytes((tmp_path / name).read_bytes())
        else:
            (tmp_path / "saved" / "vocab.txt").unlink()
        ours = model_folder.read_tokenizer(tmp_path / "saved")
        for text in TEXTS:
            expected = theirs(text, add_special_tokens=False)["input_ids"]
            assert ours.encode(text, allow_markers=True) == expected, text
