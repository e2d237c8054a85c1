import subprocess
import sys

import pytest
from conftest import REPOSITORY
from made_tokenizers import english_lines

from data import tokenization

TINY = "a b\nb c\nc a\n"


def run(*flags):
    return subprocess.run(
        [sys.executable, "-m", "data.train_vocabulary", *flags],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )


def test_one_command_makes_a_vocabulary(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(english_lines()), encoding="utf-8")
    result = run(
        f"--input_file={tmp_path / 'text.txt'}",
        f"--output_dir={tmp_path / 'out'}",
        "--vocab_size=500",
        "--nolower",
    )
    assert (result.returncode, result.stderr) == (0, "")
    first, second = result.stdout.splitlines()
    assert first.startswith("Read 4,000 lines")
    assert second.startswith(f"Wrote 500 pieces to {tmp_path / 'out'}; 0.")
    tokenizer = tokenization.load(tmp_path / "out")
    assert tokenizer.vocab_size == 500
    assert tokenizer.encode("THE") != tokenizer.encode("the")


def test_a_soft_limit_says_the_true_size(tmp_path):
    (tmp_path / "text.txt").write_text(TINY)
    flags = f"--input_file={tmp_path / 'text.txt'}", f"--output_dir={tmp_path / 'out'}"
    result = run(*flags, "--soft_vocab_limit")
    assert "Wrote 20 pieces, all that the text supplies of 30,000," in result.stdout
    assert tokenization.load(tmp_path / "out").vocab_size == 20


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output_dir={0}/out"], "`input_file` must be given"),
        (["--input_file={0}/text.txt"], "`output_dir` must be given"),
        (["--input_file={0}/none*", "--output_dir={0}/out"], "no file matches `"),
        (
            ["--input_file={0}/text.txt", "--output_dir={0}/text.txt"],
            "a folder that can be written",
        ),
        (["--input_file={0}/text.txt", "--output_dir={0}/out"], "at most 20, the largest size"),
        (["--input_files={0}/text.txt"], "Unknown command line flag 'input_files'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(tmp_path, flags, message):
    (tmp_path / "text.txt").write_text(TINY)
    result = run(*(flag.format(tmp_path) for flag in flags))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
