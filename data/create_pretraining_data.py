"""Creates pretraining data from raw text: TFRecords with the features of the original.

    python -m data.create_pretraining_data --input_file='text/*.txt' \\
        --output_file=data/train.tfrecord --tokenizer=tokenizer --max_seq_length=128

One sentence a line, a blank line between documents:

    The first sentence of a document.
    Its second sentence.
    Its last sentence.

    The next document starts after a blank line.
    It is split into sentences as well.

This is work for the CPU. `--heldout_file` keeps the last documents out of the training data
and writes them apart; `--verify` checks the files of `--output_file` and makes none.
"""

import contextlib
import dataclasses
import itertools
import sys
import time

import tqdm

import command_line
from data import (
    beam_pipeline,
    corpus,
    corpus_parts,
    creation_report,
    record_making,
    record_sets,
    tokenization,
)
from data.creation_settings import CreationSettings
from data.files import is_remote
from data.pretraining_examples import ExampleSettings
from data.tokenized_documents import LONGEST_MEAN_WORD, mean_unspaced_run

# Text, times the passes over it, that one process goes through while another one starts.
BYTES_A_WORKER = 8_000_000
NUM_FILES_SAMPLED, NUM_LINES_SAMPLED = 8, 1000  # Lines of each file.


def warn(message):
    print(f"warning: {message}", file=sys.stderr)


