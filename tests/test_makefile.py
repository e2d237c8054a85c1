"""How `make demo CORPUS=...` takes one's own text; the rest of the demo is the programs'."""

import gzip
import os
import pathlib
import shutil
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")


def make(folder, *arguments):
    """Runs the Makefile in another folder as if the packages were installed."""
    shutil.copy(REPOSITORY / "Makefile", folder)
    command = ["make", "--old-file=.venv/.installed", *arguments]
    # Not as a part of the `make test` that may run this.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", ["my.txt", "my.txt.gz"])
def test_the_last_sentences_lend_their_words_to_the_masks(tmp_path, name):
    lines = [f"one two three four five {n}\r\n" for n in ("six", "seven", "eight", "nine")]
    text = "\r\n".join([*lines, "too short"]).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    result = make(tmp_path, "demo/my/masked.txt", f"CORPUS={name}")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    masked = (tmp_path / "demo/my/masked.txt").read_text().split("\n")[:-1]
    assert masked == [f"one two [MASK] four five {n}" for n in ("seven", "eight", "nine")]


def test_a_text_without_blanks_still_gets_masks_to_fill(tmp_path):
    (tmp_path / "my.txt").write_text("\u4e00\u4e8c\u4e09\n" * 9, encoding="utf-8")
    make(tmp_path, "demo/my/masked.txt", "CORPUS=my.txt")
    assert "[MASK]" in (tmp_path / "demo/my/masked.txt").read_text()


def test_another_text_of_the_same_name_is_not_taken_for_the_first(tmp_path):
    (tmp_path / "other").mkdir()
    for name, word in (("other/my.txt", "new"), ("my.txt", "old")):
        (tmp_path / name).write_text(f"{word} two three four five six\n")
    for name, word in (("my.txt", "old"), ("other/my.txt", "new")):
        make(tmp_path, "demo/my/masked.txt", f"CORPUS={name}")
        assert (tmp_path / "demo/my/masked.txt").read_text().split()[0] == word


def test_what_is_made_already_is_not_made_again(tmp_path):
    (tmp_path / "my.txt").write_text("one two three four five six\n")
    for is_made in (False, True):
        result = make(tmp_path, "demo/my/masked.txt", "CORPUS=my.txt", "--debug=basic")
        assert ("Must remake target 'demo/my/masked.txt'" not in result.stdout) == is_made


def test_a_text_that_does_not_exist_is_one_clear_line(tmp_path):
    result = make(tmp_path, "demo", "CORPUS=none.txt")
    assert result.returncode != 0
    assert "error: CORPUS must name a text file. Received: none.txt" in result.stderr
