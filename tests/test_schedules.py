import json

import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder

from training import schedules

CASES = json.loads((golden_folder("optimizer") / "lr_schedules.json").read_text())


def rates(args, num_steps):
    arguments = {"power": args.get("poly_power", 1.0), "init": args["init_lr"]}
    for name in ("num_train_steps", "num_warmup_steps", "start_warmup_step"):
        arguments[name] = args.get(name, 0)
    return np.array(
        [schedules.learning_rate(tf.constant(s), **arguments) for s in range(num_steps)]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case["args"].values())))
def test_golden_rates_are_the_originals_where_those_are_not_negative(case):
    original = np.array(case["learning_rate_at_global_step"])
    ours = rates(case["args"], len(original))
    # Differs from the original: before `start_warmup_step` its rate is negative, ours is 0.
    np.testing.assert_allclose(ours, np.maximum(original, 0.0), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("start", [1, 7, 100])
def test_the_rate_is_zero_before_warmup_starts_and_never_negative(start):
    args = {"init_lr": 1e-3, "num_train_steps": 20, "num_warmup_steps": 4}
    ours = rates({**args, "start_warmup_step": start}, 30)
    assert (ours[: start + 1] == 0).all()
    assert (ours >= 0).all()


def test_the_rate_falls_to_the_given_end_and_stays_there():
    ours = [
        float(
            schedules.learning_rate(
                tf.constant(step, tf.int64),
                init=1.0,
                num_train_steps=4,
                num_warmup_steps=0,
                end=0.2,
            )
        )
        for step in range(7)
    ]
    np.testing.assert_allclose(ours, [1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2], rtol=1e-6)


def test_the_rate_is_exact_after_ten_million_steps():
    rate = schedules.learning_rate(
        tf.constant(9_999_999, tf.int64),
        init=1.0,
        num_train_steps=20_000_000,
        num_warmup_steps=10_000_000,
    )
    assert float(rate) == pytest.approx(0.9999999, rel=1e-7)


def test_lambs_rate_goes_with_the_square_root_of_the_batch_and_adamws_stays():
    assert schedules.scaled_learning_rate(0.00176, 4096, 1024, "lamb") == pytest.approx(0.00088)
    assert schedules.scaled_learning_rate(0.00176, 4096, 4096, "lamb") == 0.00176
    assert schedules.scaled_learning_rate(0.00176, 4096, 64, "adamw") == 0.00176


def test_the_recipes_rate_is_a_row_of_lambs_table():
    """5 / (2^k * 1000) with the batch doubling from 512 at k = 3 (paper-facts B.5's arithmetic)."""
    row_512, row_4096 = (5 / (2**k * 1000) for k in (3, 1.5))
    scaled = schedules.scaled_learning_rate(row_512, 512, 4096, "lamb")
    assert scaled == pytest.approx(row_4096, rel=1e-12)
    assert scaled == pytest.approx(0.00176, rel=5e-3)
