"""What a classifier says of the rows of a table: scores, warnings, files.

Only programs import this module. n: rows, C: classes or labels.
"""

import os

import numpy as np
from scipy import stats

from data import files
from evaluation import glue_submissions, metrics, prediction_files, ranking

RANKED = "ranked"  # Prefix of figures and files that come of comparing rows.


def chance_loss(label_kind, label_ids):
    """Returns the loss of a guess that knows how frequent the labels are.

    Args:
        label_kind: "classes", "multilabel" or "number".
        label_ids: int32[n], float32[n, C] or float32[n].

    Returns:
        float: nats (for several labels, the mean over the labels), or the variance.
    """
    if label_kind == "number":
        return float(np.var(label_ids))
    if label_kind == "classes":
        return float(stats.entropy(np.bincount(label_ids)))
    shares = np.stack([label_ids.mean(axis=0), 1 - label_ids.mean(axis=0)])
    return float(stats.entropy(shares, axis=0).mean())


def per_row(features, logits):
    """Returns the logits of each row: where rows were read in windows, the mean over them.

    Args:
        features: data.features.Features of the rows.
        logits: float32[examples, C].
    """
    if "row" not in features.columns:
        return logits
    row = features.columns["row"]
    sums = np.zeros((row[-1] + 1, logits.shape[1]), np.float64)
    np.add.at(sums, row, logits)
    return (sums / np.bincount(row)[:, np.newaxis]).astype(np.float32)


def score(task, table, logits):
    """Scores the predictions.

    Args:
        task: data.classification_tasks.ClassificationTask.
        table: data.classification_tables.Table, labelled.
        logits: float32[n, C].

    Returns:
        dict of metric to float.
    """
    predicted = metrics.predictions(logits, task.label_kind)
    return metrics.score(task.metrics, table.label_ids, predicted)


def report(task, table, split, logits, rank=False):
    """Prints the final scores of one set, if it is labelled, and returns them.

    Args:
        task, table, logits: as of `score`.
        split: the set's name; figures of all but the first dev set bear it.
        rank: whether to print, beside the plain figures, those by comparison.

    Returns:
        dict of name to float.
    """
    names = task.labels if task.label_kind == "classes" else ()
    warn_of_collapse(metrics.predictions(logits, task.label_kind), split, names)
    if table.label_ids is None:
        return {}
    found = score(task, table, logits)
    if rank:
        classes = ranked_classes(task, table, logits)
        by_rank = metrics.score(task.metrics, table.label_ids, classes)
        found |= {f"{RANKED}_{name}": value for name, value in by_rank.items()}
    figures = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
    print(f"{split}: {figures}  ({len(table):,} rows)")
    is_first = split in task.splits("dev")[:1]
    return found if is_first else {f"{split}_{name}": value for name, value in found.items()}


def warn_of_collapse(predicted, split, names=()):
    """Prints a warning where all predictions are one; `names` are those of the classes."""
    common = metrics.common_prediction(predicted)
    if common is not None:
        name = names[common] if names else common
        print(
            f"warning: the model has collapsed: all {len(predicted):,} predictions for {split} are "
            f"{name}. Try a lower `learning_rate`, a longer warm-up or another `seed`."
        )


def ranked_classes(task, table, logits):
    """Returns the classes, int32[n], by comparing rows whose first text is the same."""
    probabilities = metrics.probabilities(logits, task.label_kind)
    return ranking.ranked(table.texts_a, probabilities, task.labels.index(task.ranked_label))


def write(task, table, split, logits, folder, rank=False):
    """Writes predictions with probabilities, and for a test set the file for the GLUE site.

    Args:
        task, table, split, logits, rank: as of `report`.
        folder: path.
    """
    files.check_folder(folder)
    predicted = named(task, metrics.predictions(logits, task.label_kind))
    pairs = zip(table.ids, predicted, strict=True)
    rows = [{"id": row_id, "prediction": value} for row_id, value in pairs]
    if table.label_ids is not None:
        for row, label in zip(rows, named(task, table.label_ids), strict=True):
            row["label"] = label
    if task.label_kind != "number":
        probabilities = metrics.probabilities(logits, task.label_kind)
        for row, values in zip(rows, probabilities, strict=True):
            row["probabilities"] = [round(float(value), 6) for value in values]
    path = prediction_files.path_of(folder, split)
    prediction_files.write(path, rows)
    print(f"{split}: predictions in {path}")
    if split in task.submissions:
        submit(table, predicted, os.path.join(folder, task.submissions[split]))
        if rank:
            classes = named(task, ranked_classes(task, table, logits))
            submit(table, classes, os.path.join(folder, f"{RANKED}-{task.submissions[split]}"))


def submit(table, predictions, path):
    """Writes a file that the GLUE site takes."""
    files.write_bytes(path, glue_submissions.submission(table.ids, predictions).encode())
    print(f"for the GLUE site: {path}")


def named(task, values):
    """Returns label names, lists of them, or floats for what is stored as numbers."""
    if task.label_kind == "number":
        return [float(value) for value in values]
    if task.label_kind == "classes":
        return [task.labels[value] for value in values]
    return [[task.labels[place] for place in np.flatnonzero(row)] for row in values]
