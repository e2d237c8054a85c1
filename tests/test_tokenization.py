import json
import multiprocessing
import pickle

import numpy as np
import pytest
from conftest import golden_folder, spm_model_file
from made_tokenizers import (
    MARKED_TEXTS,
    SPECIAL,
    english_lines,
    foreign_model,
    odd_strings,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)

from data import tokenization

GOLDEN = golden_folder("tokenization")
LOWER = {"lower": True, "cased": False}  # The goldens' names.
MAKERS = {"sentencepiece": sentencepiece_tokenizer, "wordpiece": wordpiece_tokenizer}
RELEASED = (  # The seed documents' rows for the released English model.
    ("This is a test", False, [48, 25, 21, 1289]),
    (
        "I was born in 92000, and this is falsé.",
        True,
        [31, 23, 386, 19, 561, 3050, 15, 17, 48, 25, 8256, 18, 1, 9],
    ),
)

of_both_kinds = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def cases(file_name):
    return [json.loads(line) for line in (GOLDEN / file_name).read_text().splitlines()]


@pytest.mark.parametrize("name", LOWER)
def test_sentencepiece_gives_the_golden_pieces_and_ids(name):
    tokenizer = tokenization.load(spm_model_file(), lower=LOWER[name])
    for case in cases("spm.jsonl"):
        text, expected = case["text"], case[name]
        assert tokenizer.normalize(text) == expected["preprocessed"]
        assert tokenizer.tokenize(text) == expected["pieces"]
        assert tokenizer.encode(text) == expected["ids"]
        assert tokenizer.split(text) == expected["raw_pieces"]
        assert tokenizer.pieces_to_ids(tokenizer.split(text)) == expected["raw_ids"]


@pytest.mark.parametrize("name", LOWER)
def test_wordpiece_gives_the_golden_pieces_and_ids(name):
    tokenizer = tokenization.load(GOLDEN / "vocab.txt", lower=LOWER[name])
    for case in cases("wordpiece.jsonl"):
        text, expected = case["text"], case[name]
        assert tokenizer.normalize(text).split() == expected["basic_tokens"]
        assert tokenizer.tokenize(text) == expected["pieces"]
        assert tokenizer.encode(text) == expected["ids"]


@pytest.mark.parametrize(("text", "keep_accents", "ids"), RELEASED)
def test_the_released_model_gives_the_known_ids(text, keep_accents, ids):
    tokenizer = tokenization.load(spm_model_file(), keep_accents=keep_accents)
    assert tokenizer.encode(text) == ids


def test_a_marker_stands_for_its_piece_where_the_caller_allows_it():
    tokenizer = tokenization.load(spm_model_file())
    text = "[CLS]Test sentence with [MASK].[SEP]"
    assert tokenizer.encode(text, allow_markers=True) == [2, 1289, 5123, 29, 4, 13, 9, 3]


