"""run_race.py from a folder of passages to choices: it learns, counts and writes as it says."""

import json

import numpy as np
import programs
import pytest
from made_passages import BUS, LEMONS, write, write_official

from evaluation import prediction_files, row_averages

NOUNS = programs.WORDS["noun"].split()
OTHERS = [*programs.WORDS["adjective"].split(), *programs.WORDS["verb"].split()]
RUN = {"train_batch_size": 16, "num_train_steps": 60, "learning_rate": 3e-3, "max_seq_length": 16}
RUN |= {"num_warmup_steps": 5, "save_checkpoints_steps": 30, "iterations_per_loop": 30}
RUN |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_qa_length": 6}


def passage(generator, name, num_options):
    """Invents a passage whose question the one noun among the options answers."""
    options = generator.choice(OTHERS, num_options, replace=False).tolist()
    answer = int(generator.integers(num_options))
    options[answer] = str(generator.choice(NOUNS))
    return {
        "id": name,
        "article": " ".join(generator.choice(OTHERS, 6)) + ".",
        "questions": ["the near _ ."],
        "options": [options],
        "answers": ["ABCDE"[answer]],
    }


def write_set(folder, split, number, seed):
    """Writes passages of 2 to 5 options, every third of the level `middle`."""
    generator = np.random.default_rng(seed)
    for count in range(number):
        level = "high" if count % 3 else "middle"
        name = f"{level}{count}.txt"
        made = passage(generator, name, 2 + count % 4)
        write(folder, f"RACE/{split}/{level}/{count}.txt", made)


def without_answers(passage):
    return {name: value for name, value in passage.items() if name != "answers"}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """Flags of a model that begins with random weights."""
    folder = tmp_path_factory.mktemp("encoder")
    return {
        "from_scratch": True,
        "albert_config_file": programs.write_config(
            folder, programs.VOCAB_SIZE, initializer_range=0.1
        ),
        "tokenizer": programs.write_word_list(folder),
    }


@pytest.fixture(scope="module")
def trained(encoder, tmp_path_factory):
    """A model trained on invented passages: (folder of data and `run`, what was printed)."""
    folder = tmp_path_factory.mktemp("race")
    write_set(folder, "train", 300, seed=0)
    write_set(folder, "dev", 30, seed=1)
    flags = {"data_dir": folder, "output_dir": folder / "run"}
    result = programs.call("run_race", **flags, **encoder, **RUN)
    return folder, programs.succeed(result).stdout


@pytest.fixture
def official(tmp_path):
    """A folder of two passages as RACE has them."""
    write_official(tmp_path)
    return tmp_path


def rows_of(folder, split="dev"):
    return prediction_files.read(prediction_files.path_of(folder, split))


def scores_of(folder):
    return json.loads((folder / "scores.json").read_text())


def predict(folder, **flags):
    """Runs a trained model; lengths are as it was trained with."""
    model = {"init_checkpoint": folder / "run", "do_train": False}
    return programs.succeed(programs.call("run_race", **model, **flags)).stdout


def test_it_learns_to_choose_among_2_to_5_options(trained):
    folder, _ = trained
    assert scores_of(folder / "run")["accuracy"] > 0.9


def test_padded_choices_never_win_and_have_no_probability(trained):
    folder, _ = trained
    rows = rows_of(folder / "run")
    assert {len(row["probabilities"]) for row in rows} == {2, 3, 4, 5}
    for row in rows:
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-5)
        assert row["prediction"] == np.argmax(row["probabilities"])


def test_scores_are_those_of_the_written_choices(trained):
    folder, printed = trained
    rows = rows_of(folder / "run")
    right = [row["prediction"] == row["label"] for row in rows]
    middle = [one for one, row in zip(right, rows, strict=True) if "middle" in row["id"]]
    high = [one for one, row in zip(right, rows, strict=True) if "high" in row["id"]]
    expected = {"accuracy": right, "accuracy_middle": middle, "accuracy_high": high}
    assert scores_of(folder / "run") == {n: pytest.approx(np.mean(v)) for n, v in expected.items()}
    for name, values in expected.items():
        assert f"{name} {np.mean(values):.4f} ({len(values)} questions)" in printed
    form = row_averages.RowAverages(prediction_files.read_task(folder / "run"))
    assert form.score(rows) == {"accuracy": np.mean(right)}


def test_the_preset_and_the_sequences_of_a_step_are_told(trained):
    _, printed = trained
    assert "recipe v1; 16 questions x 5 options = 80 sequences a step" in printed
    assert "dropout: hidden 0, attention 0, classifier 0.1" in printed
    assert "train: 300 questions, middle 100, high 200; 300 passages; 5 options" in printed


def test_evaluation_of_a_trained_folder_gives_the_same_choices(trained, tmp_path):
    folder, _ = trained
    predict(folder, data_dir=folder, output_dir=tmp_path)
    assert rows_of(tmp_path) == rows_of(folder / "run")


def test_the_official_folder_is_scored_level_by_level(trained, official):
    """Case A10 of user-demands.md: three questions, no merged file."""
    folder, _ = trained
    printed = predict(folder, data_dir=official, output_dir=official / "out")
    assert [row["id"] for row in rows_of(official / "out")] == [
        "middle1.txt-0",
        "middle1.txt-1",
        "high2.txt-0",
    ]
    assert [row["label"] for row in rows_of(official / "out")] == [1, 2, 0]
    assert "dev: 3 questions, middle 2, high 1; 2 passages; 4 options at most" in printed
    for name, number in (("accuracy", 3), ("accuracy_middle", 2), ("accuracy_high", 1)):
        value = scores_of(official / "out")[name]
        assert f"{name} {value:.4f} ({number} questions)" in printed


