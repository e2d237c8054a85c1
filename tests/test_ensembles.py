"""`python -m evaluation.ensembles` on small folders of predictions."""

import json

import numpy as np
import programs
import pytest

from evaluation import prediction_files, run_files, span_scores

TASK = {
    "task": "custom",
    "kind": "classes",
    "labels": ["no", "yes"],
    "metrics": ["accuracy", "matthews"],
}
SETS = ("dev_predictions.jsonl", "test_predictions.jsonl", "task.json")
LABELS = [0, 0, 1, 1, 1, 0, 1, 0]
# Probability of "yes" in each row. `a` and `b` are wrong in two rows each, but not the same;
# `c` is wrong in most and sure of it.
RUNS = {
    "a": [0.6, 0.6, 0.9, 0.9, 0.9, 0.1, 0.9, 0.1],
    "b": [0.1, 0.1, 0.4, 0.4, 0.9, 0.1, 0.9, 0.1],
    "c": [0.99, 0.99, 0.01, 0.01, 0.01, 0.99, 0.6, 0.4],
}


def rows(run, labelled=True):
    return [
        {
            "id": f"row {i}",
            **({"label": TASK["labels"][LABELS[i]]} if labelled else {}),
            "prediction": TASK["labels"][int(p > 0.5)],
            "probabilities": [1 - p, p],
        }
        for i, p in enumerate(RUNS[run])
    ]


@pytest.fixture
def folders(tmp_path):
    """Returns the folders of three runs with predictions of dev and test, by name."""
    paths = {run: tmp_path / run for run in RUNS}
    for run, path in paths.items():
        path.mkdir()
        (path / "task.json").write_text(json.dumps(TASK))
        prediction_files.write(prediction_files.path_of(path, "dev"), rows(run)[::-1])
        # On test `c`, the worst on dev, would be the best: all its labels are its predictions.
        test = [{**row, "label": rows("c")[i]["prediction"]} for i, row in enumerate(rows(run))]
        prediction_files.write(prediction_files.path_of(path, "test"), test)
    return paths


def ensemble(paths, output_dir, **settings):
    members = ",".join(map(str, paths))
    return programs.run("evaluation.ensembles", members=members, output_dir=output_dir, **settings)


def test_the_average_of_two_runs_is_better_than_either(folders, tmp_path):
    output = tmp_path / "average"
    result = programs.succeed(ensemble([folders["a"], folders["b"]], output))
    assert result.stderr == ""
    report = json.loads((output / "ensemble.json").read_text())
    accuracies = [scores["accuracy"] for scores in report["scores"]["dev"].values()]
    assert accuracies == [0.75, 0.75, 1.0]
    assert prediction_files.read_task(output) == TASK
    averaged = prediction_files.read(prediction_files.path_of(output, "dev"))
    assert [row["id"] for row in averaged] == [f"row {i}" for i in range(8)][::-1]
    mean = np.mean([RUNS["a"], RUNS["b"]], axis=0)[::-1]
    np.testing.assert_allclose([row["probabilities"][1] for row in averaged], mean)
    assert len(prediction_files.read(prediction_files.path_of(output, "test"))) == 8


def test_remote_runs_are_averaged_into_a_remote_folder(folders, tmp_path):
    local, remote = tmp_path / "average", "ram://test_ensembles"
    for path in (folders["a"], folders["b"]):
        for file in path.iterdir():
            run_files.write_bytes(f"{remote}/{path.name}/{file.name}", file.read_bytes())
    programs.succeed(ensemble([folders["a"], folders["b"]], local))
    flags = {"members": f"{remote}/a,{remote}/b", "output_dir": f"{remote}/average"}
    programs.succeed(programs.call("evaluation.ensembles", **flags))
    written = {name: run_files.read_bytes(f"{remote}/average/{name}") for name in SETS}
    assert written == {name: (local / name).read_bytes() for name in SETS}
    report = json.loads(run_files.read_bytes(f"{remote}/average/ensemble.json"))
    assert report["scores"]["dev"]["average"]["accuracy"] == 1.0


def test_greedy_choice_goes_by_dev_alone_and_tells_its_order(folders, tmp_path):
    output = tmp_path / "chosen"
    for run in "bc":
        (folders[run] / "test_predictions.jsonl").unlink()
    paths = [folders[run] for run in "cab"]
    result = programs.succeed(ensemble(paths, output, greedy=True))
    a, b = str(folders["a"]), str(folders["b"])
    assert f"1. {a}: 0.7500\n2. + {b}: 1.0000\nNone of the others" in result.stdout
    assert "test of " in result.stderr  # `b` has none, so there is no average of it.
    report = json.loads((output / "ensemble.json").read_text())
    assert report["members"] == [a, b]
    assert report["order"] == [{"member": a, "score": 0.75}, {"member": b, "score": 1.0}]
    assert not (output / "test_predictions.jsonl").exists()


def test_runs_that_do_not_belong_together_are_refused_and_nothing_is_written(folders, tmp_path):
    output = tmp_path / "none"
    prediction_files.write(prediction_files.path_of(folders["b"], "dev"), rows("b")[1:])
    result = ensemble([folders["a"], folders["b"]], output)
    assert result.exit_code == 1
    assert "alone has 1: row 0" in result.stderr
    (folders["b"] / "task.json").write_text(json.dumps({**TASK, "labels": ["yes", "no"]}))
    result = ensemble([folders["a"], folders["b"]], output)
    assert "labels=['no', 'yes'] in" in result.stderr
    assert result.stderr.count("\n") == 1 and not output.exists()


def test_spans_are_averaged_with_their_null_scores(tmp_path):
    # The answer is "red fox". Run `a` is sure of a wrong span, `b` and `c` find the right one.
    task = {"task": "SQuAD 2.0", "kind": "span", "labels": [], "metrics": ["best_f1"]}
    spans = {"a": [(0, 1, 0, -0.1, -0.1)], "b": [(2, 9, 0, -0.3, -0.1)]}
    spans["c"] = [(2, 9, 0, -0.1, -0.2), (0, 1, 0, -3.0, -3.0)]
    paths = [tmp_path / run for run in spans]
    for path, null_score in zip(paths, (-1.0, 2.0, -4.0), strict=True):
        path.mkdir()
        (path / "task.json").write_text(json.dumps(task))
        scores = span_scores.collect(
            ["q"], {"q": ["red fox"]}, ["A red fox."], [0], [spans[path.name]], [null_score]
        )
        (path / span_scores.FILE_NAME).write_bytes(scores.to_bytes())
        run_files.write_bytes(f"ram://test_ensembles/{path.name}.npz", scores.to_bytes())
        remote = span_scores.load(f"ram://test_ensembles/{path.name}.npz")
        assert remote.to_bytes() == scores.to_bytes()
    output = tmp_path / "average"
    programs.succeed(ensemble(paths, output, null_score_diff_threshold=-1.5))
    assert json.loads((output / "predictions.json").read_text()) == {"q": ""}
    programs.succeed(ensemble(paths, output))
    assert json.loads((output / "predictions.json").read_text()) == {"q": "red fox"}
    assert json.loads((output / "null_odds.json").read_text()) == {"q": pytest.approx(-1)}
    report = json.loads((output / "ensemble.json").read_text())
    scores = next(iter(report["scores"].values()))
    assert [value["best_f1"] for value in scores.values()] == [0.0, 100.0, 100.0, 100.0]
