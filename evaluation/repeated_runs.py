"""Several runs that differ in their seed, told in a few numbers.

Fine-tuning's scores scatter, on small sets by several points, so ALBERT's paper gives the
median of five runs (arXiv 1909.11942, section 4.2).
"""

import math

import numpy as np

STATISTICS = ("median", "mean", "deviation", "best")
WIDTH = 9  # Of a column, at least.


def summarize(runs):
    """Summarizes each metric over the runs.

    More is better, but of losses and errors less. A score that is not a number (a correlation
    of a constant) counts as the worst. Of an even number of runs, the median is the mean of the
    middle two, and its seed that of the worse.

    Args:
        runs: list of dicts, one a run: `seed`, int, and `metrics`, dict of float.

    Returns:
        dict, metric -> dict: `median`, `mean`, `deviation` (sample standard deviation, NaN of
        one run), `best`, `median_seed` and `best_seed`.

    Raises:
        ValueError: no run, a seed twice, or runs with different metrics.
    """
    check(runs)
    return {name: summarize_metric(runs, name) for name in runs[0]["metrics"]}


def summarize_metric(runs, name):
    """Summarizes one metric; the result is that of `summarize` for it."""
    ranked = sorted(runs, key=lambda run: (worth(run["metrics"][name], name), -run["seed"]))
    values = [float(run["metrics"][name]) for run in ranked]
    below, above = (len(runs) - 1) // 2, len(runs) // 2
    return {
        "median": (values[below] + values[above]) / 2,
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
        "best": values[-1],
        "median_seed": ranked[below]["seed"],
        "best_seed": ranked[-1]["seed"],
    }


def is_cost(name):
    """Says whether less is better of a metric."""
    return name.endswith(("loss", "error"))


def worth(value, name):
    """Returns what to rank a metric's value by: more is better."""
    if math.isnan(value):
        return -math.inf
    return -value if is_cost(name) else value


def check(runs):
    """Refuses runs that cannot be summarized together."""
    if not runs:
        raise ValueError("`runs` must hold at least one run. Received: none.")
    seeds = [run["seed"] for run in runs]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"`runs` must have seeds of their own. Received: seeds {seeds}.")
    for run in runs:
        if set(run["metrics"]) != set(runs[0]["metrics"]):
            raise ValueError(
                "`runs` must have the same metrics. Received: "
                f"{sorted(runs[0]['metrics'])} at seed {seeds[0]}, {sorted(run['metrics'])} at "
                f"seed {run['seed']}."
            )


def table(runs):
    """Writes the runs and their summary as a table of plain text.

    Args:
        runs: as `summarize`'s; the first metric is the one whose median run is named.

    Returns:
        str of several lines. Scores are in hundredths (an accuracy of 1 is 100), losses and
        errors as they are.
    """
    summary = summarize(runs)
    widths = {name: max(WIDTH, len(name)) for name in summary}

    def line(head, cells):
        return "  ".join([f"{head:<{WIDTH}}", *(f"{cells[n]:>{widths[n]}}" for n in summary)])

    def formatted(values):
        return {name: cell(values[name], name) for name in summary}

    lines = [line("seed", {name: name for name in summary})]
    lines += [line(run["seed"], formatted(run["metrics"])) for run in runs]
    for statistic in STATISTICS:
        values = {name: numbers[statistic] for name, numbers in summary.items()}
        lines.append(line(statistic, formatted(values)))
    first = next(iter(summary))
    lines.append(
        f"The run with the median {first} is that of seed {summary[first]['median_seed']}."
    )
    return "\n".join(lines)


def cell(value, name):
    if math.isnan(value):
        return "-"
    return f"{value:.4f}" if is_cost(name) else f"{100 * value:.2f}"
