"""Figures of contestants that take their steps in turn, round by round."""

import statistics


def times(result, clock):
    """Returns a contestant's steps by one clock, in seconds."""
    return [step[clock] for step in result["steps"]]


def median_ratio(numerators, denominators):
    """Returns the median of the ratios of two equally long lists, round by round."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))
