import math

from evaluation import member_choice

# The score of each set of members.
SCORES = {"a": 0.6, "b": 0.7, "c": 0.7, "ab": 0.8, "bc": 0.75, "abc": 0.8, "ac": 0.9}


def scored(names):
    return SCORES["".join(sorted(names))]


def test_members_are_added_while_the_score_rises():
    # The best pair, a and c, is out of reach: b is chosen first. A third adds nothing.
    assert member_choice.choose(["a", "b", "c"], scored) == [("b", 0.7), ("a", 0.8)]
    assert member_choice.choose(["a"], scored) == [("a", 0.6)]


def test_a_score_that_is_not_a_number_is_chosen_only_for_want_of_another():
    assert member_choice.choose(["a", "b"], lambda names: math.nan if "a" in names else 0.1) == [
        ("b", 0.1)
    ]
    assert member_choice.choose(["a"], lambda names: math.nan) == [("a", -math.inf)]
