"""Data creation as an Apache Beam pipeline, for texts beyond one machine.

The records are those of `record_making`, as a multiset: the same pure function makes them. Beam
decides where, in which order, and which file each of them goes to.
"""

import dataclasses
import functools
import json
import logging
import os
import shlex

from data import corpus, corpus_parts, files, record_making
from data.corpus import CorpusCounts
from data.pretraining_examples import ExampleCounts
from data.record_sets import HELDOUT, TRAINING, WrittenSet

COUNTS = {"text": CorpusCounts, TRAINING: ExampleCounts, HELDOUT: ExampleCounts}
REPORT_FILE = ".creation-report.json"  # What the pipeline tells the program at its end.


@dataclasses.dataclass(frozen=True)
class Text:
    """Files to be read one after the other; the rest as of `corpus_parts.read_parts`."""

    paths: list[str]
    num_training_bytes: int | None


def divide(paths, objective, num_training_bytes):
    """Divides a text into what can be read apart without any example coming out otherwise.

    That is every file, but not for "nsp": its random segments come from the text that is worked
    on together, which may be several small files.

    Args:
        paths: list[str].
        objective: "sop", "nsp" or "none".
        num_training_bytes: int, or None to hold nothing out.

    Returns:
        list[Text].
    """
    if objective == "nsp":
        return [Text(paths, num_training_bytes)]
    texts = []
    for path in paths:
        texts.append(Text([path], num_training_bytes))
        if num_training_bytes is not None:
            num_training_bytes -= corpus.num_text_bytes(path) - corpus.num_mark_bytes(path)
    return texts


def read_tasks(text, dupe_factor):
    """Yields the record_making.Tasks of a Text and, as "counts", what was met in reading."""
    from apache_beam.pvalue import TaggedOutput

    counts = CorpusCounts()
    for part in corpus_parts.read_parts(text.paths, counts, text.num_training_bytes):
        for passes in record_making.passes_over(1 if part.is_heldout else dupe_factor):
            yield record_making.Task(part, passes)
    yield TaggedOutput("counts", {"text": counts})


def make_records(task, recipe):
    """Yields the records of a task as TRAINING or HELDOUT, and their counts as "counts"."""
    from apache_beam.pvalue import TaggedOutput

    result = record_making.make_records(recipe, task)
    name = HELDOUT if task.part.is_heldout else TRAINING
    for of_pass in result.records:
        yield from (TaggedOutput(name, record) for record in of_pass)
    yield TaggedOutput("counts", {"text": result.corpus_counts, name: result.example_counts})


def total(counts):
    """Adds up dicts of some of COUNTS."""
    sums = {name: kind() for name, kind in COUNTS.items()}
    for some in counts:
        for name, value in some.items():
            sums[name].add(value)
    return sums


def describe_shard(path, name):
    """Reads a file that was written and returns its row in the report: [set, shard]."""
    import tensorflow as tf

    from data import record_reading

    num_bytes, num_examples = tf.io.gfile.stat(path).length, record_reading.count([path])
    return name, {"file": path, "num_examples": num_examples, "num_bytes": num_bytes}


def report_line(parts):
    """Turns counts and rows of shards into one line of JSON."""
    report = {"counts": {}, TRAINING: [], HELDOUT: []}
    for part in parts:
        if isinstance(part, dict):
            report["counts"] = {name: dataclasses.asdict(value) for name, value in part.items()}
        else:
            report[part[0]].append(part[1])
    return json.dumps(report)


def read_report(path, names):
    """Reads the report and removes it.

    Args:
        path: str.
        names: list, the sets.

    Returns:
        (CorpusCounts, list of WrittenSet).
    """
    report = json.loads(files.read_bytes(path))
    files.remove(path)
    counts = {name: kind(**report["counts"][name]) for name, kind in COUNTS.items()}
    return counts["text"], [
        WrittenSet(name, counts[name], sorted(report[name], key=lambda shard: shard["file"]))
        for name in names
    ]


