"""The estimate of a step's memory, and that recomputation takes less of it."""

import dataclasses

import pytest

from benchmarks import memory_growth
from modeling import memory
from modeling.config import AlbertConfig, size

DEEP = AlbertConfig(
    vocab_size=1_000,
    hidden_size=256,
    num_hidden_layers=24,
    num_attention_heads=4,
    intermediate_size=1024,
)
SIZES = memory.StepSizes(batch_size=2, length=512, num_predictions=77)


def activations(config=DEEP, **changes):
    return memory.activation_bytes(config, dataclasses.replace(SIZES, **changes))


def test_activations_grow_with_the_batch_and_faster_than_the_length():
    assert activations(batch_size=4) == 2 * activations()
    assert activations(length=256, num_predictions=38) < activations() / 2.2


def test_half_precision_recomputation_and_fewer_answers_take_less():
    # More than half: the softmax stays float32.
    assert 0.5 * activations() < activations(precision="bfloat16") < 0.9 * activations()
    assert activations(recompute=True) < 0.2 * activations()
    assert activations() < activations(reads_all=True)
    dropout = dataclasses.replace(DEEP, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    assert activations() < activations(dropout)


def test_sharing_saves_weights_and_no_activations():
    """Users expect little memory from few parameters (google-research/albert 119, 86)."""
    albert, bert = size("base", 30_000), size("base", 30_000, sharing="none")
    assert activations(albert) == activations(bert)
    estimated = memory.estimate(albert, SIZES, 11_813_810)
    assert estimated["weights"] == estimated["slots"] / 2 == 4 * 11_813_810
    assert estimated["activations"] > 6 * (estimated["weights"] + estimated["slots"])


@pytest.mark.slow
def test_the_estimate_is_near_what_a_step_takes_and_recomputation_takes_far_less():
    kept, estimated = memory_growth.measure(DEEP, 1, 512)
    assert kept > 200 * 2**20
    assert estimated == pytest.approx(kept, rel=0.25)
    recomputed, _ = memory_growth.measure(DEEP, 1, 512, recompute=True)
    assert recomputed < 0.4 * kept
