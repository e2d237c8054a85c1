"""How `make demo CORPUS=...` takes one's own text; the rest of the demo is the programs'."""

import gzip
import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


def split(folder, corpus):
    """Runs the demo as far as the split into training and held-out text."""
    shutil.copy(REPOSITORY / "Makefile", folder)
    target = f"demo/{corpus.split('.')[0]}/train.txt"
    command = ["make", target, f"CORPUS={corpus}", "--old-file=.venv/.installed"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return result, folder / target


def paragraphs(path):
    return path.read_text(encoding="utf-8").strip().split("\n\n")


@pytest.mark.parametrize("name", ["my.txt", "my.txt.gz"])
def test_the_last_twentieth_of_the_documents_is_held_out(tmp_path, name):
    documents = [f"Document {n} begins.\r\nIt ends \u00e9.\r\n" for n in range(60)]
    text = " \r\n\r\n".join(documents).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    result, train = split(tmp_path, name)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    expected = [f"Document {n} begins.\nIt ends \u00e9." for n in range(60)]
    assert paragraphs(train) == expected[:57]
    assert paragraphs(train.with_name("heldout.txt")) == expected[57:]


def test_held_out_sentences_lend_their_words_to_the_masks(tmp_path):
    sentence = "one two three four five six seven eight"
    text = "\n\n".join("\n".join([sentence] * 10) for _ in range(3))
    (tmp_path / "my.txt").write_text(text)
    _, train = split(tmp_path, "my.txt")
    masked = train.with_name("masked.txt").read_text().splitlines()
    assert masked == ["one two three [MASK] five six seven eight"]


def test_another_text_of_the_same_name_is_split_anew(tmp_path):
    (tmp_path / "my.txt").write_text("Old a.\n\nOld b.\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "my.txt").write_text("New a.\n\nNew b.\n")
    split(tmp_path, "my.txt")
    target = "demo/my/train.txt"
    command = ["make", target, "CORPUS=other/my.txt", "--old-file=.venv/.installed"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert paragraphs(tmp_path / target) == ["New a."]


def test_a_text_that_does_not_exist_is_one_clear_line(tmp_path):
    result, _ = split(tmp_path, "none.txt")
    assert result.returncode != 0
    assert "error: CORPUS must name a text file. Received: none.txt" in result.stderr


def test_a_text_of_one_document_is_one_clear_line_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "my.txt").write_text("One.\nTwo.\n")
    result, train = split(tmp_path, "my.txt")
    assert result.returncode != 0
    assert "error: the text must have two documents at least" in result.stderr
    assert not train.exists()
