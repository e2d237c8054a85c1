"""Shows what a pretraining run learned: a table and a picture from its `metrics.jsonl`.

python benchmarks/learning_curve.py --output_dir=output --plot_file=docs/curve.png
"""

import json
import os

from absl import flags

import command_line

OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder of the run.")
PLOT_FILE = flags.DEFINE_string("plot_file", None, "PNG to write; none by default.")
PIECES_PER_EXAMPLE = flags.DEFINE_float(
    "pieces_per_example", None, "Mean length without padding. Not given: the full length counts."
)
BASELINES = flags.DEFINE_list(
    "baselines", [], "name:percent pairs drawn as lines, masked-LM ones named mlm-..., order-..."
)
LINES = ("--", ":", "-.")


def read_curve(folder, pieces_per_example):
    """Returns a row for each evaluation: step, minutes, pieces, and the two accuracies.

    Args:
        folder: the run's folder.
        pieces_per_example: float, or None for the full length.

    Returns:
        A list of dicts; minutes are those spent in training steps, pieces in millions.
    """
    seconds = examples = tokens = last_step = 0
    curve = []
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        for row in map(json.loads, file):
            if row["split"] == "train":
                steps, last_step = row["step"] - last_step, row["step"]
                batch = settings(folder)["train_batch_size"]
                spent = steps * batch / row["examples_per_second"]
                seconds, examples = seconds + spent, examples + steps * batch
                tokens += row["tokens_per_second"] * spent
            else:
                pieces = examples * pieces_per_example if pieces_per_example else tokens
                curve.append({**row, "minutes": seconds / 60, "pieces": pieces / 1e6})
    if not curve:
        raise ValueError(f"`output_dir` must hold a run with evaluations. Received: {folder}.")
    return curve


def settings(folder):
    with open(os.path.join(folder, "settings.json")) as file:
        return json.load(file)


def print_table(curve):
    print("| step | minutes | pieces seen | masked-LM accuracy | order accuracy |")
    print("|---|---|---|---|---|")
    for row in curve:
        print(
            f"| {row['step']:,} | {row['minutes']:.1f} | {row['pieces']:.1f}M "
            f"| {100 * row['masked_lm_accuracy']:.1f} % "
            f"| {100 * row['sentence_order_accuracy']:.1f} % |"
        )


def draw(curve, baselines, path):
    """Draws both accuracies over the pieces seen, with the baselines as lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    panels = (
        ("masked_lm_accuracy", "masked-LM accuracy", "mlm-", (0, 40)),
        ("sentence_order_accuracy", "sentence-order accuracy", "order-", (40, 70)),
    )
    for axis, (name, title, prefix, least_range) in zip(axes, panels, strict=True):
        axis.plot(
            [row["pieces"] for row in curve], [100 * row[name] for row in curve], marker=".",
            label="held out",
        )  # fmt: skip
        for style, (label, value) in zip(LINES, baselines.get(prefix, []), strict=False):
            axis.axhline(value, linestyle=style, color="gray", label=label)
        axis.set(xlabel="pieces seen, millions", ylabel="%", title=title)
        bottom, top = axis.get_ylim()  # Noise should not fill the picture.
        axis.set_ylim(min(bottom, least_range[0]), max(top, least_range[1]))
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def main():
    if not OUTPUT_DIR.value:
        raise ValueError("`output_dir` must name the folder of a run. Received: nothing.")
    curve = read_curve(OUTPUT_DIR.value, PIECES_PER_EXAMPLE.value)
    print_table(curve)
    if PLOT_FILE.value:
        baselines = {}
        for pair in BASELINES.value:
            prefix, name, percent = pair.replace("-", "-:", 1).split(":")
            baselines.setdefault(prefix, []).append((name, float(percent)))
        draw(curve, baselines, PLOT_FILE.value)


if __name__ == "__main__":
    command_line.run(main)
