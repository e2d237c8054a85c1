import json

import numpy as np
import pytest
from conftest import shared_data
from made_tokenizers import sentencepiece_tokenizer, wordpiece_tokenizer

from data import span_windows, squad, tokenization
from data.span_windows import WindowSettings
from evaluation import span_decoding, span_scores

CONTEXT = "the walking a walk"
WHERE = {"the": 0, "walk": 1, "##ing": 2, "a": 3}


def windows_of(question_set, tokenizer=None, **settings):
    _, windows, _ = span_windows.make_windows(
        question_set, tokenizer or wordpiece_tokenizer(), WindowSettings(**settings)
    )
    return windows


def logits_for(windows, *wanted):
    """Returns logits of version 1.1 that are highest at the given (start, end) characters."""
    starts = np.zeros(len(windows.character_starts), np.float32)
    ends = np.zeros(len(windows.character_starts), np.float32)
    for place, (start, end) in enumerate(wanted):
        starts[windows.character_starts == start] = 9 - place
        ends[windows.character_ends == end] = 9 - place
    split = windows.offsets[1:-1]
    return {"start_logits": np.split(starts, split), "end_logits": np.split(ends, split)}


def test_an_answer_is_cut_from_the_paragraph_as_it_stands_there():
    context = "The  “Walking”\tA， walk"
    questions = squad.ask(context, "a?")
    windows = windows_of(questions)
    start, end = context.index("“"), context.index("A") + 1
    scores = span_decoding.score_spans(
        logits_for(windows, (start, end)), windows, questions.for_decoding()
    )
    predictions, n_best, null_odds = span_decoding.answers(scores)
    assert predictions == {"question": "“Walking”\tA"}
    assert null_odds is None
    assert sum(entry["probability"] for entry in n_best["question"]) == pytest.approx(1)


def test_full_width_punctuation_in_a_chinese_answer_stays():
    tokenizer = tokenization.load(shared_data("spm/vocab_chinese.txt"))
    context = "他说：“你好，世界！”（１９９９年）然后走了。"
    questions = squad.ask(context, "他说了什么？")
    windows = windows_of(questions, tokenizer)
    answer = "你好，世界！”（１９９９年）"
    start = context.index(answer)
    logits = logits_for(windows, (start, start + len(answer)))
    scores = span_decoding.score_spans(logits, windows, questions.for_decoding())
    assert span_decoding.answers(scores)[0] == {"question": answer}


def test_an_answer_neither_ends_before_it_begins_nor_is_too_long():
    questions = squad.ask(CONTEXT, "a?")
    windows = windows_of(questions)
    assert windows.character_starts[windows.character_starts >= 0].tolist() == [0, 4, 8, 12, 14]
    logits = logits_for(windows, (12, 7), (4, 18), (0, 3))
    scores = span_decoding.score_spans(
        logits, windows, questions.for_decoding(), max_answer_length=3
    )
    for start, end, *_ in scores.spans(0):
        assert start < end and len(CONTEXT[start:end]) < len(CONTEXT)
    assert "a" in {CONTEXT[start:end] for start, end, *_ in scores.spans(0)}
    longest = span_decoding.score_spans(logits, windows, questions.for_decoding())
    assert CONTEXT in {CONTEXT[start:end] for start, end, *_ in longest.spans(0)}


def test_a_start_counts_where_its_window_shows_most_context():
    questions = squad.ask("the a " * 40, "a?")
    windows = windows_of(questions, max_seq_length=20, doc_stride=4, max_query_length=5)
    everywhere = logits_for(windows, *[(place * 4, place * 4 + 3) for place in range(3)])
    scores = span_decoding.score_spans(
        everywhere, windows, questions.for_decoding(), max_answer_length=1
    )
    starts = [start for start, *_ in scores.spans(0)]
    assert len(windows) > 10 and len(starts) == len(set(starts)) == 80


def test_equal_scores_go_to_the_first_place():
    questions = squad.ask(CONTEXT, "a?")
    windows = windows_of(questions)
    scores = span_decoding.score_spans(
        logits_for(windows), windows, questions.for_decoding(), max_answer_length=1
    )
    _, n_best, _ = span_decoding.answers(scores)
    texts = [entry["text"] for entry in n_best["question"]]
    assert texts == ["the", "walk", "ing", "a"]  # The second "walk" is no other text.


def test_pieces_of_the_question_take_no_places_once_masked():
    # A difference on purpose: the original lets question and padding compete, and then says
    # "empty" of a paragraph none of whose pieces is among the best.
    questions = squad.ask("walk", "the the the the the the?")
    windows = windows_of(questions)
    length = len(windows.character_starts)
    padded = np.concatenate([np.ones(length), np.full(9, 5)]).astype(np.float32)
    padded[:length][windows.character_starts >= 0] = 0
    raw = {"start_logits": [padded], "end_logits": [padded]}
    masked = {name: span_decoding.masked(rows, windows) for name, rows in raw.items()}
    for outputs, expected in ((raw, "empty"), (masked, "walk")):
        scores = span_decoding.score_spans(
            outputs, windows, questions.for_decoding(), n_best_size=3
        )
        assert span_decoding.answers(scores)[0] == {"question": expected}
    assert len(masked["start_logits"][0]) == length


def beams(windows, null_scores):
    """Returns outputs of version 2.0 with two starts and two ends, the last two pieces."""
    n, lengths = len(windows), np.diff(windows.offsets)
    starts = np.stack([lengths - 3, np.zeros(n, int)], axis=1)
    ends = np.stack([lengths - 2, lengths - 3, np.zeros(n, int), lengths - 2], axis=1)
    return {
        "start_top_log_probs": np.tile(np.float32([-0.5, -1]), (n, 1)),
        "start_top_index": starts,
        "end_top_log_probs": np.tile(np.float32([-0.25, -2, -1, -1]), (n, 1)),
        "end_top_index": ends,
        "cls_logits": np.float32(null_scores),
    }


