"""Several runs that differ in their seed, told in a few numbers.

Fine-tuning's scores scatter, on small sets by several points, so ALBERT's paper gives the
median of five runs (arXiv 1909.11942, section 4.2).
"""

import math

import numpy as np

STATISTICS = ("median", "mean", "deviation", "best")
WIDTH = 9  # Of a column, at least.


def summarize(runs):
    """Summarizes each metric over the runs. More is better, in all metrics.

    A score that is not a number (a correlation of a constant) counts as the worst. Of an even
    number of runs, the median is the mean of the middle two, and its seed the lower one's.

    Args:
        runs: list of dicts, one a run: `seed`, and its value by each metric's name.

    Returns:
        dict, metric -> dict: `median`, `mean`, `deviation` (sample standard deviation, NaN of
        one run), `best`, `median_seed` and `best_seed`.

    Raises:
        ValueError: no run, a seed twice, or runs with different metrics.
    """
    check(runs)
    return {name: summarize_metric(runs, name) for name in metric_names(runs[0])}


def summarize_metric(runs, name):
    """Summarizes one metric; the result is that of `summarize` for it."""
    ranked = sorted(runs, key=lambda run: (worth(run[name]), -run["seed"]))
    values = [float(run[name]) for run in ranked]
    below, above = (len(runs) - 1) // 2, len(runs) // 2
    return {
        "median": (values[below] + values[above]) / 2,
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
        "best": values[-1],
        "median_seed": ranked[below]["seed"],
        "best_seed": ranked[-1]["seed"],
    }


def worth(value):
    """Returns the value to rank by."""
    return -math.inf if math.isnan(value) else value


def metric_names(run):
    return [name for name in run if name != "seed"]


def check(runs):
    """Refuses runs that cannot be summarized together."""
    if not runs:
        raise ValueError("`runs` must hold at least one run. Received: none.")
    seeds = [run["seed"] for run in runs]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"`runs` must have seeds of their own. Received: seeds {seeds}.")
    for run in runs:
        if metric_names(run) != metric_names(runs[0]):
            raise ValueError(
                "`runs` must have the same metrics. Received: "
                f"{metric_names(runs[0])} at seed {seeds[0]}, {metric_names(run)} at seed "
                f"{run['seed']}."
            )


def table(runs):
    """Writes the runs and their summary as a table of plain text.

    Args:
        runs: as `summarize`'s; the first metric is the one whose median run is named.

    Returns:
        str of several lines, scores in percent of their unit (a correlation of 1 is 100).
    """
    summary = summarize(runs)
    names = list(summary)
    widths = {name: max(WIDTH, len(name)) for name in names}

    def line(head, values):
        cells = (f"{values[name]:>{widths[name]}}" for name in names)
        return "  ".join([f"{head:<{WIDTH}}", *cells])

    def percent(value):
        return "-" if math.isnan(value) else f"{100 * value:.2f}"

    lines = [line("seed", {name: name for name in names})]
    for run in runs:
        lines.append(line(run["seed"], {name: percent(run[name]) for name in names}))
    for statistic in STATISTICS:
        lines.append(line(statistic, {name: percent(summary[name][statistic]) for name in names}))
    first = names[0]
    lines.append(
        f"The run with the median {first} is that of seed {summary[first]['median_seed']}."
    )
    return "\n".join(lines)
