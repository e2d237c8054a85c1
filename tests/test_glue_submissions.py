from data.classification_tasks import TASKS
from evaluation import glue_submissions


def test_classes_are_the_words_that_the_site_wants():
    names = TASKS["RTE"].labels
    assert glue_submissions.submission(["0", "1"], [names[1], names[0]]) == (
        "index\tprediction\n0\tnot_entailment\n1\tentailment\n"
    )
    assert TASKS["MRPC"].labels == ("0", "1")


def test_scores_are_numbers_within_their_range():
    text = glue_submissions.submission(["7", "8", "9"], [-0.2, 2.5, 5.3])
    assert text == "index\tprediction\n7\t0.0000\n8\t2.5000\n9\t5.0000\n"


def test_each_test_set_has_the_name_that_the_site_knows():
    names = sorted(name for task in TASKS.values() for name in task.submissions.values())
    assert names == [
        *("AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv", "QNLI.tsv", "QQP.tsv"),
        *("RTE.tsv", "SST-2.tsv", "STS-B.tsv", "WNLI.tsv"),
    ]
