"""The one rule of the layout: programs import packages; a package imports only itself."""

import ast
import pathlib
import resource
import subprocess
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ("data", "modeling", "training", "evaluation")
# What programs share: they bring the packages together, and no package imports them.
PARTS_OF_PROGRAMS = ("runs", "folders", "serving", "conversion")
PROGRAMS_IN = {
    "data": (
        "create_pretraining_data.py",
        "sample_corpus.py",
        "sample_labels.py",
        "train_vocabulary.py",
    ),
    "evaluation": ("ensembles.py",),
}
HELP_SECONDS = 2  # Of the processor. TensorFlow alone takes 5 or more.


def imported_names(path):
    """Yields the dotted names that a source file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written from the top."
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_files(package):
    return sorted((REPOSITORY / package).rglob("*.py"))


def is_program(path):
    return path.parent == REPOSITORY or path.name in PROGRAMS_IN.get(path.parent.name, ())


def library_files():
    files = [path for package in PACKAGES for path in package_files(package)]
    return [path for path in files if not is_program(path)]


def programs():
    """Lists the files that run as programs, as words to put behind `python`."""
    files = [*REPOSITORY.glob("*.py"), *(path for p in PACKAGES for path in package_files(p))]
    runnable = [path for path in files if 'if __name__ == "__main__":' in path.read_text()]
    return sorted(
        (path.name,) if path.parent == REPOSITORY else ("-m", f"{path.parent.name}.{path.stem}")
        for path in runnable
    )


def own_names():
    """Returns the first names of all that is importable from the checkout itself."""
    modules = {path.stem for path in REPOSITORY.glob("*.py")}
    return modules | {*PACKAGES, *PARTS_OF_PROGRAMS, "benchmarks", "tests"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_itself_and_third_parties(package):
    foreign = {
        (path.name, name)
        for path in package_files(package)
        for name in imported_names(path)
        if name.split(".")[0] in own_names() - {package}
    }
    allowed = {(name, "command_line") for name in PROGRAMS_IN.get(package, ())}
    assert foreign - allowed == set()


def test_only_programs_know_of_flags():
    knowing = {
        path.relative_to(REPOSITORY).as_posix()
        for path in library_files()
        if any(name.split(".")[:2] == ["absl", "flags"] for name in imported_names(path))
        or any(name in ("absl.app", "command_line") for name in imported_names(path))
    }
    assert knowing == set()


def test_no_package_imports_a_program():
    programs_within = {
        f"{package}.{name.removesuffix('.py')}"
        for package, names in PROGRAMS_IN.items()
        for name in names
    }
    for path in library_files():
        assert not programs_within & set(imported_names(path)), path


def test_evaluation_needs_no_tensorflow_but_for_remote_files():
    imported = {
        (path.name, name.split(".")[0])
        for path in package_files("evaluation")
        for name in imported_names(path)
    } - {("run_files.py", "tensorflow")}
    third_parties = {name for _, name in imported} - {"evaluation", *sys.stdlib_module_names}
    # The last two are of programs.
    assert third_parties <= {"numpy", "scipy", "sklearn", "absl", "command_line"}


def test_the_packages_hold_no_other_program():
    for path in library_files():
        assert "__main__" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("program", programs(), ids=lambda words: words[-1])
def test_help_answers_quickly_and_without_tensorflow(program):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *program, "--help"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr[-1000:]
    assert "--" in result.stdout
    loaded = {line.split("|")[-1].strip() for line in result.stderr.splitlines() if "|" in line}
    assert "absl.flags" in loaded  # So the listing is what it is taken for.
    assert not {"tensorflow", "keras", "torch"} & loaded
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < HELP_SECONDS