def connect(pipeline, texts, recipe, outputs, report_path):
    """Connects the stages of a pipeline.

    Args:
        pipeline: beam.Pipeline.
        texts: list[Text].
        recipe: record_making.Recipe.
        outputs: dict of a set's name to (path before the file's number, ending, number of files).
        report_path: str, a file.
    """
    import apache_beam as beam

    read = functools.partial(read_tasks, dupe_factor=recipe.settings.dupe_factor)
    make = functools.partial(make_records, recipe=recipe)
    tasks = (
        pipeline
        | "Texts" >> beam.Create(texts)
        | "SpreadTexts" >> beam.Reshuffle()
        | "Read" >> beam.FlatMap(read).with_outputs("counts", main="tasks")
    )
    made = (
        tasks.tasks
        | "SpreadTasks" >> beam.Reshuffle()
        | "Make" >> beam.FlatMap(make).with_outputs("counts", TRAINING, HELDOUT)
    )
    counts = (tasks.counts, made.counts) | "Counts" >> beam.Flatten()
    told = [counts | "Total" >> beam.CombineGlobally(total)]
    for name, (stem, ending, num_shards) in outputs.items():
        write = beam.io.WriteToTFRecord(
            stem,
            file_name_suffix=ending,
            num_shards=num_shards,
            shard_name_template="-SSSSS-of-NNNNN" if num_shards > 1 else "",
        )
        describe = beam.Map(functools.partial(describe_shard, name=name))
        told.append(made[name] | f"Write {name}" >> write | f"Describe {name}" >> describe)
    report = told | "Told" >> beam.Flatten() | "Gather" >> beam.combiners.ToList()
    write = beam.io.WriteToText(report_path, shard_name_template="", num_shards=1)
    report | "Line" >> beam.Map(report_line) | "Report" >> write


def open_pipeline(words):
    """Returns the beam.Pipeline of some options; without a runner, it runs on this machine.

    Beam's own choice without a runner is a program that it downloads for it.

    Args:
        words: str, the options as on a command line.

    Raises:
        ValueError: Beam is not installed.
    """
    logging.disable(logging.WARNING)  # On importing, Beam tells of each cloud it finds nothing of.
    try:
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
        from apache_beam.runners.portability.fn_api_runner import FnApiRunner
    except ImportError as error:
        raise ValueError(
            "`runner=beam` needs Apache Beam: `pip install -r requirements-beam.txt`. Received: "
            f"a Python without it ({error})."
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    options = PipelineOptions(shlex.split(words))
    if options.view_as(StandardOptions).runner:
        return beam.Pipeline(options=options)
    logging.getLogger("apache_beam").setLevel(logging.WARNING)
    return beam.Pipeline(FnApiRunner(), options)


def create(settings, recipe, paths):
    """Makes the records of a text and writes them, wherever Beam's options say.

    Args:
        settings: CreationSettings.
        recipe: record_making.Recipe.
        paths: list[str], the text files.

    Returns:
        (CorpusCounts, list of WrittenSet): what was read, what was written.

    Raises:
        ValueError: Beam is not installed, or there is no example for a file.
    """
    num_training_bytes = None
    if settings.heldout_file:
        num_training_bytes = settings.num_training_bytes(sum(map(corpus.num_text_bytes, paths)))
    texts = divide(paths, recipe.settings.sentence_objective, num_training_bytes)
    outputs = {TRAINING: (*os.path.splitext(settings.output_file), settings.num_shards)}
    if settings.heldout_file:
        outputs[HELDOUT] = (*os.path.splitext(settings.heldout_file), 1)
    report_path = os.path.join(os.path.dirname(settings.output_file), REPORT_FILE)
    with open_pipeline(settings.beam_options) as pipeline:
        connect(pipeline, texts, recipe, outputs, report_path)
    counts, sets = read_report(report_path, list(outputs))
    for record_set in sets:
        try:
            record_set.check(counts)
        except ValueError:
            for shard in (shard for some in sets for shard in some.shards):
                files.remove(shard["file"])
            raise
    return counts, sets
