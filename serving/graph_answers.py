"""From the scores of pieces to answers inside a TensorFlow graph.

As `evaluation.span_decoding` and `prediction_results.answers` do it on the host, but for text that
holds no answer: `best` is "" and `start` and `end` are -1 there.

B: questions, n: windows, T: tokens, Q: pairs of pieces of a window, M: spans of all questions.
"""

import typing

import tensorflow as tf

from data import graph_characters
from evaluation import span_decoding


class Spans(typing.NamedTuple):
    """Spans of contexts, those of a question by score, the highest first.

    question: int64[M]; starts, ends: int64[M], among the characters of all contexts; scores:
    float64[M].
    """

    question: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    scores: tf.Tensor

    def take(self, places):
        """Returns the Spans at some places, int64[M]."""
        return Spans(*(tf.gather(values, places) for values in self))


def of_logits(outputs, windows, n_best_size):
    """Joins the best starts and ends of each window, as `span_decoding.score_spans`.

    Args:
        outputs: dict of `start_logits` and `end_logits`, float32[n, T].
        windows: graph_windows.GraphWindows.
        n_best_size: int.

    Returns:
        (first pieces int32[n, Q], last pieces int32[n, Q], scores float64[n, Q]).
    """
    is_piece = windows.character_starts >= 0
    number = tf.minimum(n_best_size, tf.shape(is_piece)[1])
    (start_scores, first), (end_scores, last) = (
        tf.math.top_k(tf.where(is_piece, outputs[name], float("-inf")), number)
        for name in ("start_logits", "end_logits")
    )
    size = tf.stack([tf.shape(first)[0], number * number])
    first, start_scores = (tf.repeat(values, number, axis=1) for values in (first, start_scores))
    last, end_scores = (
        tf.reshape(tf.repeat(values[:, tf.newaxis], number, axis=1), size)
        for values in (last, end_scores)
    )
    return first, last, tf.cast(start_scores, tf.float64) + tf.cast(end_scores, tf.float64)


def of_beams(outputs):
    """Joins the starts of the beams with their ends, as `span_decoding.score_beams`.

    Args:
        outputs: dict of AnswerableSpanModel.

    Returns: as `of_logits`.
    """
    last, end_scores = outputs["end_top_index"], outputs["end_top_log_probs"]
    num_ends = tf.shape(last)[1] // tf.shape(outputs["start_top_index"])[1]
    first, start_scores = (
        tf.repeat(outputs[name], num_ends, axis=1)
        for name in ("start_top_index", "start_top_log_probs")
    )
    return first, last, tf.cast(start_scores, tf.float64) + tf.cast(end_scores, tf.float64)


def legal_spans(candidates, windows, context_starts, max_answer_length):
    """Leaves those pairs of pieces that can be an answer, as `span_decoding.legal_spans`.

    Args:
        candidates: of `of_logits` or `of_beams`.
        windows: graph_windows.GraphWindows.
        context_starts: int64[B], characters before each question's context.
        max_answer_length: int, in pieces.

    Returns:
        Spans, with such blanks as pieces have at their ends.
    """
    first, last, scores = candidates
    length = tf.shape(windows.character_starts)[1]
    legal = (first <= last) & (last < length) & (last - first < max_answer_length)
    # A pair that is not legal may point beyond the window.
    first, last = (tf.minimum(place, length - 1) for place in (first, last))
    starts = tf.gather(windows.character_starts, first, batch_dims=1)
    ends = tf.gather(windows.character_ends, last, batch_dims=1)
    legal &= (starts >= 0) & (ends >= 0)
    legal &= tf.gather(windows.is_max_context, first, batch_dims=1)
    question = tf.zeros_like(first, tf.int64) + windows.question_index[:, tf.newaxis]
    question, starts, ends, scores = (
        tf.boolean_mask(values, legal) for values in (question, starts, ends, scores)
    )
    before = tf.gather(context_starts, question)
    bounds = (before + tf.cast(bound, tf.int64) for bound in (starts, ends))
    spans = Spans(question, *bounds, scores)
    spans = spans.take(tf.argsort(scores, direction="DESCENDING", stable=True))
    return spans.take(tf.argsort(spans.question, stable=True))


def stripped(spans, codes):
    """Leaves out the blanks at the ends of Spans of characters, int32[K]."""
    is_text = graph_characters.blanks().look_up(codes) == 0
    places = tf.where(is_text)[:, 0]
    padded = tf.concat([[-1], places, [tf.size(codes, tf.int64)]], 0)
    starts = tf.gather(padded, tf.searchsorted(places, spans.starts) + 1)
    ends = tf.gather(padded, tf.searchsorted(places, spans.ends)) + 1
    starts = tf.minimum(starts, spans.ends)
    return spans._replace(starts=starts, ends=tf.maximum(starts, ends))


