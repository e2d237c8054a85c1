import json

import pytest
from conftest import shared_data

from data import squad

CONTEXT = "Nora lives in Oslo. The town of Oslo is cold."


def question(id="q1", **rest):
    return {"id": id, "question": "Where?", **rest}


def answers(*pairs):
    return [{"text": text, "answer_start": start} for text, start in pairs]


def write(tmp_path, *questions, context=CONTEXT):
    content = {"version": "x", "data": [{"paragraphs": [{"context": context, "qas": questions}]}]}
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_answers_of_version_1_are_read_in_the_files_order(tmp_path):
    path = write(
        tmp_path,
        question("b", answers=answers(("Oslo", 32), ("town of Oslo", 24))),
        question("a", answers=answers(("Nora", 0))),
    )
    read = squad.read(path)
    assert [q.id for q in read.questions] == ["b", "a"]
    assert read.contexts == [CONTEXT]
    assert read.gold_answers() == {"b": ["Oslo", "town of Oslo"], "a": ["Nora"]}
    assert [q.is_impossible for q in read.questions] == [False, False]


def test_version_2_takes_an_empty_list_or_the_word_for_an_unanswerable_question(tmp_path):
    path = write(
        tmp_path,
        question("a", answers=[]),
        question("b", answers=[], is_impossible=True, plausible_answers=answers(("Oslo", 14))),
        question("c", answers=answers(("Oslo", 14)), is_impossible=False),
    )
    read = squad.read(path, "2.0", is_training=True)
    assert [q.is_impossible for q in read.questions] == [True, True, False]
    assert read.gold_answers() == {"a": [], "b": [], "c": ["Oslo"]}


def test_a_file_without_answers_is_not_labelled(tmp_path):
    for version, entry in (("1.1", question(answers=[])), ("2.0", question()), ("1.1", question())):
        read = squad.read(write(tmp_path, entry), version)
        assert not read.is_labelled and read.gold_answers() is None


def test_one_question_needs_no_file():
    asked = squad.ask("Yes.", "Is it so?")
    assert not asked.is_labelled
    assert (asked.contexts, asked.questions[0].text) == (["Yes."], "Is it so?")


def test_of_several_answers_the_first_is_trained_on_with_a_notice(tmp_path):
    path = write(tmp_path, question(answers=answers(("Oslo", 32), ("town of Oslo", 24))))
    read = squad.read(path, is_training=True)
    assert read.questions[0].answer_start == 32
    assert "1 questions have several answers; training uses the first (q1)" in read.notices[0]


def test_an_answer_that_stands_elsewhere_is_found_at_the_nearest_place_with_a_notice(tmp_path):
    # A difference on purpose: the original trains on whatever stands at `answer_start`.
    path = write(tmp_path, question(answers=answers(("Oslo", 30))))
    read = squad.read(path, is_training=True)
    assert read.questions[0].answer_start == 32
    assert "1 answers do not stand at their `answer_start`" in read.notices[0]
    assert "q1" in read.notices[0]


def test_to_score_predictions_an_answer_need_not_stand_in_the_context(tmp_path):
    path = write(tmp_path, question(answers=answers(("Bergen", 3))))
    read = squad.read(path)
    assert read.gold_answers() == {"q1": ["Bergen"]}
    assert read.questions[0].answer_start is None


@pytest.mark.parametrize(
    "version, questions, received",
    [
        ("1.1", [question(answers=answers(("Bergen", 3)))], ["q1", "'Bergen'", "answer_start=3"]),
        ("1.1", [question(answers=[])], ["every question must", "`q1`"]),
        ("1.1", [question(answers=[], is_impossible=True)], ["q1", "--version=2.0"]),
        ("2.0", [question(answers=answers(("Oslo", 14)), is_impossible=True)], ["q1", "Oslo"]),
        ("2.0", [question(answers=[], is_impossible=False)], ["every question must", "`q1`"]),
        ("2.0", [question(answers="Oslo")], ["q1", "`answers` must be a list", "'Oslo'"]),
        ("1.1", [question(answers=[{"text": "Oslo"}, "x", 3])], ["q1", "answer", "3"]),
        ("1.1", [question(answers=answers((" ", 4)))], ["q1", "answer", "' '"]),
        ("1.1", [question(answers=answers(("Oslo", "14")))], ["q1", "answer_start", "'14'"]),
        ("1.1", [question(answers=answers(("Oslo", 14)))] * 2, ["ids must differ", "`q1`"]),
        ("1.1", [{"question": "?", "answers": []}], ["`id`", "None"]),
        ("1.1", [{"id": 7, "question": "?", "answers": []}], ["`id`", "7"]),
        ("1.1", [{"id": "q9", "answers": []}], ["`question`", "q9"]),
        ("1.1", [7], ["`id`", "None in 7"]),
        ("1.1", [None], ["`id`", "None in None"]),
        ("1.1", [], ["must hold questions"]),
    ],
)
def test_a_fault_is_told_with_the_file_the_question_and_the_value(
    tmp_path, version, questions, received
):
    path = write(tmp_path, *questions)
    with pytest.raises(ValueError) as error:
        squad.read(path, version, is_training=True)
    for part in (path, *received):
        assert part in str(error.value)


def test_a_set_is_labelled_as_a_whole_or_not_at_all(tmp_path):
    path = write(tmp_path, question("a", answers=answers(("Oslo", 14))), question("b"))
    with pytest.raises(ValueError, match="either every question or none.*`b` without, and 1 of 2"):
        squad.read(path)


@pytest.mark.parametrize("content", ["{", "[1]", '{"data": {}}', '{"data": [{}]}', '"x"'])
def test_another_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="other.json"):
        squad.read(str(path))
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        squad.read(str(tmp_path / "nowhere.json"))


def test_cmrcs_own_form_is_read_and_its_answers_are_found(tmp_path):
    path = tmp_path / "cmrc.json"
    entry = {"query_id": "Q_0", "query_text": "谁？", "answers": ["范廷颂", "范廷颂枢机"]}
    content = [{"context_id": "C", "context_text": "主教范廷颂枢机，越南人。", "qas": [entry]}]
    path.write_text(json.dumps(content), encoding="utf-8-sig")
    read = squad.read(str(path), is_training=True)
    assert read.questions[0].answer_start == 2
    assert read.gold_answers() == {"Q_0": ["范廷颂", "范廷颂枢机"]}
    assert "1 answers have no `answer_start`" in read.notices[1]


def test_the_answers_of_cmrcs_trial_set_that_are_off_are_all_found():
    path = shared_data("zh/cmrc2018/cmrc2018_trial.json")
    read = squad.read(str(path), is_training=True)
    assert len(read.questions) == 1002
    assert "5 answers do not stand at their `answer_start`" in read.notices[-1]
    for q in read.questions:
        assert read.contexts[q.context_index].startswith(q.answers[0], q.answer_start)
