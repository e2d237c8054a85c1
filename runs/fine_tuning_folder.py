"""What fine-tuning leaves in a run's folder beside the weights, and whether a run may go on there.

Only programs import this module.
"""

import dataclasses
import os

import command_line
from folders import model_folder
from training import distribution

# What the weights depend on: a run goes on with these as it began.
TRAINED_BY = (
    "optimizer learning_rate num_train_steps num_warmup_steps start_warmup_step poly_power "
    "train_batch_size precision weight_decay beta_1 beta_2 epsilon bias_correction clip_norm "
    "best_metric seed classifier_dropout_prob max_seq_length"
)


def seal(run, folder, tokenizer):
    """Writes what the model needs beside its weights, and what it is trained for and how.

    Every worker checks the folder, so that a mistake ends each of them as such; one writes.

    Raises:
        ValueError: the folder holds another model's weights, or another task's, or those of
            this one were begun with other settings.
    """
    description = run.task.description
    settings = command_line.program_flags() | dataclasses.asdict(run.settings)
    settings["max_seq_length"] = run.max_seq_length
    model_folder.check_goes_on(folder, is_fine_tuning=True)
    if model_folder.has_weights(folder):
        check_task(folder, description, ("task", "kind", "labels"))
        check_settings(folder, settings)
    model_folder.check_model(folder, run.config, tokenizer)
    distribution.largest(run.strategy, [0])  # All have read what is now replaced.
    if not distribution.is_chief(run.strategy):
        return
    model_folder.seal(folder, config=run.config, tokenizer=tokenizer, settings=settings)
    model_folder.write_task(folder, description, description["labels"])


def check_settings(folder, settings):
    """Refuses to go on with a run, or to take it for done, where what it was trained by differs.

    Args:
        folder: path of the run.
        settings: dict of those asked for.
    """
    kept = model_folder.read_json(folder, model_folder.SETTINGS)
    for name in TRAINED_BY.split():
        if name in kept and kept[name] != settings[name]:
            raise ValueError(
                f"A run goes on with the settings it began with. Received: {name}="
                f"{settings[name]}, but {kept[name]} in "
                f"{os.path.join(folder, model_folder.SETTINGS)}. Use another `output_dir`."
            )


def check_task(path, description, names):
    """Refuses a folder whose weights were trained for something else, as far as it is told.

    Args:
        path: folder or checkpoint.
        description: dict of Task.
        names: what must agree.
    """
    held = model_folder.read_json(path, model_folder.TASK)
    for name in names:
        if name in held and held[name] != description[name]:
            raise ValueError(
                f"The `{name}` of a trained model must be that of the run. Received: "
                f"{description[name]}, but {held[name]} in "
                f"{model_folder.find(path, model_folder.TASK)}. Use another folder."
            )
