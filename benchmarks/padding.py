"""Measures what padding costs in pretraining: batches of like length against padded ones.

python benchmarks/padding.py --input_file='records/train*' --model=base --rounds=2

Both ways train on the same examples, a window of batches a round, turn by turn in one process,
with AdamW in float32. Speed is that of real pieces, padding not counted.
"""

import os
import statistics
import sys
import time

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import contestants
from modeling import config
from training.config import TrainConfig

INPUT_FILE = flags.DEFINE_string("input_file", None, "Records: paths or patterns, comma between.")
MODEL = flags.DEFINE_enum("model", "base", list(config.SIZES), "Size of the model.")
BATCH_SIZE = flags.DEFINE_integer("train_batch_size", 8, "Examples a step.", lower_bound=1)
ROUNDS = flags.DEFINE_integer("rounds", 1, "Windows that each way trains on.", lower_bound=1)
WAYS = {"padded": False, "by length": True}


class Way:
    """A model that learns from one kind of batches.

    Args:
        dataset: endless tf.data.Dataset of batches.
        train_step: TrainStep.
    """

    def __init__(self, dataset, train_step):
        from training import distribution

        self.train_step = train_step
        self.batches = iter(distribution.distribute(dataset, train_step.strategy))
        self.counted = iter(dataset)  # The same batches, to count what is in them.

    def take(self, num_batches):
        """Learns from the next batches.

        Returns:
            dict: `seconds`; `real` and `padded`, pieces.
        """
        masks = [next(self.counted)["input_mask"].numpy() for _ in range(num_batches)]
        started = time.perf_counter()
        self.train_step.run(self.batches, num_batches)
        return {
            "seconds": time.perf_counter() - started,
            "real": sum(int(mask.sum()) for mask in masks),
            "padded": sum(mask.size for mask in masks),
        }


def make_ways():
    """Builds a Way for each of WAYS, all on the records of the flags."""
    from data import corpus, input_pipeline, metadata

    files = corpus.expand_patterns(INPUT_FILE.value)
    (described,) = metadata.read(files[:1])
    batch_size = BATCH_SIZE.value
    settings = TrainConfig(optimizer="adamw", learning_rate=1e-4, train_batch_size=batch_size)
    lengths = {
        "max_seq_length": described.max_seq_length,
        "max_predictions_per_seq": described.max_predictions_per_seq,
    }
    return {
        name: Way(
            input_pipeline.pretraining_dataset(
                files, batch_size=batch_size, training=True, by_length=by_length, **lengths
            ),
            contestants.make_step(settings, config.size(MODEL.value, described.vocab_size)),
        )
        for name, by_length in WAYS.items()
    }


def print_table(rounds):
    """Prints a row for each way; `rounds` is a list of dicts, name to what `Way.take` returned."""
    print("| batches | padded pieces of real | real pieces/s | of the padded way's |")
    print("|---|---|---|---|")
    speeds = {name: [r[name]["real"] / r[name]["seconds"] for r in rounds] for name in WAYS}
    for name, values in speeds.items():
        share = sum(r[name]["padded"] for r in rounds) / sum(r[name]["real"] for r in rounds)
        pairs = zip(values, speeds["padded"], strict=True)
        ratio = statistics.median(one / other for one, other in pairs)
        print(f"| {name} | {share:.2f} | {statistics.median(values):.0f} | {ratio:.2f} |")


def main():
    command_line.prepare_tensorflow()
    command_line.compile_quietly()
    from data import length_windows

    ways, rounds = make_ways(), []
    for number in range(1 + ROUNDS.value):
        taken = {name: way.take(length_windows.WINDOW) for name, way in ways.items()}
        if number:  # The first builds the graphs.
            rounds.append(taken)
        print(f"round {number}: {taken}", file=sys.stderr)
    print(
        f"ALBERT-{MODEL.value}, float32; {ROUNDS.value} window(s) of {length_windows.WINDOW} "
        f"batches of {BATCH_SIZE.value}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}."
    )
    print_table(rounds)


if __name__ == "__main__":
    command_line.run(main)
