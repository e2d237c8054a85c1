import pytest

from evaluation import row_averages


def member(*probabilities):
    return [{"id": i, "prediction": "?", "probabilities": p} for i, p in enumerate(probabilities)]


def task(kind, labels, *metrics):
    return {"task": "toy", "kind": kind, "labels": labels, "metrics": metrics}


def test_the_mean_of_probabilities_decides_and_not_the_majority():
    members = [member([0.4, 0.6]), member([0.45, 0.55]), member([0.9, 0.1])]
    (row,) = row_averages.average(task("classes", ["no", "yes"]), members)
    assert (row["id"], row["prediction"]) == (0, "no")
    assert row["probabilities"] == pytest.approx([1.75 / 3, 1.25 / 3])


def test_choices_without_names_are_predicted_by_their_number():
    members = [member([0.2, 0.5, 0.3], [1.0, 0.0]), member([0.1, 0.2, 0.7], [0.4, 0.6])]
    assert [row["prediction"] for row in row_averages.average(task("choice", []), members)] == [
        2,
        0,
    ]
    named = row_averages.average(task("choice", ["A", "B", "C"]), members)
    assert [row["prediction"] for row in named] == ["C", "A"]


def test_each_label_is_decided_for_itself():
    members = [member([0.9, 0.2, 0.4]), member([0.3, 0.1, 0.6])]
    (row,) = row_averages.average(task("multilabel", ["a", "b", "c"]), members)
    assert row["prediction"] == ["a", "c"]


def test_numbers_are_averaged_and_labels_kept():
    members = [[{"id": "x", "label": 2.5, "prediction": value}] for value in (1.0, 2.0, 4.5)]
    assert row_averages.average(task("number", []), members) == [
        {"id": "x", "label": 2.5, "prediction": 2.5}
    ]


def test_one_member_is_its_own_average():
    rows = [{"id": 1, "label": "b", "prediction": "b", "probabilities": [0.25, 0.75]}]
    assert row_averages.average(task("classes", ["a", "b"]), [rows]) == rows


def test_other_numbers_of_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 3\] at id 0"):
        row_averages.average(task("choice", []), [member([0.5, 0.5]), member([0.2, 0.3, 0.5])])
