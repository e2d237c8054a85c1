"""Fine-tunes ALBERT to classify texts or pairs of texts: GLUE, Chinese sets, one's own rows.

    python run_classifier.py --task=MRPC --data_dir=glue --init_checkpoint=albert_base \\
        --output_dir=output
    python run_classifier.py --task=custom --train_file=train.tsv --dev_file=dev.tsv \\
        --text_columns=text --label_column=label --init_checkpoint=model --output_dir=output
    python run_classifier.py --task=MRPC --data_dir=glue --output_dir=output --nodo_train \\
        --do_predict

The score on the dev set picks the best checkpoint. Predictions go to
`<set>_predictions.jsonl`, those of --do_predict also to the file that the GLUE site takes.
"""

import dataclasses
import os

from absl import flags

import command_line
import recipes
from data.classification_tasks import TASKS
from data.custom_tasks import CustomData
from runs import fine_tuning

CUSTOM = "custom"
CUT, WINDOWS = "cut", "windows"  # Of long texts.
CHINESE = ("ChnSentiCorp", "LCQMC", "TNEWS", "AFQMC", "OCNLI", "CMNLI")
LIKE = {"AX": "MNLI"}  # Whose recipe is taken.

TASK = flags.DEFINE_enum("task", None, [*TASKS, CUSTOM], "What to learn.")
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder with the task's folder, or with its files, as GLUE's download makes."
)
LONG_TEXTS = flags.DEFINE_enum(
    "long_texts",
    CUT,
    [CUT, WINDOWS],
    "What becomes of a row longer than --max_seq_length: cut, or read in windows that overlap by "
    "half, whose predictions are averaged. With --nodo_train: as in training, unless given.",
)
RANK = flags.DEFINE_bool(
    "rank", False, "QNLI, WNLI: also decide by comparing the rows that share a text (see README)."
)
command_line.define_flags(CustomData)
fine_tuning.define_flags()


def choose_task(tuning):
    """Returns (ClassificationTask, folder of its files).

    Raises:
        ValueError: flags are missing, or belong to another task.
    """
    from data import custom_tasks
    from folders import model_folder

    names = [field.name for field in dataclasses.fields(CustomData)]
    given = [name for name in names if command_line.is_given(name)]
    if TASK.value is None:
        raise ValueError(f"`task` must be one of {[*TASKS, CUSTOM]}. Received: nothing.")
    if TASK.value != CUSTOM:
        if given:
            raise ValueError(
                f"`{given[0]}` is for --task=custom. Received: task={TASK.value}, whose files are "
                "in `data_dir`."
            )
        if not DATA_DIR.value:
            raise ValueError("`data_dir` must name the folder of the files. Received: nothing.")
        task = TASKS[TASK.value]
        if RANK.value and not task.ranked_label:
            raise ValueError(f"`rank` is for QNLI and WNLI. Received: task={TASK.value}.")
        return task, DATA_DIR.value
    custom, labels = command_line.from_flags(CustomData), []
    if custom.test_file and not tuning.do_predict:
        raise ValueError(
            f"`test_file` is for `do_predict`. Received: {custom.test_file}, do_predict=False."
        )
    if not tuning.do_train and not custom.labels and custom.label_kind != "number":
        labels = model_folder.read_labels(fine_tuning.trained_folder(tuning))
    return custom_tasks.custom_task(custom, labels=labels), ""


def read_tables(task, data_dir, tuning):
    """Reads what is asked for: dict of split to classification_tables.Table."""
    from data import classification_tables

    wanted = {"train": tuning.do_train, "dev": tuning.do_eval, "test": tuning.do_predict}
    splits = [split for kind, asked in wanted.items() if asked for split in task.splits(kind)]
    for kind, flag in (("train", "do_train"), ("test", "do_predict")):
        if wanted[kind] and not task.splits(kind):
            what = f"`{kind}_file` must be given" if TASK.value == CUSTOM else "There is no file"
            raise ValueError(f"{what} for `{flag}`. Received: task={TASK.value}.")
    tables = {split: classification_tables.read(task, data_dir, split) for split in splits}
    if not tables:
        raise ValueError(
            f"There must be something to do. Received: task={TASK.value}, which has no files for "
            f"what the `do_` flags ask ({', '.join(kind for kind in wanted if wanted[kind])})."
        )
    for table in tables.values():
        left_out = {"of another number of columns": table.num_broken}
        left_out["without a label"] = table.num_unlabelled
        for reason, number in left_out.items():
            if number:
                print(f"note: {table.path}: left out {number:,} rows {reason}")
    return tables


