"""A run of fine-tuning for each seed: those that are done are gone past.

Only programs import this module.
"""

import dataclasses
import json
import os

import command_line
from data import files
from evaluation import repeated_runs
from folders import model_folder

SCORES = "scores.json"


def run_all(tuning, settings, run_one, shown=lambda result: result):
    """Runs once for each seed, going past those that are done, and prints the table of several.

    Args:
        tuning: fine_tuning.FineTuneConfig; one seed alone runs in `output_dir`, several in
            `output_dir/seed-<k>`.
        settings: TrainConfig, whose `seed` is the first.
        run_one: function of (folder, seed) that returns a dict of float, empty where the rows
            are unlabelled or another worker writes.
        shown: function of {"seed": int, "metrics": dict of float} that returns what the table
            shows of it.
    """
    if tuning.seeds > 1 and settings.strategy == "multi_worker":
        raise ValueError(
            "`seeds` must be 1 with --strategy=multi_worker: workers meet once in a process; start "
            f"a job for each --seed. Received: seeds={tuning.seeds}."
        )
    results = []
    for seed in range(settings.seed, settings.seed + tuning.seeds):
        several = tuning.seeds > 1
        folder = os.path.join(tuning.output_dir, f"seed-{seed}") if several else tuning.output_dir
        path = os.path.join(folder, SCORES)
        if several and is_done(folder, dataclasses.replace(settings, seed=seed)):
            metrics = json.loads(files.read_bytes(path))
            print(f"seed {seed}: done before, {path}")
        else:
            if several:
                print(f"== seed {seed} ({len(results) + 1} of {tuning.seeds})")
            metrics = run_one(folder, seed)
            files.check_folder(folder)
            if metrics or several:  # Otherwise the scores of before stay.
                files.write_json(path, metrics)
        results.append({"seed": seed, "metrics": metrics})
    if len(results) > 1 and results[0]["metrics"]:
        print(repeated_runs.table([shown(result) for result in results]))


def is_done(folder, settings):
    """Says whether a run has got to its end with the flags of now.

    Args:
        folder: path of the run.
        settings: its TrainConfig.
    """
    if not files.exists(os.path.join(folder, SCORES)):
        return False
    kept = model_folder.read_json(folder, model_folder.SETTINGS)
    asked = command_line.program_flags() | dataclasses.asdict(settings)
    asked.pop("seeds")
    return all(kept.get(name) == value for name, value in asked.items() if value is not None)
