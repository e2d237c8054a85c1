"""Fine-tunes ALBERT to find answers in a paragraph: SQuAD 1.1 and 2.0, and sets in their form.

    python run_squad.py --version=2.0 --init_checkpoint=albert_base --train_file=train-v2.0.json \\
        --predict_file=dev-v2.0.json --output_dir=output
    python run_squad.py --version=2.0 --output_dir=output --predict_file=questions.json
    python run_squad.py --version=2.0 --output_dir=output --context='...' --question='...'

Without --train_file the model in --output_dir (or --init_checkpoint) answers. The answers to
--predict_file go to predictions.json, nbest_predictions.json, null_odds.json (2.0) and
span_scores.npz, which `python -m evaluation.ensembles` averages; the figures are those of the
official scripts on predictions.json.
"""

import dataclasses

import command_line
import recipes
from runs import fine_tuning
from training.config import TrainConfig, setting

# Table 14's steps are so many passes over the questions of SQuAD's training sets, as the
# original counts them (run_squad_v1.py: num_train_steps).
EPOCHS = {"1.1": 2, "2.0": 3}
# What a trained model is asked with as it was trained, unless flags say otherwise.
KEPT = (
    "version",
    "doc_stride",
    "max_query_length",
    "max_answer_length",
    "n_best_size",
    "start_n_top",
    "end_n_top",
    "metric",
)
POSITIVE = ("doc_stride", "max_answer_length", "n_best_size", "start_n_top", "end_n_top")
ASKED = "--question"  # In place of a file's name.
OF_BEAMS = ("start_n_top", "end_n_top", "null_score_diff_threshold")  # Flags of version 2.0.
# Of an evaluation, by version; the first picks the best checkpoint.
METRICS = {"1.1": ("f1", "exact_match"), "2.0": ("best_f1", "best_exact", "f1", "exact")}


@dataclasses.dataclass(frozen=True)
class SquadConfig:
    """What to learn from and what to answer; each field is a command-line flag too."""

    version: str = setting(
        "1.1", "1.1: every question has an answer. 2.0: or none.", choices=("1.1", "2.0")
    )
    train_file: str | None = setting(None, "JSON file of questions to train on.")
    predict_file: str | None = setting(
        None, "JSON file of questions to answer; if it has answers, the score picks the checkpoint."
    )
    context: str | None = setting(None, "A paragraph, for --question.")
    question: str | None = setting(None, "A question about --context; its answer is printed.")
    doc_stride: int = setting(128, "Pieces from one window over a long paragraph to the next.")
    max_query_length: int = setting(64, "Pieces of a question; the rest is cut off.")
    max_answer_length: int = setting(30, "Pieces of an answer.")
    n_best_size: int = setting(20, "Answers to a question in nbest_predictions.json.")
    start_n_top: int = setting(5, "Most likely starts that ends are sought for (2.0).")
    end_n_top: int = setting(5, "Most likely ends for each of them (2.0).")
    null_score_diff_threshold: float | None = setting(
        None,
        "Null odds up to which a question is answered (2.0). Not given: what was tuned for the "
        "model, on the labelled --predict_file it was first run with; else 0.",
    )
    metric: str = setting(
        "squad",
        "squad: words, as the official scripts. cmrc: Chinese characters, as CMRC 2018's (1.1).",
        choices=("squad", "cmrc"),
    )

    def __post_init__(self):
        if (self.context is None) != (self.question is None):
            raise ValueError(
                "`context` and `question` must come together. Received: only "
                f"{'question' if self.context is None else 'context'}."
            )
        if not (self.train_file or self.predict_file or self.question):
            raise ValueError(
                "`train_file`, `predict_file` or `question` must be given. Received: none of them."
            )
        if self.predict_file and self.question:
            raise ValueError(
                "What to answer is told by `predict_file` or by `question`. Received: both."
            )
        for name in POSITIVE:
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {getattr(self, name)}.")
        if self.metric == "cmrc" and self.version == "2.0":
            raise ValueError("`metric` cmrc is for version 1.1. Received: version=2.0.")


