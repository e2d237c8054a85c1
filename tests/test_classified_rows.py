import json

import numpy as np
import pytest

from data.classification_tables import Table
from data.classification_tasks import TASKS
from data.custom_tasks import CustomData, custom_task
from data.features import Features
from runs import classified_rows

RTE, STSB, CUSTOM = TASKS["RTE"], TASKS["STS-B"], {"train_file": "x.tsv"}
SEVERAL = custom_task(CustomData(**CUSTOM, label_kind="multilabel", labels="a,b,c"))


def table(label_ids=None, texts_a=("x",) * 4):
    ids = [f"r{number}" for number in range(len(texts_a))]
    labels = None if label_ids is None else np.array(label_ids)
    return Table("dev.tsv", ids, list(texts_a), None, labels)


def logits(*rows):
    return np.array(rows, np.float32)


HALF = logits([2, 0], [0, 1], [3, 0], [0, 2])  # Classes 0, 1, 0, 1.


@pytest.mark.parametrize(
    ("kind", "label_ids", "expected"),
    [
        ("classes", [0, 1, 0, 1], np.log(2)),
        ("classes", [0, 0, 0, 0], 0),
        ("classes", [0, 0, 0, 2], -0.75 * np.log(0.75) - 0.25 * np.log(0.25)),
        ("multilabel", [[1.0, 0.0], [0.0, 0.0]], np.log(2) / 2),
        ("number", [1.0, 3.0], 1),
    ],
)
def test_a_guess_by_frequency_costs_the_entropy_or_the_variance(kind, label_ids, expected):
    assert classified_rows.chance_loss(kind, np.array(label_ids)) == pytest.approx(expected)


def test_a_row_read_in_windows_has_their_mean():
    ids = np.zeros(6, np.int32)
    features = Features({"input_ids": ids, "segment_ids": ids}, np.arange(4) * 2)
    np.testing.assert_array_equal(classified_rows.per_row(features, HALF[:3]), HALF[:3])
    features.columns["row"] = np.array([0, 1, 1], np.int32)
    found = classified_rows.per_row(features, HALF[:3])
    np.testing.assert_allclose(found, [[2, 0], [1.5, 0.5]])


def test_figures_of_all_but_the_first_dev_set_bear_its_name(capsys):
    task, labelled = TASKS["MNLI"], table([0, 1, 2, 2])
    three = np.eye(3, dtype=np.float32)[[0, 1, 2, 0]]
    found = [
        classified_rows.report(task, labelled, split, three)
        for split in ("dev_matched", "dev_mismatched")
    ]
    assert found == [{"accuracy": 0.75}, {"dev_mismatched_accuracy": 0.75}]
    assert "dev_mismatched: accuracy 0.7500  (4 rows)" in capsys.readouterr().out


def test_rows_without_labels_have_no_figures(capsys):
    assert classified_rows.report(RTE, table(), "test", HALF) == {}
    assert capsys.readouterr().out == ""


def test_one_class_for_all_is_named_in_a_warning(capsys):
    same = logits(*[[0, 1]] * 4)
    assert classified_rows.report(RTE, table([0, 0, 0, 1]), "dev", same) == {"accuracy": 0.25}
    printed = capsys.readouterr().out
    assert "all 4 predictions for dev are not_entailment" in printed and "`seed`" in printed


def test_a_constant_number_correlates_with_nothing_and_is_warned_of(capsys):
    """Case A6 of user-demands.md."""
    golds = np.array([1.0, 4.5, 3.0, 0.0], np.float32)
    found = classified_rows.report(STSB, table(golds), "dev", logits(*[[2.5]] * 4))
    assert (found["pearson"], found["spearman"]) == (0, 0)
    assert "all 4 predictions for dev are 2.5" in capsys.readouterr().out


def test_ranked_figures_stand_beside_the_plain_ones():
    questions = table([0, 1, 0, 1], ("q", "q", "p", "p"))
    both = logits([1, 0], [2, 0], [0, 1], [0, 3])  # Plain: 0 0 1 1. Ranked: 1 0 0 1.
    found = classified_rows.report(TASKS["QNLI"], questions, "dev", both, rank=True)
    assert found == {"accuracy": 0.5, "ranked_accuracy": 0.5}


def rows_written(task, some_table, some_logits, folder, split="dev"):
    classified_rows.write(task, some_table, split, some_logits, str(folder / "new"))
    lines = (folder / "new" / f"{split}_predictions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_classes_are_written_by_name_with_their_probabilities(tmp_path):
    first, *_ = rows_written(RTE, table([1, 1, 0, 0]), HALF, tmp_path)
    assert first == {
        "id": "r0",
        "prediction": "entailment",
        "label": "not_entailment",
        "probabilities": [0.880797, 0.119203],
    }


def test_several_labels_are_written_as_a_list(tmp_path):
    labelled = table([[1, 0, 1]], ("x",))
    (row,) = rows_written(SEVERAL, labelled, logits([1, -1, 0.5]), tmp_path)
    assert row["prediction"] == ["a", "c"] == row["label"]
    assert row["probabilities"] == [0.731059, 0.268941, 0.622459]


def test_a_number_is_written_as_one_and_submitted_within_the_range_of_the_labels(tmp_path):
    rows = rows_written(STSB, table(), logits([2.5], [-1.0], [6.0], [0.125]), tmp_path, "test")
    assert [row["prediction"] for row in rows] == [2.5, -1.0, 6.0, 0.125]
    assert "probabilities" not in rows[0] and "label" not in rows[0]
    assert (tmp_path / "new" / "STS-B.tsv").read_text() == (
        "index\tprediction\nr0\t2.5000\nr1\t0.0000\nr2\t5.0000\nr3\t0.1250\n"
    )


def test_a_dev_set_is_not_submitted_and_a_ranked_test_set_twice(tmp_path):
    questions = table(None, ("q", "q", "p", "p"))
    both = logits([1, 0], [2, 0], [0, 1], [0, 3])
    folder = str(tmp_path)
    classified_rows.write(TASKS["QNLI"], questions, "dev", both, folder, rank=True)
    assert not list(tmp_path.glob("*.tsv"))
    classified_rows.write(TASKS["QNLI"], questions, "test", both, folder, rank=True)
    files = [(tmp_path / name).read_text() for name in ("QNLI.tsv", "ranked-QNLI.tsv")]
    classes = [[line.split("\t")[1] for line in text.splitlines()[1:]] for text in files]
    yes, no = "entailment", "not_entailment"
    assert classes == [[yes, yes, no, no], [no, yes, yes, no]]
