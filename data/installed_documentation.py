"""The English documentation that is installed with Python and the required packages.

Docstrings are found by parsing the source files; no package is imported. Only files
that the requirements ask for are read, so what else is installed changes nothing.
"""

import ast
import gc
import hashlib
import importlib.metadata
import multiprocessing
import pathlib
import re
import sysconfig
import tokenize
import warnings
from pydoc_data import topics

from packaging.requirements import Requirement

from data import sentence_splitting

MIN_SENTENCES = 2  # A document of one sentence tells nothing about the order of sentences.
LONG_SENTENCE = 25  # Characters. Shorter ones repeat because there is little else to say.
MAX_SEEN = 0.5  # A document with more long sentences than this seen before is a copy.
FILES_A_TASK = 16  # Keeps workers busy with files that take from 0.1 ms to 1 s.

TEST_FILE = re.compile(r"(^|/)(tests?/|test_[^/]*$|conftest\.py$)|_tests?\.py$")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
STATEMENT_LISTS = ("body", "handlers", "orelse", "finalbody")


def required_distributions(requirements):
    """Finds the installed distributions that the requirements ask for, directly or not.

    Args:
        requirements: iterable of str, lines of a requirements file.

    Returns:
        (list of importlib.metadata.Distribution sorted by name, sorted list of the
        names that are required but not installed).
    """
    lines = (line.split("#")[0].strip() for line in requirements)
    pending = [(Requirement(line), {""}) for line in lines if line and not line.startswith("-")]
    found, missing = {}, set()
    while pending:
        requirement, extras = pending.pop()
        marker, name = requirement.marker, re.sub(r"[-_.]+", "-", requirement.name).lower()
        wanted = marker is None or any(marker.evaluate({"extra": extra}) for extra in extras)
        if not wanted or name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            missing.add(name)
            continue
        for line in found[name].requires or []:
            pending.append((Requirement(line), {"", *requirement.extras}))
    return [found[name] for name in sorted(found)], sorted(missing)


def named_source_files(distributions):
    """Finds the source files of Python's standard library and of distributions, tests apart.

    Args:
        distributions: list of importlib.metadata.Distribution.

    Returns:
        dict, name below the folder that modules are imported from -> pathlib.Path.
    """
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    files = {path.relative_to(library).as_posix(): path for path in library.rglob("*.py")}
    files = {name: path for name, path in files.items() if "-packages/" not in name}
    for distribution in distributions:
        for file in distribution.files or []:
            if file.suffix == ".py" and ".." not in file.parts:
                files[file.as_posix()] = pathlib.Path(distribution.locate_file(file))
    return {name: path for name, path in files.items() if not TEST_FILE.search(name)}


def source_files(distributions):
    """Lists the source files of Python's standard library and of distributions, tests apart.

    The order is that of a hash of the names: any stretch of the corpus is then a mixture
    of all packages, so its last part can serve as held-out text.

    Args:
        distributions: list of importlib.metadata.Distribution.

    Returns:
        A list of pathlib.Path.
    """
    files = named_source_files(distributions)
    return [files[name] for name in sorted(files, key=digest)]


def digest(text):
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def docstrings(node):
    """Yields the docstrings of a syntax tree in the order of the source.

    Args:
        node: ast.Module, or any statement in it.

    Yields:
        str, as they stand in the source.
    """
    if isinstance(node, DOCUMENTED):
        docstring = ast.get_docstring(node, clean=False)
        if docstring:
            yield docstring
    for name in STATEMENT_LISTS:
        for child in getattr(node, name, ()):
            yield from docstrings(child)


def documents_of_text(texts):
    """Makes a document of each text that has enough sentences of prose.

    Args:
        texts: iterable of str, docstrings or plain pages.

    Returns:
        A list of documents, each a list of sentences.
    """
    documents = map(sentence_splitting.prose_sentences, texts)
    return [document for document in documents if len(document) >= MIN_SENTENCES]


def documents_of_file(path):
    """Makes a document of each docstring in a source file.

    Args:
        path: str or pathlib.Path of Python source.

    Returns:
        A list of documents, each a list of sentences; None where the file is not
        Python that this version can parse (templates, sources of Python 2).
    """
    try:
        with tokenize.open(path) as file:
            source = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of invalid escapes: not the user's source.
            tree = ast.parse(source)
    except (SyntaxError, UnicodeDecodeError):
        return None
    return documents_of_text(docstrings(tree))


def read_files(paths, num_workers):
    """Yields the documents of each file in the order of `paths`, on several processes.

    Args:
        paths: list of pathlib.Path.
        num_workers: int, at least 1.

    Yields:
        What `documents_of_file` returns.
    """
    # Syntax trees hold no cycles: looking for them takes a seventh of the time.
    with multiprocessing.Pool(num_workers, initializer=gc.disable) as pool:
        yield from pool.imap(documents_of_file, paths, FILES_A_TASK)


def pages():
    """Returns the documents of the pages behind Python's `help()`, by name."""
    return documents_of_text(topics.topics[name] for name in sorted(topics.topics))


class Repetitions:
    """Leaves out what was written before: copies of documents, and long sentences.

    Packages repeat themselves (`keras` and `tf_keras`, versions of one interface), and a
    model that has seen a held-out sentence in training is not being tested.
    """

    def __init__(self):
        self.seen = set()

    def new_part(self, document):
        """Returns the sentences that are new, or none where too little of the document is.

        Args:
            document: list of str.

        Returns:
            A list of str; empty where fewer than `MIN_SENTENCES` are left, or more than
            `MAX_SEEN` of the long sentences, or the document as it is, were seen before.
        """
        whole = digest("\n".join(document))
        if whole in self.seen:
            return []
        keys = [digest(sentence) for sentence in document if len(sentence) >= LONG_SENTENCE]
        num_seen = sum(key in self.seen for key in keys)
        kept = []
        for sentence in document:
            key = digest(sentence)
            if len(sentence) < LONG_SENTENCE or key not in self.seen:
                kept.append(sentence)
                self.seen.add(key)
        self.seen.add(whole)
        if num_seen > MAX_SEEN * len(keys) or len(kept) < MIN_SENTENCES:
            return []
        return kept


def write_documents(documents, output_file):
    """Writes documents; the file has its name only once it is complete.

    Args:
        documents: iterable of lists of sentences.
        output_file: str.

    Returns:
        (int, int, float): documents, sentences and megabytes written.
    """
    num_documents = num_sentences = 0
    partial = pathlib.Path(f"{output_file}.partial")
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            file.write("\n".join(document) + "\n\n")
            num_documents += 1
            num_sentences += len(document)
    megabytes = partial.stat().st_size / 1e6
    partial.replace(output_file)
    return num_documents, num_sentences, megabytes