def test_the_released_vocabulary_has_its_known_pieces():
    tokenizer = tokenization.load(spm_model_file())
    pieces = tokenizer.pieces
    assert (pieces[0], pieces[1], pieces[-1]) == ("<pad>", "<unk>", "▁eloquent")
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.vocab_size) == (0, 1, 30_000)
    assert (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (2, 3, 4)


@of_both_kinds
@pytest.mark.parametrize("lower", [True, False])
def test_many_lines_at_once_get_the_ids_of_each_alone(make, lower):
    tokenizer = make(lower=lower)
    lines = [*odd_strings(), *english_lines()[:200]]
    for num_threads in (1, 2):
        ids, offsets = tokenizer.encode_lines(lines, num_threads=num_threads)
        assert (ids.dtype, offsets.dtype) == (np.int32, np.int64)
        for line, start, end in zip(lines, offsets[:-1], offsets[1:], strict=True):
            assert ids[start:end].tolist() == tokenizer.encode(line)


@of_both_kinds
def test_no_lines_have_no_ids(make):
    ids, offsets = make().encode_lines([])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


@of_both_kinds
@pytest.mark.parametrize("lower", [True, False])
def test_pieces_and_ids_agree(make, lower):
    tokenizer = make(lower=lower)
    for text in odd_strings():
        assert tokenizer.pieces_to_ids(tokenizer.tokenize(text)) == tokenizer.encode(text)


@of_both_kinds
def test_raw_text_never_gives_a_special_id(make):
    tokenizer = make(lower=False)
    forbidden = tokenizer.special_ids - {tokenizer.unk_id}
    for text in [*MARKED_TEXTS, *odd_strings()]:
        assert not forbidden & set(tokenizer.encode(text))
        assert not forbidden & set(tokenizer.pieces_to_ids(tokenizer.tokenize(text)))


@of_both_kinds
def test_every_marker_stands_for_its_piece_on_request(make):
    tokenizer = make()
    text = "the[CLS]the [SEP] [MASK]"
    the = tokenizer.encode("the")
    cls, sep, mask = tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id
    assert tokenizer.encode(text, allow_markers=True) == [*the, cls, *the, sep, mask]


@of_both_kinds
def test_lower_casing_belongs_to_the_tokenizer(make):
    assert make().encode("THE Walking") == make().encode("the walking")
    cased = make(lower=False)
    assert cased.encode("THE Walking") != cased.encode("the walking")


@of_both_kinds
def test_accents_are_dropped_unless_they_are_kept(make):
    assert make().normalize("Thé  CAFÉ") == "the cafe"
    assert make(keep_accents=True).normalize("Thé  CAFÉ") == "thé café"


@of_both_kinds
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_tokenizer_works_in_other_processes(make, method):
    tokenizer, lines = make(), odd_strings(100)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(tokenizer.encode, lines) == [tokenizer.encode(line) for line in lines]


@of_both_kinds
def test_a_copy_has_the_same_settings_and_fingerprint(make):
    tokenizer = make(lower=False)
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert (copy.settings, copy.fingerprint) == (tokenizer.settings, tokenizer.fingerprint)
    assert copy.pieces == tokenizer.pieces
    assert (copy.word_starts == tokenizer.word_starts).all()


@of_both_kinds
def test_the_fingerprint_tells_settings_and_models_apart(make):
    assert make(lower=True).fingerprint != make(lower=False).fingerprint
    assert make().fingerprint == make().fingerprint
    assert sentencepiece_tokenizer().fingerprint != wordpiece_tokenizer().fingerprint


@of_both_kinds
def test_a_folder_gives_back_the_tokenizer_that_was_saved(make, tmp_path):
    saved = make(lower=False, keep_accents=True)
    saved.save(str(tmp_path / "model" / "tokenizer"))
    for path in (tmp_path / "model", tmp_path / "model" / "tokenizer"):
        loaded = tokenization.load(path)
        assert loaded.fingerprint == saved.fingerprint
        assert loaded.encode("Thé WALKING") == saved.encode("Thé WALKING")


@pytest.mark.parametrize("kind", MAKERS)
def test_the_model_file_of_a_tokenizer_folder_stands_for_the_folder(kind, tmp_path, monkeypatch):
    """Row T05 of user-demands.md: the settings beside it count, or a contradiction is refused."""
    saved = MAKERS[kind](lower=False, keep_accents=True)
    saved.save(str(tmp_path))
    name = {"sentencepiece": "spm.model", "wordpiece": "vocab.txt"}[kind]
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / name, name):
        assert tokenization.load(path).fingerprint == saved.fingerprint
    with pytest.raises(ValueError, match="`lower` must be False.* Received: lower=True"):
        tokenization.load(tmp_path / name, lower=True)
    (tmp_path / name).rename(tmp_path / f"other-{name}")
    assert tokenization.load(tmp_path / f"other-{name}").settings["lower"]
    (tmp_path / f"other-{name}").rename(tmp_path / name)
    (tmp_path / "settings.json").write_text('{"learning_rate": 0.1}')  # Of something else.
    assert tokenization.load(tmp_path / name).settings["lower"]


@pytest.mark.parametrize("first", MAKERS)
def test_a_folder_that_changes_its_kind_can_be_read(first, tmp_path):
    (second,) = MAKERS.keys() - {first}
    for kind in (first, second):
        MAKERS[kind]().save(str(tmp_path))
        assert tokenization.load(tmp_path).fingerprint == MAKERS[kind]().fingerprint
    assert len(list(tmp_path.iterdir())) == 2


