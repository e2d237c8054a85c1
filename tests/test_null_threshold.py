import random

import numpy as np
import pytest

from evaluation import null_threshold, squad_metrics

# Case A8 of the user demands: nothing should be answered.
GOLDS = {"q1": ["Oslo"], "q2": [], "q3": []}
PREDICTIONS = {"q1": "Bergen", "q2": "1901", "q3": "the king"}
NULL_ODDS = {"q1": -3.0, "q2": -2.0, "q3": -1.0}


def test_answer_nothing_can_win():
    best = squad_metrics.best_thresholds(GOLDS, PREDICTIONS, NULL_ODDS)
    for name in ("exact", "f1"):
        assert best[f"best_{name}"] == pytest.approx(200 / 3)
        assert best[f"best_{name}_thresh"] < -3
        written = null_threshold.apply(PREDICTIONS, NULL_ODDS, best[f"best_{name}_thresh"])
        assert set(written.values()) == {""}
        assert squad_metrics.evaluate_v2(GOLDS, written)[name] == pytest.approx(200 / 3)


def test_answer_everything_can_win():
    predictions, golds = {"a": "x", "b": "y"}, {"a": ["x"], "b": ["y"]}
    best = squad_metrics.best_thresholds(golds, predictions, {"a": 40.0, "b": 50.5})
    assert (best["best_f1"], best["best_f1_thresh"]) == (100, 50.5)


def test_a_question_at_the_threshold_is_answered():
    # A difference on purpose: the original answers only below it.
    assert null_threshold.apply({"a": "x"}, {"a": 0.5}, 0.5) == {"a": "x"}
    assert null_threshold.apply({"a": "x"}, {"a": 0.5}, 0.4) == {"a": ""}


def test_without_a_threshold_everything_is_answered():
    assert null_threshold.apply(PREDICTIONS, NULL_ODDS, None) == PREDICTIONS


def test_what_is_written_scores_what_the_search_found_with_ties_too():
    generator = random.Random(0)
    texts = ["Oslo", "the town of Oslo", "a", "", "Bergen"]
    thresholds = set()
    for _ in range(200):
        ids = [str(number) for number in range(generator.randrange(1, 12))]
        golds = {id: generator.sample(texts[:3], generator.randrange(2)) for id in ids}
        predictions = {id: generator.choice(texts) for id in ids}
        null_odds = {id: float(generator.randrange(-3, 4)) for id in ids}
        best = squad_metrics.best_thresholds(golds, predictions, null_odds)
        for name in ("exact", "f1"):
            thresholds.add(best[f"best_{name}_thresh"])
            written = null_threshold.apply(predictions, null_odds, best[f"best_{name}_thresh"])
            amid = null_threshold.amid_gap(best[f"best_{name}_thresh"], null_odds)
            assert amid not in null_odds.values()
            assert null_threshold.apply(predictions, null_odds, amid) == written
            figures = squad_metrics.evaluate_v2(golds, written)
            assert figures[name] == pytest.approx(best[f"best_{name}"])
            for threshold in (-4.0, *null_odds.values()):  # And nothing scores more.
                other = null_threshold.apply(predictions, null_odds, threshold)
                score = squad_metrics.evaluate_v2(golds, other)[name]
                assert score <= best[f"best_{name}"] + 1e-9
    assert len(thresholds) > 7


def test_a_kept_threshold_lies_between_the_odds_of_questions():
    null_odds = {"a": -1.0, "b": 2.0, "c": 2.5}
    for threshold, amid in ((-1.5, -2.0), (-1.0, 0.5), (2.0, 2.25), (2.5, 3.5), (9.0, 3.5)):
        assert null_threshold.amid_gap(threshold, null_odds) == amid
    beside = float(np.nextafter(2.0, 3))  # There is no number between the two.
    assert null_threshold.amid_gap(2.0, {"a": 2.0, "b": beside}) == 2.0


def test_a_file_of_empty_answers_is_warned_of_with_the_spread_of_its_odds():
    ids = [str(number) for number in range(200)]
    golds = {id: ["x"] if int(id) % 2 else [] for id in ids}
    null_odds = {id: 3 + int(id) / 100 for id in ids}
    silent = null_threshold.apply(dict.fromkeys(ids, "x"), null_odds, 3.0)
    warning = null_threshold.warning_of_silence(silent, null_odds, golds, 3.0)
    assert "99.5 % of the answers are empty, though 100 of 200 questions have one" in warning
    assert "[3.000, 4.990], half of them above 3.995, and the threshold is 3.000" in warning
    assert "--null_score_diff_threshold" in warning
    speaking = null_threshold.apply(dict.fromkeys(ids, "x"), null_odds, 3.05)
    assert null_threshold.warning_of_silence(speaking, null_odds, golds, 3.05) is None
    none = dict.fromkeys(ids, [])
    assert null_threshold.warning_of_silence(silent, null_odds, none, 3.0) is None
