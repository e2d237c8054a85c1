"""Fine-tunes ALBERT to choose the answers to questions about passages: RACE, and sets in its form.

    python run_race.py --data_dir=RACE --init_checkpoint=albert_base --output_dir=output
    python run_race.py --data_dir=RACE --init_checkpoint=albert_base_v2 --recipe=v2 \\
        --output_dir=output
    python run_race.py --data_dir=RACE --output_dir=output --nodo_train --do_predict

The accuracy on the dev set picks the best checkpoint. The chosen options, numbers from 0, go to
`dev_predictions.jsonl`, and with --do_predict to `test_predictions.jsonl`.
"""

import collections
import dataclasses
import os

import command_line
import recipes
from data import race
from runs import fine_tuning
from training.config import setting

RECIPES = {"v1": "RACE", "v2": "RACE v2"}  # Names in recipes.py.
KEPT = ("max_qa_length",)  # A trained model reads as it was trained to, unless flags say how.


@dataclasses.dataclass(frozen=True)
class RaceConfig:
    """Where the questions are and how they are read; each field is a command-line flag too."""

    data_dir: str | None = setting(
        None, "Folder with RACE's `train`, `dev` and `test`, or with the folder `RACE` of them."
    )
    level: str | None = setting(None, "Only this part. Not given: both.", choices=race.LEVELS)
    max_qa_length: int = setting(128, "Pieces of question and option together; the last are kept.")
    recipe: str = setting(
        "v1",
        "v1: the paper's Table 14. v2: the original's for version 2 models, which diverge with it: "
        "a lower rate, and no dropout but the head's.",
        choices=tuple(RECIPES),
    )
    stop_at_chance: bool = setting(
        True, "Whether to end a run whose loss is that of a guess after 20 % of the steps."
    )

    def __post_init__(self):
        if not self.data_dir:
            raise ValueError("`data_dir` must name the folder of the questions. Received: nothing.")


command_line.define_flags(RaceConfig)
fine_tuning.define_flags()


def read_sets(race_config, tuning):
    """Reads what is asked for: dict of split to race.Questions."""
    wanted = {"train": tuning.do_train, "dev": tuning.do_eval, "test": tuning.do_predict}
    sets = {}
    for split in (split for split in wanted if wanted[split]):
        sets[split] = questions = race.read(race_config.data_dir, split, race_config.level or "")
        if split != "test" and questions.label_ids is None:
            raise ValueError(
                f"the passages of {split} must have `answers`. Received: "
                f"{race.find_folder(race_config.data_dir, split)}, without."
            )
    return sets


def make_features(sets, tokenizer, race_config, length, folder):
    """Tokenizes the sets: dict of split to Features; says how many questions there are."""
    from data import multiple_choice

    features = {}
    for split, questions in sets.items():
        features[split] = made = multiple_choice.make_features(
            questions, tokenizer, length, race_config.max_qa_length, os.path.join(folder, "cache")
        )
        counts = collections.Counter(questions.levels)
        levels = "".join(f", {level} {counts[level]:,}" for level in race.LEVELS if counts[level])
        print(
            f"{split}: {len(made):,} questions{levels}; {len(questions.articles):,} passages; "
            f"{made.num_choices} options at most"
        )
        fine_tuning.describe_features(made, split, length)
    return features


def make_task(race_config, tuning, dev):
    """Returns the fine_tuning_run.Task; `dev`, Questions or None, picks the best checkpoint."""
    from modeling import task_losses, task_models
    from runs import chosen_options, fine_tuning_run

    return fine_tuning_run.Task(
        make_model=lambda config, seed: task_models.MultipleChoice(
            config, tuning.classifier_dropout_prob, seed=seed
        ),
        losses=task_losses.choice_losses,
        score=lambda outputs: chosen_options.score(dev, outputs["logits"]),
        chance_loss=dev and chosen_options.chance_loss(dev),
        stops_at_chance=race_config.stop_at_chance,
        description={"task": "RACE", "kind": "choice", "labels": [], "metrics": ["accuracy"]},
    )


def describe(config, settings, tuning, length, race_config, features):
    """Prints what is about to run, with the sequences that one step takes."""
    fine_tuning.describe(config, settings, tuning, length)
    if not tuning.do_train:
        return
    batch, num_choices = settings.train_batch_size, features["train"].num_choices
    print(
        f"recipe {race_config.recipe}; {batch} questions x {num_choices} options = "
        f"{batch * num_choices} sequences a step"
    )


def main():
    race_config = command_line.from_flags(RaceConfig)
    tuning = command_line.from_flags(fine_tuning.FineTuneConfig)
    command_line.prepare_tensorflow()
    from runs import chosen_options, fine_tuning_run, seeds
    from training import distribution

    if not tuning.do_train:
        kept = fine_tuning.as_trained(fine_tuning.trained_folder(tuning), KEPT)
        race_config = command_line.from_flags(RaceConfig, **kept)
    sets = read_sets(race_config, tuning)
    fine_tuning.check_best_metric(chosen_options.metrics_of(sets.get("dev")))
    name = RECIPES[race_config.recipe]
    config, tokenizer = fine_tuning.choose_encoder(tuning, recipes.fine_tuning(name, 0))
    recipe = {**recipes.fine_tuning(name, config.hidden_size), "best_metric": "accuracy"}
    length = fine_tuning.choose_length(tuning, recipe, config)
    features = make_features(sets, tokenizer, race_config, length, tuning.output_dir)
    settings = fine_tuning.choose_settings(recipe, tuning, len(features.get("train", [])))
    task = make_task(race_config, tuning, sets.get("dev"))
    describe(config, settings, tuning, length, race_config, features)

    def run_one(folder, seed):
        run = fine_tuning_run.Run(task, config, dataclasses.replace(settings, seed=seed), length)
        train, dev = features.get("train"), features.get("dev")
        fine_tuning_run.train_or_load(run, folder, tuning, tokenizer, train, dev)
        writes, figures = distribution.is_chief(run.strategy), {}
        for split in (split for split in sets if split != "train"):
            logits = run.predict(features[split])["logits"]
            figures |= chosen_options.report(sets[split], split, logits)
            if writes:
                chosen_options.write(sets[split], split, logits, folder)
        return figures if writes else {}

    seeds.run_all(tuning, settings, run_one)


if __name__ == "__main__":
    command_line.run(main)
