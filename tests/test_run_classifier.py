"""run_classifier.py from rows to scores and predictions: it does and writes what it says."""

import json
import shutil

import made_rows
import numpy as np
import programs
import pytest
from conftest import golden_folder

from evaluation import metrics, prediction_files, row_averages

GLUE = golden_folder("glue")
CLASSES = made_rows.CLASSES


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return made_rows.encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    """A model of five classes of one's own: (folder of data and `run`, what was printed)."""
    folder = tmp_path_factory.mktemp("own")
    flags = {**made_rows.write_own(folder), **encoder, **made_rows.LEARN}
    result = programs.call("run_classifier", **flags, output_dir=folder / "run")
    return folder, programs.succeed(result).stdout


def rows_of(folder, split="dev"):
    return prediction_files.read(prediction_files.path_of(folder, split))


def scores_of(folder):
    return json.loads((folder / "scores.json").read_text())


def use(folder, **flags):
    """Runs a trained model on other files of one's own."""
    model = {"task": "custom", "init_checkpoint": folder / "run", "do_train": False}
    return programs.call("run_classifier", **{**model, **flags})


def few_steps(encoder, output_dir, **flags):
    """Trains two steps and predicts."""
    settings = {**encoder, **made_rows.TWO_STEPS, "do_predict": True, "output_dir": output_dir}
    return programs.succeed(programs.call("run_classifier", **{**settings, **flags})).stdout


def test_five_classes_of_ones_own_are_learnt_without_code(trained):
    folder, printed = trained
    assert scores_of(folder / "run")["accuracy"] > 0.9
    assert (folder / "run" / "labels.txt").read_text().split() == sorted(CLASSES)
    assert "dev: accuracy" in printed and "(40 rows)" in printed


def test_scores_are_those_of_the_written_predictions(trained):
    folder, _ = trained
    rows = rows_of(folder / "run")
    assert [row["id"] for row in rows] == [str(number) for number in range(40)]
    assert [row["label"] for row in rows] == [CLASSES[number % 5] for number in range(40)]
    form = row_averages.RowAverages(prediction_files.read_task(folder / "run"))
    assert form.score(rows) == scores_of(folder / "run")
    for row in rows:
        assert sorted(CLASSES)[np.argmax(row["probabilities"])] == row["prediction"]
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-5)


def test_a_run_in_a_remote_folder_writes_and_finds_all_it_needs(encoder, tmp_path):
    own = made_rows.write_own(tmp_path, num_train=16, num_dev=10)
    few_steps(encoder, f"file://{tmp_path}/run", **own, test_file=own["dev_file"])
    flags = {"init_checkpoint": f"file://{tmp_path}/run", "dev_file": own["dev_file"]}
    programs.succeed(use(tmp_path, **flags, output_dir=f"file://{tmp_path}/out"))
    assert len(rows_of(tmp_path / "run", "test")) == 10
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "run")


def test_an_unlabelled_file_gives_a_prediction_a_row_in_its_order(trained, tmp_path):
    """Case A7 (a) of user-demands.md."""
    folder, _ = trained
    texts = ["red", "the old fox finds the red river near the warm garden", "", "sad fox", "x y z"]
    rows = [(f"r{number}", text) for number, text in enumerate(texts, 1)]
    test_file = made_rows.write(tmp_path / "test.tsv", ("id", "text"), rows)
    flags = {"do_eval": False, "do_predict": True, "eval_batch_size": 4, "output_dir": tmp_path}
    programs.succeed(use(folder, test_file=test_file, **flags))
    predicted = rows_of(tmp_path, "test")
    assert [row["id"] for row in predicted] == ["r1", "r2", "r3", "r4", "r5"]
    assert predicted[3]["prediction"] == "fox"
    assert all("label" not in row for row in predicted)
    assert not (tmp_path / "scores.json").exists()


def test_a_bad_label_is_one_line_that_names_what_is_allowed(trained, tmp_path):
    """Case A7 (b) of user-demands.md."""
    folder, _ = trained
    rows = [("fox", "a"), ("horse", "b"), ("maybe", "c"), ("fox", "d")]
    dev_file = made_rows.write(tmp_path / "dev.tsv", ("label", "text"), rows)
    result = use(folder, dev_file=dev_file, output_dir=tmp_path / "out")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    for part in (f"error: {dev_file}, line 4", "'maybe'", f"{sorted(CLASSES)}"):
        assert part in line


def test_five_rows_in_batches_of_four_count_once_each(trained, tmp_path):
    folder, _ = trained
    rows = [(label, f"old {label}") for label in CLASSES[:4]] + [("fox", "old horse")]
    dev_file = made_rows.write(tmp_path / "dev.tsv", ("label", "text"), rows)
    result = use(folder, dev_file=dev_file, output_dir=tmp_path / "out", eval_batch_size=4)
    assert "dev: accuracy 0.8000" in programs.succeed(result).stdout
    assert "(5 rows)" in result.stdout
    assert scores_of(tmp_path / "out")["accuracy"] == 0.8


