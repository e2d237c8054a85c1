"""From the scores of pieces to answers: candidates, their order, what is written.

n: windows, T: pieces of a window (or more: the batch's padding), Ks, Ke: starts of the beam,
and ends of each.
"""

import math

import numpy as np

from evaluation import null_threshold, span_scores

NO_CANDIDATE = {False: ("empty", 0.0), True: ("", -1e6)}  # By version 2.0; the original's.
VARIANTS = 1 << 10  # More than the pieces that ever share a character.
NO_WINDOW = 1e6  # The null score of a question that no window speaks of; the original's.


def score_spans(outputs, windows, questions, *, n_best_size=20, max_answer_length=30):
    """Collects the spans of version 1.1 (squad_utils.py: accumulate_predictions_v1).

    In each window the `n_best_size` best starts are joined with as many ends. All pieces
    compete for these places, those of the question and padding too, as in the original.

    Args:
        outputs: dict of `start_logits` and `end_logits`, each n arrays float[T].
        windows: data.span_windows.Windows.
        questions: dict of the fields `ids`, `golds`, `contexts`, `context_index` of SpanScores.
        n_best_size: int, starts and ends that are considered in a window.
        max_answer_length: int, in pieces.

    Returns:
        SpanScores.

    Raises:
        ValueError: a score is not a number.
    """
    spans = [[] for _ in questions["ids"]]
    for number, question in enumerate(windows.question_index.tolist()):
        start_scores, end_scores = (
            checked(outputs[name][number]) for name in ("start_logits", "end_logits")
        )
        starts = best_places(start_scores, n_best_size)
        ends = best_places(end_scores, n_best_size)
        starts, ends = np.repeat(starts, len(ends)), np.tile(ends, len(starts))
        candidates = starts, ends, start_scores[starts], end_scores[ends]
        spans[question] += legal_spans(
            candidates, windows, number, context_of(questions, question), max_answer_length
        )
    return span_scores.collect(**questions, spans=spans)


def score_beams(outputs, windows, questions, *, max_answer_length=30):
    """Collects the spans of version 2.0 (squad_utils.py: accumulate_predictions_v2).

    A question's null score is the lowest of its windows'.

    Args:
        outputs: dict of `start_top_log_probs` and `start_top_index`, n arrays [Ks];
            `end_top_log_probs` and `end_top_index`, n arrays [Ks * Ke], those of the first
            start first; `cls_logits`, float[n], above 0 where there is likely no answer.
        windows, questions, max_answer_length: as of `score_spans`.

    Returns, raises: as `score_spans`.
    """
    spans = [[] for _ in questions["ids"]]
    null_scores = [NO_WINDOW] * len(spans)
    class_logits = checked(outputs["cls_logits"])
    for number, question in enumerate(windows.question_index.tolist()):
        start_scores, end_scores = (
            checked(outputs[name][number]) for name in ("start_top_log_probs", "end_top_log_probs")
        )
        starts, ends = (
            np.asarray(outputs[name][number]) for name in ("start_top_index", "end_top_index")
        )
        num_ends = len(ends) // len(starts)
        starts, start_scores = (np.repeat(values, num_ends) for values in (starts, start_scores))
        candidates = starts, ends, start_scores, end_scores
        spans[question] += legal_spans(
            candidates, windows, number, context_of(questions, question), max_answer_length
        )
        null_scores[question] = min(null_scores[question], float(class_logits[number]))
    return span_scores.collect(**questions, spans=spans, null_scores=null_scores)


def masked(logits, windows):
    """Leaves only the paragraph's pieces among the candidates of version 1.1.

    Differs from the original: there the question and the padding compete too, so that a short
    paragraph may be left without a candidate, and batches of another length with other ones.

    Args:
        logits: n arrays float[T].
        windows: Windows.

    Returns:
        list of n arrays float32, as long as the windows, -inf on pieces that cannot be
        an answer.
    """
    ends = windows.offsets[1:]
    return [
        np.where(windows.character_starts[start:end] >= 0, row[: end - start], -np.inf)
        for row, start, end in zip(logits, windows.offsets[:-1], ends, strict=True)
    ]


def checked(scores):
    """Returns scores as float64; raises ValueError if one is not a number."""
    scores = np.asarray(scores, np.float64)
    if np.isnan(scores).any():
        raise ValueError(
            "A model's scores must be numbers. Received: NaN; its training has likely diverged."
        )
    return scores


