"""What the benchmark of the training step computes, and that it runs."""

import json
import math

import pytest

from benchmarks import contestants, limits
from modeling import config
from tests import programs

PROGRAM = "benchmarks.pretraining_step"


def work(batch_size, length, model="base", vocab_size=30_000, **sizes):
    chosen = config.size(model, vocab_size, **sizes)
    return contestants.Work(chosen, batch_size, length, num_predictions=20, num_threads=1)


@pytest.mark.parametrize(("shape", "gigaflops"), [((8, 128), 541), ((2, 512), 581)])
def test_a_step_of_albert_base_takes_known_flops(shape, gigaflops):
    assert round(work(*shape).flops / 1e9) == gigaflops


def test_a_layer_more_costs_the_products_of_the_limit_and_the_attention():
    shallow, deep = (work(8, 128, num_hidden_layers=number) for number in (12, 13))
    attention = 6 * 2 * shallow.num_tokens * 128 * 768
    assert deep.flops - shallow.flops == limits.product_flops(deep) / limits.REPEATS + attention


def test_a_batch_masks_a_position_once_at_most():
    batch = work(4, 32, "tiny", 100).batch()
    for row in batch["masked_lm_positions"]:
        assert len(set(row) & set(range(32))) == 20


def test_the_program_measures_ours_and_the_limits(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "step.json"
    sizes = {"model": "tiny", "vocab_size": 100, "shapes": "2x32", "first_step_layers": "2"}
    result = programs.run(PROGRAM, contestants="ours", rounds=1, json=file, **sizes)
    programs.succeed(result)
    measured = json.loads(file.read_text())["shapes"]["2x32"]
    ours = measured["rows"]["ours"]
    assert ours["first_loss"] == pytest.approx(math.log(100) + math.log(2), abs=0.3)
    assert ours["peak_memory"] > ours["imported_memory"] > 100
    products = {measured["measurements"][name]["first"]["loss"] for name in limits.PRODUCTS}
    assert max(products) == pytest.approx(min(products), rel=1e-4)  # One product, three libraries.
    assert set(measured["measurements"]) == {"ours", *limits.LIMITS}
    assert "| ours |" in result.stdout


def test_a_shape_must_be_batch_by_length():
    result = programs.run(PROGRAM, contestants="ours", shapes="8")
    assert result.exit_code == 1
    assert result.stderr.strip() == "error: `shapes` must be BxT, such as 8x128. Received: '8'."
