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

# Table 14 of the paper: the settings of its xxlarge models, for AdamW as the original has it.
# `dropout` is the encoder's ("ALBERT DR"), in hidden states and attention.
TABLE_14 = {
    "CoLA": (1e-5, 16, 0.0, 5_336, 320),
    "STS-B": (2e-5, 16, 0.0, 3_598, 214),
    "SST-2": (1e-5, 32, 0.0, 20_935, 1_256),
    "MNLI": (3e-5, 128, 0.0, 10_000, 1_000),
    "QNLI": (1e-5, 32, 0.0, 33_112, 1_986),
    "QQP": (5e-5, 128, 0.1, 14_000, 1_000),
    "RTE": (3e-5, 32, 0.1, 800, 200),
    "MRPC": (2e-5, 32, 0.0, 800, 200),
    "WNLI": (2e-5, 16, 0.1, 2_000, 250),
    "SQuAD 1.1": (5e-5, 48, 0.0, 3_649, 365),
    "SQuAD 2.0": (3e-5, 48, 0.0, 8_144, 814),
    "RACE": (2e-5, 32, 0.1, 12_000, 1_000),
}
MAX_SEQ_LENGTH = {"SQuAD 1.1": 384}  # 512 for all others.
FINE_TUNING = {
    **TABLE_14,
    # The original's README, for version 2 models: with Table 14's settings they diverge.
    "RACE v2": (1e-5, 32, 0.0, 12_000, 1_000),
}
# Of an evaluation, elsewhere 64: a question of RACE is four sequences.
EVAL_BATCH_SIZE = {"RACE": 16, "RACE v2": 16}
# CLUE's scripts for ALBERT: 128 pieces, batches of 16, 2 epochs.
CHINESE = {"learning_rate": 3e-5, "train_batch_size": 16, "max_seq_length": 128, "epochs": 2.0}
# Few steps: without bias correction the first ones are larger than the rate says, and some seeds
# call all rows by one name (docs/fine_tuning.md).
OWN_DATA = {
    "learning_rate": 2e-5,
    "train_batch_size": 32,
    "max_seq_length": 512,
    "epochs": 3.0,
    "bias_correction": True,
}
# Models narrower than any of the paper's learn too slowly with less.
NARROW, NARROW_LEAST = 512, 1e-4


def pretraining(model):
    """Returns the row for a size of `modeling.config.SIZES`, or for None: a config of one's own."""
    return PRETRAINING.get(model, PAPER)


def fine_tuning(task, hidden_size, row=None):
    """Returns the settings of one task for a model of one width.

    Args:
        task: a name in FINE_TUNING, or another one, whose `row` is then asked for.
        hidden_size: H of the model.
        row: dict such as CHINESE.

    Returns:
        A dict of TrainConfig's fields, `dropout`, `max_seq_length` and, instead of steps,
        possibly `epochs`.
    """
    settings = {"optimizer": "adamw", "keep_checkpoint_max": 1, "dropout": 0.0}
    settings |= {"eval_batch_size": EVAL_BATCH_SIZE.get(task, 64), **(row or {})}
    if task in FINE_TUNING:
        rate, batch, dropout, num_steps, num_warmup_steps = FINE_TUNING[task]
        settings |= {
            "learning_rate": rate,
            "train_batch_size": batch,
            "dropout": dropout,
            "num_train_steps": num_steps,
            "num_warmup_steps": num_warmup_steps,
            "max_seq_length": MAX_SEQ_LENGTH.get(task, 512),
        }
    if hidden_size < NARROW:
        settings["learning_rate"] = max(settings["learning_rate"], NARROW_LEAST)
    return settings
