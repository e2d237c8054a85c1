"""The original's SQuAD features and answers, of `squad` in the goldens."""

import functools
import json
import re

import numpy as np
import pytest
from conftest import golden_folder, spm_model_file

from data import span_windows, squad, text_normalization, tokenization
from evaluation import null_threshold, span_decoding, span_scores, squad_metrics

GOLDEN = golden_folder("squad")
VERSIONS = {"v1": "1.1", "v2": "2.0"}
FEATURE_FILES = [
    entry
    for entry in json.loads((GOLDEN / "manifest.json").read_text())
    if (GOLDEN / entry["file"]).exists()
]
LOGIT_FILES = sorted(path.name for path in GOLDEN.glob("logits_*.npz"))
RTOL = 1e-6  # Of the README.


def load(name):
    return json.loads((GOLDEN / name).read_text())


def questions_of(version, **options):
    return squad.read(GOLDEN / f"squad_{version}.json", VERSIONS[version], **options)


def rows_of(name):
    return [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]


def assert_equal(ours, theirs):
    """Asserts that texts, keys and their order are equal, and numbers within RTOL."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_equal(one, other)
    elif isinstance(theirs, str):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=RTOL)


def context_columns(windows, number):
    """Returns the places of a window's paragraph pieces, their starts and inclusive ends."""
    here = slice(windows.offsets[number], windows.offsets[number + 1])
    starts, ends = windows.character_starts[here], windows.character_ends[here]
    places = np.flatnonzero(starts >= 0)
    return places, starts[places], ends[places] - 1


def as_the_originals(features, windows, number, row):
    """Returns the features of one of our windows under the original's names, padded as its are."""
    here = slice(windows.offsets[number], windows.offsets[number + 1])
    length, full = here.stop - here.start, len(row["input_ids"])
    places, starts, ends = context_columns(windows, number)
    is_max = windows.is_max_context[here]
    result = {
        "input_ids": features.sequences["input_ids"][here].tolist() + [0] * (full - length),
        "segment_ids": features.sequences["segment_ids"][here].tolist() + [0] * (full - length),
        "p_mask": features.sequences["p_mask"][here].tolist() + [1] * (full - length),
        "input_mask": [1] * length + [0] * (full - length),
        "paragraph_len": length,
        "tok_start_to_orig_index": starts.tolist(),
        "tok_end_to_orig_index": ends.tolist(),
        "token_is_max_context": {str(place): bool(is_max[place]) for place in places},
    }
    if row["start_position"] is not None:
        start, end, is_impossible = (
            int(features.columns[name][number]) for name in span_windows.COLUMNS
        )
        result |= {"start_position": start, "end_position": end}
        result["is_impossible"] = bool(is_impossible)
    return result


def is_exact(row, context, lower):
    """Says whether the original's alignment is exact in a window.

    It is if what a piece covers is normalised to that piece, and between the pieces stand
    only blanks. An unknown piece, and a word's mark alone, have no text to compare.
    """
    starts, ends = row["tok_start_to_orig_index"], row["tok_end_to_orig_index"]
    pieces = row["tokens"][row["segment_ids"].index(1) :]
    for start, end, piece in zip(starts, ends, pieces, strict=False):
        covered = text_normalization.normalize(context[start : end + 1], lower=lower)
        if piece not in ("<unk>", "\u2581", "\u2581" + covered, covered):
            return False
    gaps = zip(ends, starts[1:], strict=False)
    return not any(context[end + 1 : start].strip() for end, start in gaps)


@pytest.mark.parametrize("entry", FEATURE_FILES, ids=lambda entry: entry["file"])
def test_golden_features_are_the_originals_where_its_alignment_is_exact(entry):
    lower = entry["do_lower_case"]
    tokenizer = tokenization.load(spm_model_file(), lower=lower)
    questions = questions_of(entry["version"], is_training=entry["train"])
    names = ("max_seq_length", "doc_stride", "max_query_length")
    settings = span_windows.WindowSettings(**{name: entry[name] for name in names})
    features, windows, lost = span_windows.make_windows(questions, tokenizer, settings)
    rows, num_exact = iter(rows_of(entry["file"])), 0
    skipped = skipped_questions(entry)
    for number, question in enumerate(windows.question_index.tolist()):
        question = questions.questions[question]
        if question.id in skipped:
            continue
        row = next(rows)
        context = questions.contexts[question.context_index]
        ours = as_the_originals(features, windows, number, row)
        if is_exact(row, context, lower):
            assert ours == {name: row[name] for name in ours}, question.id
            num_exact += 1
        else:  # Where pieces share a character it guesses; the ids are no guess.
            assert ours["input_ids"] == row["input_ids"], question.id
            assert_covering(tokenizer, row, ours, context)
    assert next(rows, None) is None and not lost
    assert num_exact > 0.5 * entry["num_features"]


