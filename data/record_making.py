"""Makes records from parts of a text, in one process or several, always in the same order."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import itertools
import multiprocessing
import os
import signal
import threading

from data import pretraining_examples, records, tokenized_documents
from data.corpus import CorpusCounts, documents_of
from data.corpus_parts import Part
from data.pretraining_examples import ExampleCounts, ExampleSettings
from data.tokenizer_base import Tokenizer

PASSES_AT_ONCE = 10  # Over a part, so that it is tokenized once for so many.
TASKS_AHEAD = 2  # For each worker: enough to keep it busy, few enough to bound memory.
SHUFFLE_PASS = 1 << 31  # A pass number that no pass over the text has.


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All that decides what a part's records are, but for the part and the pass."""

    tokenizer: Tokenizer
    settings: ExampleSettings
    unspaced_words: str  # Of tokenized_documents.UNSPACED_WORDS.
    fail_on_bad_bytes: bool


@dataclasses.dataclass(frozen=True)
class Task:
    """Some passes over a part."""

    part: Part
    passes: range


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a task: for each pass its records, and the counts.

    The counts of the text are those of the first pass of all, so that they add up.
    """

    task: Task
    records: list[list[bytes]]
    example_counts: ExampleCounts
    corpus_counts: CorpusCounts


def passes_over(num_passes):
    """Returns the ranges of passes that are made at once."""
    starts = range(0, num_passes, PASSES_AT_ONCE)
    return [range(start, min(start + PASSES_AT_ONCE, num_passes)) for start in starts]


def make_records(recipe, task):
    """Makes the records of some passes over one part; a pure function.

    Args:
        recipe: Recipe.
        task: Task.

    Returns:
        Result; within a pass the records are shuffled.

    Raises:
        ValueError: there are bad bytes and `recipe.fail_on_bad_bytes`.
    """
    corpus_counts = CorpusCounts()
    documents = [
        document
        for block in task.part.blocks
        for document in documents_of(block, corpus_counts, recipe.fail_on_bad_bytes)
    ]
    tokenized = tokenized_documents.tokenize(documents, recipe.tokenizer, recipe.unspaced_words)
    counts = ExampleCounts()
    if 0 in task.passes:
        counts = pretraining_examples.count_documents(tokenized, recipe.settings)
    else:
        corpus_counts = CorpusCounts()
    made = []
    for number in task.passes:
        of_pass = []
        for examples, some_counts in pretraining_examples.make_examples(
            tokenized, recipe.tokenizer, recipe.settings, number
        ):
            of_pass += records.serialize(examples)
            counts.add(some_counts)
        made.append(shuffled(of_pass, recipe.settings.random_seed, number, tokenized.keys))
    return Result(task, made, counts, corpus_counts)


def shuffled(values, random_seed, pass_number, keys):
    """Returns a list in an order that depends on the seed, the pass and the first document."""
    if not values:
        return []
    generator = pretraining_examples.document_generator(
        random_seed, SHUFFLE_PASS + pass_number, keys[0]
    )
    return [values[place] for place in generator.permutation(len(values))]


_recipe = None  # Of a worker process: sent once, when it starts.


def _start_worker(recipe):
    global _recipe
    _recipe = recipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent alone answers to Ctrl-C.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    """Ends this worker when its parent is gone, killed: nothing else would tell it."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _work(task):
    return make_records(_recipe, task)


@contextlib.contextmanager
def results(recipe, tasks, num_workers):
    """Begins to work on tasks, and gives their results in the order of the tasks.

    A context manager: on entering, the workers start (by `spawn`; they import no TensorFlow)
    and begin, so that whoever imports TensorFlow meanwhile loses no time. A bounded
    number of tasks is under way, so memory does not grow with the text.

    Args:
        recipe: Recipe.
        tasks: iterable of Task.
        num_workers: int; with 1, or for a single task, all is done in this process.

    Yields:
        An iterator of Result. It raises ValueError as `make_records` does, and OSError when
        a worker process was killed.
    """
    tasks = iter(tasks)
    first = list(itertools.islice(tasks, 2))
    tasks = itertools.chain(first, tasks)
    if num_workers == 1 or len(first) < 2:
        yield (make_records(recipe, task) for task in tasks)
        return
    executor = concurrent.futures.ProcessPoolExecutor(
        num_workers, multiprocessing.get_context("spawn"), _start_worker, (recipe,)
    )
    try:
        ahead = itertools.islice(tasks, TASKS_AHEAD * num_workers)
        under_way = collections.deque(executor.submit(_work, task) for task in ahead)
        yield in_order(executor, under_way, tasks)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def in_order(executor, under_way, tasks):
    """Yields the results of futures, and submits a task for each one that is done."""
    try:
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(executor.submit(_work, task) for task in itertools.islice(tasks, 1))
            yield result
    except concurrent.futures.process.BrokenProcessPool as error:
        raise OSError(
            "a worker process was killed, perhaps for want of memory. Set a smaller --num_workers."
        ) from error
