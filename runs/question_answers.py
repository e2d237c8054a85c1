"""From questions to windows for a model, and from what it gives to answers, figures and files.

Only programs import this module. n: windows.
"""

import dataclasses
import json
import os
import typing

from data import files, span_windows
from data.features import Features
from data.squad import QuestionSet
from evaluation import null_threshold, span_decoding, span_scores, squad_metrics
from folders import model_folder

PREDICTIONS, N_BEST, NULL_ODDS = "predictions.json", "nbest_predictions.json", "null_odds.json"
METRICS = {"squad": squad_metrics.evaluate_v1, "cmrc": squad_metrics.evaluate_cmrc}


class Threshold(typing.NamedTuple):
    """Null odds up to which a question is answered, and how they were come by."""

    value: float
    source: str
    is_tuned: bool = False  # On questions whose answers are known; then it goes with the model.


# At these null odds the model takes an answer to be as likely as none.
DEFAULT = Threshold(0.0, "default")


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions and the windows through which their paragraphs are read."""

    path: str
    question_set: QuestionSet
    features: Features
    windows: span_windows.Windows

    @property
    def is_labelled(self):
        """Whether the answers are known."""
        return self.question_set.is_labelled


def prepare(path, question_set, tokenizer, settings):
    """Makes Questions, and prints what the user should know of them.

    Args:
        path: str, where they come from.
        question_set: QuestionSet.
        tokenizer: Tokenizer.
        settings: span_windows.WindowSettings.
    """
    features, windows, lost = span_windows.make_windows(question_set, tokenizer, settings)
    print(f"{path}: {len(question_set.questions):,} questions, {len(features):,} windows")
    for notice in question_set.notices:
        print(f"note: {notice}")
    if lost:
        print(
            f"warning: {path}: {len(lost)} answers are not found, or no piece stands for them; "
            f"they count as none: {', '.join(lost[:5])}"
        )
    return Questions(path, question_set, features, windows)


def score(outputs, questions, squad_config):
    """Scores the spans of every question.

    Args:
        outputs: dict of arrays [n, ...], of SpanModel or AnswerableSpanModel.
        questions: Questions.
        squad_config: with `n_best_size` and `max_answer_length`.

    Returns:
        SpanScores.
    """
    windows, known = questions.windows, questions.question_set.for_decoding()
    options = {"max_answer_length": squad_config.max_answer_length}
    if "cls_logits" in outputs:
        return span_decoding.score_beams(outputs, windows, known, **options)
    outputs = {
        name: span_decoding.masked(outputs[name], windows)
        for name in ("start_logits", "end_logits")
    }
    options["n_best_size"] = squad_config.n_best_size
    return span_decoding.score_spans(outputs, windows, known, **options)


def figures(scores, metric="squad"):
    """Returns what picks the best checkpoint of a labelled set: dict of float, per cent.

    Args:
        scores: SpanScores.
        metric: a name in METRICS, for version 1.1.

    Returns:
        `exact_match` and `f1`; in version 2.0 `exact` and `f1` at the default threshold,
        `best_exact` and `best_f1` at those that are best for this very set.
    """
    predictions, _, null_odds = span_decoding.answers(scores, n_best_size=1)
    if null_odds is None:
        found = METRICS[metric](scores.golds, predictions)
        return {name: found[name] for name in ("exact_match", "f1")}
    best = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
    written = null_threshold.apply(predictions, null_odds, DEFAULT.value)
    found = squad_metrics.evaluate_v2(scores.golds, written)
    return {"exact": found["exact"], "f1": found["f1"]} | {
        name: best[name] for name in ("best_exact", "best_f1")
    }


def tune(scores, path):
    """Returns the Threshold of the best F1 on a labelled set of version 2.0, to be kept."""
    predictions, _, null_odds = span_decoding.answers(scores, n_best_size=1)
    best = squad_metrics.best_thresholds(scores.golds, predictions, null_odds)
    value = null_threshold.amid_gap(best["best_f1_thresh"], null_odds)
    return Threshold(value, f"tuned on {path}", is_tuned=True)


def kept_threshold(path):
    """Returns the Threshold that goes with a model, or None.

    Args:
        path: str, the model's folder, or a checkpoint in it.
    """
    kept = model_folder.read_json(path, model_folder.THRESHOLD)
    return Threshold(kept["value"], f"kept with the model, {kept['source']}") if kept else None


def threshold_of(path):
    """Returns the null odds up to which a trained model answers: those kept with it, or 0.

    Args:
        path: as of `kept_threshold`.
    """
    return (kept_threshold(path) or DEFAULT).value


def write_answers(folder, scores, n_best_size, threshold):
    """Writes the answers, the threshold, and what an ensemble needs.

    Args:
        folder: str.
        scores: SpanScores.
        n_best_size: int, length of the n-best lists.
        threshold: Threshold, or None in version 1.1.
    """
    predictions, n_best, null_odds = span_decoding.answers(
        scores, n_best_size=n_best_size, threshold=threshold and threshold.value
    )
    write_json(os.path.join(folder, PREDICTIONS), predictions)
    write_json(os.path.join(folder, N_BEST), n_best)
    if threshold:
        write_json(os.path.join(folder, NULL_ODDS), null_odds)
        if threshold.is_tuned:
            kept = {"value": threshold.value, "source": threshold.source}
            write_json(os.path.join(folder, model_folder.THRESHOLD), kept)
    files.write_bytes(os.path.join(folder, span_scores.FILE_NAME), scores.to_bytes())


def show(scores, threshold):
    """Prints the answer to the one question.

    Args:
        scores: SpanScores.
        threshold: Threshold, or None in version 1.1.
    """
    predictions, n_best, null_odds = span_decoding.answers(
        scores, threshold=threshold and threshold.value
    )
    (answer,), ((best, *_),) = predictions.values(), n_best.values()
    if null_odds is None:
        print(f"answer: {answer}  (probability {best['probability']:.3f} among the n-best)")
        return
    (odds,) = null_odds.values()
    of_odds = f"null odds {odds:.4f}, threshold {threshold.value:.4f} ({threshold.source})"
    is_answered = odds <= threshold.value
    print(f"answer: {answer}  ({of_odds})" if is_answered else f"no answer  ({of_odds})")
    if not is_answered:
        print(f"most likely otherwise: {best['text']}")


def write_json(path, value):
    """Writes JSON as the original does: ASCII, so that any half of a character can be told."""
    files.write_bytes(path, (json.dumps(value, indent=4) + "\n").encode())


def official_figures(scores, predictions, metric="squad"):
    """Scores written predictions as the official scripts do: dict, as of squad_metrics."""
    if scores.null_scores is None:
        return METRICS[metric](scores.golds, predictions)
    return squad_metrics.evaluate_v2(scores.golds, predictions)


def report(path, scores, threshold, metric="squad"):
    """Prints the figures of a labelled set, in version 2.0 at each threshold of interest.

    Args:
        path: str, the set.
        scores: SpanScores.
        threshold: Threshold in use, or None in version 1.1.
        metric: a name in METRICS.

    Returns:
        dict of the official figures of what is written with the threshold in use.
    """
    others = [] if threshold is None else [DEFAULT, tune(scores, path)]
    for row in [*(other for other in others if other != threshold), threshold]:
        value = None if row is None else row.value
        predictions, _, null_odds = span_decoding.answers(scores, n_best_size=1, threshold=value)
        found = official_figures(scores, predictions, metric)
        at = "" if row is None else f" at threshold {row.value:.4f} ({row.source})"
        print(f"{path}{at}: {described(found)}")
    if threshold is not None:
        warning = null_threshold.warning_of_silence(predictions, null_odds, scores.golds, value)
        if warning:
            print(f"warning: {path}: {warning}")
    return found


def described(found):
    """Writes figures in a line; those of a group without questions are n/a."""
    parts = []
    for name, value in found.items():
        if isinstance(value, float) or value is None:
            parts.append(f"{name} {'n/a' if value is None else f'{value:.2f}'}")
        else:
            parts.append(f"{name} {value:,}")
    return ", ".join(parts)
