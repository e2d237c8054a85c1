import json
import warnings

import numpy as np
import pytest
from conftest import golden_folder

from evaluation import metrics

with open(golden_folder("glue") / "metrics.json", encoding="utf-8") as file:
    GOLDEN = json.load(file)
NAMES = {  # Of the golden file.
    "eval_accuracy": "accuracy",
    "accuracy": "accuracy",
    "matthew_corr": "matthews",
    "matthews": "matthews",
    "f1": "f1",
    "pearson": "pearson",
    "spearman": "spearman",
    "MSE": "mean_squared_error",
}
STS_GOLD, STS_PREDICTED = [1.0, 4.5, 3.0, 0.0, 5.0], [1.4, 4.0, 3.2, 0.6, 3.9]
# 5 right of 8; of class 1: 3 true positives, 2 false, 1 missed.
LABELS = np.array([1, 1, 1, 1, 0, 0, 0, 0])
PREDICTED = np.array([1, 1, 1, 0, 1, 1, 0, 0])


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("task", GOLDEN)
def test_golden_metrics_are_the_originals(task):
    case = GOLDEN[task]
    kind = "classes" if np.ndim(case["logits"]) == 2 else "number"
    real = np.array(case["is_real_example"], bool)
    logits = np.reshape(case["logits"], (len(real), -1))
    predicted = metrics.predictions(logits, kind)[real]
    labels = np.array(case["label_ids"])[real]
    figures = case["original_metrics"] | case["reference_float64_from_sklearn_scipy_real_rows_only"]
    expected = {NAMES[name]: value for name, value in figures.items() if name in NAMES}
    assert metrics.score(list(expected), labels, predicted) == pytest.approx(expected, abs=1e-5)
    per_example = np.array(case["per_example_loss"])[real]
    assert per_example.mean() == pytest.approx(figures["eval_loss"], abs=1e-5)


def test_the_figures_of_five_scores():
    scores = metrics.score(["pearson", "spearman", "mean_squared_error"], STS_GOLD, STS_PREDICTED)
    assert scores == pytest.approx(
        {"pearson": 0.985, "spearman": 0.900, "mean_squared_error": 0.404}, abs=5e-4
    )


def test_counts_are_those_made_by_hand():
    scores = metrics.score(["accuracy", "f1", "macro_f1", "matthews"], LABELS, PREDICTED)
    assert scores["accuracy"] == 5 / 8
    assert scores["f1"] == pytest.approx(2 * 3 / (2 * 3 + 2 + 1))
    assert scores["macro_f1"] == pytest.approx((6 / 9 + 4 / 7) / 2)
    assert scores["matthews"] == pytest.approx((3 * 2 - 2 * 1) / np.sqrt(5 * 4 * 4 * 3))


def test_labels_and_predictions_are_not_mistaken_for_each_other():
    labels, predicted = np.array([1, 1, 1, 0, 2]), np.array([1, 0, 0, 0, 0])
    f1_of_1 = metrics.score(["f1"], labels, predicted)["f1"]
    assert f1_of_1 == pytest.approx(0.5)  # Precision 1, recall 1/3.
    missed = metrics.score(["macro_f1"], labels, np.full(5, 1))["macro_f1"]
    assert missed == pytest.approx((2 * 3 / (2 * 3 + 2)) / 3)  # Unpredicted classes count as 0.


def test_a_row_of_several_labels_is_right_as_a_whole():
    labels = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1]], np.float32)
    predicted = metrics.predictions([[1, -1, 2], [-1, -2, 0], [3, -1, 1]], "multilabel")
    assert predicted.tolist() == [[1, 0, 1], [0, 0, 0], [1, 0, 1]]
    scores = metrics.score(["accuracy", "micro_f1", "macro_f1"], labels, predicted)
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert scores["micro_f1"] == pytest.approx(2 * 4 / (2 * 4 + 1))
    assert scores["macro_f1"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("names", [["matthews", "f1"], ["pearson", "spearman"]])
def test_one_prediction_for_all_scores_0_and_is_told(names):
    numbers = names[0] == "pearson"
    labels = np.array(STS_GOLD) if numbers else LABELS
    constant = np.full(len(labels), 2.5) if numbers else np.zeros(len(labels), np.int32)
    assert metrics.score(names, labels, constant) == dict.fromkeys(names, 0.0)
    assert metrics.common_prediction(constant) == constant[0]
    assert metrics.common_prediction(PREDICTED) is None


def test_one_set_of_labels_for_all_is_told():
    assert metrics.common_prediction(np.zeros((3, 2), np.int32)) == [0, 0]
    assert metrics.common_prediction(np.eye(2, dtype=np.int32)) is None


def test_one_example_is_scored_and_tells_nothing():
    assert metrics.score(["pearson", "accuracy"], [1], [1]) == {"pearson": 0.0, "accuracy": 1.0}
    assert metrics.common_prediction([1]) is None


def test_probabilities_sum_to_1_or_stand_alone():
    logits = np.array([[1000.0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(metrics.probabilities(logits)[:, 0], [1, 1 / 3])
    np.testing.assert_allclose(metrics.probabilities(logits, "multilabel")[:, 1], 0.5)


def test_equal_logits_predict_the_first_class():
    assert metrics.predictions([[0.5, 0.5], [0.1, 0.2]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["accuracy"], [], []), "one example or more"),
        ((["accuracy"], [1, 0], [1]), r"Received: \(2,\) and \(1,\)"),
        ((["pearson"], [1.0, 2.0], [np.nan, 1.0]), "must be finite. Received: 1"),
        ((["auc"], [1], [1]), r"must be of \['accuracy', .*Received: \['auc'\]"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        metrics.score(*arguments)


def test_levels_are_scored_apart_and_counted():
    levels = ["middle"] * 3 + ["high"] * 5
    assert metrics.accuracy_by_level(LABELS, PREDICTED, levels) == {
        "accuracy": 5 / 8,
        "num_examples": 8,
        "accuracy_middle": 1.0,
        "num_examples_middle": 3,
        "accuracy_high": 2 / 5,
        "num_examples_high": 5,
    }


def test_one_level_is_the_whole():
    assert metrics.accuracy_by_level([1, 0], np.array([1, 1]), ["high"] * 2) == {
        "accuracy": 0.5,
        "num_examples": 2,
    }
