"""The sample corpus: documents of documentation, the same bytes each time."""

import importlib.metadata
import pathlib
import re
import subprocess
import sys

import pytest

from data import corpus, installed_documentation

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SOURCE = '''
"""The module has two sentences. They are at its top."""
import a_package_that_does_not_exist

raise SystemExit("This must never run.")

class Outer:
    """The class has two sentences. They stand below its name."""

    if True:
        async def method(self):
            """The method is in a branch. It is found all the same."""
            def inner():
                "There is just one sentence here."
'''


def test_docstrings_are_found_without_running_the_source(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    assert installed_documentation.documents_of_file(path) == [
        ["The module has two sentences.", "They are at its top."],
        ["The class has two sentences.", "They stand below its name."],
        ["The method is in a branch.", "It is found all the same."],
    ]


def test_a_file_in_another_language_is_named_and_not_fatal(tmp_path):
    (tmp_path / "python2.py").write_text("print 'hello'\n")
    (tmp_path / "latin.py").write_bytes(b'"""\xe9"""\n')
    paths = [tmp_path / "python2.py", tmp_path / "latin.py"]
    assert list(installed_documentation.read_files(paths, 1)) == [None, None]


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("numpy/core/tests/test_umath.py", True),
        ("test/support/os_helper.py", True),
        ("keras/layers/dense_test.py", True),
        ("pkg/conftest.py", True),
        ("unittest/mock.py", False),
        ("numpy/testing/_private/utils.py", False),
        ("pkg/latest.py", False),
        ("pkg/contest/rules.py", False),
    ],
)
def test_test_files_are_told_by_their_names(name, is_test):
    assert bool(installed_documentation.TEST_FILE.search(name)) == is_test


def test_requirements_lead_to_what_they_require_and_to_nothing_else():
    distributions, missing = installed_documentation.required_distributions(
        [
            "# A comment.",
            "",
            "-r other.txt",
            "pytest>=8  # make test",
            "no-such-package; extra == 'x'",
        ]
    )
    names = {distribution.metadata["Name"].lower() for distribution in distributions}
    assert {"pytest", "pluggy", "iniconfig"} <= names
    assert not {"tensorflow", "no-such-package"} & names
    assert missing == []


def test_a_requirement_that_is_not_installed_is_named():
    assert installed_documentation.required_distributions(["no_such.package==1"]) == (
        [],
        ["no-such-package"],
    )


def test_source_files_are_the_required_ones_without_tests_and_other_packages():
    files = installed_documentation.source_files([importlib.metadata.distribution("absl-py")])
    names = [path.as_posix() for path in files]
    assert len(set(names)) == len(names) > 500
    assert any(name.endswith("absl/flags/_flag.py") for name in names)
    assert any(name.endswith("json/decoder.py") for name in names)
    assert not any("/numpy/" in name or "/tests/" in name for name in names)


def test_copies_of_documents_and_long_sentences_are_left_out():
    repetitions = installed_documentation.Repetitions()
    long_one, long_two, long_three = (f"This is long sentence number {n} of three." for n in "123")
    assert repetitions.new_part([long_one, "It is short."]) == [long_one, "It is short."]
    assert repetitions.new_part([long_one, "It is short."]) == []
    assert repetitions.new_part(["It is short.", "It is new."]) == ["It is short.", "It is new."]
    assert repetitions.new_part(["It is short.", "It is new."]) == []
    mixed = ["It is short.", long_one, long_two]
    assert repetitions.new_part(mixed) == ["It is short.", long_two]
    assert repetitions.new_part([long_one, long_two, long_three, "It is short."]) == []


def test_documents_are_written_in_the_layout_that_is_read_and_completely_or_not_at_all(tmp_path):
    documents = [["One sentence.", "Two sentences."], ["A third.", "A fourth."]]
    path = tmp_path / "corpus.txt"
    assert installed_documentation.write_documents(documents, path) == (
        2,
        4,
        path.stat().st_size / 1e6,
    )
    assert path.read_text() == "One sentence.\nTwo sentences.\n\nA third.\nA fourth.\n\n"
    with pytest.raises(ZeroDivisionError):
        installed_documentation.write_documents(
            ([str(1 // n)] for n in (1, 0)), tmp_path / "other.txt"
        )
    assert not (tmp_path / "other.txt").exists()


def test_any_number_of_processes_reads_the_same_documents_in_the_same_order():
    files = installed_documentation.source_files([])[:60]
    one, two = (list(installed_documentation.read_files(files, n)) for n in (1, 2))
    assert one == two
    assert sum(map(len, one)) > 20


@pytest.mark.slow
def test_the_corpus_has_five_megabytes_and_the_same_bytes_each_time(tmp_path):
    paths = [tmp_path / "new folder" / name for name in ("first.txt", "second.txt")]
    for path, num_workers in zip(paths, (2, 1), strict=True):
        command = [sys.executable, "-m", "data.sample_corpus", f"--output_file={path}"]
        command.append(f"--num_workers={num_workers}")
        result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=True)
        assert re.fullmatch(r"Sample corpus: .* documents, .* MB in \d+ s: .*\n", result.stdout)
        assert result.stderr == ""
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size >= 5e6
    lines = paths[0].read_text(encoding="utf-8").split("\n")
    assert min(len(text.split("\n")) for text in paths[0].read_text().strip().split("\n\n")) >= 2
    assert not [
        line for line in lines if line != line.strip() or len(line) > corpus.LONG_LINE_CHARACTERS
    ]