def best_places(scores, number):
    """Returns the places of the highest scores, the highest first; the first of equals first."""
    return np.argsort(-scores, kind="stable")[:number]


def context_of(questions, number):
    return questions["contexts"][questions["context_index"][number]]


def legal_spans(candidates, windows, number, context, max_answer_length):
    """Turns those pairs of pieces that can be an answer into spans of characters.

    An answer lies in the paragraph, does not end before it begins, is not too long, and
    begins where its window shows most context.

    Args:
        candidates: (first pieces, last pieces, their scores, their scores): four arrays.
        windows: Windows.
        number: int, the window.
        context: str, its paragraph.
        max_answer_length: int, in pieces.

    Returns:
        list of the columns of SpanScores, from `starts` on.
    """
    here = slice(windows.offsets[number], windows.offsets[number + 1])
    starts, ends = windows.character_starts[here], windows.character_ends[here]
    first, last, *_ = candidates
    legal = (first <= last) & (last < len(starts)) & (last - first < max_answer_length)
    first, last, first_scores, last_scores = (values[legal] for values in candidates)
    legal = (starts[first] >= 0) & (ends[last] >= 0) & windows.is_max_context[here][first]
    first, last = first[legal], last[legal]
    variants = VARIANTS * places_among_equals(starts)[first] + places_among_equals(ends)[last]
    bounds = (starts[first], ends[first], starts[last], ends[last])
    bounds = zip(*(values.tolist() for values in bounds), strict=True)
    trimmed = [
        (start + num_blanks_before(context[start:end]), stop - num_blanks_after(context[last:stop]))
        for start, end, last, stop in bounds
    ]
    columns = zip(variants, first_scores[legal], last_scores[legal], strict=True)
    return [(*span, *rest) for span, rest in zip(trimmed, columns, strict=True)]


def num_blanks_before(piece):
    """Counts the blanks that a piece begins with; one of blanks alone keeps them."""
    return len(piece) - len(piece.lstrip()) if piece.strip() else 0


def num_blanks_after(piece):
    """Counts the blanks that a piece ends with; one of blanks alone keeps them."""
    return len(piece) - len(piece.rstrip()) if piece.strip() else 0


def places_among_equals(values):
    """Numbers the equal neighbours among some values, each run of them from 0."""
    is_new = np.append(True, values[1:] != values[:-1])
    places = np.arange(len(values))
    return places - np.maximum.accumulate(np.where(is_new, places, 0))


def answers(scores, *, n_best_size=20, threshold=None):
    """Chooses the answers (squad_utils.py: write_predictions_v1 and _v2).

    Args:
        scores: SpanScores.
        n_best_size: int, how many answers with different texts a question's list has.
        threshold: float, the null odds up to which a question is answered, or None:
            every one is.

    Returns:
        (predictions, n-best, null odds), dicts by id: the text, cut from the paragraph, or
        ""; a list of dicts of `text`, `probability` (among the list), `start_log_prob` and
        `end_log_prob`; the null score, or None in place of the dict in version 1.1.
    """
    n_best = {id: best_texts(scores, number, n_best_size) for number, id in enumerate(scores.ids)}
    predictions = {id: entries[0]["text"] for id, entries in n_best.items()}
    if scores.null_scores is None:
        return predictions, n_best, None
    null_odds = dict(zip(scores.ids, scores.null_scores.tolist(), strict=True))
    return null_threshold.apply(predictions, null_odds, threshold), n_best, null_odds


def total(span):
    return span[-2] + span[-1]


def best_texts(scores, number, n_best_size):
    """Returns the n-best list of one question, of `answers`."""
    context, found = scores.context(number), {}
    for start, end, _, *of_span in sorted(scores.spans(number), key=total, reverse=True):
        if len(found) == n_best_size:
            break
        found.setdefault(context[start:end].strip(), of_span)
    if not found:
        text, score = NO_CANDIDATE[scores.null_scores is not None]
        found[text] = score, score
    best = max(map(total, found.values()))
    weights = [math.exp(total(scores) - best) for scores in found.values()]
    return [
        {
            "text": text,
            "probability": weight / sum(weights),
            "start_log_prob": first,
            "end_log_prob": last,
        }
        for (text, (first, last)), weight in zip(found.items(), weights, strict=True)
    ]
