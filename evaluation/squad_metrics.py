"""The official figures of SQuAD 1.1 and 2.0, and of CMRC 2018, in per cent.

Sources: evaluate-v1.1.py and evaluate-v2.0.py of SQuAD, copied in the original's
squad_utils.py; cmrc2018_evaluate.py of CMRC 2018. Sums are taken in the scripts' order, so
the figures are theirs to the last digit.
"""

import collections
import re
import string

from evaluation import null_threshold

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
CHINESE = re.compile(r"[\u4e00-\u9fa5]")
CHINESE_SIGNS = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")  # Of the script.
# What the script leaves to NLTK, the words of other scripts, in the order of its tokenizer.
WESTERN_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r'(^|[ (\[{<])"', r"\1 `` "),
        (r",(?=\D|$)", " , "),
        (r"(?<!\.)\.(?=[\]\)}>\"' ]*$)", " . "),
        (r"([;@#$%&?!()\[\]{}<>–—]|\.{2,})", r" \1 "),
        (r'"', " '' "),
        (r"(?<=[^' ])('[smd]?|'ll|'re|'ve|n't)(?= |$)", r" \1 "),
    )
]


def normalized_answer(text):
    """Returns an answer without case, ASCII punctuation, articles and repeated blanks."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(prediction, gold):
    """Says whether two answers are equal once normalised."""
    return normalized_answer(prediction) == normalized_answer(gold)


def word_f1(prediction, gold):
    """Returns the F1 of the words two answers share, in [0, 1]; 0 if either has none."""
    predicted, right = normalized_answer(prediction).split(), normalized_answer(gold).split()
    num_same = (collections.Counter(predicted) & collections.Counter(right)).total()
    return harmonic_mean(num_same, len(predicted), len(right))


def word_f1_or_both_empty(prediction, gold):
    """As `word_f1`, but 1 if neither answer has a word (evaluate-v2.0.py: compute_f1)."""
    if normalized_answer(prediction) or normalized_answer(gold):
        return word_f1(prediction, gold)
    return 1.0


def harmonic_mean(num_same, num_predicted, num_right):
    """Returns F1, from what is shared, predicted and right; 0 if nothing is shared."""
    if not num_same:
        return 0.0
    precision, recall = num_same / num_predicted, num_same / num_right
    return (2 * precision * recall) / (precision + recall)


def evaluate_v1(golds, predictions):
    """Scores answers as evaluate-v1.1.py does.

    Args:
        golds: dict, id -> list of right answers, at least one.
        predictions: dict, id -> answer; a question that is not there scores 0.

    Returns:
        dict of `exact_match` and `f1`, per cent, and `total`, the number of questions.
    """
    return mean_figures(golds, predictions, exact_match, word_f1)


def evaluate_cmrc(golds, predictions):
    """Scores Chinese answers as cmrc2018_evaluate.py does: args and returns as `evaluate_v1`.

    Characters are compared, not words, and F1 is of the longest stretch that both share.
    """
    return mean_figures(golds, predictions, chinese_exact_match, chinese_f1)


def mean_figures(golds, predictions, exact_score, f1_score):
    """Averages two scores of (prediction, gold), each of the gold that fits best."""
    exact = f1 = 0
    for id, answers in golds.items():
        if id in predictions:
            exact += max(exact_score(predictions[id], answer) for answer in answers)
            f1 += max(f1_score(predictions[id], answer) for answer in answers)
    total = len(golds)
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total, "total": total}


def chinese_exact_match(prediction, gold):
    """Says whether two answers are equal without case and CMRC's signs."""
    first, second = (
        "".join(c for c in text.lower().strip() if c not in CHINESE_SIGNS)
        for text in (prediction, gold)
    )
    return first == second


def chinese_f1(prediction, gold):
    """Returns the F1 of the longest stretch of characters that two answers share."""
    predicted, right = chinese_tokens(prediction), chinese_tokens(gold)
    return harmonic_mean(longest_common_stretch(predicted, right), len(predicted), len(right))


def chinese_tokens(text):
    """Cuts an answer into Chinese characters and the words of other scripts, list[str]."""
    kept = (c for c in text.lower().strip() if c not in CHINESE_SIGNS)
    apart = "".join(f"\n{c}\n" if CHINESE.match(c) else c for c in kept)
    return [token for part in apart.split("\n") for token in western_tokens(part)]


