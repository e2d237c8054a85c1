"""What the benchmark of inference computes, and that it runs."""

import json

import numpy as np
import programs
import pytest

from benchmarks import inference_contestants
from data import features
from modeling import config

PROGRAM = "benchmarks.inference"


def work(lengths, batch_size=4, model="base", **settings):
    texts = [{"input_ids": [7] * length, "segment_ids": [0] * length} for length in lengths]
    sizes = config.size(model, 30_000)
    return inference_contestants.Work(sizes, features.pack(texts), batch_size, 1, **settings)


def test_a_full_text_of_albert_base_takes_known_flops():
    per_token = 128 * 768 + 12 * (4 * 768**2 + 2 * 768 * 3072 + 2 * 128 * 768)
    assert work([128]).flops == 2 * 128 * per_token == pytest.approx(22.4e9, rel=1e-2)
    assert work([128] * 32).flops == 32 * work([128]).flops


@pytest.mark.parametrize("name", inference_contestants.CONTESTANTS)
def test_each_text_is_encoded_once_and_padded_as_its_row_says(name):
    contestant = inference_contestants.CONTESTANTS[name]
    mixed = work([5, 120, 17, 9, 64, 30, 8, 40, 33])
    plan, lengths = contestant.plan(mixed)
    assert sorted(np.concatenate(plan)) == list(range(9))
    batches = contestant.batches(mixed)
    assert [batch["input_ids"].shape[1] for batch in batches] == lengths
    assert sum(batch["input_mask"].sum() for batch in batches) == mixed.features.offsets[-1]
    assert contestant.num_positions(mixed) == sum(batch["input_ids"].size for batch in batches)
    if contestant.by_length:
        assert lengths == sorted(lengths, reverse=True)
        assert lengths == ([128, 32, 16] if contestant.pads_to_few else [120, 30, 5])


@pytest.mark.parametrize(
    "flags, part",
    [
        ({"contestants": "other"}, "`contestants` must be of"),
        ({"workloads": "8", "contestants": "ours_encoding"}, "`workloads` must be BxT"),
        ({"workloads": "mix"}, "`mix` needs `input_file` and `tokenizer`"),
    ],
)
def test_a_mistake_costs_one_line(flags, part):
    result = programs.call(PROGRAM, **flags)
    assert result.exit_code == 1 and part in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_program_measures_everyone_on_texts_of_a_file(tmp_path):
    for library in ("torch", "onnxruntime", "onnx"):
        pytest.importorskip(library)
    (tmp_path / "texts.txt").write_text("the old fox\tthe river\nthe sailor .\nred\n" * 3)
    result = programs.run(
        PROGRAM,
        workloads="2x16,mix",
        model="tiny",
        vocab_size=100,
        input_file=tmp_path / "texts.txt",
        tokenizer=programs.write_word_list(tmp_path),
        num_texts=5,
        batch_size=2,
        rounds=1,
        tokens_per_turn=64,
        json=tmp_path / "measured.json",
    )
    programs.succeed(result)
    measured = json.loads((tmp_path / "measured.json").read_text())
    assert set(measured["mix"]["rows"]) == set(inference_contestants.CONTESTANTS)
    assert "| ours, exported |" in result.stdout
    for workload in measured.values():
        assert all(row["milliseconds"] > 0 for row in workload["rows"].values())