def sample_lines(paths):
    """Returns lines from the beginning of some files, evenly chosen: list[str]."""
    step = -(-len(paths) // NUM_FILES_SAMPLED)
    lines = []
    for path in paths[::step]:
        block = next(corpus.read_blocks(path, corpus.CorpusCounts()), None)
        documents = corpus.documents_of(block, corpus.CorpusCounts()) if block else []
        of_file = (line for document in documents for line in document.lines)
        lines += itertools.islice(of_file, NUM_LINES_SAMPLED)
    return lines


def check_unknown_rate(lines, tokenizer, max_unknown_rate):
    """Raises ValueError, with ten words, where a sample has too many unknown pieces."""
    rate, words = tokenizer.unknown_rate(lines)
    if rate > max_unknown_rate:
        raise ValueError(
            f"at most {max_unknown_rate:.1%} of the pieces may be unknown (`max_unknown_rate`). "
            f"Received: {rate:.1%} of a sample of the text, in words such as {', '.join(words)}. "
            "Take a vocabulary made for such text, and as of its kind, SentencePiece or WordPiece."
        )


def choose_unspaced_words(lines, asked):
    """Says how to find words in scripts without blanks, and tells the user when it matters."""
    mean_run = mean_unspaced_run(lines)
    if asked != "auto" or not mean_run:
        return "pieces" if asked == "auto" else asked
    if mean_run <= LONGEST_MEAN_WORD:
        print("Words of scripts without blanks are what the text separates by blanks.")
        return "blanks"
    warn(
        "whole-word masking has no effect on scripts without blanks, such as Chinese: each piece "
        "is a word. Separate the words of the text by blanks, for instance with jieba."
    )
    return "pieces"


def tasks(paths, counts, dupe_factor, num_training_bytes):
    """Yields the tasks of a run: training passes over the whole text, held-out ones but once.

    Args:
        paths: list[str], the text files.
        counts: CorpusCounts; those of reading grow, by the first passes alone.
        dupe_factor: int, passes over the training text.
        num_training_bytes: as of `corpus_parts.read_parts`.

    Yields:
        record_making.Task.
    """
    for passes in record_making.passes_over(dupe_factor):
        is_first = passes.start == 0
        of_reading = counts if is_first else corpus.CorpusCounts()
        for part in corpus_parts.read_parts(paths, of_reading, num_training_bytes):
            if not part.is_heldout:
                yield record_making.Task(part, passes)
            elif is_first:
                yield record_making.Task(part, range(1))


def choose_recipe(settings, example_settings, tokenizer, paths):
    """Returns the record_making.Recipe, after a look at a sample of the text.

    Args:
        settings: CreationSettings.
        example_settings: ExampleSettings.
        tokenizer: a Tokenizer.
        paths: list[str], the text files.

    Raises:
        ValueError: the tokenizer does not know the text's words.
    """
    lines = sample_lines(paths)
    check_unknown_rate(lines, tokenizer, settings.max_unknown_rate)
    unspaced_words = choose_unspaced_words(lines, settings.unspaced_words)
    return record_making.Recipe(
        tokenizer, example_settings, unspaced_words, settings.fail_on_bad_bytes
    )


def create(settings, recipe, paths):
    """Makes the records of a text and writes them, on this machine.

    Args:
        settings: CreationSettings.
        recipe: record_making.Recipe.
        paths: list[str], the text files.

    Returns:
        (CorpusCounts, list of record_sets.WrittenSet): what was read, what was written.

    Raises:
        ValueError: there is no example for a file, or what the text's checks raise.
        OSError: a file cannot be read or written.
    """
    num_bytes = sum(map(corpus.num_text_bytes, paths))
    num_training_bytes = settings.num_training_bytes(num_bytes)
    counts, dupe_factor = corpus.CorpusCounts(), recipe.settings.dupe_factor
    work = tasks(paths, counts, dupe_factor, num_training_bytes)
    num_workers = max(1, min(settings.num_workers, -(-num_bytes * dupe_factor // BYTES_A_WORKER)))
    num_rounds = len(record_making.passes_over(dupe_factor))
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(record_making.results(recipe, work, num_workers))
        sets = open_record_sets(settings, dupe_factor)
        for record_set in sets:
            stack.enter_context(record_set)
        bar = tqdm.tqdm(
            total=num_bytes * num_rounds, unit="B", unit_scale=True, disable=None, leave=False
        )
        stack.enter_context(bar)
        for result in results:
            sets[result.task.part.is_heldout].write(result)
            counts.add(result.corpus_counts)
            bar.update(sum(len(block.data) for block in result.task.part.blocks))
        written = [record_set.written for record_set in sets]
        for record_set in written:
            record_set.check(counts)
    return counts, written


def open_record_sets(settings, dupe_factor):
    """Returns the record_sets.RecordSet for training and, where asked for, that held out."""
    output_files, heldout_files = settings.output_files(), settings.heldout_files()
    command_line.prepare_tensorflow()
    sets = [record_sets.RecordSet(record_sets.TRAINING, output_files, dupe_factor)]
    if heldout_files:
        sets.append(record_sets.RecordSet(record_sets.HELDOUT, heldout_files, 1))
    return sets


def verify(settings):
    """Reads all records of `output_file` and raises ValueError when a file is bad."""
    from data import record_verification

    files = settings.files_to_verify()
    problems = record_verification.verify(files)
    for path, problem in problems:
        print(f"{path}: {problem}")
    if problems:
        raise ValueError(f"{len(problems)} of {len(files)} record files are bad.")
    print(f"{len(files)} record files are sound.")


def run(settings, example_settings):
    """Does what the flags ask for, which is all but reading them.

    Args:
        settings: CreationSettings.
        example_settings: ExampleSettings.

    Raises:
        ValueError, OSError: a mistake of the user's.
    """
    if settings.verify:
        command_line.prepare_tensorflow()
        return verify(settings)
    if settings.random_next_sentence:
        example_settings = dataclasses.replace(example_settings, sentence_objective="nsp")
    written = settings.output_files() + settings.heldout_files()
    if settings.runner == "beam" or any(map(is_remote, [settings.input_file, *written])):
        command_line.prepare_tensorflow()
    paths = corpus.expand_patterns(settings.input_file)
    tokenizer = tokenization.load(settings.tokenizer_path(), lower=settings.do_lower_case)
    record_sets.check_folders(written, tokenizer)

    start = time.perf_counter()
    recipe = choose_recipe(settings, example_settings, tokenizer, paths)
    create_records = beam_pipeline.create if settings.runner == "beam" else create
    counts, sets = create_records(settings, recipe, paths)
    flags = {**dataclasses.asdict(settings), **dataclasses.asdict(example_settings)}
    for record_set in sets:
        record_set.write_metadata(flags, example_settings, tokenizer, counts)
    for message in creation_report.warnings(counts, sets[0].counts, example_settings):
        warn(message)
    print(creation_report.summary(counts, sets, time.perf_counter() - start))


def main():
    settings = command_line.from_flags(CreationSettings)
    example_settings = command_line.from_flags(ExampleSettings)
    objective = example_settings.sentence_objective
    is_told = command_line.is_given("sentence_objective") and objective != "nsp"
    if settings.random_next_sentence and is_told:
        raise ValueError(
            "`random_next_sentence` means --sentence_objective=nsp; give one of them. Received: "
            f"it and sentence_objective={objective}."
        )
    with command_line.ended_by_sigterm():
        run(settings, example_settings)


if __name__ == "__main__":
    command_line.define_flags(CreationSettings)
    command_line.define_flags(ExampleSettings)
    command_line.run(main)
