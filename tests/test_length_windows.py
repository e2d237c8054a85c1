"""Pretraining batches of like length: the same examples, and the same loss, with less padding."""

import itertools

import made_models
import numpy as np
import pytest
import tensorflow as tf

from data import input_pipeline, length_windows, records, static_lengths
from modeling import losses, models

T, P, V, B = 96, 4, 100, 2
NUM_EXAMPLES = 60  # Not a multiple of a window.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Writes records, half of them short; the first of `masked_lm_ids` numbers them."""
    rng = np.random.default_rng(0)
    lengths = np.where(np.arange(NUM_EXAMPLES) % 2, T, rng.integers(8, T, NUM_EXAMPLES))
    mask = (np.arange(T) < lengths[:, np.newaxis]).astype(int)
    examples = {
        "input_ids": rng.integers(5, V, (NUM_EXAMPLES, T)) * mask,
        "input_mask": mask,
        "segment_ids": (np.arange(T) > 4) * mask,
        "token_boundary": mask,
        "masked_lm_positions": np.tile(np.arange(P), (NUM_EXAMPLES, 1)),
        "masked_lm_ids": rng.integers(0, V, (NUM_EXAMPLES, P)),
        "masked_lm_weights": np.ones((NUM_EXAMPLES, P), np.float32),
        "next_sentence_labels": rng.integers(0, 2, NUM_EXAMPLES),
    }
    examples["masked_lm_ids"][:, 0] = np.arange(NUM_EXAMPLES)
    path = str(tmp_path_factory.mktemp("records") / "train.tfrecord")
    with records.ShardWriter([path]) as writer:
        writer.write(records.serialize(examples))
    return [path]


def batches(files, number, **options):
    lengths = {"max_seq_length": T, "max_predictions_per_seq": P}
    dataset = input_pipeline.pretraining_dataset(
        files, batch_size=B, training=True, shuffle_buffer=16, **lengths, **options
    )
    return list(itertools.islice(dataset.as_numpy_iterator(), number))


def numbers(some):
    return [tuple(batch["masked_lm_ids"][:, 0]) for batch in some]


def test_a_window_has_the_examples_it_would_have_had_in_batches_of_like_length(files):
    padded = batches(files, 2 * length_windows.WINDOW)
    cut = batches(files, 2 * length_windows.WINDOW, by_length=True)
    for window in (slice(0, length_windows.WINDOW), slice(length_windows.WINDOW, None)):
        assert sorted(sum(numbers(cut[window]), ())) == sorted(sum(numbers(padded[window]), ()))
    widths = [batch["input_ids"].shape[1] for batch in cut]
    assert set(widths) <= {*static_lengths.LENGTHS, T}
    assert widths[: length_windows.WINDOW] != sorted(widths[: length_windows.WINDOW])
    real = sum(batch["input_mask"].sum() for batch in cut)
    assert real == sum(batch["input_mask"].sum() for batch in padded)
    assert B * sum(widths) < 1.25 * real < B * T * len(padded)


def test_a_run_goes_on_within_a_window(files):
    unbroken = numbers(batches(files, 40, by_length=True))
    for done in (1, length_windows.WINDOW, 21):
        resumed = numbers(batches(files, 40 - done, by_length=True, skip_examples=done * B))
        assert resumed == unbroken[done:], done


def test_the_parts_of_a_batch_make_it_up(files):
    whole = numbers(batches(files, 20, by_length=True))
    parts = [numbers(batches(files, 20, by_length=True, part=(i, 2))) for i in range(2)]
    assert [a + b for a, b in zip(*parts, strict=True)] == whole


def test_the_loss_of_a_cut_batch_is_that_of_the_padded_one(files):
    (padded,) = batches(files, 1)
    shorter = {**padded, "input_mask": padded["input_mask"].copy()}
    shorter["input_mask"][:, 40:] = 0
    padded = {name: tf.constant(values) for name, values in shorter.items()}
    cut = length_windows.trimmed(padded, [0, 1])
    assert cut["input_ids"].shape == [B, 48]
    model = models.PretrainingModel(
        made_models.small_config(vocab_size=V, max_position_embeddings=T)
    )
    results = []
    for batch in (padded, cut):
        with tf.GradientTape() as tape:
            pairs = losses.pretraining_losses(model(batch), batch)
            loss = sum(pairs[name][0] / pairs[name][1] for name in losses.OBJECTIVES["sop"])
        gradients = tape.gradient(loss, list(model.named_variables().values()))
        results.append([loss, *map(tf.convert_to_tensor, gradients)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
