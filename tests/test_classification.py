import json

import numpy as np
import pytest
from conftest import golden_folder, shared_data, spm_model_file

from data import classification, classification_tables, tokenization
from data.classification_tables import Table
from data.classification_tasks import TASKS
from tests import made_tokenizers

GOLDEN = golden_folder("glue")
SPLITS = {"mnli": "matched", "mismnli": "mismatched"}
NAMES = {**{name.lower(): name for name in TASKS}, "mismnli": "MNLI"}


def golden_rows():
    """Groups the golden features: (task, tokenizer, part) -> rows in file order."""
    groups = {}
    with open(GOLDEN / "features_seq32.jsonl", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            groups.setdefault((row["task"], row["tokenizer"], row["part"]), []).append(row)
    return groups


GOLDEN_ROWS = golden_rows()


def golden_tokenizer(name):
    if name == "wordpiece":
        return tokenization.load(golden_folder("tokenization") / "vocab.txt")
    return tokenization.load(spm_model_file(), lower=name == "spm_lower")


def read_golden(task, part):
    split = f"{part}_{SPLITS[task]}" if task in SPLITS and part != "train" else part
    return classification_tables.read(TASKS[NAMES[task]], str(GOLDEN), split)


@pytest.mark.parametrize(("task", "tokenizer", "part"), GOLDEN_ROWS)
def test_golden_features_are_the_originals(task, tokenizer, part):
    rows = GOLDEN_ROWS[task, tokenizer, part]
    table = read_golden(task, part)
    length = len(rows[0]["input_ids"])
    made = classification.make_features(table, golden_tokenizer(tokenizer), length)
    assert len(made) == len(rows)
    for number, row in enumerate(rows):
        size = sum(row["input_mask"])
        for name in ("input_ids", "segment_ids"):
            assert made.sequence(name, number).tolist() == row[name][:size]
    if part != "test":
        assert made.columns["label_ids"].tolist() == [row["label_id"] for row in rows]


@pytest.mark.parametrize("task", sorted({task for task, _, _ in GOLDEN_ROWS}))
def test_golden_labels_have_the_originals_order(task):
    rows = next(rows for (name, _, _), rows in GOLDEN_ROWS.items() if name == task)
    assert list(TASKS[NAMES[task]].labels) == [x for x in rows[0]["label_list"] if x is not None]


def test_golden_short_rows_of_qqp_are_counted():
    """Differs from the original: it drops them in silence."""
    with open(GOLDEN / "QQP" / "train.tsv", encoding="utf-8") as file:
        num_rows = len(file.readlines()) - 1
    table = read_golden("qqp", "train")
    assert 0 < table.num_broken == num_rows - len(table)


def table(texts_a, texts_b=None, label_ids=None):
    return Table("-", [str(n) for n in range(len(texts_a))], texts_a, texts_b, label_ids)


TOKENIZER = made_tokenizers.wordpiece_tokenizer()


@pytest.mark.parametrize("text_b", ["", " ", "\u200b"])
def test_a_second_text_of_no_pieces_makes_a_single_text(text_b):
    pair = classification.make_features(table(["the a"], [text_b]), TOKENIZER, 16)
    single = classification.make_features(table(["the a"]), TOKENIZER, 16)
    for name in ("input_ids", "segment_ids"):
        assert pair.sequences[name].tolist() == single.sequences[name].tolist()


def test_an_empty_text_is_an_example_all_the_same():
    made = classification.make_features(table([""]), TOKENIZER, 16)
    assert made.sequences["input_ids"].tolist() == [TOKENIZER.cls_id, TOKENIZER.sep_id]


def test_the_share_of_truncated_examples_is_told():
    texts = ["a", "a a a a a a", "a a a", "a a a a"]
    assert classification.make_features(table(texts), TOKENIZER, 5).truncated_share == 0.5
    pairs = table(["a", "a a"], ["a", "a"])
    assert classification.make_features(pairs, TOKENIZER, 5).truncated_share == 0.5


def test_windows_over_a_long_text_overlap_by_half_and_reach_its_end():
    letters = list("abcdefghij")
    labelled = table([" ".join(letters), "a b"], label_ids=np.array([1, 0], np.int32))
    made = classification.make_features(labelled, TOKENIZER, 6, in_windows=True)
    assert made.columns["row"].tolist() == [0, 0, 0, 0, 1]
    assert made.columns["label_ids"].tolist() == [1, 1, 1, 1, 0]
    assert made.lengths().tolist() == [6, 6, 6, 6, 4]
    whole = TOKENIZER.encode(" ".join(letters))
    for window, begin in enumerate([0, 2, 4, 6]):
        assert made.sequence("input_ids", window)[1:-1].tolist() == whole[begin : begin + 4]


def test_each_window_of_a_pair_has_the_second_text():
    made = classification.make_features(
        table(["a b c d e f g"], ["x y"]), TOKENIZER, 8, in_windows=True
    )
    for example in range(len(made)):
        *_, x, y, end = made.sequence("input_ids", example)
        assert [x, y] == TOKENIZER.encode("x y") and end == TOKENIZER.sep_id
        assert made.sequence("segment_ids", example)[-3:].tolist() == [1, 1, 1]
    assert len(made) == 5 and made.truncated_share == 0


def test_rows_that_fit_are_the_same_in_windows():
    short = table(["a b", "c"], ["d", "e f"])
    plain = classification.make_features(short, TOKENIZER, 16)
    windows = classification.make_features(short, TOKENIZER, 16, in_windows=True)
    for name, values in plain.sequences.items():
        np.testing.assert_array_equal(values, windows.sequences[name])


def test_features_follow_the_texts_and_the_labels_and_the_length(tmp_path):
    def made(texts, label, length):
        labelled = table(texts, label_ids=np.array([label], np.float32))
        return classification.make_features(labelled, TOKENIZER, length, cache_folder=str(tmp_path))

    for _ in range(2):  # The second time from the cache.
        assert made(["a the"], 1.5, 8).columns["label_ids"].tolist() == [1.5]
        assert made(["a the"], 2.5, 8).columns["label_ids"].tolist() == [2.5]
        assert made(["a a the"], 1.5, 8).lengths().tolist() == [5]
        assert made(["a a a the"], 1.5, 5).lengths().tolist() == [5]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_length_without_room_for_a_pair_is_refused():
    with pytest.raises(ValueError, match="`max_seq_length` must be at least 5. Received: 4"):
        classification.make_features(table(["a"]), TOKENIZER, 4)


def test_real_rows_are_tokenized_in_bulk():
    tokenizer = tokenization.load(spm_model_file())
    read = classification_tables.read(TASKS["RTE"], str(shared_data("glue")), "dev")
    made = classification.make_features(read, tokenizer, 128)
    assert made.lengths().max() == 128
    row = int(np.argmin(made.lengths()))
    first, second = tokenizer.encode(read.texts_a[row]), tokenizer.encode(read.texts_b[row])
    assert made.sequence("input_ids", row).tolist() == [2, *first, 3, *second, 3]
