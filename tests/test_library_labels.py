import collections
import pathlib
import re
import subprocess
import sys

import pytest

from data import installed_documentation, library_labels

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def module(label, number, num_documents=10):
    """Returns a module whose sentences occur nowhere else."""
    name = label.replace("-", " ")
    return label, [
        [f"The {number} {i} of {name[:3]} is like no other.", f"It has {number} and {i} in it."]
        for i in range(num_documents)
    ]


def library(label, num_modules=120):
    return [module(label, number) for number in range(num_modules)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Returns a NumPy array.",
        "See np.sum for more.",
        "It works as in scikit-learn's estimators.",
        "A tf.Tensor is returned.",
        "This was new in Python 3.8 and later.",
    ],
)
def test_names_of_libraries_give_them_away(sentence):
    assert library_labels.GIVE_AWAY.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["Inputs are of an npz file.", "The pdf is sampled.", "A tensor is an array."]
)
def test_words_that_only_look_like_names_give_nothing_away(sentence):
    assert not library_labels.GIVE_AWAY.search(sentence)


def test_sentences_with_names_go_and_so_do_documents_with_sentences_of_two_libraries():
    shared = "This very sentence stands in two libraries."
    cleaned = library_labels.without_give_aways(
        [
            ("numpy", [["Sums.", "Like np.sum."], [shared, "One."]]),
            ("scipy", [[shared, "Two."], ["Three."]]),
        ]
    )
    assert cleaned == [("numpy", [["Sums."]]), ("scipy", [["Three."]])]


def test_a_text_is_the_beginning_of_a_document_in_whole_sentences():
    assert library_labels.beginning(["One.", "Two."]) == "One. Two."
    assert library_labels.beginning(["One.", "x" * 240, "Three."]) == "One."
    assert library_labels.beginning(["x" * 300, "Two."]) == "x" * 300


def test_no_module_is_on_both_sides_and_libraries_are_balanced():
    modules = library("keras") + library("numpy", 150) + library("scipy", 20)
    rows = library_labels.split(modules)
    sides = {
        side: {(label, re.match(r"The (\d+)", text)[1]) for label, text in side_rows}
        for side, side_rows in rows.items()
    }
    assert not sides["train"] & sides["dev"]
    counts = {
        side: collections.Counter(label for label, _ in side_rows)
        for side, side_rows in rows.items()
    }
    assert counts["dev"] == {"keras": 125, "numpy": 125}  # SciPy has too few to take part.
    assert counts["train"] == {"keras": 900, "numpy": 900}
    labels = [label for label, _ in rows["train"]]
    assert 300 < labels[:900].count("keras") < 600  # Mixed.


def test_training_never_sees_a_held_out_text_or_long_sentence():
    copied = ["This long sentence is in the held-out module, too.", "And so is this one here."]
    modules = library("keras") + library("numpy")
    for number in (0, 1, 5):  # Of which the first is held out.
        modules[number][1].insert(0, list(copied))
    modules[3][1].insert(0, [copied[0], "This one is new and long.", "This as well, and longer."])
    rows = library_labels.split(modules)
    dev = " ".join(text for _, text in rows["dev"])
    train = " ".join(text for _, text in rows["train"])
    assert all(sentence in dev and sentence not in train for sentence in copied)
    assert "This one is new and long." in train


def test_a_huge_module_does_not_stand_for_its_library():
    modules = [module("keras", 0, 500), *library("keras")[1:]]
    rows = library_labels.split(modules + library("numpy"))
    texts = [text for label, text in rows["dev"] if text.startswith("The 0 ") and label == "keras"]
    assert len(texts) == library_labels.MAX_OF_A_MODULE


@pytest.mark.parametrize(
    ("name", "in_stdlib", "label"),
    [
        ("numpy/linalg/linalg.py", False, "numpy"),
        ("tensorflow/python/ops/math_ops.py", False, "tensorflow"),
        ("tensorflow/python/keras/losses.py", False, None),
        ("tf_keras/src/losses.py", False, None),
        ("json/decoder.py", True, "python"),
        ("idlelib/run.py", True, None),
        ("rich/table.py", False, None),
    ],
)
def test_a_file_belongs_to_one_library_or_to_none(name, in_stdlib, label):
    assert library_labels.label_of(name, in_stdlib) == label


def test_the_standard_library_alone_gives_modules_of_one_label():
    found = library_labels.modules([])
    assert {label for label, _, _ in found} == {"python"}
    assert len(found) > 300
    assert [name for _, name, _ in found] == sorted(
        (name for _, name, _ in found), key=installed_documentation.digest
    )


@pytest.mark.slow
def test_the_set_is_balanced_about_content_and_the_same_bytes_each_time(tmp_path):
    folders = [tmp_path / "new folder", tmp_path / "other"]
    for folder, num_workers in zip(folders, (2, 1), strict=True):
        command = [sys.executable, "-m", "data.sample_labels", f"--output_dir={folder}"]
        command.append(f"--num_workers={num_workers}")
        result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
        assert re.fullmatch(r"Labelled texts: .* libraries .*, in \d+ s\.\n", result.stdout)
        assert result.stderr == ""
    rows = {}
    for side in ("train", "dev"):
        first, second = (folder / f"{side}.tsv" for folder in folders)
        assert first.read_bytes() == second.read_bytes()
        header, *lines = first.read_text(encoding="utf-8").splitlines()
        assert header == "label\ttext"
        rows[side] = [line.split("\t") for line in lines]
        assert {len(row) for row in rows[side]} == {2}
    assert 4_000 <= len(rows["train"]) <= 8_000 and 800 <= len(rows["dev"]) <= 1_000
    labels, texts = zip(*rows["train"], strict=True)
    assert 4 <= len(set(labels)) <= 8 and set(labels) == {label for label, _ in rows["dev"]}
    assert not set(texts) & {text for _, text in rows["dev"]}
    assert not any(library_labels.GIVE_AWAY.search(text) for text in texts)
    assert len(set(texts)) == len(texts)
