import json

import pytest

from evaluation import prediction_files, run_files

ROWS = [
    {"id": 7, "label": "ja", "prediction": "ja", "probabilities": [0.25, 0.75]},
    {"id": "ä", "prediction": 1.5},
]
TASK = {"task": "custom", "kind": "classes", "labels": ["nein", "ja"], "metrics": ["accuracy"]}


def rows(*ids, **others):
    return [{"id": key, "prediction": 0, **others} for key in ids]


@pytest.mark.parametrize("place", ["{tmp_path}/run", "ram://test_prediction_files/run"])
def test_predictions_come_back_as_they_were_written_local_or_remote(place, tmp_path):
    folder = place.format(tmp_path=tmp_path)
    path = prediction_files.path_of(folder, "dev")
    for rows_written in (ROWS[:1], ROWS):
        prediction_files.write(path, rows_written)
        assert prediction_files.read(path) == rows_written
    assert prediction_files.names(folder) == ["dev"]
    assert run_files.names_in(folder) == ["dev_predictions.jsonl"]


def test_a_remote_task_comes_back_and_its_absence_is_named():
    folder = "ram://test_prediction_files/task"
    with pytest.raises(FileNotFoundError, match=folder):
        prediction_files.read_task(folder)
    run_files.write_bytes(f"{folder}/task.json", json.dumps(TASK).encode())
    assert prediction_files.read_task(folder) == TASK


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": 1, "prediction": 0}', "{"], r"dev_predictions.jsonl:2 .*Received: '\{'"),
        (['{"id": 1}'], r"dev_predictions.jsonl:1 .*`prediction`"),
        (["[1]"], r"dev_predictions.jsonl:1 "),
        (['{"id": 1, "prediction": 0}'] * 2, r"id 1 in lines 1 and 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path, lines, message):
    path = tmp_path / "dev_predictions.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=message):
        prediction_files.read(path)


def test_runs_are_matched_by_id():
    first, second = prediction_files.matched({"x": rows(1, 2, 3), "y": rows(3, 1, 2, label=None)})
    assert [row["id"] for row in first] == [row["id"] for row in second] == [1, 2, 3]


def test_ids_that_differ_are_named():
    with pytest.raises(ValueError, match=r"x alone has 1: 4; y alone has 4: 5, 6, 7, \.\.\.\."):
        prediction_files.matched({"x": rows(1, 4), "y": rows(1, 5, 6, 7, 8)})


def test_labels_that_differ_are_named():
    with pytest.raises(ValueError, match="id 2 with 'a' in x and 'b' in y"):
        prediction_files.matched({"x": rows(2, label="a"), "y": rows(2, label="b")})


def test_a_task_comes_back_and_a_wrong_one_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"task\.json"):
        prediction_files.read_task(tmp_path)
    path = tmp_path / "task.json"
    path.write_text(json.dumps(TASK))
    assert prediction_files.read_task(tmp_path) == TASK
    path.write_text(json.dumps({**TASK, "kind": "poem"}))
    with pytest.raises(ValueError, match="'poem'"):
        prediction_files.read_task(tmp_path)
    path.write_text(json.dumps({"kind": "classes"}))
    with pytest.raises(ValueError, match=r"\['labels', 'metrics', 'task'\]"):
        prediction_files.read_task(tmp_path)
