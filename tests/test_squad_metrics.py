import json

import pytest
from conftest import shared_data

from data import squad
from evaluation import squad_metrics

GOLDS = {"a": ["Oslo", "the town of Oslo"], "b": ["the king"], "c": []}


def published():
    """Yields (published predictions, right answers, what the official script printed, more)."""
    folder = shared_data("squad/published_predictions")
    for name, entry in json.loads((folder / "expected_metrics.json").read_text()).items():
        version = "1.1" if name.startswith("1.1") else "2.0"
        questions = squad.read(folder.parent / entry["questions"], version)
        predictions = json.loads((folder / name).read_text())
        yield version, predictions, questions.gold_answers(), entry, folder


def test_published_predictions_score_as_the_official_scripts_say_exactly():
    seen = set()
    for version, predictions, golds, entry, folder in published():
        seen.add(version)
        if version == "1.1":
            figures = squad_metrics.evaluate_v1(golds, predictions)
            assert entry["metrics"].items() <= figures.items()
            continue
        assert squad_metrics.evaluate_v2(golds, predictions) == entry["metrics"]
        null_odds = json.loads((folder / entry["null_odds_file"]).read_text())
        name = next(name for name in entry if name.startswith("metrics_with_null_odds"))
        threshold = float(name.split("_")[-1])
        figures = squad_metrics.evaluate_v2_at(golds, predictions, null_odds, threshold)
        figures |= squad_metrics.best_thresholds(golds, predictions, null_odds)
        assert figures == entry[name]
    assert seen == {"1.1", "2.0"}


def test_figures_are_means_of_the_best_over_the_right_answers():
    figures = squad_metrics.evaluate_v1(
        {id: GOLDS[id] for id in "ab"}, {"a": "town of Oslo.", "b": "king Olav"}
    )
    assert figures["total"] == 2
    assert figures["exact_match"] == 50
    assert figures["f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)


def test_in_version_1_a_question_without_a_prediction_scores_nothing():
    assert squad_metrics.evaluate_v1(GOLDS | {"c": ["x"]}, {"c": "x"})["f1"] == 100 / 3


def test_in_version_2_a_question_without_a_prediction_is_an_error():
    with pytest.raises(ValueError, match="3 questions must have a prediction.*none for .*'b', 'c'"):
        squad_metrics.evaluate_v2(GOLDS, {"a": "Oslo"})


def test_a_group_without_questions_has_no_figure():
    none = squad_metrics.evaluate_v2({"c": []}, {"c": ""})
    assert (none["exact"], none["NoAns_f1"], none["NoAns_total"]) == (100, 100, 1)
    assert (none["HasAns_exact"], none["HasAns_f1"], none["HasAns_total"]) == (None, None, 0)
    all_answered = squad_metrics.evaluate_v2({"a": ["Oslo"]}, {"a": "Oslo"})
    assert (all_answered["HasAns_f1"], all_answered["NoAns_f1"]) == (100, None)


def test_cmrcs_figures_compare_characters():
    golds = {"a": ["踢爆"], "b": ["Nexon、盛大"], "c": ["４分钟"]}
    predictions = {"a": "踢爆。", "b": "《NEXON》盛大游戏", "c": "分钟内"}
    figures = squad_metrics.evaluate_cmrc(golds, predictions)
    assert figures["exact_match"] == pytest.approx(100 / 3)
    assert squad_metrics.chinese_tokens("《NEXON》盛大2V2") == ["nexon", "盛", "大", "2v2"]
    f1 = [1, 2 * (3 / 5) * 1 / (3 / 5 + 1), 2 * (2 / 3) * (2 / 3) / (4 / 3)]
    assert figures["f1"] == pytest.approx(100 * sum(f1) / 3)


def test_words_of_other_scripts_are_cut_as_nltk_does():
    expected = {  # By nltk.tokenize.NLTKWordTokenizer of NLTK 3.9.
        "3,000 m., 20–18": ["3,000", "m.", ",", "20", "–", "18"],
        '("don\'t", r&b...': ["(", "``", "do", "n't", "''", ",", "r", "&", "b", "..."],
        "80% of ake's p.": ["80", "%", "of", "ake", "'s", "p", "."],
    }
    for text, tokens in expected.items():
        assert squad_metrics.western_tokens(text) == tokens


def test_cmrcs_f1_is_of_one_stretch_and_not_of_scattered_characters():
    assert squad_metrics.chinese_f1("甲乙丙丁", "甲x丙丁") == pytest.approx(2 * 0.5 * 0.5)
    assert squad_metrics.chinese_f1("甲", "乙") == 0
    assert squad_metrics.longest_common_stretch(list("abcab"), list("xabcb")) == 3
