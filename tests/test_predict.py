import re
import shutil

import numpy as np
import programs
import pytest

import predict
from data import tokenization

LONGEST = 64  # Pieces; so small a vocabulary cuts a word into two or three.
SENTENCE = "first the [MASK] sailor remembers the doctor behind the dark baker ."


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


def test_the_probabilities_of_all_pieces_add_up_to_1(trained):
    model, tokenizer = predict.load(str(trained))
    ids = predict.masked_ids(model, tokenizer, SENTENCE)
    assert ids.count(tokenizer.mask_id) == 1 and ids[0] == tokenizer.cls_id
    (answer,) = predict.fill_mask(model, tokenizer, ids, tokenizer.vocab_size)
    assert sorted(piece for piece, _ in answer) == sorted(tokenizer.pieces)
    assert np.sum([p for _, p in answer]) == pytest.approx(1, abs=1e-5)


def test_lines_of_standard_input_are_texts_and_the_console_holds_the_answers_alone(trained):
    result = programs.run(
        "predict", "fill-mask", text=f"{SENTENCE}\n\n{SENTENCE}\n", model_folder=trained
    )
    assert programs.succeed(result).stderr == ""
    lines = result.stdout.splitlines()
    assert lines[:2] == lines[2:] and lines[0] == SENTENCE
    assert len(ranked(lines[1])) == 5


LONG = "[MASK] " + "sailor " * 40
MISTAKES = {
    "a text without a mask": (["fill-mask", SENTENCE, "the sailor ."], {}, ["'the sailor .'"]),
    "a text too long for the model": (["fill-mask", LONG], {}, ["at most 64 pieces", "123 pieces"]),
    "no word": ([], {}, ["fill-mask", "nothing"]),
    "another word": (["fill", SENTENCE], {}, ["fill-mask", "Received: fill."]),
    "no folder": (["fill-mask", SENTENCE], {"model_folder": ""}, ["`model_folder`", "nothing"]),
    "a folder that is not there": (
        ["fill-mask", SENTENCE],
        {"model_folder": "{absent}"},
        ["albert_config.json", "{absent}"],
    ),
    "no pieces to show": (["fill-mask", SENTENCE], {"top_k": 0}, ["--top_k=0"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_costs_one_line(name, trained, tmp_path):
    words, changes, parts = MISTAKES[name]
    absent = str(tmp_path / "absent")
    settings = {"model_folder": trained, **changes}
    settings = {n: v.format(absent=absent) if v == "{absent}" else v for n, v in settings.items()}
    result = programs.call("predict", *words, **settings)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and SENTENCE not in result.stdout
    for part in parts:
        assert part.format(absent=absent) in line


def test_no_text_at_all_is_a_mistake(trained):
    result = programs.run("predict", "fill-mask", text="\n", model_folder=trained)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: A text must be given, as a word or on standard input. Received: none.\n"
    )


def test_a_folder_without_a_tokenizer_is_refused_by_what_it_lacks(trained, tmp_path):
    """Records of others come without one, so their models know no words."""
    folder = tmp_path / "wordless"
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("tokenizer"))
    result = programs.call("predict", "fill-mask", SENTENCE, model_folder=folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: `model_folder` must hold tokenizer")
    assert result.stderr.endswith(f"Received: {folder}.\n")