def texts_of(spans, codes):
    """Returns the text of each of Spans of characters, int32[K]: string[M]."""
    places = tf.ragged.range(spans.starts, spans.ends)
    characters = places.with_values(tf.gather(codes, places.values))
    return tf.strings.unicode_encode(characters, "UTF-8")


def best_spans(spans, codes, num_questions, n_best_size):
    """Chooses the best span of each question, as `span_decoding.best_texts`.

    Args:
        spans: Spans, stripped.
        codes: int32[K], characters of all contexts.
        num_questions: int64[], B.
        n_best_size: int, answers with different texts among which the best one's probability is.

    Returns:
        (texts string[M], places int64[B] of the best among the spans, M where there is none,
        probabilities float64[B]).
    """
    texts = texts_of(spans, codes)
    named = tf.strings.join([tf.strings.as_string(spans.question), texts], " ")
    number = tf.unique(named, tf.int64).idx  # Of a text of a question, by their order.
    num_texts = tf.reduce_max(tf.concat([[-1], number], 0)) + 1
    num_spans = tf.size(number, tf.int64)
    leaders = tf.math.unsorted_segment_min(tf.range(num_spans), number, num_texts)
    question, scores = (tf.gather(values, leaders) for values in (spans.question, spans.scores))
    best = tf.searchsorted(question, tf.range(num_questions), out_type=tf.int64)  # int64[B]
    rank = tf.range(num_texts) - tf.gather(best, question)
    weights = tf.exp(scores - tf.gather(scores, tf.gather(best, question)))
    weights = tf.where(rank < n_best_size, weights, 0)
    sums = tf.math.unsorted_segment_sum(weights, question, num_questions)
    places = tf.gather(tf.concat([leaders, [num_spans]], 0), best)
    places = tf.where(sums > 0, places, num_spans)
    return texts, places, tf.math.divide_no_nan(tf.ones_like(sums), sums)


def null_odds(class_logits, question_index, num_questions):
    """Returns how much speaks for no answer, float32[B], of what speaks so in each window."""
    lowest = tf.math.unsorted_segment_min(class_logits, question_index, num_questions)
    return tf.minimum(lowest, span_decoding.NO_WINDOW)


def answers(outputs, windows, contexts, reading, threshold):
    """Cuts answers out of contexts.

    Args:
        outputs: dict of what a model of spans gives, of n windows.
        windows: graph_windows.GraphWindows.
        contexts: string[B].
        reading: prediction_features.Reading.
        threshold: float, null odds up to which a question is answered, in version 2.0.

    Returns:
        dict: `answer` string[B], "" where there is none; `best` string[B], the likeliest one even
        so; `probability` float32[B] of `best`, in [0, 1]; its `start` and `end` (exclusive),
        int32[B], characters of the context; in version 2.0 `null_odds` and `threshold`
        float32[B].
    """
    decoded = tf.strings.unicode_decode(contexts, "UTF-8")
    codes, context_starts, num_questions = decoded.values, decoded.row_starts(), decoded.nrows()
    is_answerable = "cls_logits" in outputs
    candidates = (
        of_beams(outputs) if is_answerable else of_logits(outputs, windows, reading.n_best_size)
    )
    spans = legal_spans(candidates, windows, context_starts, reading.max_answer_length)
    spans = stripped(spans, codes)
    texts, places, probability = best_spans(spans, codes, num_questions, reading.n_best_size)
    best = tf.gather(tf.concat([texts, [""]], 0), places)
    start, end = (
        tf.cast(tf.gather(tf.concat([bound, [-1]], 0), places), tf.int32)
        for bound in (spans.starts, spans.ends)
    )
    before = tf.where(start < 0, 0, tf.cast(context_starts, tf.int32))
    found = {"answer": best, "best": best, "probability": tf.cast(probability, tf.float32)}
    found |= {"start": start - before, "end": end - before}
    if is_answerable:
        odds = null_odds(outputs["cls_logits"], windows.question_index, num_questions)
        is_answered = tf.cast(odds, tf.float64) <= threshold
        found["answer"] = tf.where(is_answered, best, "")
        found |= {"null_odds": odds, "threshold": tf.fill(tf.shape(odds), threshold)}
    return found
