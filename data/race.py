"""Reads multiple-choice questions about passages in the form of RACE.

A passage is one JSON object: `id`, `article`, `questions`, `options` (a list of 2 to 5 a
question) and `answers` (letters; missing where they are to be predicted). The official
archive has a file for each, `<split>/<level>/<number>.txt`; the original reads a file of one a
line, `<split>/<level>/all.txt` (race_utils.py:112). Both are read here.

n: questions, A: passages.
"""

import dataclasses
import json
import os
import re

import numpy as np

from data import files
from data.tables import read_text, shortened

LEVELS = ("middle", "high")  # In this order, as in the original.
LETTERS = "ABCDE"
MERGED = "all.txt"
# Differs from the original: a run of underscores is one blank; there, each is filled in
# (race_utils.py:131). The wide sign is that of Chinese text.
BLANK = re.compile("[_\uff3f]+")


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions, in the order of their files.

    Attributes:
        ids: list[str], n of the passage's id and the question's number in it, from 0.
        levels: list[str], n of LEVELS, or "" where the data have none.
        articles: list[str], A passages.
        article_numbers: int64[n], which of them a question is about.
        questions: list[str].
        options: list of n lists of 2 to 5 texts.
        label_ids: int32[n], the number of the right option; None where there are no answers.
    """

    ids: list[str]
    levels: list[str]
    articles: list[str]
    article_numbers: np.ndarray
    questions: list[str]
    options: list[list[str]]
    label_ids: np.ndarray | None

    def __len__(self):
        return len(self.ids)


def read(data_dir, split, level=""):
    """Reads one split.

    Args:
        data_dir: folder that holds the split's folder, or a folder `RACE` that does.
        split: "train", "dev" or "test".
        level: one of LEVELS; empty: both, or what lies in the split's folder itself.

    Returns:
        Questions.

    Raises:
        FileNotFoundError: there is no such folder, or no passage in it.
        ValueError: a passage is not as it must be; the message names file and line.
    """
    passages = [
        (level, path, line, passage)
        for level, folder in level_folders(find_folder(data_dir, split), level)
        for path, line, passage in read_folder(folder)
    ]
    check_ids(passages)
    rows = [
        (number, level, f"{passage['id']}-{place}", *question)
        for number, (level, path, line, passage) in enumerate(passages)
        for place, question in enumerate(questions_of(passage, f"{path}, line {line}"))
    ]
    if not rows:
        raise ValueError(f"{data_dir} must hold questions of the split {split}. Received: none.")
    numbers, levels, ids, questions, options, answers = map(list, zip(*rows, strict=True))
    if None in answers and set(answers) != {None}:
        missing = ids[answers.index(None)]
        raise ValueError(
            f"all passages must have `answers`, or none. Received: none for {missing}."
        )
    return Questions(
        ids=ids,
        levels=levels,
        articles=[passage["article"] for *_, passage in passages],
        article_numbers=np.array(numbers),
        questions=questions,
        options=options,
        label_ids=None if None in answers else np.array(answers, np.int32),
    )


def check_ids(passages):
    """Raises ValueError where two passages, (level, path, line, dict), have the same id."""
    places = {}
    for _, path, line, passage in passages:
        place = f"{path}, line {line}"
        if (first := places.setdefault(passage["id"], place)) != place:
            raise fault(place, f"`id` must not be that of {first}", passage["id"])


def find_folder(data_dir, split):
    folders = [os.path.join(data_dir, split), os.path.join(data_dir, "RACE", split)]
    for folder in folders:
        if files.is_folder(folder):
            return folder
    raise FileNotFoundError(f"one of the folders {folders} must exist. Received: neither.")


def level_folders(folder, level):
    """Returns a list of (level, its folder)."""
    there = [name for name in LEVELS if files.is_folder(os.path.join(folder, name))]
    if level and level not in there:
        raise ValueError(
            f"`level` must be one of {there}, the folders in {folder}. Received: {level!r}."
        )
    chosen = [level] if level else there
    return [(name, os.path.join(folder, name)) for name in chosen] or [("", folder)]


def read_folder(folder):
    """Reads the passages of a folder; whatever does not end in `.txt` is none.

    Returns:
        list of (path, line, dict), files in the order of their numbers.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file is not JSON, or all.txt differs from the files beside it.
    """
    names = [n for n in files.names_in(folder) if n.endswith(".txt") and not n.startswith(".")]
    if not names:
        raise FileNotFoundError(f"{folder} must hold passages, `.txt` files. Received: none.")
    singles = sorted((name for name in names if name != MERGED), key=by_number)
    passages = [one for name in singles for one in read_passages(os.path.join(folder, name))]
    if MERGED not in names:
        return passages
    merged = read_passages(os.path.join(folder, MERGED))
    if passages and in_any_order(passages) != in_any_order(merged):
        raise ValueError(
            f"{os.path.join(folder, MERGED)} must hold just the passages of the files beside it, "
            f"or be alone. Received: {len(merged)} passages, and others in {len(singles)} files. "
            "Remove what is not meant."
        )
    return passages or merged


def by_number(name):
    stem = name.removesuffix(".txt")
    return (0, int(stem), name) if stem.isdecimal() else (1, 0, name)


def in_any_order(passages):
    return sorted(json.dumps(passage, sort_keys=True) for *_, passage in passages)


def read_passages(path):
    """Reads a file of one JSON object, or of one a line: list of (path, line, dict)."""
    text = read_text(path)
    try:
        return [(path, 1, checked_passage(json.loads(text), path, 1))]
    except json.JSONDecodeError:
        pass  # More than one line of JSON, or a fault, which the lines will show.
    passages = []
    for line, row in enumerate(text.rstrip().split("\n"), 1):
        try:
            passages.append((path, line, checked_passage(json.loads(row), path, line)))
        except json.JSONDecodeError:
            raise fault(f"{path}, line {line}", "a passage must be one JSON object", row) from None
    return passages


def fault(place, rule, value):
    return ValueError(f"{place}: {rule}. Received: {shortened(value)}.")


def is_texts(value):
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def checked_passage(passage, path, line):
    """Returns a passage that has all it must; raises ValueError otherwise."""
    place = f"{path}, line {line}"
    if not isinstance(passage, dict):
        raise fault(place, "a passage must be one JSON object", passage)
    folder, name = os.path.split(path)
    passage.setdefault("id", f"{os.path.basename(folder)}{name}" + (f":{line}" if line > 1 else ""))
    if not isinstance(passage["id"], str | int):
        raise fault(place, "`id` must be text or a whole number", passage["id"])
    if not isinstance(passage.get("article"), str):
        raise fault(place, "`article` must be text", passage.get("article"))
    for name in ("questions", "answers"):
        if not is_texts(passage.get(name, [] if name == "answers" else None)):
            raise fault(place, f"`{name}` must be a list of texts", passage.get(name))
    questions, options, answers = (
        passage.get(name) for name in ("questions", "options", "answers")
    )
    if not isinstance(options, list) or len(options) != len(questions):
        raise fault(place, f"`options` must be {len(questions)} lists, one a question", options)
    if answers is not None and len(answers) != len(questions):
        raise fault(place, f"`answers` must be {len(questions)}, one a question", answers)
    return passage


def questions_of(passage, place):
    """Yields (question, its options, the number of the right one or None) of a passage."""
    answers = passage.get("answers") or [None] * len(passage["questions"])
    for question, options, answer in zip(
        passage["questions"], passage["options"], answers, strict=True
    ):
        if not (is_texts(options) and 2 <= len(options) <= len(LETTERS)):
            rule = f"the options of {question!r} must be 2 to {len(LETTERS)} texts"
            raise fault(place, rule, options)
        letters = list(LETTERS[: len(options)])
        if answer not in (None, *letters):
            raise fault(place, f"the answer to {question!r} must be one of {letters}", answer)
        yield question, options, None if answer is None else letters.index(answer)


def ending(question, option):
    """Puts an option into the blanks of a question, or behind it: str."""
    question, option = question.strip(), option.strip()
    if BLANK.search(question):
        return BLANK.sub(lambda _: option, question)
    return f"{question} {option}"
