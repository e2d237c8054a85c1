import made_rows
import programs
import pytest

from data import classification_tables, custom_tasks
from data.custom_tasks import CustomData
from evaluation import prediction_files


def written(folder, name, *lines):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def read(split, **settings):
    """Makes a custom task of some settings and reads one of its splits: (task, table)."""
    task = custom_tasks.custom_task(CustomData(**settings))
    return task, classification_tables.read(task, "", split)


def test_five_classes_are_found_in_the_training_file_and_sorted(tmp_path):
    names = ["red", "blue", "grey", "10", "9", "red"]
    path = written(tmp_path, "a.tsv", "text\tlabel", *(f"word\t{name}" for name in names))
    task, table = read("train", train_file=path)
    assert task.labels == ("10", "9", "blue", "grey", "red")
    assert table.label_ids.tolist() == [4, 2, 3, 0, 1, 4]
    assert task.num_outputs == 5


def test_classes_that_are_given_keep_their_order(tmp_path):
    path = written(tmp_path, "a.csv", "label,text", 'good,"one, two"', "bad,three")
    task, table = read("train", train_file=path, labels="good,bad,neither")
    assert task.labels == ("good", "bad", "neither")
    assert table.label_ids.tolist() == [0, 1]
    assert table.texts_a == ["one, two", "three"]


def test_classes_of_a_trained_model_may_hold_commas(tmp_path):
    path = written(tmp_path, "a.csv", "label,text", '"red, or blue",one', "grey,two")
    labels = ["grey", "red, or blue"]
    task = custom_tasks.custom_task(CustomData(dev_file=path), labels=labels)
    assert task.labels == tuple(labels) == read("train", train_file=path)[0].labels
    assert classification_tables.read(task, "", "dev").label_ids.tolist() == [1, 0]


def test_classes_with_commas_are_trained_and_evaluated(tmp_path):
    own = made_rows.write_own(tmp_path, ["fox, red", "horse"], 8, 4)
    flags = {**own, **made_rows.encoder(tmp_path), **made_rows.TWO_STEPS}
    programs.succeed(programs.call("run_classifier", **flags, output_dir=tmp_path / "run"))
    flags = {"task": "custom", "dev_file": own["dev_file"], "do_train": False}
    programs.succeed(programs.call("run_classifier", **flags, output_dir=tmp_path / "run"))
    rows = prediction_files.read(prediction_files.path_of(tmp_path / "run", "dev"))
    assert {row["label"] for row in rows} == {"fox, red", "horse"}


def test_a_row_may_have_several_labels_or_none(tmp_path):
    tsv = written(tmp_path, "a.tsv", "text\tlabel", "one\tx|y", "two\t", "three\t z | x")
    jsonl = written(
        tmp_path,
        "b.jsonl",
        '{"text": "one", "label": ["x", "y"]}',
        '{"text": "two", "label": []}',
        '{"text": "three", "label": ["z", "x"]}',
    )
    for path in (tsv, jsonl):
        task, table = read("train", train_file=path, label_kind="multilabel", label_separator="|")
        assert task.labels == ("x", "y", "z")
        assert table.label_ids.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]


def test_a_label_may_be_a_number(tmp_path):
    path = written(
        tmp_path, "a.jsonl", '{"text": "one", "label": 1.5}', '{"text": "two", "label": "2"}'
    )
    task, table = read("dev", dev_file=path, label_kind="number")
    assert (task.labels, task.num_outputs) == ((), 1)
    assert table.label_ids.tolist() == [1.5, 2.0]


def test_pairs_and_columns_by_number(tmp_path):
    path = written(
        tmp_path, "a.tsv", "x\tone\ttwo\t1", "y\tthree\tfour\t0", "z\ta\tb\t1", "t\ta\tb\t0"
    )
    columns = {"text_columns": "2,1", "label_column": "3", "id_column": "0"}
    _, table = read("train", train_file=path, **columns)
    assert (table.ids, table.texts_a[0], table.texts_b[0]) == (list("xyzt"), "two", "one")
    assert table.label_ids.tolist() == [1, 0, 1, 0]


def test_an_unlabelled_file_is_predicted_row_by_row(tmp_path):
    path = written(tmp_path, "test.tsv", "id\ttext", *(f"r{n}\tword" for n in range(1, 6)))
    _, table = read("test", test_file=path, labels="0,1")
    assert table.ids == ["r1", "r2", "r3", "r4", "r5"]
    assert table.label_ids is None


def test_a_header_that_would_become_a_class_is_refused(tmp_path):
    path = written(tmp_path, "a.tsv", "text\tlabel", "one\t1", "two\t0")
    numbers = {"train_file": path, "text_columns": "0", "label_column": "1"}
    with pytest.raises(ValueError, match=r"line 1: .*taken for a header.*'label'"):
        read("train", **numbers)
    _, table = read("train", **numbers, header="yes")
    assert table.texts_a == ["one", "two"]


def test_only_the_files_that_are_named_are_splits(tmp_path):
    path = written(tmp_path, "a.tsv", "text\tlabel", "one\t1", "two\t0")
    task, _ = read("train", train_file=path)
    assert list(task.files) == ["train"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "must name a file of rows"),
        ({"dev_file": "x.tsv", "text_columns": "a,b,c"}, "`text_columns` must be one column"),
        ({"dev_file": "x.tsv", "text_columns": ""}, "`text_columns` must be one column"),
        ({"dev_file": "x.tsv", "labels": "a,a"}, "`labels` must be different names"),
        ({"dev_file": "x.tsv", "labels": "a,b", "label_kind": "number"}, "none for a number"),
        ({"dev_file": "x.tsv"}, "`labels` must be given where there is no `train_file`"),
        ({"dev_file": "x.tsv", "labels": "a"}, "`labels` must be at least 2"),
        ({"dev_file": "nowhere.tsv", "labels": "a,b"}, "must exist"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read("dev", **settings)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["one\tx", "two\t"], r"a\.tsv, line 3: a row must have a label"),
        (["one\tx", "two\tx"], "`labels` must be at least 2"),
        ([], "at least one row"),
    ],
)
def test_a_training_file_without_classes_is_refused(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        read("train", train_file=written(tmp_path, "a.tsv", "text\tlabel", *rows))


def test_a_class_of_two_lines_is_refused(tmp_path):
    path = written(tmp_path, "a.csv", "label,text", "x,one", '"a\nb",two')
    with pytest.raises(ValueError, match=r"line 3: a row must have a label, of one line.*'a\\nb'"):
        read("train", train_file=path)


def test_an_unknown_label_among_several_is_named(tmp_path):
    path = written(tmp_path, "a.tsv", "text\tlabel", "one\tx", "two\tx,q")
    with pytest.raises(ValueError, match=r"line 3: each of `label` must be one of \['x', 'y'\]"):
        read("dev", dev_file=path, label_kind="multilabel", labels="x,y")
