import numpy as np
import pytest
from conftest import shared_data

from data import classification_tables
from data.classification_tasks import TASKS

ROWS = {  # Of the files in shared/data, as its README says; MRPC lacks one of its 3,668.
    "CoLA": {"train": 8551, "dev": 1043, "test": 1063},
    "SST-2": {"train": 67349, "dev": 872, "test": 1821},
    "MRPC": {"train": 3667, "dev": 408, "test": 1725},
    "STS-B": {"train": 5749, "dev": 1500, "test": 1379},
    "QQP": {"train": 8999, "dev": 1000},
    "MNLI": {"train": 8999, "dev_matched": 500, "dev_mismatched": 500},
    "QNLI": {"train": 8999, "dev": 5463, "test": 5463},
    "RTE": {"train": 2490, "dev": 277, "test": 3000},
    "WNLI": {"train": 635, "dev": 71, "test": 146},
    "AX": {"test": 1104},
}
CHINESE_ROWS = {
    "ChnSentiCorp": ("zh", {"train": 9600, "dev": 1200, "test": 1200}),
    "LCQMC": ("zh", {"dev": 8802, "test": 12500}),
    "TNEWS": ("zh/fewclue_tnews", {"train": 1185, "dev": 1098, "test": 2010}),
    "OCNLI": ("zh/fewclue_ocnli", {"train": 160, "dev": 160, "test": 2520}),
}


def lines_of(folder, task, split, lines):
    """Writes a split of a task in the folder that GLUE's download makes; returns the folder."""
    row = TASKS[task]
    path = folder / row.directory / row.files[split][0]
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(folder)


def read(folder, task, split, lines):
    return classification_tables.read(TASKS[task], lines_of(folder, task, split, lines), split)


def test_an_unlabelled_file_gives_a_row_a_line_with_its_id(tmp_path):
    table = read(tmp_path, "SST-2", "test", ["index\tsentence", *(f"r{n}\ttext" for n in range(5))])
    assert table.ids == ["r0", "r1", "r2", "r3", "r4"]
    assert table.label_ids is None


def test_rows_without_ids_count_from_0(tmp_path):
    table = read(tmp_path, "SST-2", "dev", ["sentence\tlabel", "one\t1", "two\t0"])
    assert table.ids == ["0", "1"]
    assert table.label_ids.tolist() == [1, 0]


def test_a_bad_label_is_named_with_its_line_and_what_is_allowed(tmp_path):
    lines = ["sentence\tlabel", "one\t1", "two\t0", "three\tmaybe", "four\t1"]
    with pytest.raises(ValueError) as caught:
        read(tmp_path, "SST-2", "dev", lines)
    for part in ("dev.tsv, line 4", "'maybe'", "['0', '1']"):
        assert part in str(caught.value)


def test_scores_of_sts_b_stay_numbers(tmp_path):
    scores = ["1.0", "4.5", "3.0", "0.0", "5.0"]
    lines = ["sentence1\tsentence2\tscore", *(f"one\ttwo\t{score}" for score in scores)]
    table = read(tmp_path, "STS-B", "dev", lines)
    assert table.label_ids.dtype == np.float32
    assert table.label_ids.tolist() == [1.0, 4.5, 3.0, 0.0, 5.0]
    assert TASKS["STS-B"].num_outputs == 1


@pytest.mark.parametrize("score", ["high", "", "nan", "inf"])
def test_what_is_no_score_is_named(tmp_path, score):
    with pytest.raises(ValueError, match=r"dev\.tsv, line 2: `score` must be a number"):
        read(tmp_path, "STS-B", "dev", ["sentence1\tsentence2\tscore", f"one\ttwo\t{score}"])


def test_training_files_must_be_labelled(tmp_path):
    with pytest.raises(ValueError, match=r"train\.tsv must have the columns \['label'\]"):
        read(tmp_path, "RTE", "train", ["index\tsentence1\tsentence2", "0\tone\ttwo"])


