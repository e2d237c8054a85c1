import math
import statistics

import pytest

from evaluation import repeated_runs


def runs(*accuracies, **others):
    return [
        {
            "seed": seed,
            "metrics": {
                "accuracy": accuracy,
                **{name: values[seed] for name, values in others.items()},
            },
        }
        for seed, accuracy in enumerate(accuracies)
    ]


def test_five_runs_have_the_known_median_mean_deviation_and_best():
    values = (0.60, 0.72, 0.58, 0.66, 0.64)
    summary = repeated_runs.summarize(runs(*values))["accuracy"]
    assert summary == {
        "median": 0.64,
        "mean": pytest.approx(0.64),
        "deviation": pytest.approx(statistics.stdev(values)),
        "best": 0.72,
        "median_seed": 4,
        "best_seed": 1,
    }


def test_an_even_number_of_runs_has_a_median_between_two_and_the_seed_of_the_lower():
    summary = repeated_runs.summarize(runs(0.9, 0.5, 0.7, 0.6))["accuracy"]
    assert (summary["median"], summary["median_seed"]) == (pytest.approx(0.65), 3)


def test_one_run_is_its_own_median_and_has_no_deviation():
    summary = repeated_runs.summarize(runs(0.5))["accuracy"]
    assert (summary["median"], summary["best"], summary["median_seed"]) == (0.5, 0.5, 0)
    assert math.isnan(summary["deviation"])


def test_a_score_that_is_not_a_number_is_the_worst_and_not_hidden_in_the_mean():
    summary = repeated_runs.summarize(runs(math.nan, 0.2, 0.3))["accuracy"]
    assert (summary["median"], summary["best"]) == (0.2, 0.3)
    assert math.isnan(summary["mean"])


def test_every_metric_has_its_own_median_run():
    summary = repeated_runs.summarize(runs(0.1, 0.2, 0.3, f1=[0.6, 0.4, 0.5]))
    assert [summary[name]["median_seed"] for name in ("accuracy", "f1")] == [1, 2]


def test_of_errors_and_losses_the_least_is_the_best():
    summary = repeated_runs.summarize(
        runs(0.1, 0.2, 0.3, loss=[0.6, 0.4, math.nan], mean_squared_error=[3.0, 1.0, 2.0])
    )
    assert [summary[name]["best_seed"] for name in summary] == [2, 1, 1]
    assert summary["loss"]["median"] == 0.6


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "none"),
        ([{"seed": 1, "metrics": {}}, {"seed": 1, "metrics": {}}], r"seeds \[1, 1\]"),
        (
            [{"seed": 1, "metrics": {"f1": 0.0}}, {"seed": 2, "metrics": {"accuracy": 0.5}}],
            "'accuracy'.* at seed 2",
        ),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        repeated_runs.summarize(bad)


def test_the_table_shows_runs_and_summary_in_percent():
    expected = """\
seed        accuracy   matthews       loss
0              50.00      10.00     0.5000
1              75.00          -     1.2500
2              60.00      20.00     0.7500
median         60.00      10.00     0.7500
mean           61.67          -     0.8333
deviation      12.58          -     0.3819
best           75.00      20.00     0.5000
The run with the median accuracy is that of seed 2."""
    found = repeated_runs.table(
        runs(0.5, 0.75, 0.6, matthews=[0.1, math.nan, 0.2], loss=[0.5, 1.25, 0.75])
    )
    assert found == expected
