"""The learning rate at each step: the original's schedule, and the rule for other batch sizes."""

import math

import tensorflow as tf


def learning_rate(
    step, *, init, num_train_steps, num_warmup_steps, start_warmup_step=0, power=1.0, end=0.0
):
    """Gives the rate of one step: polynomial decay from step 0, linear warm-up on top.

    The decay does not wait for the warm-up, so that the peak is never reached: at the
    end of the warm-up the rate falls from `init` to where the decay already is. With
    warm-up, step 0 has rate 0. Source: google-research/albert optimization.py:37-64.
    Differs from the original: before `start_warmup_step` the rate is 0; there it is
    negative (optimization.py:52-62).

    Args:
        step: int64[], steps already done.
        init: peak rate, as if there were no warm-up.
        num_train_steps: step from which the rate is `end`.
        num_warmup_steps: length of the warm-up, in steps; it may exceed `num_train_steps`.
        start_warmup_step: step at which the warm-up begins.
        power: power of the decay; 1 is linear.
        end: rate at the end.

    Returns:
        float32[].
    """
    decay_steps = tf.cast(num_train_steps, tf.float32)
    done = tf.minimum(tf.cast(step, tf.float32), decay_steps) / decay_steps
    rate = (init - end) * tf.pow(1.0 - done, power) + end
    if num_warmup_steps == 0:
        return rate
    warmed = tf.cast(step, tf.int64) - start_warmup_step
    warmup_rate = init * (tf.cast(warmed, tf.float32) / tf.cast(num_warmup_steps, tf.float32))
    return tf.where(warmed < num_warmup_steps, tf.maximum(warmup_rate, 0.0), rate)


def scaled_learning_rate(base, base_batch, batch, optimizer):
    """Carries a recipe's peak rate over to another batch size.

    LAMB's rate goes with the square root of the batch (You et al. 2020, "Large Batch
    Optimization for Deep Learning", Table 4 and section 4; ALBERT's 0.00176 at 4096 is
    a row of that table). AdamW has no such rule in the papers, so its rate stays.

    Args:
        base: the recipe's peak rate.
        base_batch: the recipe's examples per step.
        batch: examples per step of this run.
        optimizer: "lamb" or "adamw".

    Returns:
        float: the peak rate for `batch`.
    """
    return base * math.sqrt(batch / base_batch) if optimizer == "lamb" else base
