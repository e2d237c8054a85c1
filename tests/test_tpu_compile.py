"""The program for TPUs is the real step, and the search finds the largest batch that fits."""

import json

import programs
import pytest

from benchmarks import tpu_compile, tpu_step

PROGRAM = "benchmarks.tpu_compile"
GIBIBYTE = 2**30


class Rule:
    """Compilations of a machine on which so many sequences fit, and what was asked of it."""

    def __init__(self, largest):
        self.largest, self.asked = largest, []

    def of(self, core_step, kind):
        self.asked.append(core_step.batch_size)
        fits = core_step.batch_size <= self.largest
        return {"batch_size": core_step.batch_size, "kind": kind, "fits": fits}


@pytest.fixture(scope="module")
def text():
    return tpu_step.lower(tpu_step.CoreStep("tiny", 2), num_replicas=8)


def test_gradients_and_figures_are_summed_over_all_cores(text):
    num_variables = 25  # Of ALBERT with both heads, each with a gradient.
    num_figures = 2 * 4  # The sum and count of both losses and both accuracies.
    assert tpu_step.count(text, "all-reduce") >= num_variables + num_figures
    assert "replica_groups={{0,1,2,3,4,5,6,7}}" in text


def test_products_are_of_half_precision_and_shapes_are_static(text):
    products = [line for line in text.splitlines() if " dot(" in line]
    rounded = [line for line in products if "= bf16[" in line]
    assert len(rounded) > len(products) / 2
    assert "s32[2,512]" in text and "s32[2,77]" in text and "<=" not in text


def test_the_program_is_as_large_at_any_depth(text):
    deeper = tpu_step.lower(tpu_step.CoreStep("tiny", 2, num_hidden_layers=12), num_replicas=8)
    assert tpu_step.num_instructions(deeper) == tpu_step.num_instructions(text) > 1000


def test_recomputing_puts_the_forward_pass_into_the_backward_one(text):
    recomputed = tpu_step.lower(tpu_step.CoreStep("tiny", 2, recompute=True), num_replicas=8)
    assert tpu_step.count(recomputed, "dot") > tpu_step.count(text, "dot")


@pytest.mark.parametrize("largest", [1, 2, 16, 512])
@pytest.mark.parametrize("guess", [1, 8, 64, 512])
def test_the_search_ends_at_the_largest_batch_from_any_guess(largest, guess):
    rule = Rule(largest)
    found = tpu_compile.find_largest(rule, tpu_step.CoreStep("base", 1), "v3", guess)
    assert found["batch_size"] == largest
    assert largest == 512 or 2 * largest in rule.asked


def test_the_search_says_so_where_nothing_fits():
    assert tpu_compile.find_largest(Rule(0), tpu_step.CoreStep("base", 1), "v3", 4) is None


def line(size, batch, fits, recompute=False, **others):
    known = {"all_reduces": 2, "peak": batch * GIBIBYTE} if fits else {"refusal": "too large"}
    key = {"size": size, "batch_size": batch, "recompute": recompute, "num_hidden_layers": None}
    return {**key, "kind": "v3", "fits": fits, "instructions": 7000, **known, **others}


def test_cells_tell_what_was_found_from_what_was_not_tried():
    results = [
        *(line("base", 8, True), line("base", 16, False), line("base", 32, True, recompute=True)),
        *(line("xxlarge", 1, False), line("xxlarge", 64, False, recompute=True)),
    ]
    assert tpu_compile.cell(results, "base", "v3", False) == "8 (8.0)"
    assert tpu_compile.cell(results, "base", "v3", True) == "at least 32 (32.0)"
    assert tpu_compile.cell(results, "xxlarge", "v3", False) == "none"
    assert tpu_compile.cell(results, "xxlarge", "v3", True) == "below 64"
    assert tpu_compile.cell(results, "large", "v3", False) == "-"


def test_the_program_prints_the_tables_of_its_results(tmp_path):
    rows = [line("base", 8, True), line("base", 16, False)]
    rows += [{"size": "base", "num_hidden_layers": 2, "kind": "uncompiled", "instructions": 7145}]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = programs.call(PROGRAM, results_file=path, table=True, sizes="base", kinds="v3")
    assert result.exit_code == 0, result.stderr
    assert "| base | 8 (8.0) | - | 2 | 7000 |" in result.stdout
    assert "| layers | 2 |" in result.stdout and "| instructions | 7,145 |" in result.stdout


@pytest.mark.parametrize(
    "flags, part",
    [
        ({"results_file": "r", "sizes": "huge"}, "sizes and kinds must be of"),
        ({"results_file": "r", "kinds": "v9"}, "sizes and kinds must be of"),
        ({}, "`results_file` must be given"),
    ],
)
def test_a_mistake_costs_one_line(flags, part):
    result = programs.call(PROGRAM, **flags)
    assert result.exit_code == 1 and part in result.stderr and result.stderr.count("\n") == 1