def western_tokens(text):
    """Cuts a text without Chinese characters into words, numbers and signs, list[str]."""
    for pattern, replacement in WESTERN_RULES:
        text = pattern.sub(replacement, text)
    return text.split()


def longest_common_stretch(first, second):
    """Returns the length of the longest run of items that two lists share."""
    longest, before = 0, [0] * (len(second) + 1)
    for item in first:
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second):
            if item == other:
                row[place + 1] = before[place] + 1
        longest, before = max(longest, *row), row
    return longest


def raw_scores(golds, predictions):
    """Scores each answer as evaluate-v2.0.py does, before any threshold.

    Args:
        golds: dict, id -> list of right answers; none: the question has no answer.
        predictions: dict, id -> answer, "" for none; one for each question.

    Returns:
        (dict, dict): id -> exact match, 0 or 1, and id -> F1, in [0, 1].

    Raises:
        ValueError: a question has no prediction.
    """
    check_ids(golds, predictions)
    exact, f1 = {}, {}
    for id, answers in golds.items():
        answers = [answer for answer in answers if normalized_answer(answer)] or [""]
        exact[id] = max(int(exact_match(predictions[id], answer)) for answer in answers)
        f1[id] = max(word_f1_or_both_empty(predictions[id], answer) for answer in answers)
    return exact, f1


def evaluate_v2(golds, predictions):
    """Scores answers as evaluate-v2.0.py does.

    Args and raises: as of `raw_scores`.

    Returns:
        dict of `exact`, `f1`, `total`, and the same with `HasAns_` and `NoAns_` before
        them, of the questions with and without an answer; None where there is none.
    """
    return figures_by_group(golds, *raw_scores(golds, predictions))


def evaluate_v2_at(golds, predictions, null_odds, threshold):
    """Scores as evaluate-v2.0.py does when it is given null odds and a threshold.

    Args:
        golds: as of `raw_scores`.
        predictions: dict, id -> the answer if there is one.
        null_odds: dict, id -> how much speaks for no answer, unbounded.
        threshold: float; with null odds above that, a question counts as unanswered.

    Returns:
        As `evaluate_v2`.
    """
    scores = raw_scores(golds, predictions)
    for of_kind in scores:
        of_kind.update({id: float(not golds[id]) for id in golds if null_odds[id] > threshold})
    return figures_by_group(golds, *scores)


def best_thresholds(golds, predictions, null_odds):
    """Finds the thresholds that score best, under the names of evaluate-v2.0.py.

    Args: as of `evaluate_v2_at`.

    Returns:
        dict of `best_exact` and `best_f1`, per cent, `best_exact_thresh`, `best_f1_thresh`:
        what `evaluate_v2` gives of the predictions written with that threshold.
    """
    answered = raw_scores(golds, predictions)
    unanswered = raw_scores(golds, dict.fromkeys(golds, ""))
    figures = {}
    for name, scores, scores_of_none in zip(("exact", "f1"), answered, unanswered, strict=True):
        best, threshold = null_threshold.search(scores, scores_of_none, null_odds)
        figures |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
    return figures


def figures_by_group(golds, exact, f1):
    """Averages scores by id over all questions, those with an answer and those without."""
    groups = {
        "": list(golds),
        "HasAns_": [id for id, answers in golds.items() if answers],
        "NoAns_": [id for id, answers in golds.items() if not answers],
    }
    figures = {}
    for prefix, ids in groups.items():
        for name, scores in (("exact", exact), ("f1", f1)):
            total = sum(scores[id] for id in ids)
            figures[prefix + name] = 100.0 * total / len(ids) if ids else None
        figures[f"{prefix}total"] = len(ids)
    return figures


def check_ids(golds, predictions):
    """Raises ValueError unless every question has a prediction."""
    missing = [id for id in golds if id not in predictions]
    if missing or not golds:
        raise ValueError(
            f"Each of the {len(golds)} questions must have a prediction. Received: "
            f"{len(predictions)} predictions, none for {missing[:3]}."
        )
