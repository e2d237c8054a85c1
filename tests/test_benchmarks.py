"""What the benchmarks of training compute, and that they run."""

import dataclasses
import json
import math

import numpy as np
import pytest

from benchmarks import contestants, finetuning_contestants, finetuning_sides, limits, workers
from data import classification_tables, classification_tasks, features
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


def fine_tuning_work(lengths, batch_size=4, max_seq_length=128):
    examples = [
        {"input_ids": [7] * length, "segment_ids": [0] * length, "label_ids": number % 2}
        for number, length in enumerate(lengths)
    ]
    sizes = config.size("tiny", 10)
    return finetuning_contestants.Work(
        sizes, features.pack(examples), batch_size, max_seq_length, num_threads=1
    )


@pytest.mark.parametrize("name", finetuning_contestants.CONTESTANTS)
def test_as_many_turns_as_there_are_batches_are_the_epoch_once(name):
    work = fine_tuning_work(range(5, 53))  # 12 batches.
    contestant = finetuning_contestants.CONTESTANTS[name]
    epoch, planned = finetuning_contestants.plan(contestant, work, rounds=4, batches_per_round=3)
    assert sorted(e for batch in epoch for e in batch) == list(range(48))
    taken = [tuple(batch) for batches in planned for batch in batches]
    assert sorted(taken) == sorted(map(tuple, epoch))


def test_a_turn_is_spread_over_the_lengths_of_the_epoch():
    work = fine_tuning_work(range(5, 125))
    contestant = finetuning_contestants.CONTESTANTS["by_length"]
    _, planned = finetuning_contestants.plan(contestant, work, rounds=2, batches_per_round=3)
    for batches in planned:
        costs = [contestant.num_positions(work, batch) for batch in batches]
        assert costs[0] < costs[1] < costs[2]


def test_positions_count_padding_and_what_fills_up_a_batch():
    work = fine_tuning_work([20, 30, 50], batch_size=4)
    count = {
        name: contestant.num_positions(work, np.arange(3))
        for name, contestant in finetuning_contestants.CONTESTANTS.items()
    }
    assert count["by_length"] == 4 * 64
    assert count["dynamic_padding"] == count["dynamic_padding_fused"] == 3 * 50
    assert count["full_padding"] == 3 * 128


def test_every_contestant_begins_at_a_guess_and_padding_changes_no_loss():
    pytest.importorskip("torch")
    work, losses = fine_tuning_work([9, 12, 20, 21]), {}
    for name in ("by_length", "dynamic_padding", "full_padding"):
        with workers.Worker(name, work) as worker:  # Its threads are set before all else.
            worker.imported()
            losses[name] = worker.step([np.arange(4)])["loss"]
    assert losses["by_length"] == pytest.approx(math.log(2), abs=0.1)
    assert losses["dynamic_padding"] == pytest.approx(math.log(2), abs=0.1)
    assert losses["full_padding"] == pytest.approx(losses["dynamic_padding"], rel=1e-4)


def write_pairs(folder, task, num_rows=24):
    """Writes toy sentences in the layout of MRPC or CoLA and returns the folder."""
    generator = np.random.default_rng(0)
    rows = {"MRPC": ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"], "CoLA": []}[task]
    for number in range(num_rows):
        first, second, *_ = programs.toy_document(generator)
        label = number % 2
        rows.append(
            f"{label}\t1\t2\t{first}\t{second}" if task == "MRPC" else f"s\t{label}\t\t{first}"
        )
    (folder / task).mkdir()
    for name in ("train.tsv", "dev.tsv"):
        (folder / task / name).write_text("\n".join(rows) + "\n")
    return folder


def test_the_fine_tuning_program_compares_ours_with_both_paddings(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "epoch.json"
    result = programs.run(
        "benchmarks.finetuning",
        data_dir=write_pairs(tmp_path, "MRPC"),
        tokenizer=programs.write_word_list(tmp_path),
        model="tiny",
        train_batch_size=4,
        rounds=2,
        batches_per_round=1,
        num_threads=1,
        json=file,
    )
    programs.succeed(result)
    rows = json.loads(file.read_text())["rows"]
    assert list(rows) == ["by_length", "dynamic_padding", "full_padding"]
    assert rows["full_padding"]["positions"] == 24 * 128
    assert all(row["seconds"] > 0 and row["num_batches"] == 2 for row in rows.values())
    assert "24 examples" in result.stdout


@pytest.mark.parametrize("task", ["MRPC", "CoLA"])
def test_a_shortened_task_has_the_same_rows_of_the_file_in_order(task, tmp_path):
    source, target = write_pairs(tmp_path, task), tmp_path / "short"
    row = classification_tasks.TASKS[task]
    made = [
        finetuning_sides.shorten(score_job(task, max_train_rows=10), source, target / str(number))
        for number in range(2)
    ]
    short, again = (classification_tables.read(row, folder, "train") for folder in made)
    whole = classification_tables.read(row, source, "train")
    assert len(short) == 10 and short.texts_a == again.texts_a
    places = [whole.texts_a.index(text) for text in short.texts_a]
    assert places == sorted(places) and places != list(range(10))
    assert len(classification_tables.read(row, made[0], "dev")) == len(whole)


def test_an_unshortened_task_is_read_where_it_is(tmp_path):
    assert finetuning_sides.shorten(score_job("CoLA", None), "glue", tmp_path) == "glue"


def score_job(task, max_train_rows):
    return finetuning_sides.Job(task, "ours", 0, "encoder", 5e-5, 4, 32, 0.1, 1, max_train_rows)


def test_the_table_compares_medians_over_the_seeds_that_both_sides_have(tmp_path):
    values = {"hugging_face": [0.80, 0.90, 0.82], "ours": [0.81, 0.85]}
    lines = [
        {
            "job": {**dataclasses.asdict(score_job("SST-2", 10)), "side": side, "seed": seed},
            "metrics": {"accuracy": value, "mean_squared_error": 1.0},
        }
        for side, scores in values.items()
        for seed, value in enumerate(scores)
    ]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = programs.run("benchmarks.finetuning_scores", results_file=file, table=True)
    row = next(line for line in programs.succeed(result).stdout.splitlines() if "SST-2" in line)
    assert row == (
        "| SST-2 | 10 x 1 | accuracy | 82.0 (80.0 90.0 82.0) | 83.0 (81.0 85.0) | -2.0 of 2 |"
    )
