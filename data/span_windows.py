"""Questions and paragraphs as sequences: [CLS] question [SEP] a window of the paragraph [SEP].

A paragraph that does not fit is read through several windows. A window's pieces know
which characters of the paragraph they stand for, so answers are cut from it unchanged.

n: windows, M: pieces of all windows.
"""

import dataclasses
import functools
import typing

import numpy as np

from data.features import Features

COLUMNS = ("start_positions", "end_positions", "is_impossible")  # Positions are inclusive.


@dataclasses.dataclass(frozen=True)
class WindowSettings:
    """How long windows are, in pieces (run_squad_v1.py: the flags of these names)."""

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64

    def __post_init__(self):
        if self.doc_stride < 1 or self.max_query_length < 0:
            raise ValueError(
                "`doc_stride` must be at least 1 and `max_query_length` at least 0. Received: "
                f"doc_stride={self.doc_stride}, max_query_length={self.max_query_length}."
            )
        if self.max_seq_length <= self.max_query_length + 3:
            raise ValueError(
                "`max_seq_length` must have room for the question, [CLS], two [SEP] and a piece of "
                f"the paragraph. Received: max_seq_length={self.max_seq_length}, "
                f"max_query_length={self.max_query_length}."
            )


@dataclasses.dataclass(frozen=True)
class Windows:
    """What decoding needs to know of the windows; evaluation/span_decoding.py reads it.

    Attributes:
        question_index: int32[n], which question a window belongs to; never decreases, and
            every question has a window.
        offsets: int64[n + 1], where each window's pieces start: as of its `Features`.
        character_starts: int32[M], where in the paragraph a piece begins; -1 for pieces of
            the question and special ones, which cannot be an answer.
        character_ends: int32[M], where it ends (exclusive), after its beginning; or -1.
        is_max_context: bool[M], whether no other window shows more on both sides of the
            piece; only there may an answer begin.
    """

    question_index: np.ndarray
    offsets: np.ndarray
    character_starts: np.ndarray
    character_ends: np.ndarray
    is_max_context: np.ndarray

    def __len__(self):
        return len(self.question_index)


class Paragraph(typing.NamedTuple):
    """A paragraph's pieces and the characters they stand for: int32[pieces] each."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class Window(typing.NamedTuple):
    """One window, before its arrays are made."""

    question_index: int
    query: list[int]
    paragraph: Paragraph
    first: int  # Of the paragraph's pieces.
    last: int  # Exclusive.
    is_max_context: np.ndarray  # bool[last - first]

    @property
    def num_before(self):
        """How many pieces stand before the paragraph's."""
        return len(self.query) + 2

    @property
    def length(self):
        return self.num_before + self.last - self.first + 1


def make_windows(question_set, tokenizer, settings):
    """Turns questions into features; each paragraph is tokenized once.

    Args:
        question_set: squad.QuestionSet.
        tokenizer: Tokenizer.
        settings: WindowSettings.

    Returns:
        (Features, Windows, list of str): sequences `input_ids`, `segment_ids`, `p_mask`, and
        of a labelled set the columns of `answer_columns`; the ids of answerable questions
        whose answer has no piece, because normalisation leaves nothing of it: they
        train as if they had no answer.
    """
    plan, columns, lost = [], [], []
    paragraphs = [encoded(tokenizer, context) for context in question_set.contexts]
    find_spans = functools.cache(spans_with_contexts)
    for number, question in enumerate(question_set.questions):
        paragraph = paragraphs[question.context_index]
        query = tokenizer.encode(question.text)[: settings.max_query_length]
        room = settings.max_seq_length - len(query) - 3
        spans = find_spans(len(paragraph.ids), room, settings.doc_stride)
        windows = [Window(number, query, paragraph, *span) for span in spans]
        plan += windows
        answer = answer_pieces(question, paragraph)
        columns += [answer_columns(answer, window) for window in windows]
        lost += [question.id] if question.answers and answer is None else []
    features, windows = laid_out(plan, tokenizer)
    if question_set.is_labelled:
        for name, values in zip(COLUMNS, np.array(columns, np.int32).T, strict=True):
            features.columns[name] = values
    return features, windows, lost


def encoded(tokenizer, context):
    """Returns the Paragraph of a text; a piece of no characters has the one that follows."""
    ids, starts, ends = tokenizer.encode_with_offsets(context)
    return Paragraph(np.array(ids, np.int32), starts, ends)


