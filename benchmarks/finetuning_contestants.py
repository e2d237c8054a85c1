"""Fine-tuning of a classifier by each library and each way to make batches.

A contestant is a row: how it draws the batches of an epoch, how long it pads each, and a
function that builds it and returns its step, which learns from given batches. All compute in
float32 with the same sizes, dropout, AdamW and clipping. As in contestants.py, nothing heavy is
imported before a worker asks for it.

Shapes: B batch, T tokens.
"""

import collections.abc
import dataclasses

import numpy as np

from benchmarks.contestants import (
    CLIP_NORM,
    DECAY,
    Contestant,
    hugging_face_config,
    limit_tensorflow,
)
from data.features import Features
from modeling.config import AlbertConfig
from training.config import TrainConfig

RATE, NUM_CLASSES, CLASSIFIER_DROPOUT = 2e-5, 2, 0.1


@dataclasses.dataclass(frozen=True)
class Work:
    """What every contestant learns from."""

    config: AlbertConfig
    features: Features
    batch_size: int
    max_seq_length: int
    num_threads: int

    @property
    def num_steps(self):
        """Returns the steps of an epoch."""
        return -(-len(self.features) // self.batch_size)


@dataclasses.dataclass(frozen=True)
class FineTuner(Contestant):
    """A contestant, and the batches it makes.

    Attributes:
        epoch: Work -> list of int64[at most B], which examples each batch holds.
        padded_length: (longest, `max_seq_length`) -> T.
        fills_up: whether the last batch is filled up to B rows.
    """

    epoch: collections.abc.Callable = None
    padded_length: collections.abc.Callable = None
    fills_up: bool = False

    def num_positions(self, work, batch):
        """Returns how many tokens, padding and all, the model sees in a batch: rows * T."""
        longest = work.features.lengths()[batch].max()
        num_rows = work.batch_size if self.fills_up else len(batch)
        return int(num_rows * self.padded_length(longest, work.max_seq_length))


def by_length(work):
    """Draws the batches of an epoch as our programs do."""
    from data import length_batches

    return length_batches.epoch_order(work.features.lengths(), work.batch_size, (0, 0))


def at_random(work):
    """Draws batches as a DataLoader does."""
    order = np.random.default_rng(0).permutation(len(work.features))
    return np.split(order, range(work.batch_size, len(order), work.batch_size))


def next_static_length(longest, max_seq_length):
    """Returns what our programs pad to."""
    from data import static_lengths

    return static_lengths.padded_length(longest, max_seq_length)


def plan(contestant, work, rounds, batches_per_round):
    """Chooses the batches of each turn: evenly spread over the epoch's, ordered by their cost.

    So a few turns are like the whole epoch, and as many as it has batches are all of it, once.

    Returns:
        (list of all batches of the epoch, list of `rounds` lists of batches).
    """
    epoch = contestant.epoch(work)
    order = sorted(range(len(epoch)), key=lambda b: contestant.num_positions(work, epoch[b]))
    shares = np.arange(batches_per_round)[:, np.newaxis] + (np.arange(rounds) + 0.5) / rounds
    places = (shares * len(epoch) / batches_per_round).astype(int)  # int[batches, rounds]
    return epoch, [[epoch[order[place]] for place in column] for column in places.T]


def ours(work):
    """Builds the step of run_classifier.py, with its strategy, its batches and its loop."""
    limit_tensorflow(work.num_threads)
    from data import length_batches
    from modeling import task_losses, task_models
    from training import distribution, run, step

    settings = TrainConfig(
        optimizer="adamw",
        learning_rate=RATE,
        weight_decay=DECAY,
        clip_norm=CLIP_NORM,
        num_train_steps=10 * work.num_steps,
        num_warmup_steps=work.num_steps,
        train_batch_size=work.batch_size,
    )
    strategy = distribution.create_strategy("one_device")
    with strategy.scope():
        model = task_models.Classifier(work.config, NUM_CLASSES, CLASSIFIER_DROPOUT)
        state = run.create_state(model.named_variables(), settings)

    def forward(batch, dropout_seed):
        outputs = model(batch, training=True, dropout_seed=dropout_seed)
        return task_losses.classification_losses(outputs, batch)

    train_step = step.TrainStep(
        forward, task_losses.OBJECTIVES, state=state, config=settings, strategy=strategy
    )

    def learn(batches):
        dataset = length_batches.dataset(
            work.features, lambda: iter(batches), work.batch_size, work.max_seq_length
        )
        iterator = iter(distribution.distribute(dataset, strategy))
        return train_step.run(iterator, len(batches))["loss"]

    return learn


def hugging_face(work, length=None, activation="gelu_new"):
    """Builds the plain loop in PyTorch; pads to `length`, or to the longest of each batch."""
    import torch
    import transformers

    from benchmarks import hugging_face_loop

    torch.set_num_threads(work.num_threads)
    torch.manual_seed(0)
    config = hugging_face_config(
        work.config,
        hidden_act=activation,
        num_labels=NUM_CLASSES,
        classifier_dropout_prob=CLASSIFIER_DROPOUT,
    )
    model = transformers.AlbertForSequenceClassification(config)
    trainer = hugging_face_loop.Trainer(model, RATE, 10 * work.num_steps)
    examples = [
        {
            "input_ids": work.features.sequence("input_ids", number),
            "token_type_ids": work.features.sequence("segment_ids", number),
            "label": int(label),
        }
        for number, label in enumerate(work.features.columns["label_ids"])
    ]

    def learn(batches):
        losses = [
            trainer.step(hugging_face_loop.collate([examples[e] for e in batch], length))
            for batch in batches
        ]
        return sum(losses) / len(losses)

    return learn


def hugging_face_fused(work):
    """Builds the loop with dynamic padding, and GELU in one operation."""
    return hugging_face(work, activation="gelu_pytorch_tanh")


def hugging_face_full(work):
    """Builds the loop that pads every batch to `max_seq_length`."""
    return hugging_face(work, work.max_seq_length)


OUR_MODULES = (
    "data.length_batches",
    "modeling.task_models",
    "modeling.task_losses",
    "training.run",
    "training.distribution",
)
THEIR_MODULES = ("torch", "transformers.models.albert.modeling_albert")
THEIRS = {"uses_tensorflow": False, "epoch": at_random}
CONTESTANTS = {
    "by_length": FineTuner(
        "ours, batches by length",
        OUR_MODULES,
        ours,
        epoch=by_length,
        padded_length=next_static_length,
        fills_up=True,
    ),
    "dynamic_padding": FineTuner(
        "Hugging Face, padded to the longest of each batch",
        THEIR_MODULES,
        hugging_face,
        padded_length=lambda longest, most: longest,
        **THEIRS,
    ),
    "dynamic_padding_fused": FineTuner(
        "the same, GELU in one operation",
        THEIR_MODULES,
        hugging_face_fused,
        padded_length=lambda longest, most: longest,
        **THEIRS,
    ),
    "full_padding": FineTuner(
        "Hugging Face, padded to the full length",
        THEIR_MODULES,
        hugging_face_full,
        padded_length=lambda longest, most: most,
        **THEIRS,
    ),
}
