import json

import made_tokenizers
import programs
import pytest

from folders import model_folder
from modeling.config import AlbertConfig

SIZES = {**programs.TINY, "vocab_size": 300, "type_vocab_size": 2}
ALBERT = {**SIZES, "num_hidden_groups": 1, "inner_group_num": 1, "hidden_act": "gelu_new"}
BERT_SIZES = {name: value for name, value in SIZES.items() if name != "embedding_size"}


def write(folder, name, values):
    (folder / name).write_text(json.dumps(values))


def write_hugging_face(folder, values=ALBERT, model_type="albert", **others):
    noise = {"classifier_dropout_prob": 0.1, "id2label": {"0": "x"}, "layer_norm_eps": 1e-12}
    write(folder, "config.json", {**noise, **values, "model_type": model_type, **others})


def test_a_google_archives_config_and_model_are_read_whatever_the_models_name(tmp_path):
    tokenizer = made_tokenizers.sentencepiece_tokenizer()
    write(tmp_path, "albert_config.json", {**SIZES, "net_structure_type": 0})
    (tmp_path / "30k-clean.model").write_bytes(tokenizer.model_bytes)
    (tmp_path / "30k-clean.vocab").write_text("its list of pieces")
    (tmp_path / "model.ckpt-best.index").touch()
    for path in (tmp_path, tmp_path / "model.ckpt-best", tmp_path / "model.ckpt-best.index"):
        assert model_folder.read_config(path) == AlbertConfig(**SIZES)
        assert model_folder.read_tokenizer(path).fingerprint == tokenizer.fingerprint
    assert not model_folder.read_tokenizer(tmp_path, lower=False).settings["lower"]


def test_a_hub_modules_parts_are_among_its_assets(tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    for name in ("assets", "variables"):
        (tmp_path / name).mkdir()
    write(tmp_path / "assets", "albert_config.json", SIZES)
    (tmp_path / "assets" / "vocab_chinese.txt").write_bytes(tokenizer.model_bytes)
    (tmp_path / "variables" / "variables.index").touch()
    for path in (tmp_path, tmp_path / "variables" / "variables"):
        assert model_folder.read_config(path) == AlbertConfig(**SIZES)
        assert model_folder.read_tokenizer(path).pieces == tokenizer.pieces


def test_a_bert_config_gives_layers_that_share_nothing_at_full_width_with_the_exact_gelu(tmp_path):
    expected = AlbertConfig(
        **BERT_SIZES,
        embedding_size=SIZES["hidden_size"],
        sharing="none",
        hidden_act="gelu_erf",
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    write(tmp_path, "bert_config.json", {**BERT_SIZES, "hidden_act": "gelu", "pooler_type": "x"})
    assert model_folder.read_config(tmp_path) == expected
    (tmp_path / "bert_config.json").unlink()
    write_hugging_face(tmp_path, BERT_SIZES, "bert", hidden_act="gelu", classifier_dropout=None)
    assert model_folder.read_config(tmp_path) == expected


@pytest.mark.parametrize(
    ("theirs", "ours"), [("gelu_new", "gelu"), ("gelu", "gelu_erf"), ("relu", "relu")]
)
def test_hugging_faces_activations_have_other_names(theirs, ours, tmp_path):
    write_hugging_face(tmp_path, hidden_act=theirs, hidden_dropout_prob=0.2)
    expected = AlbertConfig(**SIZES, hidden_act=ours, hidden_dropout_prob=0.2)
    assert model_folder.read_config(tmp_path) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "`position_embedding_type` must be 'abs"),
        ({"layer_norm_eps": 1e-5}, "`layer_norm_eps` must be 1e-12 .* Received: 1e-05"),
        ({"is_decoder": True}, "`is_decoder` must be False"),
        ({"quantization_config": {"bits": 4}}, "`quantization_config`"),
        ({"model_type": "roberta"}, "`model_type` must be albert or bert. Received: 'roberta'"),
        ({"hidden_act": "swish"}, "`hidden_act` must be one of .* Received: 'swish'"),
    ],
)
def test_a_config_of_what_this_model_does_not_compute_is_refused(changes, message, tmp_path):
    write_hugging_face(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"config\.json: {message}"):
        model_folder.read_config(tmp_path)


