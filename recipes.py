"""Settings that are known to work, one row each, with their source.

A program takes a row as its defaults; the user's flags come before it.
"""

# The paper, section 4.1, and the original's run_pretraining.py:37-119, for every published size.
PAPER = {
    "optimizer": "lamb",
    "learning_rate": 1.76e-3,
    "train_batch_size": 4096,
    "num_train_steps": 125_000,
    "num_warmup_steps": 3_125,
}

# Sizes that a machine without accelerator trains: docs/pretraining.md has what tiny reaches.
# A beta_2 of 0.98 (as RoBERTa's, Table 9): without bias correction 0.999 leaves the mean square
# too small for a thousand steps; with 200 steps of warm-up a run never left "always the comma".
SMALL_MACHINE = {
    "optimizer": "adamw",
    "learning_rate": 1e-3,
    "beta_2": 0.98,
    "train_batch_size": 16,
    "num_train_steps": 30_000,
    "num_warmup_steps": 1_000,
    "save_checkpoints_steps": 1_500,
    "iterations_per_loop": 250,
}

PRETRAINING = {"tiny": SMALL_MACHINE, "small": SMALL_MACHINE}


def pretraining(model):
    """Returns the row for a size of `modeling.config.SIZES`, or for None: a config of one's own."""
    return PRETRAINING.get(model, PAPER)
