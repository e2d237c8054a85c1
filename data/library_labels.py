"""Labelled texts out of the installed documentation: which library does a text describe?

Each text is the beginning of a docstring. Whatever gives the library away goes first: the
libraries' names, and sentences that several libraries share. The texts to score on come from
modules of their own, so that no class or function is described on both sides.
"""

import collections
import dataclasses
import re

from data import installed_documentation
from data.installed_documentation import LONG_SENTENCE, digest


@dataclasses.dataclass(frozen=True)
class Library:
    """Where a library's modules are, and by what names texts call it."""

    folder: str  # Where its files' names begin; empty for the standard library.
    names: tuple[str, ...]  # Regular expressions.
    left_out: str = "(?!)"  # What the names of files not to be read match.


LIBRARIES = {
    "keras": Library("keras/", ("keras",)),
    "matplotlib": Library("matplotlib/", ("matplotlib", "mpl", "pyplot", "plt")),
    "numpy": Library("numpy/", ("numpy", "np")),
    "pandas": Library("pandas/", ("pandas", "pd")),
    "python": Library("", ("c?python",), "(^|/)(_vendor|_bundled|idlelib|lib2to3)/"),
    "scikit-learn": Library("sklearn/", ("sklearn", "scikits?", "scikit-learn")),
    "scipy": Library("scipy/", ("scipy",)),
    "tensorflow": Library("tensorflow/", ("tensorflow", "tf"), "tensorflow/python/keras/"),
}
GIVE_AWAY = re.compile(
    rf"\b(?:{'|'.join(name for library in LIBRARIES.values() for name in library.names)})\b",
    re.IGNORECASE,
)

MAX_MODULES = 600  # Of a library; TensorFlow has thrice as many, most of which would go unused.
MODULES_PER_DEV_MODULE = 6
MAX_OF_A_MODULE = 20  # Texts; a few huge modules would stand for their library otherwise.
MAX_CHARACTERS = 240  # About 55 pieces, so that a short sequence holds most texts whole.
TRAIN_TEXTS, DEV_TEXTS = 900, 125  # Of each library, at most.
MIN_SHARE = 0.5  # Of these numbers; a library with fewer is left out.


def modules(distributions):
    """Lists up to MAX_MODULES modules of each library.

    Args:
        distributions: list of importlib.metadata.Distribution.

    Returns:
        A list of (label, name, pathlib.Path) in the order of a hash of the names.
    """
    files = installed_documentation.named_source_files(distributions)
    stdlib = installed_documentation.named_source_files([])
    found, num_found = [], collections.Counter()
    for name in sorted(files, key=digest):
        label = label_of(name, in_stdlib=files[name] == stdlib.get(name))
        if label and num_found[label] < MAX_MODULES:
            num_found[label] += 1
            found.append((label, name, files[name]))
    return found


def label_of(name, in_stdlib):
    """Returns the library that a file belongs to, or None.

    Args:
        name: str, of `installed_documentation.named_source_files`.
        in_stdlib: bool, whether it is one of Python's own.
    """
    for label, library in LIBRARIES.items():
        inside = name.startswith(library.folder) if library.folder else in_stdlib
        if inside and not re.search(library.left_out, name):
            return label
    return None


def without_give_aways(documents_by_label):
    """Drops the sentences that name a library and the documents with sentences of two.

    Args:
        documents_by_label: list of (label, list of documents, each a list of sentences).

    Returns:
        A list of the same form.
    """
    owners = collections.defaultdict(set)
    for label, documents in documents_by_label:
        for document in documents:
            for sentence in document:
                if len(sentence) >= LONG_SENTENCE:
                    owners[digest(sentence)].add(label)

    def is_shared(document):
        return any(len(owners.get(digest(sentence), ())) > 1 for sentence in document)

    return [
        (
            label,
            [
                [sentence for sentence in document if not GIVE_AWAY.search(sentence)]
                for document in documents
                if not is_shared(document)
            ],
        )
        for label, documents in documents_by_label
    ]


def beginning(document):
    """Returns a document's first sentences as one text, at least one of them."""
    text = document[0]
    for sentence in document[1:]:
        if len(text) + 1 + len(sentence) > MAX_CHARACTERS:
            break
        text += f" {sentence}"
    return text


def split(documents_by_label):
    """Makes the labelled texts of both sides.

    Of each library every sixth module is held out, and the same share of texts is taken from
    each library. Texts and long sentences that were there before are left out, those of the
    held-out modules going first, so that training never sees them.

    Args:
        documents_by_label: list of (label, list of documents), one for each module.

    Returns:
        dict, "train" and "dev" -> list of (label, text), mixed; libraries with too few texts
        are in neither.
    """
    sides = {"dev": [], "train": []}
    num_modules = collections.Counter()
    for label, documents in without_give_aways(documents_by_label):
        held_out = num_modules[label] % MODULES_PER_DEV_MODULE == 0
        num_modules[label] += 1
        sides["dev" if held_out else "train"].append((label, documents))
    repetitions = installed_documentation.Repetitions()
    texts = {
        side: take(modules_of_side, repetitions, most)
        for (side, modules_of_side), most in zip(
            sides.items(), (DEV_TEXTS, TRAIN_TEXTS), strict=True
        )
    }
    labels = [
        label
        for label in LIBRARIES
        if len(texts["train"][label]) >= MIN_SHARE * TRAIN_TEXTS
        and len(texts["dev"][label]) >= MIN_SHARE * DEV_TEXTS
    ]
    return {side: mixed(texts[side], labels) for side in ("train", "dev")}


def take(documents_by_label, repetitions, most):
    """Takes up to `most` texts of each library: dict, label -> list of str."""
    texts = collections.defaultdict(list)
    for label, documents in documents_by_label:
        num_taken = 0
        for document in documents:
            if num_taken == MAX_OF_A_MODULE or len(texts[label]) == most:
                break
            kept = repetitions.new_part(document)
            if kept:
                texts[label].append(beginning(kept))
                num_taken += 1
    return texts


def mixed(texts, labels):
    """Returns the rows of all labels in the order of a hash: a list of (label, text)."""
    rows = [(label, text) for label in labels for text in texts[label]]
    return sorted(rows, key=lambda row: digest(row[1]))