def test_a_config_without_a_size_is_refused(tmp_path):
    values = {name: value for name, value in ALBERT.items() if name != "embedding_size"}
    write_hugging_face(tmp_path, values)
    with pytest.raises(ValueError, match=r"config\.json: .*Received: no \['embedding_size'\]"):
        model_folder.read_config(tmp_path)


@pytest.mark.parametrize("content", ["[1]", "{"])
def test_a_config_that_is_no_json_object_is_refused(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json: "):
        model_folder.read_config(tmp_path)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, {"lower": True, "keep_accents": False}),
        ({"do_lower_case": False, "keep_accents": True}, {"lower": False, "keep_accents": True}),
    ],
)
def test_hugging_faces_sentencepiece_folder_brings_its_settings(values, expected, tmp_path):
    model = made_tokenizers.sentencepiece_tokenizer().model_bytes
    (tmp_path / "spiece.model").write_bytes(model)
    write(tmp_path, "tokenizer_config.json", values)
    settings = model_folder.read_tokenizer(tmp_path).settings
    assert settings == {"kind": "sentencepiece", "digit_comma_split": True, **expected}
    lower = expected["lower"]
    with pytest.raises(ValueError, match=rf"`lower` must be {lower}.*lower={not lower}"):
        model_folder.read_tokenizer(tmp_path, lower=not lower)


def test_records_of_another_tokenizer_than_hugging_faces_folder_are_refused(tmp_path):
    tokenizer = made_tokenizers.sentencepiece_tokenizer()
    (tmp_path / "spiece.model").write_bytes(tokenizer.model_bytes)
    model_folder.check_tokenizer(tmp_path, "of any: the folder does not say how it is used")
    write(tmp_path, "tokenizer_config.json", {})
    model_folder.check_tokenizer(tmp_path, tokenizer.fingerprint)
    with pytest.raises(ValueError, match="records of aaaaaaaaaaaa"):
        model_folder.check_tokenizer(tmp_path, 64 * "a")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"strip_accents": None}, {"lower": True, "keep_accents": False}),
        ({"strip_accents": False}, {"lower": True, "keep_accents": True}),
        ({"do_lower_case": False}, {"lower": False, "keep_accents": False}),
    ],
)
def test_hugging_faces_wordpiece_folder_brings_its_settings(values, expected, tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    (tmp_path / "vocab.txt").write_bytes(tokenizer.model_bytes)
    write(tmp_path, "tokenizer_config.json", values)
    settings = model_folder.read_tokenizer(tmp_path).settings
    assert settings == {"kind": "wordpiece", "digit_comma_split": False, **expected}


@pytest.mark.parametrize(
    "values", [{"tokenize_chinese_chars": False}, {"strip_accents": True, "do_lower_case": False}]
)
def test_a_wordpiece_tokenizer_that_does_otherwise_is_refused(values, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(made_tokenizers.wordpiece_tokenizer().model_bytes)
    write(tmp_path, "tokenizer_config.json", values)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: `tokenize_chinese_chars`"):
        model_folder.read_tokenizer(tmp_path)


def test_pieces_are_read_from_tokenizer_json_only_where_they_are_wordpieces(tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    vocab = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    shuffled = dict(sorted(vocab.items()))
    model = {"type": "WordPiece", "continuing_subword_prefix": "##", "vocab": shuffled}
    write(tmp_path, "tokenizer.json", {"model": model})
    assert model_folder.read_tokenizer(tmp_path).pieces == tokenizer.pieces
    write(tmp_path, "tokenizer.json", {"model": {"type": "Unigram", "vocab": []}})
    with pytest.raises(ValueError, match=r"Received: Unigram.*spiece\.model"):
        model_folder.read_tokenizer(tmp_path)


def test_two_tokenizers_in_a_folder_and_a_list_of_pieces_alone_are_refused(tmp_path):
    (tmp_path / "30k-clean.vocab").touch()
    with pytest.raises(ValueError, match=r"Give `.*30k-clean\.model`"):
        model_folder.read_tokenizer(tmp_path)
    for name in ("30k-clean.model", "vocab.txt"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=r"one tokenizer.*30k-clean\.model, vocab\.txt"):
        model_folder.read_tokenizer(tmp_path)