def test_one_level_is_scored_alone(trained, official):
    folder, _ = trained
    predict(folder, data_dir=official, output_dir=official / "out", level="middle")
    assert [row["id"] for row in rows_of(official / "out")] == ["middle1.txt-0", "middle1.txt-1"]
    assert list(scores_of(official / "out")) == ["accuracy"]


def test_questions_without_answers_are_predicted_in_order(trained, tmp_path):
    folder, _ = trained
    for number in (10, 2):
        made = without_answers({**LEMONS, "id": f"p{number}"})
        write(tmp_path, f"test/{number}.txt", made)
    predict(folder, data_dir=tmp_path, output_dir=tmp_path, do_eval=False, do_predict=True)
    rows = rows_of(tmp_path, "test")
    assert [row["id"] for row in rows] == ["p2-0", "p2-1", "p10-0", "p10-1"]
    assert all("label" not in row and len(row["probabilities"]) == 4 for row in rows)
    assert not (tmp_path / "scores.json").exists()


def test_scores_of_the_test_set_are_named_so(trained, tmp_path):
    folder, _ = trained
    write(tmp_path, "test/a.txt", LEMONS)
    predict(folder, data_dir=tmp_path, output_dir=tmp_path, do_eval=False, do_predict=True)
    assert list(scores_of(tmp_path)) == ["test_accuracy"]


@pytest.fixture
def unlearnable(encoder, tmp_path):
    """Flags of a run whose loss stays at ln 4: the options are all the same."""
    generator = np.random.default_rng(0)
    for split, number in (("train", 16), ("dev", 8)):
        made = [passage(generator, f"p{count}", 4) for count in range(number)]
        for one in made:
            one["options"] = [["fox"] * 4]
        write(tmp_path, f"{split}/all.txt", *made)
    settings = {**encoder, **RUN, "num_train_steps": 10, "save_checkpoints_steps": 1}
    return {**settings, "data_dir": tmp_path, "output_dir": tmp_path / "run"}


def test_a_run_that_stays_at_ln_4_is_warned_of_and_ends(unlearnable):
    result = programs.call("run_race", **unlearnable)
    assert result.exit_code == 1
    assert "warning: after 1 of 10 steps the dev loss 1.3863 is that of a guess" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: Stopped: after 2 of 10 steps the dev loss 1.3863")
    assert "`learning_rate`" in line and "--nostop_at_chance" in line


def test_a_run_may_go_on_at_chance_and_is_told_that_it_has_collapsed(unlearnable):
    seldom = {"num_train_steps": 4, "save_checkpoints_steps": 2, "stop_at_chance": False}
    result = programs.call("run_race", **{**unlearnable, **seldom})
    printed = programs.succeed(result).stdout
    assert printed.count("is that of a guess") == 1
    assert "all 8 predictions for dev are A" in printed


MISTAKES = {
    "no encoder": ({"from_scratch": False}, "`init_checkpoint` must name the encoder"),
    "no data": ({"data_dir": ""}, "`data_dir` must name the folder"),
    "no such folder": ({"data_dir": "absent"}, "absent/RACE/train"),
    "no such level": ({"level": "low"}, "<middle|high>"),
    "too long": ({"max_seq_length": 99}, "max_seq_length=99, max_position_embeddings=32"),
    "no room": ({"max_qa_length": 0}, "max_qa_length=0"),
    "no head": ({"do_train": False, "from_scratch": False}, "need a trained model"),
    "a flag of another program": ({"doc_stride": 3}, "doc_stride"),
    "a metric of levels that are not there": (
        {"best_metric": "accuracy_high"},
        "`best_metric` must be one of ['accuracy', 'loss']. Received: accuracy_high",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_before_any_training(mistake, encoder, tmp_path):
    changes, received = MISTAKES[mistake]
    for split in ("train", "dev"):
        write(tmp_path, f"{split}/middle/all.txt", LEMONS)
    flags = {"data_dir": tmp_path, "output_dir": tmp_path / "run", **encoder, **changes}
    result = programs.call("run_race", **flags)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and received in line


def test_sets_to_learn_from_must_have_answers(encoder, tmp_path):
    write(tmp_path, "train/a.txt", without_answers(BUS))
    result = programs.call("run_race", data_dir=tmp_path, output_dir=tmp_path / "run", **encoder)
    assert result.exit_code == 1 and "train must have `answers`" in result.stderr


def test_version_2_models_have_a_recipe_of_their_own(encoder, tmp_path):
    for split in ("train", "dev"):
        write(tmp_path, f"{split}/a.txt", LEMONS)
    steps = {"num_train_steps": 1, "num_warmup_steps": 0, "max_seq_length": 16}
    flags = {"data_dir": tmp_path, "output_dir": tmp_path / "run", "recipe": "v2", "seeds": 2}
    printed = programs.succeed(programs.call("run_race", **flags, **steps, **encoder)).stdout
    assert "recipe v2; 32 questions x 4 options = 128 sequences a step" in printed
    assert "dropout: hidden 0, attention 0, classifier 0.1" in printed
    assert "The run with the median accuracy is that of seed" in printed
    for seed in (0, 1):
        assert len(rows_of(tmp_path / "run" / f"seed-{seed}")) == 2
