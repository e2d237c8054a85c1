"""New pieces grow table, tied output and bias together, and change nothing of the old."""

import json

import made_sources
import made_tokenizers
import numpy as np
import programs
import pytest

from conversion import model_comparison, model_sources, vocabulary_growth
from data import added_pieces, hugging_face_tokenizers

TABLE, BIAS = vocabulary_growth.TABLE, vocabulary_growth.BIAS
PIECES = {"wordpiece": ["mrna", "##ed"], "sentencepiece": ["mrna", "\u2581covid"]}


def tokenizer_of(kind):
    makers = {
        "wordpiece": made_tokenizers.wordpiece_tokenizer,
        "sentencepiece": made_tokenizers.sentencepiece_tokenizer,
    }
    return makers[kind]()


@pytest.mark.parametrize("kind", PIECES)
def test_table_and_bias_grow_by_the_pieces_and_old_logits_stay(kind):
    """K13."""
    tokenizer = tokenizer_of(kind)
    source = made_sources.random_source("pretraining", tokenizer)
    grown = vocabulary_growth.with_tokens(source, PIECES[kind])
    size = tokenizer.vocab_size
    assert grown.tokenizer.pieces == [*tokenizer.pieces, *PIECES[kind]]
    assert grown.config.vocab_size == size + 2
    assert grown.arrays[TABLE].shape == (size + 2, 8) and grown.arrays[BIAS].shape == (size + 2,)
    for name, array in source.arrays.items():
        np.testing.assert_array_equal(grown.arrays[name][: len(array)], array, err_msg=name)
    batch = model_comparison.fixed_batch(source.config)
    before, after = (model_comparison.outputs(s, batch) for s in (source, grown))
    assert after["masked_lm_logits"].shape[-1] == size + 2
    for name, expected in before.items():
        found = after[name][..., : expected.shape[-1]]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    new = after["masked_lm_logits"][..., size:]
    assert np.isfinite(new).all() and np.abs(new[..., 0] - new[..., 1]).max() > 0


def test_a_model_without_a_masked_lm_head_grows_and_slots_begin_at_nothing():
    source = made_sources.random_source("classes", made_tokenizers.wordpiece_tokenizer())
    source = made_sources.with_slots(source)
    grown = vocabulary_growth.with_tokens(source, ["mrna"])
    size = source.config.vocab_size
    for slot in ("adam_m", "adam_v"):
        found = grown.slots[f"{TABLE}/{slot}"]
        assert found.shape == (size + 1, 8) and not found[size:].any() and found[:size].all()
    assert grown.slots.keys() == source.slots.keys() and BIAS not in grown.arrays


@pytest.mark.parametrize(
    ("kind", "text", "pieces"),
    [
        ("wordpiece", "the mRNA walked", ["the", "mrna", "walk", "##ed"]),
        ("sentencepiece", "mRNA", ["\u2581", "mrna"]),
        ("sentencepiece", "COVIDs", ["\u2581covid", "s"]),
    ],
)
def test_a_text_gives_the_new_pieces_and_other_texts_the_old(kind, text, pieces):
    tokenizer = tokenizer_of(kind)
    grown = added_pieces.with_pieces(tokenizer, PIECES[kind])
    assert grown.tokenize(text) == pieces
    assert grown.encode(text)[-len(pieces) :] == grown.pieces_to_ids(pieces)
    for other in made_tokenizers.odd_strings(100):
        assert grown.encode(other) == tokenizer.encode(other)


@pytest.mark.parametrize("kind", PIECES)
def test_auto_tokenizer_finds_the_new_pieces_as_well(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    grown = added_pieces.with_pieces(tokenizer_of(kind), PIECES[kind])
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "albert"}))
    hugging_face_tokenizers.write(str(tmp_path), grown, 512)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in ("the mRNA of COVID walked", "xmrnax covidcovid", "mrna", "a mrnas, covid."):
        assert theirs(text, add_special_tokens=False)["input_ids"] == grown.encode(text)


@pytest.mark.parametrize(
    ("kind", "piece", "message"),
    [
        ("wordpiece", "the", "must be new"),
        ("wordpiece", "mRNA", "'mrna' remains"),
        ("wordpiece", "a-b", "'a - b' remains"),
        ("sentencepiece", "two words", "lower-casing, accents|must be able"),
        ("sentencepiece", "CAFÉ", "'cafe' remains"),
        ("sentencepiece", "", "must be new"),
    ],
)
def test_a_piece_that_no_text_can_give_is_refused(kind, piece, message):
    with pytest.raises(ValueError, match=message):
        added_pieces.with_pieces(tokenizer_of(kind), [piece])


