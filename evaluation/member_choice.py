"""Which of several runs an ensemble is made of."""

import math


def choose(names, score):
    """Chooses members one by one, as long as the score rises (forward selection).

    Args:
        names: list of the candidates' names; of equals the first is taken.
        score: function of a list of names that returns a float, where more is better.

    Returns:
        A list of (name, score with it and those before it), at least one.
    """
    chosen, best = [], -math.inf
    while rest := [name for name in names if name not in dict(chosen)]:
        so_far = [name for name, _ in chosen]
        scores = {name: score([*so_far, name]) for name in rest}
        scores = {name: -math.inf if math.isnan(value) else value for name, value in scores.items()}
        name = max(rest, key=scores.get)
        if chosen and scores[name] <= best:
            break
        best = scores[name]
        chosen.append((name, best))
    return chosen
