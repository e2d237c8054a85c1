"""predict.py from words, lines and files to answers, as a reader and as a program sees them."""

import json
import re
import shutil

import made_folders
import numpy as np
import programs
import pytest

from data import tokenization
from serving import prediction_commands

LONGEST = 64  # Pieces; so small a vocabulary cuts a word into two or three.
SENTENCE = "first the [MASK] sailor remembers the doctor behind the dark baker ."
ADA = "the old fox finds the river . then the young sailor opens the letter ."


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a toy that has learnt to tell a noun from an article."""
    folder = tmp_path_factory.mktemp("predict")
    vocabulary = programs.run(
        "data.train_vocabulary",
        input_file=programs.write_toy_text(folder),
        output_dir=folder / "tokenizer",
        vocab_size=programs.VOCAB_SIZE,
        soft_vocab_limit=True,
    )
    programs.succeed(vocabulary)
    tokenizer = {"tokenizer": folder / "tokenizer"}
    result = programs.call(
        "run_pretraining",
        input_file=programs.write_toy_records(
            folder, tokenizer, dupe_factor=10, max_seq_length=LONGEST
        ),
        albert_config_file=programs.write_config(
            folder,
            tokenization.load(folder / "tokenizer").vocab_size,
            max_position_embeddings=LONGEST,
            initializer_range=0.1,
        ),
        output_dir=folder / "output",
        optimizer="adamw",
        learning_rate=2e-3,
        train_batch_size=16,
        num_train_steps=300,
        num_warmup_steps=50,
    )
    programs.succeed(result)
    return folder / "output"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_folders.maker(tmp_path_factory)


def ranked(line):
    """Reads a line of the answer: a list of (piece, percent)."""
    return [(piece, float(p)) for piece, p in re.findall(r"(\S+) ([\d.]+)%", line)]


def test_each_mask_of_each_text_gets_its_pieces_the_likeliest_first(trained):
    texts = [SENTENCE, "then [MASK] old sailor opens [MASK] fox behind the dark baker ."]
    result = programs.call("predict", "fill-mask", *texts, model_folder=trained, top_k=3)
    lines = programs.succeed(result).stdout.splitlines()
    assert [line for line in lines if not line.startswith("  ")] == texts
    answers = [ranked(line) for line in lines if line.startswith("  ")]
    assert [lines.index(text) for text in texts] == [0, 2] and len(answers) == 3
    for answer in answers:
        probabilities = [probability for _, probability in answer]
        assert len(answer) == 3 and sum(probabilities) <= 100.2  # Rounded to tenths.
        assert probabilities == sorted(probabilities, reverse=True)
    # The words of the text are 12 nouns and as many others; before a noun comes "the".
    assert [answer[0][0] for answer in answers[1:]] == ["the", "the"]


def test_a_runs_folder_keeps_what_its_order_head_has_learnt(trained):
    settings = json.loads((trained / "settings.json").read_text())
    assert settings["sentence_objective"] == "sop"
    result = programs.call("predict", "order", "the fox .", "then the fox .", model_folder=trained)
    assert ranked(programs.succeed(result).stdout.splitlines()[1])[0][0] == "swapped"


def test_lines_are_answered_as_they_come_and_the_console_holds_the_answers_alone(trained):
    with programs.start("predict", "fill-mask", model_folder=trained) as process:
        for _ in range(2):
            process.stdin.write(f"{SENTENCE}\n\n")
            process.stdin.flush()
            answer = [process.stdout.readline().rstrip("\n") for _ in range(2)]
            assert answer[0] == SENTENCE and len(ranked(answer[1])) == 5
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout, stderr) == (0, "", "")


# Command -> (its model, words, flags beside them, lines that ask the same).
ASKED = {
    "fill-mask": ("pretraining", [SENTENCE], {}, SENTENCE),
    "order": ("pretraining", ["the fox .", "the river ."], {}, "the fox .\tthe river ."),
    "embed": ("span", ["the fox ."], {}, "the fox ."),
    "classify": ("classes", ["the fox ."], {"text_b": "a river ."}, "the fox .\ta river ."),
    "answer": ("answerable", ["the letter"], {"context": ADA}, f"the letter\t{ADA}"),
    "choose": (
        "choice",
        ["old", "young"],
        {"context": ADA, "question": "the _ fox"},
        json.dumps({"article": ADA, "questions": ["the _ fox"], "options": [["old", "young"]]}),
    ),
}


def by_hand(command, predictor):
    """Returns what the predictor says to the question of ASKED, as JSON has it."""
    _, words, flags, _ = ASKED[command]
    if command == "fill-mask":
        return {"masks": predictor.fill_mask(words)[0]}
    if command == "order":
        return {"swapped": pytest.approx(float(predictor.order([words])[0]), abs=1e-6)}
    if command == "embed":
        return {"embedding": pytest.approx(predictor.embed(words)[0].tolist(), abs=1e-6)}
    if command == "classify":
        return predictor.classify([(words[0], flags["text_b"])])[0]
    if command == "answer":
        return predictor.answer(words, flags["context"])[0]
    return predictor.choose([flags["question"]], [words], flags["context"])[0]


def objects(result):
    return [json.loads(line) for line in programs.succeed(result).stdout.splitlines()]


@pytest.mark.parametrize("command", ASKED)
def test_words_lines_and_files_get_the_predictors_answer(command, made, tmp_path):
    name, words, flags, line = ASKED[command]
    folder, _, predictor = made(name)
    path = tmp_path / "asked.txt"
    path.write_text(f"{line}\n")
    settings = {"model_folder": folder, "json": True}
    results = [
        programs.call("predict", command, *words, **flags, **settings),
        programs.call("predict", command, text=f"{line}\n", **settings),
        programs.call("predict", command, input_file=path, **settings),
    ]
    expected = by_hand(command, predictor)
    for result in results:
        (found,) = objects(result)
        assert {key: found[key] for key in expected} == expected
        assert "context" not in found


SHOWN = {
    "fill-mask": r"^first the .*\n    \S+ [\d.]+%(  \S+ [\d.]+%){4}\n$",
    "order": r"^the fox \. \| the river \.\n    swapped [\d.]+%  in order [\d.]+%\n$",
    "embed": r'^\{"text": "the fox \.", "embedding": \[[^]]*\]\}\n$',
    "classify": r"^the fox \. \| a river \.\n    (\w+ [\d.]+%(  )?){3}\n$",
    "answer": r"^the letter\n    .*\(null odds [-\d.]+, threshold 0\.0000.*\)\n$",
    "choose": r"^the _ fox\n    (old|young)  \(old [\d.]+%  young [\d.]+%\)\n$",
}


@pytest.mark.parametrize("command", ASKED)
def test_a_reader_sees_the_question_and_a_line(command, made):
    name, words, flags, _ = ASKED[command]
    result = programs.call("predict", command, *words, **flags, model_folder=made(name)[0])
    assert re.fullmatch(SHOWN[command], programs.succeed(result).stdout)


def test_several_labels_and_numbers_are_shown(made):
    result = programs.call("predict", "classify", "red", model_folder=made("multilabel")[0])
    line = programs.succeed(result).stdout.splitlines()[1]
    assert re.fullmatch(r"    \w+(, \w+)*  \((\w+ [\d.]+%(  )?){3}\)", line)
    result = programs.call("predict", "classify", "red", model_folder=made("number")[0])
    assert re.fullmatch(r"red\n    -?\d+\.\d{4}\n", programs.succeed(result).stdout)


def test_an_answer_and_none_are_shown():
    found = {"answer": "a fox", "best": "a fox", "probability": 0.5}
    lines = prediction_commands.show_answer({"question": "who"}, found, 5)
    assert lines == ["who", "    a fox 50.0%"]
    found |= {"answer": None, "null_odds": 2.0, "threshold": 1.0}
    lines = prediction_commands.show_answer({"question": "who"}, found, 5)
    odds = "null odds 2.0000, threshold 1.0000"
    assert lines[1] == f"    no answer  ({odds}; likeliest otherwise: a fox 50.0%)"
    found = {"answer": None, "best": None, "probability": 0.0}
    assert prediction_commands.show_answer({"question": "who"}, found, 5)[1].endswith("no answer")


def test_context_and_question_alone_are_asked(made):
    folder, _, predictor = made("span")
    flags = {"context": ADA, "question": "the letter", "json": True}
    (found,) = objects(programs.call("predict", "answer", model_folder=folder, **flags))
    assert found == {"question": "the letter", **predictor.answer(["the letter"], ADA)[0]}


@pytest.mark.parametrize("source", ["file", "lines"])
def test_vectors_of_texts_of_all_lengths_are_written_in_their_order(source, made, tmp_path):
    folder, _, predictor = made("pretraining")
    texts = ["the old fox finds the river .", "red", "then the young sailor .", "old\tfox"]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n\n")
    settings = {"model_folder": folder, "batch_size": 2, "layer": "all", "pooling": "cls"}
    asked = {"input_file": tmp_path / "texts.txt"}
    if source == "lines":
        asked = {"text": (tmp_path / "texts.txt").read_text()}
    expected = np.concatenate([predictor.embed([text], "cls", "all") for text in texts])
    for name in ("vectors.npy", "vectors.jsonl"):
        path = tmp_path / name
        result = programs.call("predict", "embed", output_file=path, **asked, **settings)
        assert programs.succeed(result).stdout == f"vectors of 4 texts: {path}\n"
    found = np.load(tmp_path / "vectors.npy", allow_pickle=False)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    rows = [json.loads(line) for line in (tmp_path / "vectors.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == texts
    vectors = np.array([row["embedding"] for row in rows], np.float32)
    np.testing.assert_array_equal(vectors, found)  # Nine digits tell a float32.


def test_a_line_that_is_wrong_costs_a_line_and_the_others_are_answered(made):
    lines = f"{SENTENCE}\nwithout a mask\n{SENTENCE}\n"
    folder, _, _ = made("pretraining")
    result = programs.call("predict", "fill-mask", text=lines, model_folder=folder, json=True)
    assert result.exit_code == 1
    first, wrong, third = map(json.loads, result.stdout.splitlines())
    assert first == third and "masks" in first
    assert wrong["error"].startswith("standard input, line 2: A text must hold at least one [MASK]")
    assert result.stderr.splitlines() == [
        f"error: {wrong['error']}",
        "error: 1 of 3 lines have no answer.",
    ]


def test_long_texts_are_cut_where_that_is_asked_for(made):
    folder, _, predictor = made("classes")
    text = " ".join(["sailor"] * 40)
    flags = {"model_folder": folder, "json": True}
    result = programs.call("predict", "classify", text, **flags)
    assert result.exit_code == 1
    assert "at most 32 pieces" in result.stderr and "42 pieces" in result.stderr
    (cut,) = objects(programs.call("predict", "classify", text, long_texts="cut", **flags))
    (short,) = predictor.classify([" ".join(["sailor"] * 30)])
    assert cut["probabilities"] == pytest.approx(short["probabilities"], abs=1e-6)
    (whole,) = objects(programs.call("predict", "classify", text, max_seq_length=42, **flags))
    assert whole["probabilities"] != cut["probabilities"]


@pytest.mark.parametrize("command", ["classify", "choose", "answer"])
def test_a_pretrained_model_is_told_to_be_trained_first(command, made):
    """Row K08 of user-demands.md: one line, and an exit code that is not 0."""
    _, words, flags, _ = ASKED[command]
    folder, _, _ = made("pretraining")
    result = programs.call("predict", command, *words, **flags, model_folder=folder)
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: `{command}` needs a model with a head for")
    assert f"{folder}, which was trained for masked words and sentence order; train first" in line


def test_no_text_at_all_is_a_mistake(made):
    result = programs.call("predict", "fill-mask", text="\n", model_folder=made("pretraining")[0])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: A text must be given, as a word, in `input_file` or on standard input. "
        "Received: none.\n"
    )


def test_help_names_every_command():
    result = programs.run("predict", "--help")
    for command in prediction_commands.COMMANDS:
        assert re.search(rf"^{command} +\w+", programs.succeed(result).stdout, re.MULTILINE)
        assert f"python predict.py {command}" in result.stdout


def test_a_folder_without_a_tokenizer_is_refused_by_what_it_lacks(made, tmp_path):
    """Records of others come without one, so their models know no words."""
    folder = tmp_path / "wordless"
    left_out = shutil.ignore_patterns("tokenizer", "vocab.txt")
    shutil.copytree(made("pretraining")[0], folder, ignore=left_out)
    result = programs.call("predict", "fill-mask", SENTENCE, model_folder=folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: `model_folder` must hold tokenizer")
    assert result.stderr.endswith(f"Received: {folder}.\n")
