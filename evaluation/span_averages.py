"""Averages the scored spans of several runs of question answering."""

import dataclasses
import json
import os

from evaluation import null_threshold, run_files, span_decoding, span_scores, squad_metrics

SUFFIX = span_scores.FILE_NAME
DEFAULT_THRESHOLD = 0.0  # At these null odds an answer is taken to be as likely as none.


@dataclasses.dataclass(frozen=True)
class SpanAverages:
    """The runs' `span_scores.npz`.

    Attributes:
        task: dict of `prediction_files.read_task`; `metric` is "cmrc" for Chinese figures.
        threshold: float, null odds up to which a question of version 2.0 is answered. None:
            what is best for the set itself where it is labelled, and else DEFAULT_THRESHOLD.
    """

    task: dict
    threshold: float | None = None

    def names(self, folder):
        """Lists the sets that a run has scored spans of: "" for a file without a prefix."""
        found = (name for name in run_files.names_in(folder) if name.endswith(SUFFIX))
        return sorted(name.removesuffix(SUFFIX).rstrip("_") for name in found)

    def load(self, folders, name):
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

    def average(self, members):
        """Averages SpanScores; `span_scores.average` says how."""
        return span_scores.average(members)

    def score(self, scores):
        """Scores the answers by the official figures.

        Returns:
            dict, metric -> float, in per cent, the one that counts first; None where no
            answers are known.
        """
        if scores.golds is None:
            return None
        predictions, _, null_odds = span_decoding.answers(scores)
        if null_odds is None:
            is_chinese = self.task.get("metric") == "cmrc"
            evaluate = squad_metrics.evaluate_cmrc if is_chinese else squad_metrics.evaluate_v1
            figures = evaluate(scores.golds, predictions)
            return {name: figures[name] for name in ("f1", "exact_match")}
        best = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
        threshold = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        written = null_threshold.apply(predictions, null_odds, threshold)
        figures = squad_metrics.evaluate_v2(scores.golds, written)
        figures = {name: figures[name] for name in ("f1", "exact")}
        return {name: best[name] for name in ("best_f1", "best_exact")} | figures

    def write(self, folder, name, scores):
        """Writes averaged spans, and the answers in the forms that run_squad.py writes."""
        run_files.write_bytes(path_of(folder, name), scores.to_bytes())
        threshold = self.threshold_of(scores)
        predictions, n_best, null_odds = span_decoding.answers(scores, threshold=threshold)
        write_json(path_of(folder, name, "predictions.json"), predictions)
        write_json(path_of(folder, name, "nbest_predictions.json"), n_best)
        if null_odds is not None:
            write_json(path_of(folder, name, "null_odds.json"), null_odds)
            used = {"value": threshold, "source": "ensemble"}
            write_json(path_of(folder, name, "null_threshold.json"), used)

    def threshold_of(self, scores):
        """Returns the null odds up to which questions are answered, None in version 1.1."""
        if scores.null_scores is None:
            return None
        if self.threshold is not None or scores.golds is None:
            return DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        predictions, _, null_odds = span_decoding.answers(scores, n_best_size=1)
        best = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
        return best["best_f1_thresh"]


def path_of(folder, name, file_name=SUFFIX):
    """Returns a file of one set in a run's folder."""
    return os.path.join(folder, f"{name}_{file_name}" if name else file_name)


def write_json(path, value):
    """Writes JSON as the original does."""
    run_files.write_bytes(path, (json.dumps(value, indent=4) + "\n").encode())