def reads_in_windows(tuning):
    """Says whether long rows are read in windows: as the flag has it, or as the trained run did."""
    if command_line.is_given("long_texts") or tuning.do_train:
        return LONG_TEXTS.value == WINDOWS
    kept = fine_tuning.as_trained(fine_tuning.trained_folder(tuning), ["long_texts"])
    return kept.get("long_texts") == WINDOWS


def make_features(tables, tokenizer, length, tuning):
    """Tokenizes the tables: dict of split to Features; says how much is cut off."""
    from data import classification

    features, in_windows = {}, reads_in_windows(tuning)
    for split, table in tables.items():
        features[split] = made = classification.make_features(
            table,
            tokenizer,
            length,
            in_windows=in_windows,
            cache_folder=os.path.join(tuning.output_dir, "cache"),
        )
        fine_tuning.describe_features(made, split, length)
    return features


def choose_recipe(hidden_size):
    """Returns the task's recipe for models of one width."""
    row = {"custom": recipes.OWN_DATA, **dict.fromkeys(CHINESE, recipes.CHINESE)}
    name = LIKE.get(TASK.value, TASK.value)
    return recipes.fine_tuning(name, hidden_size, row.get(TASK.value))


def make_task(task, tables, features, classifier_dropout):
    """Returns the fine_tuning_run.Task of a ClassificationTask."""
    from modeling import task_losses, task_models
    from runs import classified_rows, fine_tuning_run

    losses = {
        "classes": task_losses.classification_losses,
        "multilabel": task_losses.multilabel_losses,
        "number": task_losses.regression_losses,
    }
    dev = next((split for split in task.splits("dev") if split in tables), None)
    train = tables.get("train")

    def score(outputs):
        logits = classified_rows.per_row(features[dev], outputs["logits"])
        return classified_rows.score(task, tables[dev], logits)

    return fine_tuning_run.Task(
        make_model=lambda config, seed: task_models.Classifier(
            config, task.num_outputs, classifier_dropout, seed=seed
        ),
        losses=losses[task.label_kind],
        score=score,
        chance_loss=train and classified_rows.chance_loss(task.label_kind, train.label_ids),
        stops_at_chance=False,
        description={
            "task": TASK.value,
            "kind": task.label_kind,
            "labels": list(task.labels),
            "metrics": list(task.metrics),
            "submissions": dict(task.submissions),
        },
    )


def main():
    tuning = command_line.from_flags(fine_tuning.FineTuneConfig)
    command_line.prepare_tensorflow()
    from runs import classified_rows, fine_tuning_run, seeds
    from training import distribution

    task, data_dir = choose_task(tuning)
    fine_tuning.check_best_metric(task.metrics)
    tables = read_tables(task, data_dir, tuning)
    config, tokenizer = fine_tuning.choose_encoder(tuning, choose_recipe(0))
    recipe = {**choose_recipe(config.hidden_size), "best_metric": task.metrics[0]}
    length = fine_tuning.choose_length(tuning, recipe, config)
    features = make_features(tables, tokenizer, length, tuning)
    settings = fine_tuning.choose_settings(recipe, tuning, len(features.get("train", [])))
    run_task = make_task(task, tables, features, tuning.classifier_dropout_prob)
    fine_tuning.describe(config, settings, tuning, length)

    def run_one(folder, seed):
        run = fine_tuning_run.Run(
            run_task, config, dataclasses.replace(settings, seed=seed), length
        )
        dev = next((features[s] for s in task.splits("dev") if s in features), None)
        fine_tuning_run.train_or_load(run, folder, tuning, tokenizer, features.get("train"), dev)
        writes, figures = distribution.is_chief(run.strategy), {}
        for split in (split for split in tables if split != "train"):
            outputs = run.predict(features[split])
            logits = classified_rows.per_row(features[split], outputs["logits"])
            figures |= classified_rows.report(task, tables[split], split, logits, rank=RANK.value)
            if writes:
                classified_rows.write(task, tables[split], split, logits, folder, rank=RANK.value)
        return figures if writes else {}

    seeds.run_all(tuning, settings, run_one)


if __name__ == "__main__":
    command_line.run(main)
