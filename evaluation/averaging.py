"""One prediction out of several: averages of what the members of an ensemble said.

C: classes, labels or choices.
"""

import math

import numpy as np

LIKELY = 0.5  # A label of several is predicted from this probability on.


def average(kind, labels, members):
    """Averages the predictions of several runs, row by row.

    Args:
        kind: one of `prediction_files.KINDS` but "span".
        labels: list of names of the classes or labels; empty where choices have no names.
        members: list of lists of rows, of `prediction_files.matched`.

    Returns:
        A list of rows in the same form.

    Raises:
        ValueError: rows with numbers of probabilities that differ.
    """
    return [
        {
            **{name: rows[0][name] for name in ("id", "label") if name in rows[0]},
            **AVERAGES[kind](rows, labels),
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


def choose(names, score):
    """Chooses members one by one, as long as the score rises (forward selection).

    Args:
        names: list of the candidates' names; of equals the first is taken.
        score: function of a list of names that returns a float, where more is better.

    Returns:
        A list of (name, score with it and those before it), at least one.
    """
    chosen, best = [], -math.inf
    while rest := [name for name in names if name not in dict(chosen)]:
        so_far = [name for name, _ in chosen]
        scores = {name: score([*so_far, name]) for name in rest}
        scores = {name: -math.inf if math.isnan(value) else value for name, value in scores.items()}
        name = max(rest, key=scores.get)
        if chosen and scores[name] <= best:
            break
        best = scores[name]
        chosen.append((name, best))
    return chosen
