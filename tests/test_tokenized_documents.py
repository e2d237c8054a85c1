import numpy as np
import pytest
from made_tokenizers import sentencepiece_tokenizer, wordpiece_tokenizer

from data import tokenized_documents
from data.corpus import Document

ENGLISH = [
    Document(["The statement is executed.", "Its value, 2,013, is unexpectedly printed."], 1),
    Document(["A name (or a zebra's quay) follows."], 4),
]
CHINESE = ["の", "##の", "##ひ", "ひ"]
SEGMENTED = "北京 北 京京 the walking 京 ひの"


def starts_of(line, tokenizer, unspaced_words):
    """Returns a line's pieces, "|" before each that starts a word."""
    documents = tokenized_documents.tokenize([Document([line], 1)], tokenizer, unspaced_words)
    return " ".join(
        ("|" if starts else "") + tokenizer.pieces[number]
        for number, starts in zip(documents.ids, documents.starts_word, strict=True)
    )


@pytest.mark.parametrize("make", [sentencepiece_tokenizer, wordpiece_tokenizer])
def test_offsets_say_where_sentences_and_documents_lie(make):
    tokenizer = make()
    documents = tokenized_documents.tokenize(ENGLISH, tokenizer)
    sentences = [
        documents.ids[start:end].tolist()
        for offsets in documents.offsets
        for start, end in zip(offsets[:-1], offsets[1:], strict=True)
    ]
    lines = [line for document in ENGLISH for line in document.lines]
    assert sentences == [tokenizer.encode(line) for line in lines]
    assert [len(offsets) for offsets in documents.offsets] == [3, 2]


def test_a_sentence_or_document_without_pieces_is_left_out():
    tokenizer = wordpiece_tokenizer()
    empty = "\u200b"  # No piece: BERT's tokenizer removes it.
    documents = tokenized_documents.tokenize(
        [Document(["the", empty, "a"], 1), Document([empty], 5), Document(["walk"], 7)], tokenizer
    )
    assert documents.offsets == [[0, 1, 2], [2, 3]]
    assert len(documents.keys) == 2


def test_words_start_at_the_word_start_mark_whatever_their_letters():
    """Differs from the original, which goes by an alphabet: "it's" are two words there."""
    tokenizer = sentencepiece_tokenizer()
    documents = tokenized_documents.tokenize(ENGLISH, tokenizer)
    num_words = sum(len(line.split()) for document in ENGLISH for line in document.lines)
    assert documents.starts_word.sum() == num_words
    assert len(documents.ids) > 1.5 * num_words


def test_in_scripts_without_blanks_each_piece_is_a_word():
    tokenizer = wordpiece_tokenizer(words=["the", "walk", "##ing", *CHINESE])
    expected = "|北 |京 |北 |京 |京 |the |walk ##ing |京 |ひ |##の"
    assert starts_of(SEGMENTED, tokenizer, "pieces") == expected


def test_words_separated_beforehand_are_what_stands_between_blanks_and_signs():
    tokenizer = wordpiece_tokenizer(words=["the", "walk", "##ing", *CHINESE])
    expected = "|北 京 |北 |京 京 |the |walk ##ing |京 |ひ ##の"
    assert starts_of(SEGMENTED, tokenizer, "blanks") == expected
    assert starts_of("北京.京北", tokenizer, "blanks") == "|北 京 |. |京 北"


def test_separating_words_beforehand_does_not_change_the_ids():
    tokenizer = wordpiece_tokenizer(words=["the", "walk", "##ing", *CHINESE])
    documents = [Document([SEGMENTED, "\u200b", "the 北京"], 1), Document(["京"], 5)]
    by_pieces, by_blanks = (
        tokenized_documents.tokenize(documents, tokenizer, kind) for kind in ("pieces", "blanks")
    )
    np.testing.assert_array_equal(by_pieces.ids, by_blanks.ids)
    assert by_pieces.offsets == by_blanks.offsets


def test_a_sample_tells_whether_words_were_separated():
    assert tokenized_documents.mean_unspaced_run(["no such script"]) == 0
    assert tokenized_documents.mean_unspaced_run(["北京 是 首都 .", "a 我"]) == 6 / 4
    assert tokenized_documents.mean_unspaced_run(["北京是中国的首都，人口众多。"]) == 6


def test_a_key_depends_on_the_text_and_its_place_in_the_file_alone():
    first, second = tokenized_documents.tokenize(ENGLISH, wordpiece_tokenizer()).keys
    assert tokenized_documents.tokenize(ENGLISH[1:], wordpiece_tokenizer()).keys == [second]
    moved = Document(ENGLISH[0].lines, 9)
    changed = Document([ENGLISH[0].lines[0] + " ", *ENGLISH[0].lines[1:]], 1)
    keys = [first, second, *map(tokenized_documents.document_key, (moved, changed))]
    assert len(set(keys)) == 4 and max(keys) < 2**64
