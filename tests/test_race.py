import json

import pytest
from conftest import shared_data
from made_passages import BUS, LEMONS, write, write_official

from data import race


@pytest.fixture
def official(tmp_path):
    """Makes an official folder with strays in it."""
    write_official(tmp_path)
    return tmp_path


def test_the_official_folder_is_read_without_its_strays(official):
    questions = race.read(str(official), "dev")
    assert questions.ids == ["middle1.txt-0", "middle1.txt-1", "high2.txt-0"]
    assert questions.label_ids.tolist() == [1, 2, 0]
    assert questions.levels == ["middle", "middle", "high"]
    assert questions.articles == [LEMONS["article"], BUS["article"]]
    assert questions.article_numbers.tolist() == [0, 0, 1]
    assert questions.options[2] == ["1", "2"]


def test_the_folder_of_splits_does_as_well(official):
    assert race.read(str(official / "RACE"), "dev").ids == race.read(str(official), "dev").ids


@pytest.mark.parametrize(("level", "number"), [("middle", 2), ("high", 1)])
def test_one_level_may_be_read(official, level, number):
    assert race.read(str(official), "dev", level).levels == [level] * number


def test_files_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("10", "9", "x", "1"):
        write(tmp_path, f"train/high/{name}.txt", {**BUS, "id": name})
    assert race.read(str(tmp_path), "train").ids == ["1-0", "9-0", "10-0", "x-0"]


def test_one_merged_file_is_read_line_by_line(tmp_path):
    write(tmp_path, "dev/middle/all.txt", LEMONS, BUS)
    assert len(race.read(str(tmp_path), "dev")) == 3


def test_a_merged_file_beside_the_others_counts_nothing_twice(official):
    write(official, "RACE/dev/middle/all.txt", LEMONS)
    assert len(race.read(str(official), "dev")) == 3
    write(official, "RACE/dev/middle/all.txt", LEMONS, BUS)
    with pytest.raises(ValueError, match=r"all\.txt must hold just the passages of the files"):
        race.read(str(official), "dev")


def test_other_sets_may_have_no_levels(tmp_path):
    write(tmp_path, "train/a.txt", BUS)
    questions = race.read(str(tmp_path), "train")
    assert questions.levels == [""]
    with pytest.raises(ValueError, match="`level` must be one of"):
        race.read(str(tmp_path), "train", "high")


def test_a_set_without_answers_is_unlabelled(tmp_path):
    unlabelled = {name: value for name, value in BUS.items() if name != "answers"}
    write(tmp_path, "test/a.txt", unlabelled)
    assert race.read(str(tmp_path), "test").label_ids is None
    write(tmp_path, "test/b.txt", {**BUS, "id": "other"})
    with pytest.raises(ValueError, match=r"must have `answers`, or none.*high2\.txt-0"):
        race.read(str(tmp_path), "test")


def test_passages_without_ids_are_named_after_their_files(tmp_path):
    nameless = {name: value for name, value in BUS.items() if name != "id"}
    write(tmp_path, "dev/middle/1.txt", nameless)
    write(tmp_path, "dev/high/all.txt", nameless, nameless)
    assert race.read(str(tmp_path), "dev").ids == [
        "middle1.txt-0",
        "highall.txt-0",
        "highall.txt:2-0",
    ]


def test_an_id_that_comes_twice_is_refused(tmp_path):
    write(tmp_path, "dev/high/1.txt", BUS)
    write(tmp_path, "dev/high/2.txt", BUS)
    with pytest.raises(ValueError, match=r"2\.txt, line 1: `id` must not be that of .*1\.txt"):
        race.read(str(tmp_path), "dev")


def test_a_file_may_be_spread_over_lines(tmp_path):
    path = tmp_path / "dev" / "a.txt"
    path.parent.mkdir()
    path.write_text(json.dumps(BUS, indent=2))
    assert race.read(str(tmp_path), "dev").questions == ["How many?"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answers": ["C"]}, r"all\.txt, line 2: the answer to 'How many\?' .*'A', 'B'.*: 'C'"),
        ({"answers": []}, "`answers` must be 1, one a question"),
        ({"options": [["1"]]}, r"options of 'How many\?' must be 2 to 5 texts.*\['1'\]"),
        ({"options": [list("123456")]}, "must be 2 to 5 texts"),
        ({"options": []}, "`options` must be 1 lists"),
        ({"options": [["1", 2]]}, "must be 2 to 5 texts"),
        ({"article": None}, "`article` must be text. Received: None"),
        ({"id": ["1"]}, r"all\.txt, line 2: `id` must be text or a whole number. Received: .*1"),
        ({"id": {}}, r"line 2: `id` must be text or a whole number. Received: \{\}"),
        ({"id": None}, "`id` must be text or a whole number. Received: None"),
        ({"questions": "How many?"}, "`questions` must be a list of texts"),
    ],
)
def test_a_fault_names_file_and_line(tmp_path, change, message):
    write(tmp_path, "dev/high/all.txt", LEMONS, {**BUS, **change})
    with pytest.raises(ValueError, match=message):
        race.read(str(tmp_path), "dev")


@pytest.mark.parametrize("text", ["", "{", "[]", "no JSON"])
def test_what_is_no_passage_is_refused(tmp_path, text):
    write(tmp_path, "dev/high/1.txt", LEMONS)
    (tmp_path / "dev/high/2.txt").write_text(text)
    with pytest.raises(ValueError, match=r"2\.txt, line 1: a passage must be one JSON object"):
        race.read(str(tmp_path), "dev")


def test_missing_folders_and_passages_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="one of the folders"):
        race.read(str(tmp_path), "dev")
    (tmp_path / "dev" / "high").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="must hold passages"):
        race.read(str(tmp_path), "dev")


@pytest.mark.parametrize(
    ("question", "filled"),
    [
        ("Mina sold _ .", "Mina sold plums ."),
        ("What is big? __", "What is big? plums"),
        ("_____ and ___ .", "plums and plums ."),
        ("\uff3f\uff3f？", "plums？"),
        (" When? ", "When? plums"),
        ("", " plums"),
    ],
)
def test_an_option_fills_each_run_of_underscores_once_or_follows(question, filled):
    """Differs from the original: it fills in each underscore."""
    assert race.ending(question, " plums ") == filled


def test_an_option_is_no_pattern():
    assert race.ending("_ ?", r"\1 x_y") == r"\1 x_y ?"


@pytest.mark.parametrize(("split", "number"), [("train", 600), ("dev", 150), ("test", 100)])
def test_the_real_files_are_read_whole(split, number):
    questions = race.read(str(shared_data("race")), split)
    assert len(questions.articles) == number <= len(questions)
    assert set(questions.levels) == {"middle", "high"}
    assert all(len(options) == 4 for options in questions.options)
