"""Measures how much memory a training step takes, beside what is estimated when a run starts.

python benchmarks/memory.py --hidden_size=256 --num_layers=24 --shapes=2x512

Each figure is the growth of a process's resident memory over the largest step, once weights and
slots are there and the graph is built: gradients and activations. Needs Linux.
"""

import os
import sys

from absl import flags

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import command_line
from benchmarks import memory_growth
from modeling import config

HIDDEN_SIZE = flags.DEFINE_integer("hidden_size", 256, "H; heads of 64, inner width 4H.")
NUM_LAYERS = flags.DEFINE_integer("num_layers", 24, "Layers, of shared weights.")
VOCAB_SIZE = flags.DEFINE_integer("vocab_size", 1_000, "V; small, so that the layers dominate.")
SHAPES = flags.DEFINE_list("shapes", ["2x512"], "Batches, BxT each.")
PRECISIONS = flags.DEFINE_list("precisions", ["float32"], "Of float32, bfloat16, float16.")
DROPOUT = flags.DEFINE_float("dropout", 0.0, "Of hidden states and attention.")


def main():
    model_config = config.AlbertConfig(
        vocab_size=VOCAB_SIZE.value,
        hidden_size=HIDDEN_SIZE.value,
        num_hidden_layers=NUM_LAYERS.value,
        num_attention_heads=HIDDEN_SIZE.value // 64,
        intermediate_size=4 * HIDDEN_SIZE.value,
        hidden_dropout_prob=DROPOUT.value,
        attention_probs_dropout_prob=DROPOUT.value,
    )
    print(f"{NUM_LAYERS.value} layers of hidden size {HIDDEN_SIZE.value}; MiB (estimated)\n")
    print("| shape | precision | without | --recompute | ratio |\n|---|---|---|---|---|")
    for shape in SHAPES.value:
        sizes = [int(size) for size in shape.split("x")]
        for precision in PRECISIONS.value:
            cells, found = [], []
            for recompute in (False, True):
                settings = {"precision": precision, "recompute": recompute}
                grown, estimated = memory_growth.measure(model_config, *sizes, **settings)
                found.append(grown)
                cells.append(f"{grown / 2**20:.0f} ({estimated / 2**20:.0f})")
            ratio = found[1] / found[0]
            print(f"| {shape} | {precision} | {cells[0]} | {cells[1]} | {ratio:.0%} |", flush=True)


if __name__ == "__main__":
    command_line.run(main)