def test_a_beam_gives_the_answer_and_the_null_odds():
    questions = squad.ask(CONTEXT, "a?")
    windows = windows_of(questions)
    scores = span_decoding.score_beams(beams(windows, [0.5]), windows, questions.for_decoding())
    predictions, n_best, null_odds = span_decoding.answers(scores)
    assert null_odds == {"question": 0.5}
    assert predictions == {"question": "a walk"}
    # [CLS] is a place of the beam, and never an answer.
    assert [entry["text"] for entry in n_best["question"]] == ["a walk", "a"]
    first = n_best["question"][0]
    assert (first["start_log_prob"], first["end_log_prob"]) == (-0.5, -0.25)
    for threshold, text in ((0.5, "a walk"), (0.4, "")):
        written, _, _ = span_decoding.answers(scores, threshold=threshold)
        assert written == {"question": text}


def test_the_lowest_null_score_of_the_windows_is_the_questions():
    questions = squad.ask("the a " * 10, "a?")
    windows = windows_of(questions, max_seq_length=16, doc_stride=4, max_query_length=5)
    null_scores = np.arange(len(windows)) - 2.5
    scores = span_decoding.score_beams(
        beams(windows, null_scores), windows, questions.for_decoding()
    )
    assert len(windows) > 2 and scores.null_scores.tolist() == [-2.5]


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_every_question_has_an_entry_even_about_nothing(version, tmp_path):
    entries = [
        {"context": context, "qas": [{"id": f"q{number}", "question": "a?"}]}
        for number, context in enumerate(["", " ", "\x00", "walk"])
    ]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"data": [{"paragraphs": entries}]}))
    questions = squad.read(path, version)
    windows = windows_of(questions)
    if version == "1.1":
        outputs = logits_for(windows, (0, 4))
        scores = span_decoding.score_spans(outputs, windows, questions.for_decoding())
    else:
        outputs = beams(windows, [1, 2, 3, 4])
        scores = span_decoding.score_beams(outputs, windows, questions.for_decoding())
    found = span_decoding.answers(scores)
    expected = ["q0", "q1", "q2", "q3"]
    assert [list(entries) for entries in found if entries is not None] == [expected] * (
        2 if version == "1.1" else 3
    )
    assert found[0]["q0"] == ("empty" if version == "1.1" else "")


def test_scores_that_are_no_numbers_are_an_error():
    questions = squad.ask(CONTEXT, "a?")
    windows = windows_of(questions)
    outputs = logits_for(windows)
    outputs["end_logits"][0][3] = np.nan
    with pytest.raises(ValueError, match="NaN; its training has likely diverged"):
        span_decoding.score_spans(outputs, windows, questions.for_decoding())


def scores_of(tokenizer, context, *wanted, **null):
    questions = squad.ask(context, "a?")
    windows = windows_of(questions, tokenizer)
    logits = logits_for(windows, *wanted)
    return span_decoding.score_spans(logits, windows, questions.for_decoding(), **null)


def test_runs_with_different_tokenizers_agree_on_the_characters_of_an_answer():
    context = "see the walking man, now"
    span = (4, 15)
    sentencepiece, wordpiece = sentencepiece_tokenizer(), wordpiece_tokenizer()
    _, starts, ends = sentencepiece.encode_with_offsets(context)
    with_blank = (int(starts[np.searchsorted(ends, 4, "right")]), 15)
    members = [
        scores_of(sentencepiece, context, with_blank),
        scores_of(wordpiece, context, span),
    ]
    assert with_blank[0] == 3
    average = span_scores.average(members)
    best = max(average.spans(0), key=lambda row: row[3] + row[4])
    assert best[:3] == (*span, 0) and best[3:] == (9, 9)
    predictions, _, _ = span_decoding.answers(average)
    assert predictions == {"question": "the walking"}


def test_a_span_is_averaged_over_the_runs_that_considered_it_and_odds_over_all():
    def member(spans, null_score):
        return span_scores.collect(["q"], None, ["ab cd"], [0], [spans], [null_score])

    average = span_scores.average(
        [member([(0, 2, 0, 1.0, 2.0), (3, 5, 0, 5.0, 0.0)], 1), member([(0, 2, 0, 4, 5)], -2)]
    )
    assert average.spans(0) == [(0, 2, 0, 2.5, 3.5), (3, 5, 0, 5.0, 0.0)]
    assert average.null_scores.tolist() == [-0.5]


def test_a_file_of_scores_gives_back_what_was_written(tmp_path):
    written = span_scores.collect(
        ["ä", "b"],
        {"ä": ["x"], "b": []},
        ["\ud800 x"],
        [0, 0],
        [[(2, 3, 1, 0.1, -np.float32(0.7))], []],
        [1e6, -3],
    )
    path = tmp_path / span_scores.FILE_NAME
    path.write_bytes(written.to_bytes())
    read = span_scores.load(path)
    assert (read.ids, read.golds, read.contexts) == (written.ids, written.golds, written.contexts)
    assert [read.spans(0), read.spans(1)] == [written.spans(0), []]
    assert read.null_scores.tolist() == [1e6, -3]


def test_members_must_have_answered_the_same_questions(tmp_path):
    member = scores_of(wordpiece_tokenizer(), CONTEXT)
    other = scores_of(wordpiece_tokenizer(), "the walk")
    with pytest.raises(ValueError, match="same questions.*'question'"):
        span_scores.average([member, other])
    path = tmp_path / "other.npz"
    for content in (b"{}", member.to_bytes()[:-50]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="other.npz"):
            span_scores.load(path)
