"""Measures the reading of pretraining records: masked when they were made, or anew each time.

python benchmarks/input_pipeline.py --input_file='records/*.tfrecord' --json=input.json

The records need their `metadata.json` and tokenizer. The sides take turns, so that other work on
the machine strikes both; processor time is what to go by where there is any. A ratio is the median
of the rounds'.
"""

import json
import os
import pathlib
import statistics
import sys
import time

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line

INPUT_FILE = flags.DEFINE_string("input_file", None, "Records, as of training.", required=True)
BATCH_SIZE = flags.DEFINE_integer("batch_size", 256, "Examples a batch.", lower_bound=1)
NUM_BATCHES = flags.DEFINE_integer("num_batches", 40, "Batches a turn.", lower_bound=1)
ROUNDS = flags.DEFINE_integer("rounds", 5, "Turns of each side.", lower_bound=1)
NUM_THREADS = flags.DEFINE_integer("num_threads", 0, "Of TensorFlow and tf.data; 0: all.")
JSON = flags.DEFINE_string("json", None, "File for every single measurement.")


def take_turn(dataset):
    """Reads some batches; returns examples a second, by the clock and by the processor."""
    batches = iter(dataset)  # Anew each turn: an old one would read ahead in the other's turn.
    next(batches)
    start, processor_start = time.perf_counter(), time.process_time()
    for _ in range(NUM_BATCHES.value):
        next(batches)
    num_examples = NUM_BATCHES.value * BATCH_SIZE.value
    return {
        "examples_per_second": num_examples / (time.perf_counter() - start),
        "examples_per_processor_second": num_examples / (time.process_time() - processor_start),
    }


def datasets():
    """Returns the dataset of each side's batches, by name."""
    import tensorflow as tf

    from data import input_pipeline, pretraining_examples
    from runs import pretraining_records

    asked = dict.fromkeys(("max_seq_length", "max_predictions_per_seq", "sentence_objective"))
    records = pretraining_records.find(INPUT_FILE.value, None, asked=asked, tokenizer=None)
    told = records.masking_settings() | records.lengths
    settings = pretraining_examples.ExampleSettings(**told)
    maskings = {"static": None, "dynamic": pretraining_records.dynamic(records, settings, seed=1)}
    options = tf.data.Options()
    options.threading.private_threadpool_size = NUM_THREADS.value
    options.autotune.enabled = not NUM_THREADS.value
    found = {}
    for side, masking in maskings.items():
        batches = input_pipeline.pretraining_dataset(
            records.train,
            **records.lengths,
            batch_size=BATCH_SIZE.value,
            training=True,
            shuffle_buffer=1000,
            masking=masking,
        )
        found[side] = batches.with_options(options) if NUM_THREADS.value else batches
    return found


def main():
    command_line.prepare_tensorflow()
    import tensorflow as tf

    if NUM_THREADS.value:
        tf.config.threading.set_intra_op_parallelism_threads(NUM_THREADS.value)
        tf.config.threading.set_inter_op_parallelism_threads(NUM_THREADS.value)
    sides = datasets()
    rounds = [
        {side: take_turn(dataset) for side, dataset in sides.items()} for _ in range(ROUNDS.value)
    ]
    if JSON.value:
        pathlib.Path(JSON.value).write_text(json.dumps(rounds, indent=2))
    print("side      examples/s  examples/processor second")
    for side in sides:
        rates = [
            statistics.median(measured[side][name] for measured in rounds)
            for name in ("examples_per_second", "examples_per_processor_second")
        ]
        print(f"{side:8}  {rates[0]:10,.0f}  {rates[1]:25,.0f}")
    name = "examples_per_processor_second"
    ratio = statistics.median(row["dynamic"][name] / row["static"][name] for row in rounds)
    print(f"dynamic / static, by the processor: {ratio:.2f}")


if __name__ == "__main__":
    command_line.run(main)