def test_rows_that_no_piece_used_are_taken_before_the_table_grows():
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    source = made_sources.random_source("encoder", vocab_size=tokenizer.vocab_size + 1)
    source = vocabulary_growth.with_tokenizer(source, tokenizer)
    assert source.config.vocab_size == tokenizer.vocab_size + 1
    grown = vocabulary_growth.with_tokens(source, ["mrna"])
    np.testing.assert_array_equal(grown.arrays[TABLE], source.arrays[TABLE])
    assert (
        vocabulary_growth.with_tokens(grown, ["more"]).config.vocab_size
        == len(grown.tokenizer.pieces) + 1
    )


def test_a_new_tokenizer_must_begin_with_the_old_ones_pieces():
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    source = made_sources.random_source("encoder", tokenizer)
    longer = added_pieces.with_pieces(tokenizer, ["mrna"])
    assert vocabulary_growth.with_tokenizer(source, longer).config.vocab_size == (
        tokenizer.vocab_size + 1
    )
    other = made_tokenizers.wordpiece_tokenizer(("walk", "the"))
    with pytest.raises(ValueError, match=r"\['walk'\] for 'the', id 5"):
        vocabulary_growth.with_tokenizer(source, other)
    cased = made_tokenizers.wordpiece_tokenizer(lower=False)
    with pytest.raises(ValueError, match="'lower': False.*for.*'lower': True"):
        vocabulary_growth.with_tokenizer(source, cased)
    nothing = made_sources.random_source("encoder", vocab_size=tokenizer.vocab_size)
    assert vocabulary_growth.with_tokenizer(nothing, tokenizer).tokenizer is tokenizer
    with pytest.raises(ValueError, match="must be seen to begin"):
        vocabulary_growth.with_tokenizer(nothing, longer)
    with pytest.raises(ValueError, match="`tokenizer` names another"):
        vocabulary_growth.with_tokens(nothing, ["mrna"])


def test_the_program_adds_pieces_from_a_list_or_a_tokenizer(tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    source = made_sources.random_source("pretraining", tokenizer)
    made_sources.hop(source, "folder", tmp_path / "old")
    flags = {"init_checkpoint": tmp_path / "old", "to": "huggingface"}
    flags |= {"output_dir": tmp_path / "hf", "add_tokens": "mrna,##ed"}
    programs.succeed(programs.call("convert_checkpoint", **flags))
    grown = model_sources.read(tmp_path / "hf")
    assert grown.tokenizer.tokenize("mrna walked") == ["mrna", "walk", "##ed"]
    (tmp_path / "vocab.txt").write_text("\n".join(grown.tokenizer.pieces) + "\n")
    flags = {"init_checkpoint": tmp_path / "old", "to": "google", "output_dir": tmp_path / "g"}
    programs.succeed(programs.call("convert_checkpoint", **flags, tokenizer=tmp_path / "vocab.txt"))
    made_sources.assert_same_model(model_sources.read(tmp_path / "g"), grown)
    words = ("--verify", str(tmp_path / "old"), str(tmp_path / "hf"))
    printed = programs.succeed(programs.call("convert_checkpoint", *words)).stdout
    assert "masked_lm_logits: largest difference 0\n" in printed
    assert "tokenizer: another; " in printed


def test_the_tokenizer_that_is_used_is_the_very_one_that_is_named(tmp_path):
    cased = made_tokenizers.wordpiece_tokenizer(lower=False)
    source = made_sources.random_source("encoder", cased)
    made_sources.hop(source, "folder", tmp_path / "old")
    added_pieces.with_pieces(cased, ["mRNA"]).save(tmp_path / "new")
    flags = {"init_checkpoint": tmp_path / "old", "to": "folder"}
    for number, named in enumerate((tmp_path / "new", tmp_path / "new" / "vocab.txt")):
        out = tmp_path / f"out{number}"
        given = {**flags, "tokenizer": named, "output_dir": out}
        programs.succeed(programs.call("convert_checkpoint", **given))
        assert model_sources.read(out).tokenizer.tokenize("mRNA") == ["mRNA"]
    flags["output_dir"] = tmp_path / "out"
    result = programs.call("convert_checkpoint", **flags, tokenizer=tmp_path / "new" / "typo.model")
    assert result.exit_code == 1 and "typo.model" in result.stderr
    (tmp_path / "old" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nother\n")
    result = programs.call("convert_checkpoint", **flags, tokenizer=tmp_path / "old" / "vocab.txt")
    assert result.exit_code == 1 and "new tokenizer must have the old one's" in result.stderr