def test_a_trained_model_is_evaluated_with_the_length_it_was_trained_with(trained, tmp_path):
    folder, _ = trained
    result = use(folder, dev_file=folder / "dev.tsv", output_dir=tmp_path)
    assert "at most 16 pieces" in programs.succeed(result).stdout
    assert rows_of(tmp_path) == rows_of(folder / "run")


def test_most_rows_cut_are_warned_of_with_their_share(trained, tmp_path):
    folder, _ = trained
    flags = {"dev_file": folder / "dev.tsv", "output_dir": tmp_path, "max_seq_length": 5}
    printed = programs.succeed(use(folder, **flags)).stdout
    assert "most examples of dev are cut at `max_seq_length` 5: 100%" in printed


def test_changed_rows_or_lengths_are_not_taken_from_the_cache(trained, tmp_path):
    folder, _ = trained
    for number, (words, length) in enumerate([("fox", 16), ("river", 16), ("fox", 8)], 1):
        rows = [("fox", f"old {words}"), ("river", "sad")]
        dev_file = made_rows.write(tmp_path / "dev.tsv", ("label", "text"), rows)
        flags = {"dev_file": dev_file, "output_dir": tmp_path, "max_seq_length": length}
        programs.succeed(use(folder, **flags))
        assert rows_of(tmp_path)[0]["prediction"] == words
        assert len(list(tmp_path.glob("cache/features-*.npz"))) == number
    programs.succeed(use(folder, **flags))
    assert len(list(tmp_path.glob("cache/features-*.npz"))) == 3


def test_long_rows_may_be_read_in_windows(trained, tmp_path):
    folder, _ = trained
    long = " ".join([*["old"] * 20, "fox"])
    dev_file = made_rows.write(tmp_path / "dev.tsv", ("label", "text"), [("fox", long)] * 2)
    flags = {"dev_file": dev_file, "output_dir": tmp_path, "max_seq_length": 12}
    cut, windows = (
        programs.succeed(use(folder, **flags, long_texts=choice)).stdout
        for choice in ("cut", "windows")
    )
    assert "dev: 2 examples" in cut and "100.0% of them cut" in cut
    assert "dev: 8 examples" in windows and "0.0% of them cut" in windows
    assert len(rows_of(tmp_path)) == 2


def test_a_row_may_have_several_labels(encoder, tmp_path):
    generator = np.random.default_rng(0)
    chosen = [generator.permutation(CLASSES)[: count % 3] for count in range(12)]
    rows = [(";".join(names), made_rows.text(generator, *names)) for names in chosen]
    own = {"label_kind": "multilabel", "label_separator": ";", "task": "custom"}
    for name in ("train", "dev", "test"):
        own[f"{name}_file"] = made_rows.write(tmp_path / f"{name}.tsv", ("label", "text"), rows)
    printed = few_steps(encoder, tmp_path / "run", **own)
    assert "dev: micro_f1" in printed
    labels = (tmp_path / "run" / "labels.txt").read_text().split()
    for row, names in zip(rows_of(tmp_path / "run"), chosen, strict=True):
        likely = [n for n, p in zip(labels, row["probabilities"], strict=True) if p > 0.5]
        assert row["prediction"] == likely and row["label"] == sorted(names)


STSB_COLUMNS = "index genre filename year old_index source1 source2 sentence1 sentence2 score"


def test_a_number_is_predicted_as_a_number(encoder, tmp_path):
    """Case A6 of user-demands.md."""
    golds = [1.0, 4.5, 3.0, 0.0, 5.0]
    texts = made_rows.rows(5)
    rows = [
        (number, *["-"] * 6, text, "red", gold)
        for number, ((_, text), gold) in enumerate(zip(texts, golds, strict=True))
    ]
    for name in ("train", "dev"):
        made_rows.write(tmp_path / f"STS-B/{name}.tsv", STSB_COLUMNS.split(), rows)
    made_rows.write(tmp_path / "STS-B/test.tsv", STSB_COLUMNS.split()[:-1], [r[:-1] for r in rows])
    run = tmp_path / "run"
    printed = few_steps(encoder, run, task="STS-B", data_dir=tmp_path)
    predicted = rows_of(run)
    assert [row["label"] for row in predicted] == golds
    values = np.array([row["prediction"] for row in predicted])
    assert len(set(values)) == 5 and "probabilities" not in predicted[0]
    expected = metrics.score(["pearson", "spearman", "mean_squared_error"], golds, values)
    assert scores_of(run) == pytest.approx(expected)
    assert f"dev: pearson {expected['pearson']:.4f}" in printed
    lines = (run / "STS-B.tsv").read_text().splitlines()
    for row, line in zip(rows_of(run, "test"), lines[1:], strict=True):
        assert line == f"{row['id']}\t{np.clip(row['prediction'], 0, 5):.4f}"
    assert not (run / "labels.txt").exists()