def test_a_setting_that_contradicts_the_folder_is_refused(tmp_path):
    wordpiece_tokenizer(lower=False).save(str(tmp_path))
    assert tokenization.load(tmp_path, lower=False).settings["lower"] is False
    with pytest.raises(ValueError, match="`lower` must be False.* Received: lower=True"):
        tokenization.load(tmp_path, lower=True)


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        "{}",
        '{"kind": "sentencepiece", "lower": true}',
        '{"kind": "wordpiece", "lower": true, "keep_accents": false, "digit_comma_split": false,'
        ' "vocab_size": 20, "lowercase": true}',
        '{"kind": "wordpiece", "lower": "yes", "keep_accents": false, "digit_comma_split": false,'
        ' "vocab_size": 20}',
    ],
)
def test_settings_that_are_not_a_tokenizers_are_refused(tmp_path, text):
    wordpiece_tokenizer().save(str(tmp_path))
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(ValueError, match=r"settings.json must hold kind \(wordpiece\)"):
        tokenization.load(tmp_path)


def test_a_model_of_another_size_than_its_folder_says_is_refused(tmp_path):
    wordpiece_tokenizer().save(str(tmp_path))
    with (tmp_path / "vocab.txt").open("a") as file:
        file.write("\none_more")
    size = wordpiece_tokenizer().vocab_size
    with pytest.raises(ValueError, match=f"the {size} pieces.*Received: {size + 1} pieces"):
        tokenization.load(tmp_path)


def test_the_list_of_a_models_pieces_is_not_taken_for_a_model(tmp_path):
    with pytest.raises(ValueError, match=r"Give `.*/30k\.model`"):
        tokenization.load(tmp_path / "30k.vocab")
    tokenizer = sentencepiece_tokenizer()
    lines = [f"{piece}\t{score}" for piece, score in tokenizer.scores()]
    (tmp_path / "vocab.txt").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="list of a SentencePiece model.*Give its `.model` file"):
        tokenization.load(tmp_path / "vocab.txt")


def test_a_path_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="must exist. Received: .*nowhere"):
        tokenization.load(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="must hold spm.model or vocab.txt"):
        tokenization.load(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(SPECIAL))
    with pytest.raises(FileNotFoundError, match="must hold settings.json"):
        tokenization.load(tmp_path)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "spm.model").write_bytes(b"version https://git-lfs")
    with pytest.raises(ValueError, match="spm.model: a SentencePiece model must be given"):
        tokenization.load(tmp_path / "spm.model")
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe[\x00P\x00")
    with pytest.raises(ValueError, match="vocab.txt: a word list must be UTF-8"):
        tokenization.load(tmp_path / "vocab.txt")


def test_a_model_without_the_special_pieces_is_refused(tmp_path):
    (tmp_path / "default.model").write_bytes(foreign_model())
    with pytest.raises(ValueError, match=r"Missing: pad .*, CLS .*, SEP .*, MASK ") as caught:
        tokenization.load(tmp_path / "default.model")
    assert "unk (" not in str(caught.value)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MAKS]\n")
    with pytest.raises(ValueError, match=r"Missing: MASK \(\[MASK\]\)"):
        tokenization.load(tmp_path / "vocab.txt")


@of_both_kinds
def test_an_id_out_of_range_is_refused(make):
    tokenizer = make()
    for wrong in (-1, tokenizer.vocab_size):
        with pytest.raises(ValueError, match=rf"the vocabulary. Received: \[{wrong}\]"):
            tokenizer.ids_to_pieces([0, wrong])


@of_both_kinds
def test_text_comes_back_from_its_ids(make):
    tokenizer = make()
    ids = [tokenizer.cls_id, *tokenizer.encode("The walking , the"), tokenizer.sep_id]
    assert tokenizer.decode(np.array([*ids, tokenizer.pad_id])) == "the walking , the"
    the = tokenizer.encode("the")
    assert tokenizer.decode([*the, tokenizer.mask_id, *the]) == "the [MASK] the"


@of_both_kinds
def test_the_unknown_rate_names_the_words_that_cause_it(make):
    tokenizer = make()
    assert tokenizer.unknown_rate(["the walking"]) == (0.0, [])
    assert tokenizer.unknown_rate([]) == (0.0, [])
    rate, words = tokenizer.unknown_rate(["the ∮∮", "∮∮ ⌘"])
    ids = tokenizer.encode("the ∮∮ ∮∮ ⌘")
    assert rate == pytest.approx(ids.count(tokenizer.unk_id) / len(ids))
    assert words == ["∮∮", "⌘"]
