"""Averages the scored spans of several runs of question answering."""

import json
import os

from evaluation import span_decoding, span_scores, squad_metrics

SUFFIX = span_scores.FILE_NAME


def names(folder):
    """Lists the sets that a run has scored spans of: "" for a file without a prefix."""
    found = (name for name in os.listdir(folder) if name.endswith(SUFFIX))
    return sorted(name.removesuffix(SUFFIX).rstrip("_") for name in found)


def path_of(folder, name, file_name=SUFFIX):
    """Returns a file of one set in a run's folder."""
    return os.path.join(folder, f"{name}_{file_name}" if name else file_name)


def load(folders, name):
    """Reads the scored spans of some runs.

    Returns:
        A list of SpanScores.

    Raises:
        ValueError: a file is broken, or the runs had other questions.
    """
    members = [span_scores.load(path_of(folder, name)) for folder in folders]
    for member in members[1:]:
        span_scores.places_of(members[0], member)
    return members


def average(_, members):
    """Averages SpanScores; `span_scores.average` says how."""
    return span_scores.average(members)


def threshold_of(scores):
    """Returns the null odds up to which questions are answered best, or None in version 1.1."""
    if scores.null_scores is None or not scores.golds:
        return None
    predictions, _, null_odds = span_decoding.answers(scores)
    best = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
    return best["best_f1_thresh"]


def score(task, scores):
    """Scores the answers by the official figures, in per cent.

    Of version 2.0, those at the best thresholds for this very set: null scores of other runs
    have other scales, so none can be fixed beforehand.

    Args:
        task: dict of `prediction_files.read_task`.
        scores: SpanScores.

    Returns:
        dict, metric -> float, the one that counts first; None where no answers are known.
    """
    if scores.golds is None:
        return None
    predictions, _, null_odds = span_decoding.answers(scores)
    if null_odds is None:
        figures = CMRC_OR_SQUAD["cmrc" in task["task"].lower()](scores.golds, predictions)
        return {name: figures[name] for name in ("f1", "exact_match")}
    figures = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
    return {name: figures[name] for name in ("best_f1", "best_exact")}


CMRC_OR_SQUAD = {True: squad_metrics.evaluate_cmrc, False: squad_metrics.evaluate_v1}


def write(folder, name, scores):
    """Writes the averaged spans, and the answers in the forms that run_squad.py writes.

    Of version 2.0, questions are answered up to the threshold that is best for this set; where
    no answers are known, all of them are, and `null_odds.json` leaves the choice to its reader.

    Args:
        folder: path.
        name: of the set.
        scores: SpanScores.
    """
    with open(path_of(folder, name), "wb") as file:
        file.write(scores.to_bytes())
    predictions, n_best, null_odds = span_decoding.answers(scores, threshold=threshold_of(scores))
    answers = {"predictions": predictions, "nbest_predictions": n_best, "null_odds": null_odds}
    for kind, content in answers.items():
        if content is not None:
            with open(path_of(folder, name, f"{kind}.json"), "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2, ensure_ascii=False)
