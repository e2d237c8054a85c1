"""The forms in which predict.py is asked; what is in none of them costs one line."""

import json

import made_folders
import programs
import pytest

from serving import prediction_commands, prediction_inputs

SENTENCE = "first the [MASK] sailor remembers the doctor behind the dark baker ."
ADA = "the old fox finds the river . then the young sailor opens the letter ."


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


def objects(result):
    return [json.loads(line) for line in programs.succeed(result).stdout.splitlines()]


def write_table(path):
    if path.suffix == ".csv":
        path.write_text('id,text,other\n7,"the fox, .",the river\n8,red,blue\n')
    else:
        rows = [("7", "the fox, .", "the river"), ("8", "red", "blue")]
        objects = (dict(zip(("id", "text", "other"), row, strict=True)) for row in rows)
        path.write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_named_columns_are_read_and_ids_kept(ending, made, tmp_path):
    folder, _, predictor = made("classes")
    path = write_table(tmp_path / f"rows{ending}")
    settings = {"model_folder": folder, "json": True, "input_file": path}
    singles = objects(programs.call("predict", "classify", **settings))
    assert [(one["id"], one["text"]) for one in singles] == [("7", "the fox, ."), ("8", "red")]
    pairs = objects(programs.call("predict", "classify", text_columns="text,other", **settings))
    assert [one["text_b"] for one in pairs] == ["the river", "blue"]
    for found, expected in [
        (singles, predictor.classify(["the fox, .", "red"])),
        (pairs, predictor.classify([("the fox, .", "the river"), ("red", "blue")])),
    ]:
        assert [one["probability"] for one in found] == pytest.approx(
            [one["probability"] for one in expected], abs=1e-6
        )


LINES = '{"text": "red", "text_b": "blue"}\n{"text": "old", "text_b": "sad"}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "red\tblue\nold\tsad\n"),
        ("a.csv", "text_b,text\nblue,red\nsad,old\n"),
        ("a.jsonl", LINES),
        ("a.json", LINES),
    ],
)
def test_pairs_are_the_same_rows_in_every_form(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    form = prediction_commands.COMMANDS["classify"].form
    rows = prediction_inputs.from_file(str(tmp_path / name), form)
    assert rows == [{"text": "red", "text_b": "blue"}, {"text": "old", "text_b": "sad"}]
    if name != "a.tsv":
        singles = prediction_inputs.from_file(str(tmp_path / name), form, ["text"])
        assert singles == [{"text": "red"}, {"text": "old"}]


def test_questions_may_stand_in_the_columns_of_a_json_file(tmp_path):
    (tmp_path / "a.json").write_text('{"q": "who", "c": "Ada ."}\n')
    form = prediction_commands.COMMANDS["answer"].form
    rows = prediction_inputs.from_file(str(tmp_path / "a.json"), form, ["q", "c"])
    assert rows == [{"question": "who", "context": "Ada ."}]


def test_questions_in_squads_form_are_answered_by_id(made, tmp_path):
    qas = [{"id": "x", "question": "the letter"}, {"id": "y", "question": "the river"}]
    path = tmp_path / "asked.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": ADA, "qas": qas}]}]}))
    settings = {"model_folder": made("span")[0], "json": True}
    found = objects(programs.call("predict", "answer", input_file=path, **settings))
    assert [(one["id"], one["question"]) for one in found] == [
        ("x", "the letter"),
        ("y", "the river"),
    ]


def test_a_passages_questions_are_answered_one_by_one(made, tmp_path):
    passage = {"id": "p.txt", "article": ADA, "questions": ["the _", "a _ ?"]}
    passage |= {"options": [["fox", "cat"], ["a", "b", "c"]], "answers": ["A", "C"]}
    path = tmp_path / "p.txt"
    path.write_text(json.dumps(passage, indent=2))
    settings = {"model_folder": made("choice")[0], "json": True}
    found = objects(programs.call("predict", "choose", input_file=path, **settings))
    assert [one["id"] for one in found] == ["p.txt-0", "p.txt-1"]
    assert [len(one["probabilities"]) for one in found] == [2, 3]


