"""Reads a classification data set: ids, texts and labels of each row, checked.

n: rows, C: labels.
"""

import dataclasses
import math
import os

import numpy as np

from data import files, tables
from data.classification_tasks import ID_COLUMNS


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows of one file.

    Attributes:
        path: str, the file.
        ids: list[str], as the file has them; otherwise numbers from 0.
        texts_a: list[str].
        texts_b: list[str], or None where a row has one text.
        label_ids: int32[n] for classes, float32[n] for a number, float32[n, C] of 0 and 1
            for several labels; None where the file has no labels.
        num_broken: int, rows left out for their number of columns.
        num_unlabelled: int, rows left out for a label that means there is none.
    """

    path: str
    ids: list[str]
    texts_a: list[str]
    texts_b: list[str] | None
    label_ids: np.ndarray | None
    num_broken: int = 0
    num_unlabelled: int = 0

    def __len__(self):
        return len(self.ids)


def read(task, data_dir, split):
    """Reads one split of a data set.

    Args:
        task: a ClassificationTask.
        data_dir: folder that holds the task's folder, or its files; "" for one's own data.
        split: one of `task.files`. Those of training and development must be labelled.

    Returns:
        Table, with a row for each row of the file, in order, but for those it counts.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is not as the task says; the message names file and line.
    """
    path = find_file(task, data_dir, split)
    columns = read_columns(task, path, split)
    labels, values = columns.values.get(task.label_column), columns.values
    keep = range(len(columns.lines))
    if labels is not None and task.left_out_labels:
        keep = [row for row in keep if labels[row] not in task.left_out_labels]
    if not keep:
        raise ValueError(f"{path} must hold at least one labelled row. Received: none.")
    lines = [columns.lines[row] for row in keep]
    texts = [check_texts(path, lines, c, pick(values[c], keep)) for c in task.text_columns]
    label_ids = None
    if labels is not None:
        label_ids = LABELS[task.label_kind](task, path, lines, pick(labels, keep))
    return Table(
        path=path,
        ids=[as_text(value) for value in pick(row_ids(task, columns), keep)],
        texts_a=texts[0],
        texts_b=texts[1] if len(texts) > 1 else None,
        label_ids=label_ids,
        num_broken=len(columns.broken_lines),
        num_unlabelled=len(columns.lines) - len(keep),
    )


def find_file(task, data_dir, split):
    """Returns the path of a split's file; raises FileNotFoundError, with all it may be."""
    if split not in task.files:
        raise ValueError(f"`split` must be one of {list(task.files)}. Received: {split!r}.")
    folders = dict.fromkeys((os.path.join(data_dir, task.directory), data_dir))
    paths = [os.path.join(folder, name) for folder in folders for name in task.files[split]]
    for path in paths:
        if files.exists(path):
            return path
    raise FileNotFoundError(f"one of the files {paths} must exist. Received: none of them.")


def read_columns(task, path, split):
    """Reads the columns that a task needs of a split's file: tables.Columns."""
    is_test = split.startswith("test")
    needed, optional = [*task.text_columns], []
    (optional if is_test else needed).append(task.label_column)
    if task.id_column:
        needed.append(task.id_column)
    else:
        optional += [name for name in ID_COLUMNS if name not in needed + optional]
    return tables.read(
        path,
        needed,
        optional=optional,
        header=task.headers.get(split, True),
        leave_out_broken=task.leave_out_broken and not is_test,
    )


def row_ids(task, columns):
    """Returns the values of the id column, or numbers from 0."""
    for name in (task.id_column,) if task.id_column else ID_COLUMNS:
        if name in columns.values and name not in task.text_columns:
            return columns.values[name]
    return range(len(columns.lines))


def pick(values, places):
    return [values[place] for place in places]


def as_text(value):
    """Returns a value of JSON as it would stand in a TSV file: true, 115, 1.5, or the text."""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def check_texts(path, lines, column, texts):
    for line, text in zip(lines, texts, strict=True):
        if not isinstance(text, str):
            raise row_error(path, line, f"`{column}` must be text", text)
    return texts


def row_error(path, line, rule, value):
    return ValueError(f"{path}, line {line}: {rule}. Received: {tables.shortened(value)}.")


def class_ids(task, path, lines, labels):
    """Turns class names into their ids: int32[n]."""
    ids = {name: number for number, name in enumerate(task.labels)}
    label_ids = np.empty(len(labels), np.int32)
    for row, value in enumerate(labels):
        name = as_text(value)
        if name not in ids:
            rule = f"`{task.label_column}` must be one of {list(task.labels)}"
            raise row_error(path, lines[row], rule, value)
        label_ids[row] = ids[name]
    return label_ids


def label_numbers(task, path, lines, labels):
    """Turns numbers, or the text of numbers, into float32[n]."""
    numbers = np.empty(len(labels), np.float32)
    for row, value in enumerate(labels):
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise row_error(path, lines[row], f"`{task.label_column}` must be a number", value)
        numbers[row] = number
    return numbers


def label_sets(task, path, lines, labels):
    """Turns sets of labels into float32[n, C]: 1 for each label of a row."""
    ids = {name: number for number, name in enumerate(task.labels)}
    sets = np.zeros((len(labels), len(ids)), np.float32)
    for row, value in enumerate(labels):
        for name in label_names(task, value):
            if name not in ids:
                rule = f"each of `{task.label_column}` must be one of {list(task.labels)}"
                raise row_error(path, lines[row], rule, value)
            sets[row, ids[name]] = 1
    return sets


def label_names(task, value):
    """Returns the names in one cell: a list of JSON, or text with separators; "" holds none."""
    names = value if isinstance(value, list) else as_text(value).split(task.label_separator)
    return [name for name in map(as_text, names) if name]


LABELS = {"classes": class_ids, "number": label_numbers, "multilabel": label_sets}
