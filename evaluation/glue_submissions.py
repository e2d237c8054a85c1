"""The files that the GLUE site scores: a line of `index` and `prediction` for each test row.

Their names are in data/classification_tasks.py. Classes are words where GLUE's labels are words
(`entailment`), numbers elsewhere: just the label names of the tasks.
"""

HEADER = "index\tprediction"
SCORE_RANGE = (0.0, 5.0)  # Of STS-B's labels; the site's own baseline stays in it too.


def submission(ids, predictions):
    """Returns a submission file's content.

    Args:
        ids: the values of the test file's `index` (or `id`) column, in order.
        predictions: a label name for each, or a float (STS-B), which is brought into
            SCORE_RANGE.
    """
    low, high = SCORE_RANGE
    values = (
        value if isinstance(value, str) else f"{min(max(float(value), low), high):.4f}"
        for value in predictions
    )
    rows = (f"{number}\t{value}" for number, value in zip(ids, values, strict=True))
    return "\n".join([HEADER, *rows]) + "\n"