def skipped_questions(entry):
    """Returns the ids the original skips; the manifest names them for evaluation alone."""
    names = entry["file"].replace("train", "eval")
    evaluation = next(other for other in load("manifest.json") if other["file"] == names)
    return evaluation["skipped_as_mismatch"]


def assert_covering(tokenizer, row, ours, context):
    """Asserts that every piece is part of what our characters for it are normalised to."""
    pieces = row["tokens"][row["segment_ids"].index(1) :]
    columns = ours["tok_start_to_orig_index"], ours["tok_end_to_orig_index"], pieces
    for start, end, piece in zip(*columns, strict=False):
        covered = tokenizer.normalize(context[start : end + 1])
        assert piece == "<unk>" or piece.removeprefix("\u2581") in covered


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_questions_that_the_original_skips_are_answered_here(version):
    # A difference on purpose: the original drops a question whose alignment fails.
    tokenizer = tokenization.load(spm_model_file())
    questions = questions_of(version, is_training=True)
    settings = span_windows.WindowSettings()
    features, windows, _ = span_windows.make_windows(questions, tokenizer, settings)
    skipped = {id for entry in FEATURE_FILES for id in skipped_questions(entry)}
    asked = [n for n, question in enumerate(questions.questions) if question.id in skipped]
    for number in np.flatnonzero(np.isin(windows.question_index, asked)):
        question = questions.questions[windows.question_index[number]]
        offset = windows.offsets[number]
        start, end = (features.columns[name][number] for name in span_windows.COLUMNS[:2])
        first = windows.character_starts[offset + start]
        context = questions.contexts[question.context_index]
        answer = context[first : windows.character_ends[offset + end]].strip()
        assert answer == question.answers[0]
    assert asked


@functools.cache
def decoding_case(name):
    """Returns the model's outputs, the original's windows, and the questions."""
    case = re.fullmatch(r"logits_((v\d)_.*)\.npz", name)
    rows = rows_of(f"features_{case[1]}_eval.jsonl")
    with np.load(GOLDEN / name) as stored:
        outputs = dict(stored)
    np.testing.assert_array_equal(outputs.pop("unique_ids"), [row["unique_id"] for row in rows])
    return outputs, windows_of(rows), questions_of(case[2]).for_decoding()


def windows_of(rows):
    """Makes Windows of the original's features."""
    lengths = [sum(row["input_mask"]) for row in rows]
    offsets = np.cumsum([0, *lengths])
    starts, ends = np.full((2, offsets[-1]), -1)
    is_max = np.zeros(offsets[-1], bool)
    for row, offset in zip(rows, offsets[:-1], strict=True):
        here = offset + row["segment_ids"].index(1)
        here = slice(here, here + len(row["tok_start_to_orig_index"]))
        starts[here], ends[here] = row["tok_start_to_orig_index"], row["tok_end_to_orig_index"]
        ends[here] += 1
        is_max[here] = list(row["token_is_max_context"].values())
    question_index = np.array([row["example_index"] for row in rows])
    return span_windows.Windows(question_index, offsets, starts, ends, is_max)


def decoded(name, n_best_size, max_answer_length):
    outputs, windows, questions = decoding_case(name)
    if "cls_logits" in outputs:
        return span_decoding.score_beams(
            outputs, windows, questions, max_answer_length=max_answer_length
        )
    return span_decoding.score_spans(
        outputs,
        windows,
        questions,
        n_best_size=n_best_size,
        max_answer_length=max_answer_length,
    )


def decoding_cases():
    """Yields (logits, tag of the result files, n_best_size, max_answer_length)."""
    for name in LOGIT_FILES:
        base = name.removeprefix("logits_").removesuffix(".npz")
        for path in sorted(GOLDEN.glob(f"nbest_{base}_nbest*.json")):
            sizes = re.search(r"nbest(\d+)_maxans(\d+)\.json", path.name)
            yield name, path.name.removeprefix("nbest_"), int(sizes[1]), int(sizes[2])


