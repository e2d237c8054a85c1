"""Labelled texts whose class one word tells, in files of one's own, and flags to learn them."""

import numpy as np
import programs

CLASSES = programs.WORDS["noun"].split()[:5]
OTHERS = [*programs.WORDS["adjective"].split(), *programs.WORDS["verb"].split()]
# Few steps, one shape: what a tiny model with random weights needs to learn the classes.
LEARN = {
    "train_batch_size": 16,
    "num_train_steps": 60,
    "num_warmup_steps": 5,
    "learning_rate": 3e-3,
    "max_seq_length": 16,
    "save_checkpoints_steps": 30,
    "iterations_per_loop": 30,
}
TWO_STEPS = {**LEARN, "num_train_steps": 2, "num_warmup_steps": 0, "save_checkpoints_steps": 2}
NO_DROPOUT = dict.fromkeys(
    ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"), 0.0
)
STILL = {**TWO_STEPS, "learning_rate": 0.0}  # The weights stay as they begin.


def encoder(folder, **changes):
    """Returns the flags of a tiny model that begins with random weights."""
    return {
        "from_scratch": True,
        "albert_config_file": programs.write_config(
            folder, programs.VOCAB_SIZE, initializer_range=0.1, **changes
        ),
        "tokenizer": programs.write_word_list(folder),
    }


def text(generator, *words):
    """Invents a text of six words with these among them."""
    drawn = [*generator.choice(OTHERS, 6 - len(words)), *words]
    return " ".join(generator.permutation(drawn))


def rows(number, seed=0, classes=CLASSES):
    """Returns a list of (label, text), the classes in turn."""
    generator = np.random.default_rng(seed)
    labels = [classes[count % len(classes)] for count in range(number)]
    return [(label, text(generator, label)) for label in labels]


def write(path, header, rows):
    """Writes a TSV file and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(map(str, row)) for row in [header, *rows]]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_own(folder, classes=CLASSES, num_train=200, num_dev=40):
    """Writes rows to train on and to evaluate; returns the flags that name them."""
    header = ("label", "text")
    return {
        "task": "custom",
        "train_file": write(folder / "train.tsv", header, rows(num_train, 0, classes)),
        "dev_file": write(folder / "dev.tsv", header, rows(num_dev, 1, classes)),
    }
