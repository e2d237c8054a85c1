import os
import signal
import subprocess
import sys

import programs
import pytest
from made_tokenizers import wordpiece_tokenizer

from data import (
    corpus,
    pretraining_examples,
    record_making,
    records,
    tokenization,
    tokenized_documents,
)
from data.corpus_parts import Part
from data.pretraining_examples import ExampleSettings

SETTINGS = ExampleSettings(max_seq_length=16, dupe_factor=3)


def recipe(tokenizer=None):
    return record_making.Recipe(tokenizer or wordpiece_tokenizer(), SETTINGS, "pieces", False)


def make_tasks(num_parts, passes=range(1)):
    """Makes tasks of two documents each, which tell by their letters which they are."""
    for number in range(num_parts):
        word = "a" * (number + 1)
        data = f"the {word}\n{word} walk\n\n{word}\nwalk the\n".encode()
        yield record_making.Task(Part((corpus.Block("text", 1, data),), False), passes)


class KillingTokenizer(tokenization.WordPieceTokenizer):
    """Ends the process that uses it, as a system does that is out of memory."""

    def encode_lines(self, lines, num_threads=1):
        os.kill(os.getpid(), signal.SIGKILL)


def test_results_come_in_the_order_of_the_tasks_for_any_number_of_workers():
    tasks = list(make_tasks(12))
    alone = [record_making.make_records(recipe(), task) for task in tasks]
    for num_workers in (1, 2):
        with record_making.results(recipe(), iter(tasks), num_workers) as results:
            results = list(results)
        assert [result.task for result in results] == tasks
        assert [result.records for result in results] == [result.records for result in alone]


def test_a_bounded_number_of_tasks_is_read_ahead():
    numbers_read = []

    def tasks():
        for number, task in enumerate(make_tasks(20)):
            numbers_read.append(number)
            yield task

    with record_making.results(recipe(), tasks(), 2) as results:
        for number, _ in enumerate(results):
            assert len(numbers_read) <= number + 1 + 2 * record_making.TASKS_AHEAD
    assert len(numbers_read) == 20


def test_passes_over_a_part_are_made_together_up_to_a_number():
    assert record_making.passes_over(1) == [range(1)]
    assert record_making.passes_over(23) == [range(10), range(10, 20), range(20, 23)]


def test_the_text_is_counted_in_the_first_pass_alone():
    (task,) = make_tasks(1, range(0, 2))
    (later,) = make_tasks(1, range(2, 3))
    first, second = (record_making.make_records(recipe(), some) for some in (task, later))
    assert first.corpus_counts.num_documents == first.example_counts.num_documents == 2
    assert second.corpus_counts.num_documents == second.example_counts.num_documents == 0
    assert first.example_counts.num_examples == 4 and second.example_counts.num_examples == 2


def test_records_are_shuffled_within_a_pass():
    text = "\n\n".join(f"{'a' * (i + 1)}\nthe walk" for i in range(60)).encode()
    block = corpus.Block("text", 1, text)
    result = record_making.make_records(
        recipe(), record_making.Task(Part((block,), False), range(1))
    )
    documents = tokenized_documents.tokenize(
        corpus.documents_of(block, corpus.CorpusCounts()), wordpiece_tokenizer()
    )
    ((examples, _),) = pretraining_examples.make_examples(
        documents, wordpiece_tokenizer(), SETTINGS, 0
    )
    in_order = records.serialize(examples)
    (shuffled,) = result.records
    assert sorted(shuffled) == sorted(in_order)
    assert sum(a == b for a, b in zip(shuffled, in_order, strict=True)) < 30


def test_a_killed_worker_is_an_error_of_one_line():
    tokenizer = KillingTokenizer(
        wordpiece_tokenizer().model_bytes, {"lower": True, "keep_accents": False}
    )
    with (
        pytest.raises(OSError, match="worker process was killed.*--num_workers"),
        record_making.results(recipe(tokenizer), make_tasks(4), 2) as results,
    ):
        list(results)


def test_workers_end_with_a_parent_that_is_killed():
    """They hold the pipe that is read here, so that it ends with the last of them."""
    code = """
import concurrent.futures, multiprocessing, os, signal
from data import record_making
spawn = multiprocessing.get_context("spawn")
start = record_making._start_worker, (None,)
executor = concurrent.futures.ProcessPoolExecutor(1, spawn, *start)
print(executor.submit(os.getpid).result(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=programs.REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        try:
            parent.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.kill(worker, signal.SIGKILL)
            raise
    assert parent.returncode == -signal.SIGKILL


def test_an_error_in_a_worker_comes_through():
    data = b"the a\nwalk \xff\n"
    tasks = [record_making.Task(Part((corpus.Block("text", 7, data),), False), range(1))] * 3
    strict = record_making.Recipe(wordpiece_tokenizer(), SETTINGS, "pieces", True)
    with (
        pytest.raises(ValueError, match="UTF-8.*text line 8"),
        record_making.results(strict, tasks, 2) as results,
    ):
        list(results)