command_line.define_flags(SquadConfig)
fine_tuning.define_flags()


def check_version(version):
    """Refuses flags that mean nothing in a version, which may be that of the trained model."""
    given = [name for name in OF_BEAMS if command_line.is_given(name)]
    if version == "1.1" and given:
        raise ValueError(f"`{given[0]}` is for version 2.0. Received: version=1.1.")


def read_questions(squad_config, tokenizer, max_seq_length, trains):
    """Reads what to train on and what to answer: (Questions or None, Questions or None)."""
    from data import span_windows, squad
    from runs import question_answers

    settings = span_windows.WindowSettings(
        max_seq_length, squad_config.doc_stride, squad_config.max_query_length
    )
    version, train, asked = squad_config.version, None, None
    if trains:
        path = squad_config.train_file
        train = squad.read(path, version, is_training=True)
        train = question_answers.prepare(path, train, tokenizer, settings)
    if squad_config.predict_file:
        path = squad_config.predict_file
        asked = question_answers.prepare(path, squad.read(path, version), tokenizer, settings)
    elif squad_config.question:
        asked = squad.ask(squad_config.context, squad_config.question)
        asked = question_answers.prepare(ASKED, asked, tokenizer, settings)
    return train, asked


def make_task(squad_config, tuning, asked):
    """Returns the fine_tuning_run.Task; `asked`, if labelled, picks the best checkpoint."""
    from modeling import task_losses, task_models
    from runs import fine_tuning_run, question_answers

    def make_model(config, seed):
        if squad_config.version == "1.1":
            return task_models.SpanModel(config, seed=seed)
        return task_models.AnswerableSpanModel(
            config,
            start_n_top=squad_config.start_n_top,
            end_n_top=squad_config.end_n_top,
            classifier_dropout=tuning.classifier_dropout_prob,
            seed=seed,
        )

    def score(outputs):
        scores = question_answers.score(outputs, asked, squad_config)
        return question_answers.figures(scores, squad_config.metric)

    is_first = squad_config.version == "1.1"
    return fine_tuning_run.Task(
        make_model=make_model,
        losses=task_losses.span_losses if is_first else task_losses.answerable_span_losses,
        score=score,
        chance_loss=None,
        stops_at_chance=False,
        description={
            "task": f"SQuAD {squad_config.version}",
            "kind": "span",
            "labels": [],
            "metrics": list(METRICS[squad_config.version]),
            "metric": squad_config.metric,
        },
    )


def choose_settings(recipe, tuning, train, task):
    """Returns TrainConfig; the recipe's steps are passes over as many questions as there are."""
    recipe = {**recipe, "best_metric": task.description["metrics"][0]}
    if train is None:
        return command_line.from_flags(TrainConfig)
    version = task.description["task"].split()[-1]
    batch = recipe["train_batch_size"]
    batch = command_line.from_flags(TrainConfig, train_batch_size=batch).train_batch_size
    num_steps = int(len(train.question_set.questions) / batch * EPOCHS[version])
    share = recipe["num_warmup_steps"] / recipe["num_train_steps"]
    recipe |= {"num_train_steps": max(1, num_steps), "num_warmup_steps": num_steps * share}
    return fine_tuning.choose_settings(recipe, tuning, len(train.features))


def choose_threshold(squad_config, scores, asked, kept):
    """Chooses the null odds up to which questions are answered (2.0).

    The flag comes first, then what was tuned for the model, then what is tuned now if the
    answers are known.

    Args:
        squad_config: SquadConfig.
        scores: SpanScores.
        asked: question_answers.Questions.
        kept: question_answers.Threshold of the model, or None.

    Returns:
        Threshold, or None in version 1.1.
    """
    from runs import question_answers

    if scores.null_scores is None:
        return None
    if squad_config.null_score_diff_threshold is not None:
        return question_answers.Threshold(squad_config.null_score_diff_threshold, "given")
    if kept is None and asked.is_labelled:
        return question_answers.tune(scores, asked.path)
    return kept or question_answers.DEFAULT


