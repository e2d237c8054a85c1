import numpy as np
import pytest
from conftest import shared_data

from data import classification_tables
from data.classification_tasks import TASKS
from evaluation import ranking


def test_the_most_probable_row_of_a_question_is_the_entailed_one():
    questions = ["q1", "q2", "q1", "q3", "q3", "q3"]
    entailed = np.array([0.1, 0.2, 0.3, 0.9, 0.7, 0.95])
    classes = ranking.ranked(questions, np.stack([entailed, 1 - entailed], axis=1), chosen=0)
    # q1: the better of two that are improbable; q2 stands alone; q3: one of three probable ones.
    assert classes.tolist() == [1, 1, 0, 1, 1, 0]


def test_the_class_may_be_1_and_the_first_of_equals_is_taken():
    probabilities = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
    assert ranking.ranked(["a", "a", "b"], probabilities, chosen=1).tolist() == [1, 0, 0]


def test_a_question_alone_is_classified():
    probabilities = np.array([[0.4, 0.6], [0.6, 0.4]])
    assert ranking.ranked(["a", "b"], probabilities, chosen=0).tolist() == [1, 0]


@pytest.mark.parametrize(("task", "rate"), [("QNLI", 1.0), ("WNLI", 253 / 267)])
def test_real_texts_on_several_rows_mostly_have_one_entailed_row(task, rate):
    row = TASKS[task]
    table = classification_tables.read(row, str(shared_data("glue")), "train")
    chosen = row.labels.index(row.ranked_label)
    groups = {}
    for text, label in zip(table.texts_a, table.label_ids, strict=True):
        groups.setdefault(text, []).append(label == chosen)
    several = [sum(labels) for labels in groups.values() if len(labels) > 1]
    assert np.mean([number == 1 for number in several]) == pytest.approx(rate)
