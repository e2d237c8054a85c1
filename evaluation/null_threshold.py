"""When a question counts as unanswerable: one rule, for the search and for what is written.

A question is answered if its null odds are at most the threshold. Differs from the
original: its search takes "at most", what it writes "less", and its search begins at a
threshold of 0, so that it cannot say "answer nothing" where all odds are negative
(squad_utils.py: find_best_thresh, write_predictions_v2).

n: questions.
"""

import numpy as np

MOSTLY = 0.99  # Share of empty answers from which something is likely wrong.


def apply(predictions, null_odds, threshold):
    """Returns the predictions with "" for every question that the rule leaves unanswered.

    Args:
        predictions: dict, id -> the answer if there is one.
        null_odds: dict, id -> how much speaks for no answer, unbounded.
        threshold: float, or None: every question is answered.
    """
    if threshold is None:
        return dict(predictions)
    return {id: text if null_odds[id] <= threshold else "" for id, text in predictions.items()}


def search(answered, unanswered, null_odds):
    """Finds the threshold with the best score.

    Questions with equal odds are answered together or not at all, as the rule will have
    it. Of equally good thresholds the one that answers the fewest is taken.

    Args:
        answered: dict, id -> score if the predicted answer is given, in [0, 1].
        unanswered: dict, id -> score if none is given.
        null_odds: dict, id -> float, of these ids.

    Returns:
        (float, float): the best score, per cent, and its threshold: the highest odds that
        are still answered, or if nothing should be, the number just below all odds.
    """
    ids = [id for id in sorted(null_odds, key=null_odds.get) if id in answered]
    odds = np.array([null_odds[id] for id in ids], np.float64)
    gains = [answered[id] - unanswered[id] for id in ids]
    sums = np.cumsum([sum(unanswered.values()), *gains])  # [n + 1]; entry k answers the first k.
    is_possible = np.concatenate([[True], odds[1:] != odds[:-1], [True]])
    best = int(np.argmax(np.where(is_possible, sums, -np.inf)))
    threshold = odds[best - 1] if best else np.nextafter(odds[0], -np.inf)
    return 100.0 * float(sums[best]) / len(answered), float(threshold)


def amid_gap(threshold, null_odds):
    """Moves a threshold away from the odds of any question, without changing what is answered.

    What the search finds is some question's odds, and the same model gives them again
    only up to rounding: this is the threshold to keep with a model.

    Args:
        threshold: float.
        null_odds: dict, id -> float.

    Returns:
        float, halfway to the next odds; 1 away from the last.
    """
    odds = list(null_odds.values())
    below = max((value for value in odds if value <= threshold), default=None)
    above = min((value for value in odds if value > threshold), default=None)
    if above is None:
        return below + 1.0
    middle = above - 1.0 if below is None else (below + above) / 2
    return middle if middle < above else threshold


def warning_of_silence(predictions, null_odds, golds, threshold):
    """Tells of a file whose answers are nearly all empty though many questions have one.

    Args:
        predictions: dict, id -> answer, "" for none.
        null_odds: dict, id -> float.
        golds: dict, id -> list of right answers.
        threshold: float, what the predictions were written with.

    Returns:
        str with the spread of the odds, or None if all is well.
    """
    share = sum(not text for text in predictions.values()) / len(predictions)
    num_answerable = sum(map(bool, golds.values()))
    if share <= MOSTLY or num_answerable <= (1 - MOSTLY) * len(golds):
        return None
    low, middle, high = np.quantile(list(null_odds.values()), [0, 0.5, 1])
    return (
        f"{100 * share:.1f} % of the answers are empty, though {num_answerable:,} of "
        f"{len(golds):,} questions have one. Null odds lie in [{low:.3f}, {high:.3f}], half of "
        f"them above {middle:.3f}, and the threshold is {threshold:.3f}: either the model has not "
        "learnt when to answer, or `--null_score_diff_threshold` must be higher"
    )