def answer(run, asked, squad_config, folder, source):
    """Answers the questions: writes files and prints figures, or prints the one answer.

    Args:
        run: fine_tuning_run.Run with its weights loaded.
        asked: question_answers.Questions.
        squad_config: SquadConfig.
        folder: where files go.
        source: folder of weights that were there before, whose threshold is theirs; or None.

    Returns:
        dict of the figures, float; empty where the answers are not known, or another worker
        writes.
    """
    from runs import question_answers
    from training import distribution

    outputs = run.predict(asked.features)
    scores = question_answers.score(outputs, asked, squad_config)
    kept = question_answers.kept_threshold(source) if source else None
    threshold = choose_threshold(squad_config, scores, asked, kept)
    if squad_config.question:
        question_answers.show(scores, threshold)
        return {}
    figures = {}
    if asked.is_labelled:
        found = question_answers.report(asked.path, scores, threshold, squad_config.metric)
        figures = {name: value for name, value in found.items() if isinstance(value, float)}
    if not distribution.is_chief(run.strategy):
        return {}
    question_answers.write_answers(folder, scores, squad_config.n_best_size, threshold)
    print(f"answers to {len(scores.ids):,} questions: {folder}/{question_answers.PREDICTIONS}")
    return figures


def in_fractions(result):
    """Returns a run's result with scores in [0, 1], F1 first, as other tasks have them."""
    names = sorted(result["metrics"], key=lambda name: name != "f1")
    return {**result, "metrics": {name: result["metrics"][name] / 100 for name in names}}


def main():
    squad_config = command_line.from_flags(SquadConfig)
    defaults = {"do_train": bool(squad_config.train_file)}
    if squad_config.question and not squad_config.train_file:
        defaults["output_dir"] = command_line.program_flags()["init_checkpoint"]
    tuning = command_line.from_flags(fine_tuning.FineTuneConfig, **defaults)
    if tuning.do_train and not squad_config.train_file:
        raise ValueError("`train_file` must be given in order to train. Received: nothing.")
    command_line.prepare_tensorflow()
    from runs import fine_tuning_run, seeds

    if not tuning.do_train:
        kept = fine_tuning.as_trained(fine_tuning.trained_folder(tuning), KEPT)
        squad_config = command_line.from_flags(SquadConfig, **kept)
    check_version(squad_config.version)
    fine_tuning.check_best_metric(METRICS[squad_config.version])
    name = f"SQuAD {squad_config.version}"
    config, tokenizer = fine_tuning.choose_encoder(tuning, recipes.fine_tuning(name, 0))
    recipe = recipes.fine_tuning(name, config.hidden_size)
    length = fine_tuning.choose_length(tuning, recipe, config)
    train, asked = read_questions(squad_config, tokenizer, length, tuning.do_train)
    task = make_task(squad_config, tuning, asked)
    settings = choose_settings(recipe, tuning, train, task)
    if tuning.do_train:
        fine_tuning.describe(config, settings, tuning, length)

    picks = asked and asked.is_labelled and tuning.do_eval

    def run_one(folder, seed):
        run = fine_tuning_run.Run(task, config, dataclasses.replace(settings, seed=seed), length)
        source = None if tuning.do_train else fine_tuning.trained_folder(tuning)
        fine_tuning_run.train_or_load(
            run,
            folder,
            tuning,
            tokenizer,
            train and train.features,
            asked.features if picks else None,
        )
        return answer(run, asked, squad_config, folder, source) if asked else {}

    if not tuning.do_train:
        run_one(tuning.output_dir, settings.seed)
        return
    seeds.run_all(tuning, settings, run_one, shown=in_fractions)


if __name__ == "__main__":
    command_line.run(main)