def test_rows_without_agreement_are_left_out_and_counted(tmp_path):
    rows = [("entailment", 0), ("-", 1), ("neutral", 2)]
    lines = [f'{{"sentence1": "a", "sentence2": "b", "label": "{x}", "id": {n}}}' for x, n in rows]
    table = read(tmp_path, "OCNLI", "dev", lines)
    assert (table.ids, table.num_unlabelled) == (["0", "2"], 1)
    assert table.label_ids.tolist() == [1, 2]


def test_short_rows_of_qqp_are_an_error_where_each_row_is_to_be_predicted(tmp_path):
    lines = ["id\tquestion1\tquestion2", "0\tone\ttwo", "1\tthree"]
    with pytest.raises(ValueError, match=r"test\.tsv, line 3: a row must have 3 columns"):
        read(tmp_path, "QQP", "test", lines)


def test_short_rows_of_others_are_an_error(tmp_path):
    lines = ["index\tsentence1\tsentence2\tlabel", "0\tone\ttwo\tentailment", "1\tthree"]
    with pytest.raises(ValueError, match=r"train\.tsv, line 3: a row must have 4 columns"):
        read(tmp_path, "RTE", "train", lines)


def test_labels_of_json_may_be_numbers(tmp_path):
    table = read(tmp_path, "TNEWS", "train", ['{"label": 115, "sentence": "x", "keywords": ""}'])
    assert TASKS["TNEWS"].labels[table.label_ids[0]] == "115"


def test_text_of_json_must_be_text(tmp_path):
    with pytest.raises(ValueError, match=r"train\.json, line 1: `sentence` must be text.*: 7"):
        read(tmp_path, "TNEWS", "train", ['{"label": 115, "sentence": 7}'])


def test_the_files_may_lie_in_the_folder_itself(tmp_path):
    lines_of(tmp_path, "RTE", "test", ["index\tsentence1\tsentence2", "7\tone\ttwo"])
    assert classification_tables.read(TASKS["RTE"], str(tmp_path / "RTE"), "test").ids == ["7"]


def test_a_missing_file_is_named_with_all_that_it_may_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train\.json.*train\.50k\.json"):
        classification_tables.read(TASKS["OCNLI"], str(tmp_path), "train")


def test_a_split_that_a_task_lacks_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`split` must be one of \['test'\]. Received: 'train'"):
        classification_tables.read(TASKS["AX"], str(tmp_path), "train")


@pytest.mark.parametrize(("task", "split"), [(t, s) for t, splits in ROWS.items() for s in splits])
def test_the_real_files_of_glue_are_read_whole(task, split):
    table = classification_tables.read(TASKS[task], str(shared_data("glue")), split)
    assert len(table) == ROWS[task][split]
    assert (table.num_broken, table.num_unlabelled) == (0, 0)
    assert (table.label_ids is None) == split.startswith("test")
    assert (table.texts_b is None) == (task in ("CoLA", "SST-2"))
    assert not split.startswith("test") or table.ids == [str(n) for n in range(len(table))]


@pytest.mark.parametrize(
    ("task", "split"), [(t, s) for t, (_, splits) in CHINESE_ROWS.items() for s in splits]
)
def test_the_real_chinese_files_are_read_whole(task, split):
    folder, splits = CHINESE_ROWS[task]
    table = classification_tables.read(TASKS[task], str(shared_data(folder)), split)
    assert len(table) == splits[split]
    assert (table.label_ids is None) == (task == "LCQMC" and split == "test")


def test_a_task_has_one_or_two_texts_and_metrics_and_its_own_submissions():
    names = [name for task in TASKS.values() for name in task.submissions.values()]
    assert len(set(names)) == len(names) == 11
    for task in TASKS.values():
        assert len(task.text_columns) in (1, 2)
        assert task.metrics
        assert (task.label_kind == "number") == (task.labels == ())
        assert set(task.submissions) <= set(task.splits("test"))
