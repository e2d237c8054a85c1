"""What data creation says about odd text, and when it refuses."""

import os
import re

import pytest
from created_data import create, english_tokenizer, write_text
from made_tokenizers import wordpiece_tokenizer


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    english_tokenizer().save(str(folder))
    return str(folder)


@pytest.mark.parametrize(
    "content, reason",
    [
        ("\r\n" * 50, "only blank lines"),
        ("", "empty files"),
        ("One sentence.\n\nAnother one.\n", "2 documents, all too short"),
    ],
)
def test_no_example_is_an_error_with_its_reason_and_leaves_no_file(
    tmp_path, tokenizer_folder, content, reason
):
    (tmp_path / "text.txt").write_text(content)
    with pytest.raises(ValueError, match=reason):
        create(tokenizer_folder, tmp_path / "text.txt", tmp_path / "out" / "x.tfrecord")
    assert os.listdir(tmp_path / "out") == []


def test_nothing_held_out_is_an_error(tmp_path, tokenizer_folder):
    (tmp_path / "text.txt").write_text("a b\nc d\n\na\nb\n")
    with pytest.raises(ValueError, match="held-out example.*none of 2 documents.*heldout_fraction"):
        create(
            tokenizer_folder,
            tmp_path / "text.txt",
            tmp_path / "x.tfrecord",
            heldout_file=str(tmp_path / "y.tfrecord"),
        )
    assert os.listdir(tmp_path) == ["text.txt"]


def test_more_files_than_examples_is_an_error(tmp_path, tokenizer_folder):
    (tmp_path / "text.txt").write_text("a b\nc d\n\na\nb\n")
    with pytest.raises(ValueError, match="2 examples for 3 files"):
        create(tokenizer_folder, tmp_path / "text.txt", tmp_path / "x.tfrecord", num_shards=3)
    assert os.listdir(tmp_path) == ["text.txt"]


def test_a_vocabulary_of_another_kind_is_refused_with_ten_words(tmp_path, tokenizer_folder):
    text = write_text(tmp_path / "text.txt")
    wordpiece_tokenizer().save(str(tmp_path / "other"))
    with pytest.raises(ValueError, match="at most 5.0%.*Received: [0-9.]+%.* such as ") as error:
        create(str(tmp_path / "other"), text, tmp_path / "x.tfrecord", max_unknown_rate=0.05)
    assert str(error.value).split("such as ")[1].split(". ")[0].count(", ") == 9
    assert not (tmp_path / "x.tfrecord").exists()


def warnings_of(capsys, tokenizer, folder, content, **options):
    (folder / "text.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    create(tokenizer, folder / "text.txt", folder / "x.tfrecord", **options)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        ("a b\nc\nd\n" * 20, "a single document of 60 lines"),
        (("a " * 1200 + "\nb c\n\n") * 3, "3 of 6 lines are longer than 2,000 characters"),
        ("a\nb\n\n" + "c d e f\n\n" * 3, "3 of 4 documents have a single sentence.* 85.7% of"),
        (("a " * 60 + "\n" + "b " * 60 + "\n\n") * 3, "75.8% of the text was cut off"),
        (b"a \xff\nb\n\nc\nd \xfe\xfe\n", "3 bytes are not UTF-8.*text.txt line 1, .*line 5"),
    ],
)
def test_odd_text_is_worth_a_warning_with_counts(
    tmp_path, tokenizer_folder, capsys, content, message
):
    text = warnings_of(capsys, tokenizer_folder, tmp_path, content)
    assert re.search(message, text), text


def test_a_limit_that_removes_a_tenth_of_the_masks_is_worth_a_warning(
    tmp_path, tokenizer_folder, capsys
):
    text = write_text(tmp_path / "source.txt").read_text()
    limited = warnings_of(
        capsys, tokenizer_folder, tmp_path, text, examples={"max_predictions_per_seq": 2}
    )
    assert "of the pieces are masked, not 15.0%, as max_predictions_per_seq=2" in limited
    unlimited = warnings_of(
        capsys, tokenizer_folder, tmp_path, text, examples={"max_seq_length": 256}
    )
    assert unlimited == ""


def test_bad_bytes_are_an_error_when_asked(tmp_path, tokenizer_folder):
    (tmp_path / "text.txt").write_bytes(b"a b\nc \xff\n")
    with pytest.raises(ValueError, match=r"UTF-8.*text\.txt line 2"):
        create(
            tokenizer_folder,
            tmp_path / "text.txt",
            tmp_path / "x.tfrecord",
            fail_on_bad_bytes=True,
        )