@pytest.mark.parametrize("name, tag, n_best_size, max_answer_length", list(decoding_cases()))
def test_golden_predictions_n_best_and_null_odds(name, tag, n_best_size, max_answer_length):
    scores = decoded(name, n_best_size, max_answer_length)
    tag = tag.removesuffix(".json")
    predictions, n_best, null_odds = span_decoding.answers(scores, n_best_size=n_best_size)
    assert_equal(n_best, load(f"nbest_{tag}.json"))
    assert predictions.keys() == scores.golds.keys()
    if null_odds is None:
        assert_equal(predictions, load(f"predictions_{tag}.json"))
        figures = squad_metrics.evaluate_v1(scores.golds, predictions)
        assert figures.pop("total") == len(predictions)
        assert figures == load(f"metrics_{tag}.json")
        return
    assert_equal(null_odds, load(f"null_odds_{tag}.json"))
    for path in GOLDEN.glob(f"predictions_{tag}_thresh_*.json"):
        threshold = json.loads(path.stem.split("_")[-1].replace("None", "null"))
        assert threshold not in null_odds.values()  # Where they are equal, rules part.
        written, *_ = span_decoding.answers(scores, threshold=threshold)
        assert_equal(written, load(path.name))


@pytest.mark.parametrize(
    "name, tag, n_best_size, max_answer_length",
    [case for case in decoding_cases() if "_v2_" in case[0]],
)
def test_golden_threshold_is_found_and_its_own_question_is_answered(
    name, tag, n_best_size, max_answer_length
):
    scores = decoded(name, n_best_size, max_answer_length)
    expected = load(f"metrics_{tag}")
    predictions, _, null_odds = span_decoding.answers(scores)
    threshold = expected["null_score_diff_threshold"]
    _, f1 = squad_metrics.raw_scores(scores.golds, predictions)
    # Its search takes every text for wrong, "the" too, where there is no answer.
    f1 |= {id: float(not predictions[id]) for id, answers in scores.golds.items() if not answers}
    none = {id: float(not answers) for id, answers in scores.golds.items()}
    best, found = null_threshold.search(f1, none, null_odds)
    np.testing.assert_allclose(found, threshold, rtol=RTOL)

    # A difference on purpose: the original then answers only below the threshold, not at it.
    theirs = load(f"predictions_{tag.removesuffix('.json')}_best.json")
    ours, *_ = span_decoding.answers(scores, threshold=found)
    parted = [id for id in ours if ours[id] != theirs[id]]
    assert parted and all(null_odds[id] == found and theirs[id] == "" for id in parted)

    # Another: it applies 1.0, meant for probabilities, before it scores what it has written.
    at_one = squad_metrics.evaluate_v2_at(scores.golds, theirs, null_odds, 1.0)
    for figure in ("exact", "f1", "total"):
        np.testing.assert_allclose(at_one[figure], expected[figure], rtol=RTOL)
    assert squad_metrics.evaluate_v2(scores.golds, ours)["f1"] >= best - 1e-9 > expected["f1"]


@pytest.mark.parametrize("name", [name for name in LOGIT_FILES if "_v1_" in name])
def test_golden_ensembles_average_each_span_over_the_runs_that_considered_it(name, tmp_path):
    outputs, windows, questions = decoding_case(name)
    paths = []
    for shift in (0, 1):
        rolled = {key: np.roll(values, shift, axis=1) for key, values in outputs.items()}
        scores = span_decoding.score_spans(rolled, windows, questions)
        paths.append(tmp_path / f"{shift}.npz")
        paths[-1].write_bytes(scores.to_bytes())
    base = name.removeprefix("logits_").removesuffix(".npz")
    average = span_scores.average([span_scores.load(path) for path in paths])
    predictions, n_best, _ = span_decoding.answers(average)
    assert_equal(predictions, load(f"predictions_{base}_ensemble.json"))
    assert_equal(n_best, load(f"nbest_{base}_ensemble.json"))
    assert average.golds == questions["golds"]


def test_golden_pairs_of_answers_score_as_the_official_scripts_do():
    for case in load("metric_pairs.json"):
        pair = case["prediction"], case["gold"]
        assert squad_metrics.normalized_answer(pair[0]) == case["v1_normalized"]
        assert squad_metrics.exact_match(*pair) == case["v1_em"] == bool(case["v2_exact"])
        assert squad_metrics.word_f1(*pair) == case["v1_f1"]
        assert squad_metrics.word_f1_or_both_empty(*pair) == case["v2_f1"]
