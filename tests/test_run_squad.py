"""run_squad.py from a JSON file to answers: it learns, and says and writes what it says it does."""

import json

import numpy as np
import programs
import pytest

from evaluation import span_scores, squad_metrics

NOUNS = programs.WORDS["noun"].split()
OTHERS = [*programs.WORDS["adjective"].split(), *programs.WORDS["verb"].split()]
RUN = {"train_batch_size": 16, "num_train_steps": 120, "learning_rate": 3e-3, "max_seq_length": 32}
RUN |= {"num_warmup_steps": 10, "save_checkpoints_steps": 60, "iterations_per_loop": 60}
RUN |= {"max_query_length": 8, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
BEGIN = {"train_file": "x.json", "from_scratch": True, "output_dir": "y"}


def paragraph(generator, name, version):
    """Invents a paragraph in which the one noun, if there is one, is the answer.

    Lengths differ little, so that few shapes are compiled.
    """
    words = generator.choice(OTHERS, generator.integers(12, 19)).tolist()
    qa = {"id": name, "question": "the near", "answers": []}
    if version == "1.1" or generator.random() < 0.6:
        place = int(generator.integers(len(words)))
        words[place] = str(generator.choice(NOUNS)).capitalize()
        start = sum(map(len, words[:place])) + place
        qa["answers"] = [{"text": words[place], "answer_start": start}]
    if version == "2.0":
        qa["is_impossible"] = not qa["answers"]
    return {"context": " ".join(words), "qas": [qa]}


def write_questions(path, version, number, seed, **without):
    """Writes a file of invented questions and returns it, read."""
    generator = np.random.default_rng(seed)
    paragraphs = [paragraph(generator, f"{path.stem}{n}", version) for n in range(number)]
    for entry in paragraphs if without else []:
        entry["qas"][0] = {"id": entry["qas"][0]["id"], "question": "the near"}
    content = {"version": version, "data": [{"title": "x", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(content))
    return content


def golds_of(content):
    entries = [qa for p in content["data"][0]["paragraphs"] for qa in p["qas"]]
    return {qa["id"]: [answer["text"] for answer in qa["answers"]] for qa in entries}


@pytest.fixture(scope="module", params=["1.1", "2.0"])
def trained(request, tmp_path_factory):
    """A model of either version trained on invented questions: (version, folder, result, dev)."""
    version, folder = request.param, tmp_path_factory.mktemp("squad")
    write_questions(folder / "train.json", version, 300, seed=0)
    dev = write_questions(folder / "dev.json", version, 60, seed=1)
    config = programs.write_config(folder, programs.VOCAB_SIZE, initializer_range=0.1)
    result = programs.call(
        "run_squad",
        version=version,
        from_scratch=True,
        albert_config_file=config,
        tokenizer=programs.write_word_list(folder),
        train_file=folder / "train.json",
        predict_file=folder / "dev.json",
        output_dir=folder / "run",
        **RUN,
    )
    programs.succeed(result)
    return version, folder, result, golds_of(dev)


def read(folder, name):
    return json.loads((folder / name).read_text())


def official(version, golds, predictions):
    evaluate = squad_metrics.evaluate_v1 if version == "1.1" else squad_metrics.evaluate_v2
    return evaluate(golds, predictions)


def answer(**flags):
    """Runs a trained model; version and lengths are as it was trained."""
    return programs.succeed(programs.call("run_squad", **flags))


def test_it_learns_to_find_the_answer(trained):
    version, folder, _, golds = trained
    predictions = read(folder / "run", "predictions.json")
    assert official(version, golds, predictions)["f1"] > 90


def test_the_figures_are_those_of_the_official_script_on_the_written_file(trained):
    version, folder, result, golds = trained
    predictions = read(folder / "run", "predictions.json")
    figures = official(version, golds, predictions)
    scores = read(folder / "run", "scores.json")
    assert scores.items() <= figures.items() and scores
    printed = [line for line in result.stdout.splitlines() if line.startswith(f"{folder}/dev.json")]
    assert f"f1 {figures['f1']:.2f}, total 60" in printed[-1]
    if version == "2.0":
        threshold = read(folder / "run", "null_threshold.json")["value"]
        assert "at threshold 0.0000 (default): exact" in printed[-2]
        assert f"at threshold {threshold:.4f} (tuned on {folder}/dev.json): exact" in printed[-1]


def test_every_question_has_an_entry_in_every_file(trained):
    version, folder, _, golds = trained
    names = ["predictions.json", "nbest_predictions.json"]
    names += ["null_odds.json"] if version == "2.0" else []
    for name in names:
        assert list(read(folder / "run", name)) == list(golds)
    scores = span_scores.load(folder / "run" / "span_scores.npz")
    assert scores.ids == list(golds) and scores.golds == golds
    assert read(folder / "run", "task.json")["kind"] == "span"


def test_a_second_file_is_answered_without_answers_and_with_the_kept_threshold(trained, tmp_path):
    version, folder, _, _ = trained
    write_questions(tmp_path / "other.json", version, 20, seed=2, without=True)
    flags = {"init_checkpoint": folder / "run", "output_dir": tmp_path / "out"}
    again = answer(predict_file=folder / "dev.json", **flags)
    written = read(folder / "run", "predictions.json")
    assert read(tmp_path / "out", "predictions.json") == written
    assert ("kept with the model, tuned on" in again.stdout) == (version == "2.0")
    result = answer(predict_file=tmp_path / "other.json", **flags)
    predictions = read(tmp_path / "out", "predictions.json")
    assert list(predictions) == [f"other{n}" for n in range(20)]
    assert "exact" not in result.stdout
    context = read(tmp_path, "other.json")["data"][0]["paragraphs"]
    for entry, text in zip(context, predictions.values(), strict=True):
        assert text in entry["context"]
    if version == "2.0":
        kept = read(folder / "run", "null_threshold.json")
        null_odds = read(tmp_path / "out", "null_odds.json")
        for id, text in predictions.items():
            assert bool(text) == (null_odds[id] <= kept["value"])


def test_the_kept_threshold_is_found_from_a_checkpoint_of_the_model(trained):
    version, folder, _, _ = trained
    (step,) = (folder / "run" / "best").iterdir()
    flags = {"question": "the near", "context": "old horse finds", "max_seq_length": 24}
    for path in (step, next(step.glob("*.index")).with_suffix("")):
        printed = answer(init_checkpoint=path, **flags).stdout
        assert ("kept with the model, tuned on" in printed) == (version == "2.0")


def test_one_question_is_answered_on_the_command_line(trained):
    _, folder, _, _ = trained
    before = sorted(folder.glob("run/*"))
    flags = {"init_checkpoint": folder / "run", "question": "the near"}
    result = answer(context="old  HORSE finds", max_seq_length=24, **flags)
    assert "answer: HORSE  (" in result.stdout
    assert sorted(folder.glob("run/*")) == before


def test_the_users_threshold_comes_first_and_silence_is_warned_of(trained, tmp_path):
    version, folder, _, golds = trained
    if version == "1.1":
        pytest.skip("version 1.1 answers every question")
    flags = {"init_checkpoint": folder / "run", "predict_file": folder / "dev.json"}
    result = answer(output_dir=tmp_path, null_score_diff_threshold=-100, **flags)
    assert set(read(tmp_path, "predictions.json").values()) == {""}
    assert "100.0 % of the answers are empty" in result.stdout
    assert "at threshold -100.0000 (given): exact" in result.stdout
    assert f"(tuned on {folder}/dev.json)" in result.stdout
    assert not (tmp_path / "null_threshold.json").exists()


@pytest.mark.parametrize(
    "flags, received",
    [
        ({"predict_file": "x.json", "output_dir": "y"}, "trained model"),
        ({"train_file": "x.json", "output_dir": "y"}, "`init_checkpoint` must name"),
        ({"output_dir": "y"}, "`train_file`, `predict_file` or `question` must be given"),
        ({"question": "?"}, "`context` and `question` must come together"),
        ({"version": "2.0", "metric": "cmrc", "train_file": "x"}, "`metric` cmrc is for"),
        ({"doc_stride": 0, "train_file": "x"}, "doc_stride"),
        ({"start_n_top": 9, **BEGIN}, "`start_n_top` is for version 2.0. Received: version=1.1"),
        ({"end_n_top": 9, "version": "1.1", **BEGIN}, "`end_n_top` is for version 2.0"),
        ({"null_score_diff_threshold": -1.0, **BEGIN}, "`null_score_diff_threshold` is for"),
        ({"best_metric": "f2", **BEGIN}, "one of ['f1', 'exact_match', 'loss']. Received: f2"),
        ({"best_metric": "f2", "version": "2.0", **BEGIN}, "['best_f1', 'best_exact', 'f1', "),
    ],
)
def test_a_mistake_is_told_before_any_work(flags, received, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = programs.call("run_squad", **flags)
    assert result.exit_code == 1
    assert received in result.stderr


def test_a_model_of_the_other_version_is_refused(trained):
    version, folder, _, _ = trained
    other = {"1.1": "2.0", "2.0": "1.1"}[version]
    flags = {"init_checkpoint": folder / "run", "question": "a", "context": "b"}
    result = programs.call("run_squad", version=other, **flags)
    assert result.exit_code == 1 and f"SQuAD {other}" in result.stderr
