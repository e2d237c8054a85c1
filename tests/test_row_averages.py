import pytest

from evaluation import row_averages


def member(*probabilities):
    return [{"id": i, "prediction": "?", "probabilities": p} for i, p in enumerate(probabilities)]


def form(kind, labels, *metrics):
    task = {"task": "toy", "kind": kind, "labels": labels, "metrics": metrics}
    return row_averages.RowAverages(task)


def test_the_mean_of_probabilities_decides_and_not_the_majority():
    members = [member([0.4, 0.6]), member([0.45, 0.55]), member([0.9, 0.1])]
    (row,) = form("classes", ["no", "yes"]).average(members)
    assert (row["id"], row["prediction"]) == (0, "no")
    assert row["probabilities"] == pytest.approx([1.75 / 3, 1.25 / 3])


def test_choices_without_names_are_predicted_by_their_number():
    members = [member([0.2, 0.5, 0.3], [1.0, 0.0]), member([0.1, 0.2, 0.7], [0.4, 0.6])]
    assert [row["prediction"] for row in form("choice", []).average(members)] == [
        2,
        0,
    ]
    named = form("choice", ["A", "B", "C"]).average(members)
    assert [row["prediction"] for row in named] == ["C", "A"]


def test_each_label_is_decided_for_itself():
    members = [member([0.9, 0.2, 0.4]), member([0.3, 0.1, 0.6])]
    (row,) = form("multilabel", ["a", "b", "c"]).average(members)
    assert row["prediction"] == ["a", "c"]


def test_numbers_are_averaged_and_labels_kept():
    members = [[{"id": "x", "label": 2.5, "prediction": value}] for value in (1.0, 2.0, 4.5)]
    assert form("number", []).average(members) == [{"id": "x", "label": 2.5, "prediction": 2.5}]


def test_one_member_is_its_own_average():
    rows = [{"id": 1, "label": "b", "prediction": "b", "probabilities": [0.25, 0.75]}]
    assert form("classes", ["a", "b"]).average([rows]) == rows


def test_other_numbers_of_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"\[2, 3\] at id 0"):
        form("choice", []).average([member([0.5, 0.5]), member([0.2, 0.3, 0.5])])


@pytest.mark.parametrize(
    ("kind", "labels", "metric", "pairs", "expected"),
    [
        ("classes", ["b", "a"], "accuracy", [("a", "a"), ("b", "a"), ("b", "b"), ("a", "a")], 0.75),
        ("choice", [], "accuracy", [(3, 3), (0, 1)], 0.5),
        ("number", [], "mean_squared_error", [(1.5, 2.0), (0, 0.5)], 0.25),
        ("multilabel", ["x", "y"], "accuracy", [(["y", "x"], ["x", "y"]), ([], ["x"])], 0.5),
    ],
)
def test_scores_are_those_of_what_is_written(kind, labels, metric, pairs, expected):
    rows = [
        {"id": i, "label": label, "prediction": prediction}
        for i, (label, prediction) in enumerate(pairs)
    ]
    assert form(kind, labels, metric).score(rows) == {metric: pytest.approx(expected)}
    del rows[1]["label"]
    assert form(kind, labels, metric).score(rows) is None


def test_a_set_that_glue_scores_is_written_as_glue_wants_it(tmp_path):
    task = {"kind": "classes", "labels": ["not_entailment", "entailment"], "metrics": []}
    averages = row_averages.RowAverages({**task, "submissions": {"test": "RTE.tsv"}})
    rows = [{"id": 4, "prediction": "entailment", "probabilities": [0.25, 0.75]}]
    for name in ("dev", "test"):
        averages.write(tmp_path, name, rows)
    assert (tmp_path / "RTE.tsv").read_text() == "index\tprediction\n4\tentailment\n"
    assert averages.names(tmp_path) == ["dev", "test"]
    assert averages.load([tmp_path], "test") == [rows]
