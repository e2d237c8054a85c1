"""Averages predictions of several runs row by row: classes, labels, numbers, choices.

C: classes, labels or choices.
"""

import numpy as np

from evaluation import metrics, prediction_files

LIKELY = 0.5  # A label of several is predicted from this probability on.


def names(folder):
    """Lists the sets that a run has predictions of, such as "dev" and "test"."""
    return prediction_files.names(folder)


def load(folders, name):
    """Reads the predictions of some runs.

    Returns:
        A list of lists of rows, those of each run in the order of the first.

    Raises:
        ValueError: a file is broken, or the runs differ in their ids or labels.
    """
    paths = {folder: prediction_files.path_of(folder, name) for folder in folders}
    return prediction_files.matched(
        {folder: prediction_files.read(path) for folder, path in paths.items()}
    )


def average(task, members):
    """Averages the predictions of several runs.

    Args:
        task: dict of `prediction_files.read_task`.
        members: list of lists of rows, of `load`.

    Returns:
        A list of rows in the same form.

    Raises:
        ValueError: numbers of probabilities that differ.
    """
    return [
        {
            **{name: rows[0][name] for name in ("id", "label") if name in rows[0]},
            **AVERAGES[task["kind"]](rows, task["labels"]),
        }
        for rows in zip(*members, strict=True)
    ]


def mean_probabilities(rows):
    """Returns the mean of the rows' probabilities: float64[C]."""
    lengths = {len(row["probabilities"]) for row in rows}
    if len(lengths) > 1:
        raise ValueError(
            "Rows of one id must have equally many probabilities. Received: "
            f"{sorted(lengths)} at id {rows[0]['id']!r}."
        )
    return np.mean([row["probabilities"] for row in rows], axis=0)


def average_classes(rows, labels):
    """Predicts the class, or the choice, with the largest mean probability."""
    probabilities = mean_probabilities(rows)
    best = int(np.argmax(probabilities))
    prediction = labels[best] if labels else best
    return {"prediction": prediction, "probabilities": probabilities.tolist()}


def average_labels(rows, labels):
    """Predicts every label whose mean probability is large enough."""
    probabilities = mean_probabilities(rows)
    prediction = [labels[i] for i in np.flatnonzero(probabilities >= LIKELY)]
    return {"prediction": prediction, "probabilities": probabilities.tolist()}


def average_numbers(rows, _):
    """Predicts the mean."""
    return {"prediction": float(np.mean([row["prediction"] for row in rows]))}


AVERAGES = {
    "classes": average_classes,
    "choice": average_classes,
    "multilabel": average_labels,
    "number": average_numbers,
}


def encoded(task, values):
    """Turns labels or predictions as they are written into what `metrics.score` compares."""
    kind, labels = task["kind"], task["labels"]
    if kind == "number":
        return np.array(values, np.float64)
    if kind == "multilabel":
        return np.array([[label in chosen for label in labels] for chosen in values], np.int32)
    return np.array([labels.index(value) if labels else value for value in values], np.int32)


def score(task, rows):
    """Scores predictions by the task's metrics.

    Args:
        task: dict of `prediction_files.read_task`.
        rows: list of dicts.

    Returns:
        dict, metric -> float; None where rows have no label.
    """
    if not rows or not all("label" in row for row in rows):
        return None
    labels, predictions = (
        encoded(task, [row[name] for row in rows]) for name in ("label", "prediction")
    )
    return metrics.score(task["metrics"], labels, predictions)


def write(folder, name, rows):
    """Writes predictions in the form that runs keep theirs in."""
    prediction_files.write(prediction_files.path_of(folder, name), rows)
