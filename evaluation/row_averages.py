"""Averages predictions of several runs row by row: classes, labels, numbers, choices.

C: classes, labels or choices.
"""

import dataclasses
import os

import numpy as np

from evaluation import glue_submissions, metrics, prediction_files, run_files

LIKELY = 0.5  # A label of several is predicted from this probability on.


@dataclasses.dataclass(frozen=True)
class RowAverages:
    """The runs' files of predictions, `dev_predictions.jsonl` and the like.

    Attributes:
        task: dict of `prediction_files.read_task`; `submissions`, if it is there, has the
            name of the file that the GLUE site takes, by set.
    """

    task: dict

    def names(self, folder):
        """Lists the sets that a run has predictions of, such as "dev" and "test"."""
        return prediction_files.names(folder)

    def load(self, folders, name):
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

    def average(self, members):
        """Averages the predictions of several runs.

        Args:
            members: list of lists of rows, of `load`.

        Returns:
            A list of rows in the same form.

        Raises:
            ValueError: numbers of probabilities that differ.
        """
        merge = MERGES[self.task["kind"]]
        return [
            {
                **{name: rows[0][name] for name in ("id", "label") if name in rows[0]},
                **merge(rows, self.task["labels"]),
            }
            for rows in zip(*members, strict=True)
        ]

    def score(self, rows):
        """Scores predictions by the task's metrics.

        Returns:
            dict, metric -> float; None where rows have no label.
        """
        if not rows or not all("label" in row for row in rows):
            return None
        labels, predictions = (
            self.encoded([row[name] for row in rows]) for name in ("label", "prediction")
        )
        return metrics.score(self.task["metrics"], labels, predictions)

    def encoded(self, values):
        """Turns labels or predictions as they are written into what `metrics.score` compares."""
        kind, labels = self.task["kind"], self.task["labels"]
        if kind == "number":
            return np.array(values, np.float64)
        if kind == "multilabel":
            return np.array([[label in chosen for label in labels] for chosen in values], np.int32)
        return np.array([labels.index(value) if labels else value for value in values], np.int32)

    def write(self, folder, name, rows):
        """Writes predictions in the form that runs keep theirs in, and a submission to GLUE."""
        prediction_files.write(prediction_files.path_of(folder, name), rows)
        submission = self.task.get("submissions", {}).get(name)
        if submission:
            ids, predictions = ([row[key] for row in rows] for key in ("id", "prediction"))
            content = glue_submissions.submission(ids, predictions).encode()
            run_files.write_bytes(os.path.join(folder, submission), content)


def mean_probabilities(rows):
    """Returns the mean of the rows' probabilities: float64[C]."""
    lengths = {len(row["probabilities"]) for row in rows}
    if len(lengths) > 1:
        raise ValueError(
            "Rows of one id must have equally many probabilities. Received: "
            f"{sorted(lengths)} at id {rows[0]['id']!r}."
        )
    return np.mean([row["probabilities"] for row in rows], axis=0)


def merge_classes(rows, labels):
    """Predicts the class, or the choice, with the largest mean probability."""
    probabilities = mean_probabilities(rows)
    best = int(np.argmax(probabilities))
    prediction = labels[best] if labels else best
    return {"prediction": prediction, "probabilities": probabilities.tolist()}


def merge_labels(rows, labels):
    """Predicts every label whose mean probability is large enough."""
    probabilities = mean_probabilities(rows)
    prediction = [labels[i] for i in np.flatnonzero(probabilities >= LIKELY)]
    return {"prediction": prediction, "probabilities": probabilities.tolist()}


def merge_numbers(rows, _):
    """Predicts the mean."""
    return {"prediction": float(np.mean([row["prediction"] for row in rows]))}


MERGES = {
    "classes": merge_classes,
    "choice": merge_classes,
    "multilabel": merge_labels,
    "number": merge_numbers,
}
