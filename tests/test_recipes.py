import pytest

import recipes
from data.classification_tasks import TASKS

BASE, NARROW, WIDE = 768, 256, 4096  # Hidden sizes.
SQUAD_QUESTIONS = {"SQuAD 1.1": (87_599, 2), "SQuAD 2.0": (130_319, 3)}  # And passes over them.


@pytest.mark.parametrize("task", SQUAD_QUESTIONS)
def test_squads_steps_are_whole_passes_as_the_original_counts_them(task):
    settings = recipes.fine_tuning(task, BASE)
    questions, passes = SQUAD_QUESTIONS[task]
    assert settings["num_train_steps"] == int(questions * passes / settings["train_batch_size"])
    assert settings["num_warmup_steps"] == settings["num_train_steps"] // 10 + (task == "SQuAD 1.1")


def test_the_settings_of_mrpc_are_those_of_table_14():
    assert recipes.fine_tuning("MRPC", BASE) == {
        "optimizer": "adamw",
        "learning_rate": 2e-5,
        "train_batch_size": 32,
        "num_train_steps": 800,
        "num_warmup_steps": 200,
        "dropout": 0.0,
        "max_seq_length": 512,
        "eval_batch_size": 64,
        "keep_checkpoint_max": 1,
    }


def test_every_task_of_glue_has_a_recipe():
    glue = set(TASKS) - {"AX", "ChnSentiCorp", "LCQMC", "TNEWS", "AFQMC", "OCNLI", "CMNLI"}
    assert glue < set(recipes.TABLE_14)
    for task in recipes.FINE_TUNING:
        settings = recipes.fine_tuning(task, BASE)
        assert settings["num_warmup_steps"] < settings["num_train_steps"] / 3
        assert settings["max_seq_length"] == (384 if task == "SQuAD 1.1" else 512)


def test_version_2_models_have_a_lower_rate_and_no_dropout_on_race():
    first, second = (recipes.fine_tuning(task, BASE) for task in ("RACE", "RACE v2"))
    changed = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
    assert changed == {"learning_rate": (2e-5, 1e-5), "dropout": (0.1, 0.0)}


def test_an_evaluation_of_race_takes_no_more_sequences_than_any_other():
    assert 4 * recipes.fine_tuning("RACE", BASE)["eval_batch_size"] == 64


def test_models_narrower_than_the_papers_learn_faster():
    rates = [recipes.fine_tuning("QQP", size)["learning_rate"] for size in (NARROW, BASE, WIDE)]
    assert rates == [1e-4, 5e-5, 5e-5]
    assert recipes.fine_tuning("RACE v2", WIDE)["learning_rate"] == 1e-5


@pytest.mark.parametrize("row", [recipes.OWN_DATA, recipes.CHINESE])
def test_other_rows_tell_epochs_in_place_of_steps(row):
    settings = recipes.fine_tuning("custom", BASE, row)
    assert settings["epochs"] == row["epochs"] and "num_train_steps" not in settings
    assert settings["learning_rate"] == row["learning_rate"]


def test_a_row_is_not_changed_by_its_use():
    before = dict(recipes.OWN_DATA)
    recipes.fine_tuning("custom", NARROW, recipes.OWN_DATA)["dropout"] = 0.5
    assert before == recipes.OWN_DATA