def window_spans(num_pieces, room, doc_stride):
    """Cuts a paragraph into windows, each `doc_stride` pieces after the one before it.

    No stride leaves a piece out: a step is never longer than the window.

    Args:
        num_pieces: int, of the paragraph.
        room: int, the pieces that a window holds, 1 or more.
        doc_stride: int, 1 or more.

    Returns:
        list of (first piece, last (exclusive)); one that is empty for an empty paragraph.
    """
    step = min(room, doc_stride)
    num_steps = max(0, -(-(num_pieces - room) // step))
    return [(n * step, min(n * step + room, num_pieces)) for n in range(num_steps + 1)]


def spans_with_contexts(num_pieces, room, doc_stride):
    """Adds to each window of `window_spans` on which pieces no other window has more context.

    Context is the smaller number of pieces to either side, and a hundredth of the window's
    length; the first of equals wins (squad_utils.py: _check_is_max_context).

    Args: as of `window_spans`.

    Returns:
        list of (first, last, bool[last - first]).
    """
    spans = window_spans(num_pieces, room, doc_stride)
    best, winner = np.full(num_pieces, -1.0), np.zeros(num_pieces, np.int32)
    for number, (first, last) in enumerate(spans):
        place = np.arange(last - first)
        score = np.minimum(place, place[::-1]) + 0.01 * (last - first)
        is_better = score > best[first:last]
        best[first:last][is_better] = score[is_better]
        winner[first:last][is_better] = number
    return [(first, last, winner[first:last] == n) for n, (first, last) in enumerate(spans)]


def answer_pieces(question, paragraph):
    """Finds the fewest pieces that hold the whole of a question's first answer.

    Args:
        question: squad.Question.
        paragraph: Paragraph.

    Returns:
        (first, last), both inclusive, or None if no answer is found, or no piece of it.
    """
    if question.answer_start is None:
        return None
    text = question.answers[0]
    start = question.answer_start + len(text) - len(text.lstrip())
    end = question.answer_start + len(text.rstrip())
    first = int(np.searchsorted(paragraph.ends, start, side="right"))
    last = int(np.searchsorted(paragraph.starts, end, side="left")) - 1
    return (first, last) if first <= last else None


def answer_columns(answer, window):
    """Returns the values of COLUMNS for a window.

    A window that lacks any of the answer's pieces points at [CLS] and counts as impossible,
    as those of unanswerable questions (squad_utils.py: convert_examples_to_features).

    Args:
        answer: (first, last) pieces of the paragraph, inclusive, or None.
        window: Window.
    """
    if answer is None or answer[0] < window.first or answer[1] >= window.last:
        return 0, 0, 1
    shift = window.num_before - window.first
    return answer[0] + shift, answer[1] + shift, 0


def laid_out(plan, tokenizer):
    """Puts windows one after another.

    Args:
        plan: list of Window.
        tokenizer: Tokenizer, for its special ids.

    Returns:
        (Features, Windows).
    """
    offsets = np.cumsum([0, *(window.length for window in plan)], dtype=np.int64)
    num_pieces = offsets[-1]
    input_ids = np.full(num_pieces, tokenizer.sep_id, np.int32)
    segment_ids = np.zeros(num_pieces, np.int32)
    p_mask = np.ones(num_pieces, np.int32)
    starts, ends = np.full((2, num_pieces), -1, np.int32)
    is_max_context = np.zeros(num_pieces, bool)
    input_ids[offsets[:-1]] = tokenizer.cls_id
    p_mask[offsets[:-1]] = 0
    for window, start, stop in zip(plan, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        here = slice(start + window.num_before, stop - 1)
        there = slice(window.first, window.last)
        input_ids[start + 1 : here.start - 1] = window.query
        input_ids[here] = window.paragraph.ids[there]
        segment_ids[here.start : stop] = 1
        p_mask[here] = 0
        starts[here] = window.paragraph.starts[there]
        ends[here] = window.paragraph.ends[there]
        is_max_context[here] = window.is_max_context
    sequences = {"input_ids": input_ids, "segment_ids": segment_ids, "p_mask": p_mask}
    question_index = np.array([window.question_index for window in plan], np.int32)
    ends = np.where(starts >= 0, np.maximum(ends, starts + 1), -1)  # A piece of no characters
    windows = Windows(question_index, offsets, starts, ends, is_max_context)
    return Features(sequences, offsets), windows
