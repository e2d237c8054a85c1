"""K17: what is written lacks nothing, and the checker names each part that is taken away."""

import json

import made_sources
import made_tokenizers
import programs
import pytest

from conversion import model_writers
from folders import folder_gaps

TAKEN = {  # Form -> file to take away, what the gap says.
    "google": [
        ("model.ckpt-best.index", "weights: "),
        ("albert_config.json", "config: none"),
        ("vocab.txt", "vocabulary: none"),
        ("tokenizer_config.json", "tokenizer settings: "),
        ("labels.txt", "label names: none for 3 classes"),
    ],
    "huggingface": [
        ("model.safetensors", "weights: "),
        ("config.json", "config: none"),
        ("tokenizer_config.json", "tokenizer settings: "),
    ],
    "keras": [
        ("model.keras", "weights: "),
        ("tokenizer/settings.json", "vocabulary: "),
        ("labels.txt", "label names: none for 3 classes"),
    ],
    "folder": [
        ("best/step-0/complete.json", "weights: "),
        ("tokenizer/vocab.txt", "vocabulary: "),
        ("albert_config.json", "config: none"),
        ("labels.txt", "label names: none for 3 classes"),
    ],
}


@pytest.fixture(scope="module")
def source():
    return made_sources.random_source("classes", made_tokenizers.wordpiece_tokenizer())


@pytest.mark.parametrize("form", TAKEN)
def test_a_folder_that_is_written_lacks_nothing_until_a_part_is_taken_away(form, source, tmp_path):
    for number, (name, gap) in enumerate(TAKEN[form]):
        folder = tmp_path / str(number)
        model_writers.write(source, form, str(folder))
        assert folder_gaps.gaps(str(folder)) == []
        (folder / name).unlink()
        found = folder_gaps.gaps(str(folder))
        assert len(found) == 1 and found[0].startswith(gap)


def test_labels_that_are_only_numbers_are_a_gap_in_hugging_faces_form(source, tmp_path):
    model_writers.write(source, "huggingface", str(tmp_path))
    values = json.loads((tmp_path / "config.json").read_text())
    values["id2label"] = {str(i): f"LABEL_{i}" for i in range(3)}
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert folder_gaps.gaps(str(tmp_path)) == ["label names: none for 3 classes"]


def test_a_vocabulary_with_more_pieces_than_the_table_has_rows_is_a_gap(tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer()
    source = made_sources.random_source("encoder", vocab_size=tokenizer.vocab_size - 1)
    model_writers.write(source, "folder", str(tmp_path))
    tokenizer.save(tmp_path / "tokenizer")
    (gap,) = folder_gaps.gaps(str(tmp_path))
    assert gap == f"vocabulary: {tokenizer.vocab_size} pieces, but the model has " + (
        f"{tokenizer.vocab_size - 1} rows"
    )


def test_the_program_names_the_gaps_and_fails(source, tmp_path):
    model_writers.write(source, "google", str(tmp_path))
    words = ("--check", str(tmp_path))
    printed = programs.succeed(programs.call("convert_checkpoint", *words)).stdout
    assert "says what they mean." in printed
    (tmp_path / "vocab.txt").unlink()
    result = programs.call("convert_checkpoint", *words)
    assert result.exit_code == 1 and "missing: vocabulary: none\n" in result.stdout
    assert "lacks 1 of what" in result.stderr
