"""What a run says of each answer it considered, so that runs can be averaged afterwards.

A span is a stretch of the paragraph's characters, without blanks at its ends, so runs with
different tokenizers and windows speak of the same spans. One file holds all of a run:
paragraphs, right answers where they are known, spans, scores.

n: questions, M: spans of all questions.
"""

import dataclasses
import io
import json
import zipfile

import numpy as np

from evaluation import run_files

FILE_NAME = "span_scores.npz"
FORMAT = 1
SPAN_ARRAYS = ("starts", "ends", "variants", "start_scores", "end_scores")
ARRAYS = ("context_index", "offsets", *SPAN_ARRAYS)


@dataclasses.dataclass(frozen=True)
class SpanScores:
    """The spans that one run, or the average of several, considered.

    Attributes:
        ids: list of str, the questions' ids.
        golds: dict, id -> list of right answers (none: unanswerable), or None: not known.
        contexts: list of str, the paragraphs.
        context_index: int[n], the paragraph of each question.
        offsets: int[n + 1], where each question's spans begin.
        starts: int[M], a span's first character in its paragraph.
        ends: int[M], where it ends (exclusive).
        variants: int[M], which spans of the same characters these are; 0 but where pieces
            share a character, or have none.
        start_scores: float64[M], of the span's first piece: logits in version 1.1, log
            probabilities in nats in 2.0.
        end_scores: float64[M], of its last piece.
        null_scores: float64[n], how much speaks for no answer, unbounded; None in
            version 1.1.
    """

    ids: list[str]
    golds: dict[str, list[str]] | None
    contexts: list[str]
    context_index: np.ndarray
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    variants: np.ndarray
    start_scores: np.ndarray
    end_scores: np.ndarray
    null_scores: np.ndarray | None = None

    def spans(self, number):
        """Returns (start, end, variant, start score, end score) of each span of a question."""
        here = slice(self.offsets[number], self.offsets[number + 1])
        columns = (getattr(self, name)[here].tolist() for name in SPAN_ARRAYS)
        return list(zip(*columns, strict=True))

    def context(self, number):
        """Returns the paragraph of a question."""
        return self.contexts[self.context_index[number]]

    def to_bytes(self):
        """Returns what `load` reads from a file: an `.npz` archive without pickles."""
        texts = {"format": FORMAT, "ids": self.ids, "golds": self.golds, "contexts": self.contexts}
        arrays = {name: getattr(self, name) for name in ARRAYS}
        if self.null_scores is not None:
            arrays["null_scores"] = self.null_scores
        content = io.BytesIO()
        encoded = np.frombuffer(json.dumps(texts).encode(), np.uint8)
        np.savez_compressed(content, texts=encoded, **arrays)
        return content.getvalue()


def load(path):
    """Reads the file of a run. Raises FileNotFoundError, or ValueError for another file."""
    try:
        with np.load(io.BytesIO(run_files.read_bytes(path)), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        texts = json.loads(arrays.pop("texts").tobytes())
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"a file of span scores must be given. Received: {path} ({error})."
        ) from None
    if texts.pop("format") != FORMAT:
        raise ValueError(f"span scores must be of format {FORMAT}. Received: {path}.")
    return SpanScores(**texts, **arrays)


def collect(ids, golds, contexts, context_index, spans, null_scores=None):
    """Makes SpanScores of spans by question.

    Args:
        ids, golds, contexts, context_index, null_scores: as of SpanScores.
        spans: for each question a list of rows of SPAN_ARRAYS.

    Returns:
        SpanScores.
    """
    offsets = np.cumsum([0, *map(len, spans)], dtype=np.int64)
    columns = np.array([row for rows in spans for row in rows], np.float64)
    columns = columns.reshape(-1, len(SPAN_ARRAYS)).T
    places = [column.astype(np.int32) for column in columns[:3]]
    return SpanScores(
        ids,
        golds,
        contexts,
        np.asarray(context_index, np.int32),
        offsets,
        *places,
        *columns[3:],
        null_scores=None if null_scores is None else np.asarray(null_scores, np.float64),
    )


def average(members):
    """Averages the scores of several runs (squad_utils.py: write_predictions_v1 and _v2).

    A span's scores are averaged over the runs that considered it, null scores over all.

    Args:
        members: list of SpanScores of the same questions, in any order.

    Returns:
        SpanScores, in the order of the first.

    Raises:
        ValueError: runs differ in their questions, or in having null scores.
    """
    first = members[0]
    places = [places_of(first, member) for member in members]
    spans, null_scores = [], []
    for numbers in zip(*places, strict=True):
        by_span = {}
        for member, number in zip(members, numbers, strict=True):
            for *span, start_score, end_score in member.spans(number):
                by_span.setdefault(tuple(span), []).append((start_score, end_score))
        spans.append([(*span, *mean(scores)) for span, scores in by_span.items()])
        if first.null_scores is not None:
            pairs = zip(members, numbers, strict=True)
            null_scores.append(mean([(member.null_scores[number],) for member, number in pairs])[0])
    same = (first.ids, first.golds, first.contexts, first.context_index)
    return collect(*same, spans, null_scores or None)


def mean(rows):
    """Returns the mean of each column of some rows, a list."""
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def places_of(first, other):
    """Returns the places of `first`'s questions in `other`; raises ValueError if they differ."""
    places = {id: number for number, id in enumerate(other.ids)}
    same = places.keys() == set(first.ids)
    differing = [
        id
        for number, id in enumerate(first.ids)
        if not same or first.context(number) != other.context(places[id])
    ]
    has_null = [scores.null_scores is not None for scores in (first, other)]
    if differing or has_null[0] != has_null[1]:
        raise ValueError(
            "The members of an ensemble must have answered the same questions about the same "
            f"paragraphs, under the same version. Received: {len(first.ids)} and {len(other.ids)} "
            f"questions; other paragraphs or ids: {differing[:3]}; null scores: {has_null}."
        )
    return [places[id] for id in first.ids]