def test_glue_takes_the_files_of_a_task_and_of_its_ranked_form(encoder, tmp_path):
    run = tmp_path / "run"
    printed = few_steps(encoder, run, task="QNLI", data_dir=GLUE, rank=True)
    scores = scores_of(run)
    assert set(scores) == {"accuracy", "ranked_accuracy"}
    figures = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
    assert f"dev: {figures}  (3 rows)" in printed
    plain = [f"{row['id']}\t{row['prediction']}" for row in rows_of(run, "test")]
    assert (run / "QNLI.tsv").read_text().splitlines() == ["index\tprediction", *plain]
    assert {line.split("\t")[1] for line in plain} <= {"entailment", "not_entailment"}
    # Each question stands alone in the invented file, so nothing is compared.
    assert (run / "ranked-QNLI.tsv").read_text() == (run / "QNLI.tsv").read_text()


def test_mnli_has_two_sets_of_each_kind_and_predicts_the_diagnostic_rows(encoder, tmp_path):
    run = tmp_path / "run"
    few_steps(encoder, run, task="MNLI", data_dir=GLUE, max_seq_length=12)
    assert set(scores_of(run)) == {"accuracy", "dev_mismatched_accuracy"}
    for name in ("MNLI-m.tsv", "MNLI-mm.tsv"):
        lines = (run / name).read_text().splitlines()
        assert lines[0] == "index\tprediction" and len(lines) == 4
    flags = {"task": "AX", "data_dir": GLUE, "init_checkpoint": run, "output_dir": tmp_path / "ax"}
    programs.succeed(programs.call("run_classifier", **flags, do_train=False, do_predict=True))
    rows = rows_of(tmp_path / "ax", "test")
    assert (tmp_path / "ax" / "AX.tsv").read_text().splitlines()[1:] == [
        f"{row['id']}\t{row['prediction']}" for row in rows
    ]


MISTAKES = {
    "no task": ({"task": None}, "`task` must be one of"),
    "no encoder": ({"from_scratch": False}, "`init_checkpoint` must name the encoder"),
    "an encoder and none": ({"init_checkpoint": "x"}, "give one of them"),
    "no folder to write to": ({"output_dir": ""}, "`output_dir` must name a folder"),
    "nothing to do": ({"do_train": False, "do_eval": False}, "received: none of them"),
    "no data": ({"task": "CoLA"}, "`data_dir` must name the folder"),
    "rank where there is none": ({"task": "CoLA", "data_dir": "x", "rank": True}, "QNLI and WNLI"),
    "too long": (
        {"max_seq_length": 99},
        "max_seq_length=99, max_position_embeddings=32",
    ),
    "steps and epochs": ({"num_train_epochs": 2.0}, "both, 60 and 2.0"),
    "no rows to train on": (
        {"train_file": None, "labels": "fox,horse,river,garden,baker"},
        "`train_file` must be given for `do_train`",
    ),
    "no rows to predict": ({"do_predict": True}, "`test_file` must be given for `do_predict`"),
    "rows to predict that nobody predicts": (
        {"test_file": "absent.tsv"},
        "`test_file` is for `do_predict`. Received: absent.tsv",
    ),
    "a metric that nothing gives": (
        {"best_metric": "acuracy"},
        "`best_metric` must be one of ['accuracy', 'macro_f1', 'matthews', 'loss']",
    ),
    "a task without rows to train on": (
        {"task": "AX", "data_dir": GLUE, "do_predict": True},
        "There is no file for `do_train`. Received: task=AX",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_before_any_training(mistake, encoder, tmp_path):
    changes, received = MISTAKES[mistake]
    own = made_rows.write_own(tmp_path, num_train=10, num_dev=5)
    if changes.get("task", "custom") != "custom":
        own = {"task": "custom"}
    flags = {**own, **encoder, **made_rows.LEARN, "output_dir": tmp_path / "run", **changes}
    given = {name: value for name, value in flags.items() if value is not None}
    result = programs.call("run_classifier", **given)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and received.lower() in line.lower()
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_flags_of_ones_own_rows_are_refused_for_other_tasks(encoder, tmp_path):
    flags = {"task": "CoLA", "data_dir": GLUE, "train_file": "x.tsv", "output_dir": tmp_path}
    result = programs.call("run_classifier", **flags, **encoder)
    assert result.exit_code == 1 and "`train_file` is for --task=custom" in result.stderr


def test_without_a_trained_model_nothing_is_scored(tmp_path):
    made_rows.write_own(tmp_path)
    flags = {"task": "custom", "dev_file": tmp_path / "dev.tsv", "labels": ",".join(CLASSES)}
    flags |= {"do_train": False, "output_dir": tmp_path / "run"}
    result = programs.call("run_classifier", **flags)
    assert result.exit_code == 1
    assert "need a trained model in `output_dir`" in result.stderr


def test_a_model_of_other_labels_is_not_scored(trained, tmp_path):
    folder, _ = trained
    shutil.copytree(folder / "run", tmp_path / "run")
    labels = ",".join(sorted(CLASSES, reverse=True))
    result = use(tmp_path, dev_file=folder / "dev.tsv", labels=labels, output_dir=tmp_path / "out")
    assert result.exit_code == 1 and "labels" in result.stderr
