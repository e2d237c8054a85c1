"""From what a model computes to plain Python values. Only `predictor` imports this module.

n: inputs, C: classes or choices.
"""

import numpy as np

from evaluation import metrics, span_decoding


def masks(rows, num_masks, pieces):
    """Returns what `Predictor.fill_mask` does.

    Args:
        rows: n dicts of `warm_model.masked_words`.
        num_masks: int[n], masks of each text.
        pieces: list of str by id.
    """
    return [
        [
            [
                {"piece": pieces[piece], "probability": float(probability)}
                for piece, probability in zip(*ranked, strict=True)
            ]
            for ranked in zip(row["ids"][:number], row["probabilities"][:number], strict=True)
        ]
        for row, number in zip(rows, num_masks, strict=True)
    ]


def classes(logits, kind, labels):
    """Returns what `Predictor.classify` does.

    Args:
        logits: float32[n, C].
        kind: "classes", "multilabel" or "number".
        labels: list of C str.
    """
    predicted = metrics.predictions(logits, kind).tolist()
    if kind == "number":
        return [{"number": number} for number in predicted]
    results = []
    for row, values in zip(predicted, metrics.probabilities(logits, kind).tolist(), strict=True):
        if kind == "classes":
            result = {"label": labels[row], "probability": values[row]}
        else:
            result = {"labels": [labels[place] for place in np.flatnonzero(row)]}
        results.append({**result, "probabilities": dict(zip(labels, values, strict=True))})
    return results


def choices(rows, options):
    """Returns what `Predictor.choose` does.

    Args:
        rows: n dicts of `logits` float32[C].
        options: n lists of str, at most C.
    """
    results = []
    for row, texts in zip(rows, options, strict=True):
        logits = row["logits"][np.newaxis, : len(texts)]
        (choice,), (values,) = metrics.predictions(logits), metrics.probabilities(logits)
        results.append(
            {
                "choice": int(choice),
                "option": texts[choice],
                "probability": float(values[choice]),
                "probabilities": values.tolist(),
            }
        )
    return results


def answers(scores, threshold, n_best_size):
    """Returns what `Predictor.answer` does.

    Args:
        scores: evaluation.span_scores.SpanScores of n questions.
        threshold: float, null odds up to which a question is answered (SQuAD 2.0).
        n_best_size: answers among which the best one's probability is.
    """
    _, n_best, null_odds = span_decoding.answers(scores, n_best_size=n_best_size)
    results = []
    for number, id in enumerate(scores.ids):
        spans = scores.spans(number)
        if not spans:  # A context of no pieces.
            result = {"answer": None, "best": None, "probability": 0.0, "start": None, "end": None}
        else:
            text, probability = (n_best[id][0][name] for name in ("text", "probability"))
            start, end = stripped(scores.context(number), max(spans, key=span_decoding.total))
            result = {"answer": text, "best": text, "probability": probability}
            result |= {"start": start, "end": end}
        if null_odds is not None:
            result |= {"null_odds": null_odds[id], "threshold": threshold}
            if null_odds[id] > threshold:
                result["answer"] = None
        results.append(result)
    return results


def stripped(context, span):
    """Returns where a span begins and ends (exclusive) without the blanks at its ends."""
    start, end, *_ = span
    text = context[start:end]
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))
