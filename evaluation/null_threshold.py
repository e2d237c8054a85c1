"""When a question counts as unanswerable: one rule, for the search and for what is written.

A question is answered if its null odds are at most the threshold. Differs from the
original: its search takes "at most", what it writes "less", and its search begins at a
threshold of 0, so that it cannot say "answer nothing" where all odds are negative
(squad_utils.py: find_best_thresh, write_predictions_v2).

n: questions.
"""

import numpy as np


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
