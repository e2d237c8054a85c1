"""Scores of classification, regression and multiple choice, from scikit-learn and SciPy.

n: examples, C: classes, labels or choices.
"""

import numpy as np
from scipy import special, stats
from sklearn import metrics


def predictions(logits, label_kind="classes"):
    """Turns logits into what they predict.

    Args:
        logits: float[n, C]; C = 1 for a number.
        label_kind: "classes" (choices too), "multilabel" or "number".

    Returns:
        int32[n], the class of the highest logit, the lowest class of equals; for several labels
        a row int32[n, C], 1 where the logit is over 0, a probability over a half; for
        a number float32[n].
    """
    logits = np.asarray(logits, np.float32)
    if label_kind == "number":
        return logits[:, 0]
    if label_kind == "multilabel":
        return (logits > 0).astype(np.int32)
    return logits.argmax(axis=1).astype(np.int32)


def probabilities(logits, label_kind="classes"):
    """Returns the probability of each class, which sum to 1, or of each of several labels.

    Args:
        logits: float[n, C].
        label_kind: "classes" or "multilabel".

    Returns:
        float64[n, C].
    """
    logits = np.asarray(logits, np.float64)
    return special.expit(logits) if label_kind == "multilabel" else special.softmax(logits, axis=1)


def _f1(label_ids, predictions):
    """F1 of class 1, as GLUE counts it for MRPC and QQP; 0 where it is never predicted."""
    return metrics.f1_score(label_ids == 1, predictions == 1, zero_division=0)


def _macro_f1(label_ids, predictions):
    """Mean of the F1 of each class that occurs among labels or predictions."""
    return metrics.f1_score(label_ids, predictions, average="macro", zero_division=0)


def _micro_f1(label_ids, predictions):
    """F1 over all pairs of a row and a label."""
    return metrics.f1_score(label_ids, predictions, average="micro", zero_division=0)


def _correlation(correlate):
    """Makes a correlation 0 where it is not defined: one side is constant."""

    def correlation(label_ids, predictions):
        if np.ptp(label_ids) == 0 or np.ptp(predictions) == 0:
            return 0.0
        return correlate(label_ids, predictions).statistic

    return correlation


METRICS = {
    "accuracy": metrics.accuracy_score,  # Of several labels: the share of rows all right.
    "f1": _f1,
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "matthews": metrics.matthews_corrcoef,
    "pearson": _correlation(stats.pearsonr),
    "spearman": _correlation(stats.spearmanr),
    "mean_squared_error": metrics.mean_squared_error,
}


def score(names, label_ids, predictions):
    """Compares predictions with labels.

    Whether all predictions are one, so that a figure means little, `common_prediction` says.

    Args:
        names: names of METRICS.
        label_ids: int[n], float[n] (numbers), or [n, C] of 0 and 1 (several labels).
        predictions: array of the same shape, as `predictions` gives it.

    Returns:
        dict, name -> float.

    Raises:
        ValueError: there is nothing to compare, the shapes differ, a number is not
            finite, or a name is unknown.
    """
    label_ids, predictions = np.asarray(label_ids), np.asarray(predictions)
    unknown = [name for name in names if name not in METRICS]
    if unknown:
        raise ValueError(f"metrics must be of {list(METRICS)}. Received: {unknown}.")
    if not label_ids.size or label_ids.shape != predictions.shape:
        raise ValueError(
            "labels and predictions must be of one shape, for one example or more. Received: "
            f"{label_ids.shape} and {predictions.shape}."
        )
    if not np.isfinite(predictions).all():
        raise ValueError(
            "predictions must be finite. Received: "
            f"{np.sum(~np.isfinite(predictions))} that are not, of {predictions.size}."
        )
    if label_ids.ndim == 2:
        label_ids, predictions = label_ids.astype(np.int32), predictions.astype(np.int32)
    elif predictions.dtype.kind == "f":
        label_ids, predictions = label_ids.astype(np.float64), predictions.astype(np.float64)
    return {name: float(METRICS[name](label_ids, predictions)) for name in names}


def common_prediction(predictions):
    """Returns what all predictions are, where they are all one, otherwise None.

    Such a model has learnt nothing, and correlations are then 0 by convention.

    Args:
        predictions: array [n] or [n, C], n > 0.

    Returns:
        An int, a float, or a list of C ints; None also where there is one example only.
    """
    predictions = np.asarray(predictions)
    if len(predictions) > 1 and (predictions == predictions[0]).all():
        return predictions[0].tolist()
    return None


def accuracy_by_level(label_ids, predictions, levels):
    """Scores multiple choice as a whole and level by level.

    Args:
        label_ids: int[n].
        predictions: int[n].
        levels: list of n names, such as "middle" and "high".

    Returns:
        dict: `accuracy` and `num_examples`, and for each of several levels
        `accuracy_<level>` and `num_examples_<level>`, levels in order of appearance.
    """
    scores = score(["accuracy"], label_ids, predictions) | {"num_examples": len(label_ids)}
    names = list(dict.fromkeys(levels))
    for name in names if len(names) > 1 else ():
        chosen = np.array([level == name for level in levels])
        of_level = score(["accuracy"], np.asarray(label_ids)[chosen], predictions[chosen])
        scores[f"accuracy_{name}"] = of_level["accuracy"]
        scores[f"num_examples_{name}"] = int(chosen.sum())
    return scores
