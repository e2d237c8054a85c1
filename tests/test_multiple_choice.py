import json

import numpy as np
import pytest
from conftest import golden_folder, shared_data, spm_model_file

from data import multiple_choice, race, tokenization
from tests import made_tokenizers

GOLDEN = golden_folder("race")
with open(GOLDEN / "manifest.json", encoding="utf-8") as file:
    CASES = json.load(file)["files"]
TOKENIZER = made_tokenizers.wordpiece_tokenizer()


def golden_tokenizer(name):
    if name == "wordpiece":
        return tokenization.load(golden_folder("tokenization") / "vocab.txt")
    return tokenization.load(spm_model_file(), lower=name == "spm_lower")


def as_shown(tokenizer, text):
    """Returns text as the original shows it: normalised, but for WordPiece."""
    return text if tokenizer.kind == "wordpiece" else tokenizer.normalize(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_golden_features_are_the_originals(case):
    tokenizer = golden_tokenizer(case["tokenizer"])
    level = "high" if case["high_only"] else "middle" if case["middle_only"] else ""
    questions = race.read(str(GOLDEN), case["part"], level)
    made = multiple_choice.make_features(
        questions, tokenizer, case["max_seq_length"], case["max_qa_length"]
    )
    with open(GOLDEN / case["file"], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert len(made) == len(rows) == case["examples"]
    assert made.columns["label_ids"].tolist() == [row["label_id"] for row in rows]
    for number, row in enumerate(rows):
        passage = questions.articles[questions.article_numbers[number]]
        assert as_shown(tokenizer, passage) == as_shown(tokenizer, row["context"])
        if "__" in questions.questions[number]:
            continue  # The next test's.
        for choice, option in enumerate(questions.options[number]):
            ours = race.ending(questions.questions[number], option)
            assert as_shown(tokenizer, ours) == as_shown(tokenizer, row["endings"][choice])
            size = sum(row["input_mask"][choice])
            for name in ("input_ids", "segment_ids"):
                assert made.sequence(name, number, choice).tolist() == row[name][choice][:size]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_golden_options_are_not_repeated_in_a_run_of_underscores(case):
    """Differs from the original: it fills in each underscore."""
    tokenizer = golden_tokenizer(case["tokenizer"])
    level = "high" if case["high_only"] else "middle" if case["middle_only"] else ""
    questions = race.read(str(GOLDEN), case["part"], level)
    with open(GOLDEN / case["file"], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    runs = [number for number, text in enumerate(questions.questions) if "__" in text]
    for number in runs:
        question = questions.questions[number]
        for choice, option in enumerate(questions.options[number]):
            theirs = as_shown(tokenizer, rows[number]["endings"][choice])
            assert theirs == as_shown(tokenizer, question.replace("_", option))
            assert theirs != as_shown(tokenizer, race.ending(question, option))


def questions_of(*rows, articles=("the walk",), label_ids=None):
    """Makes Questions of (question, options) about the first passage."""
    return race.Questions(
        ids=[str(number) for number in range(len(rows))],
        levels=[""] * len(rows),
        articles=list(articles),
        article_numbers=np.zeros(len(rows), np.int64),
        questions=[question for question, _ in rows],
        options=[options for _, options in rows],
        label_ids=label_ids,
    )


def pieces(made, number, choice):
    ids = made.sequence("input_ids", number, choice)
    return TOKENIZER.ids_to_pieces(ids)


def test_choices_that_a_question_lacks_are_empty():
    made = multiple_choice.make_features(
        questions_of(("a ?", ["a", "the"]), ("a ?", ["a", "the", "walk", "(", ")"])), TOKENIZER, 16
    )
    assert (len(made), made.num_choices) == (2, 5)
    assert np.diff(made.offsets).tolist() == [8, 8, 0, 0, 0, *[8] * 5]
    assert pieces(made, 1, 2) == ["[CLS]", "the", "walk", "[SEP]", "a", "[UNK]", "walk", "[SEP]"]
    assert made.sequence("segment_ids", 1, 2).tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_the_option_survives_a_long_question():
    long = " ".join(["walk"] * 20)
    for question in (long, f"_ {long}", f"{long} _", f"{long} _ {long}"):
        made = multiple_choice.make_features(
            questions_of((question, ["a", "the", "(", ")"])), TOKENIZER, 16, max_qa_length=8
        )
        sequences = {tuple(made.sequence("input_ids", 0, choice)) for choice in range(4)}
        assert len(sequences) == 4
        assert made.lengths().tolist() == [13]


def test_question_and_option_never_take_more_than_there_is():
    long = " ".join(["a"] * 50)
    made = multiple_choice.make_features(
        questions_of((long, ["the", "walk"])), TOKENIZER, 10, max_qa_length=128
    )
    assert pieces(made, 0, 1) == ["[CLS]", "[SEP]", *["a"] * 6, "walk", "[SEP]"]


def test_the_share_of_truncated_examples_is_told():
    rows = [
        ("a", ["a", "the"]),
        ("a", ["a", "the the the"]),
        ("a", ["a a a", "a"]),
        ("a", ["a"] * 2),
    ]
    made = multiple_choice.make_features(questions_of(*rows), TOKENIZER, 8)
    assert made.truncated_share == 0.5


def test_unlabelled_questions_have_no_labels():
    row = ("a", ["a", "the"])
    assert multiple_choice.make_features(questions_of(row), TOKENIZER, 8).columns == {}
    labelled = questions_of(row, label_ids=np.array([1], np.int32))
    made = multiple_choice.make_features(labelled, TOKENIZER, 8)
    assert made.columns["label_ids"].tolist() == [1]


def test_changed_passages_are_not_taken_from_the_cache(tmp_path):
    row = ("a", ["a", "the"])
    for article in ("the walk", "the", "the walk"):
        made = multiple_choice.make_features(
            questions_of(row, articles=[article]), TOKENIZER, 16, cache_folder=str(tmp_path)
        )
        assert made.lengths().tolist() == [5 + len(article.split())]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("lengths", [(4, 8), (16, 0)])
def test_lengths_without_room_are_refused(lengths):
    with pytest.raises(ValueError, match="`max_seq_length` must be at least 5"):
        multiple_choice.make_features(questions_of(("a", ["a", "the"])), TOKENIZER, *lengths)


def test_real_questions_are_tokenized_in_bulk():
    tokenizer = tokenization.load(spm_model_file())
    questions = race.read(str(shared_data("race")), "dev")
    made = multiple_choice.make_features(questions, tokenizer, 512)
    assert made.lengths().max() <= 512
    number = int(np.argmin(made.lengths()))
    passage = tokenizer.encode(questions.articles[questions.article_numbers[number]])
    option = race.ending(questions.questions[number], questions.options[number][3])
    expected = [2, *passage, 3, *tokenizer.encode(option), 3]
    assert made.sequence("input_ids", number, 3).tolist() == expected
