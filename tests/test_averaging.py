import math

import pytest

from evaluation import averaging


def member(*probabilities):
    return [{"id": i, "prediction": "?", "probabilities": p} for i, p in enumerate(probabilities)]


def test_the_mean_of_probabilities_decides_and_not_the_majority():
    members = [member([0.4, 0.6]), member([0.45, 0.55]), member([0.9, 0.1])]
    (row,) = averaging.average("classes", ["no", "yes"], members)
    assert (row["id"], row["prediction"]) == (0, "no")
    assert row["probabilities"] == pytest.approx([1.75 / 3, 1.25 / 3])


def test_choices_without_names_are_predicted_by_their_number():
    members = [member([0.2, 0.5, 0.3], [1.0, 0.0]), member([0.1, 0.2, 0.7], [0.4, 0.6])]
    assert [row["prediction"] for row in averaging.average("choice", [], members)] == [2, 0]
    named = averaging.average("choice", ["A", "B", "C"], members)
    assert [row["prediction"] for row in named] == ["C", "A"]


def test_each_label_is_decided_for_itself():
    members = [member([0.9, 0.2, 0.4]), member([0.3, 0.1, 0.6])]
    (row,) = averaging.average("multilabel", ["a", "b", "c"], members)
    assert row["prediction"] == ["a", "c"]


def test_numbers_are_averaged_and_labels_kept():
    members = [[{"id": "x", "label": 2.5, "prediction": value}] for value in (1.0, 2.0, 4.5)]
    assert averaging.average("number", [], members) == [
        {"id": "x", "label": 2.5, "prediction": 2.5}
    ]


def test_one_member_is_its_own_average():
    rows = [{"id": 1, "label": "b", "prediction": "b", "probabilities": [0.25, 0.75]}]
    assert averaging.average("classes", ["a", "b"], [rows]) == rows


def test_other_numbers_of_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 3\] at id 0"):
        averaging.average("choice", [], [member([0.5, 0.5]), member([0.2, 0.3, 0.5])])


# The score of each set of members.
SCORES = {"a": 0.6, "b": 0.7, "c": 0.7, "ab": 0.8, "bc": 0.75, "abc": 0.8, "ac": 0.9}


def scored(names):
    return SCORES["".join(sorted(names))]


def test_members_are_added_while_the_score_rises():
    # The best pair, a and c, is out of reach: b is chosen first. A third adds nothing.
    assert averaging.choose(["a", "b", "c"], scored) == [("b", 0.7), ("a", 0.8)]
    assert averaging.choose(["a"], scored) == [("a", 0.6)]


def test_a_score_that_is_not_a_number_is_chosen_only_for_want_of_another():
    assert averaging.choose(["a", "b"], lambda names: math.nan if "a" in names else 0.1) == [
        ("b", 0.1)
    ]
    assert averaging.choose(["a"], lambda names: math.nan) == [("a", -math.inf)]