LONG = "[MASK] " + "sailor " * 40
WRONG = {
    "a text without a mask": (["fill-mask", SENTENCE, "the sailor ."], {}, ["'the sailor .'"]),
    "a text too long for the model": (["fill-mask", LONG], {}, ["at most 32 pieces", "43 pieces"]),
    "no word": ([], {}, ["fill-mask", "nothing"]),
    "another word": (["fill", SENTENCE], {}, ["fill-mask, order, embed", "Received: fill."]),
    "no folder": (["fill-mask", SENTENCE], {"model_folder": ""}, ["`model_folder`", "nothing"]),
    "a folder that is not there": (
        ["fill-mask", SENTENCE],
        {"model_folder": "{absent}"},
        ["albert_config.json", "{absent}"],
    ),
    "no pieces to show": (["fill-mask", SENTENCE], {"top_k": 0}, ["--top_k=0"]),
    "another command's flag": (
        ["order", "a", "b"],
        {"top_k": 3},
        ["`top_k` is for fill-mask, classify. Received: order."],
    ),
    "windows elsewhere": (
        ["order", "a", "b"],
        {"long_texts": "windows"},
        ["`long_texts` windows is for classify. Received: order."],
    ),
    "one segment": (["order", "a"], {}, ["the words: there must be text_a TAB text_b", "'a'"]),
    "three segments": (["order", "a", "b", "c"], {}, ["text_a TAB text_b", "'a\\tb\\tc'"]),
    "three texts": (["classify", "a\tb\tc"], {}, ["a word: there must be text TAB [text_b]"]),
    "a question without context": (["answer", "who"], {}, ["question TAB context", "'who'"]),
    "two questions": (
        ["answer", "who"],
        {"context": "a", "question": "b"},
        ["`context` and `question` ask one question. Received: them, and 'who'."],
    ),
    "options without a question": (
        ["choose", "a", "b"],
        {"context": "c"},
        ["Options need `context` and `question`. Received: no question."],
    ),
    "a question without options": (["choose"], {"question": "c"}, ["`question`", "options"]),
    "words and a file": (["embed", "a"], {"input_file": "b.txt"}, ["both, 'a' and b.txt"]),
    "a file that is not there": (["embed"], {"input_file": "{absent}"}, ["must exist", "{absent}"]),
    "columns without a file": (["embed", "a"], {"text_columns": "a"}, ["no `input_file`"]),
    "another kind of output": (["embed", "a"], {"output_file": "a.txt"}, [".npy or .jsonl"]),
    "no such layer": (["embed", "a"], {"layer": 7}, ["`layer` must lie in [0, 3]", "Received: 7"]),
    "no layer": (["embed", "a"], {"layer": "top"}, ["a whole number or all. Received: top."]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_costs_one_line(name, made, tmp_path):
    words, changes, parts = WRONG[name]
    absent = str(tmp_path / "absent")
    settings = {"model_folder": made("pretraining")[0], **changes}
    settings = {n: absent if v == "{absent}" else v for n, v in settings.items()}
    result = programs.call("predict", *words, **settings)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and result.stdout == ""
    for part in parts:
        assert part.replace("{absent}", absent) in line


FILES = {
    "a blank line": ("a.txt", "red\n\nblue\n", "line 2 must hold a text. Received: a blank line"),
    "no line": ("a.txt", "\n", "must hold at least one row. Received: none"),
    "no column": ("a.csv", "id,name\n1,red\n", "must have the columns ['text']"),
    "a number": ("a.jsonl", '{"text": 3}\n', "line 1: text must be text. Received: [3]"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_wrong_is_named_with_its_line(name, made, tmp_path):
    file, content, message = FILES[name]
    (tmp_path / file).write_text(content)
    result = programs.call(
        "predict", "embed", input_file=tmp_path / file, model_folder=made("span")[0]
    )
    assert result.exit_code == 1 and result.stdout == ""
    assert f"error: {tmp_path / file}" in result.stderr and message in result.stderr


def test_a_context_beside_a_file_that_has_contexts_is_refused(made, tmp_path):
    path = tmp_path / "asked.json"
    path.write_text("{}")
    flags = {"input_file": path, "context": ADA, "model_folder": made("span")[0]}
    result = programs.call("predict", "answer", **flags)
    assert result.exit_code == 1
    assert f"{path} has contexts and questions of its own" in result.stderr
