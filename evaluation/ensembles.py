"""Averages the saved predictions of several runs of one task.

  python -m evaluation.ensembles --members=runs/a,runs/b,runs/c --output_dir=runs/ensemble

Each member is a folder that a fine-tuning program wrote. The averages go to files of the same
form as the members'. With --greedy members are chosen by the dev set alone: the best first,
then whichever raises the score most, until none does.
"""

import json
import os
import sys

from absl import flags

import command_line
from evaluation import run_files

TEST = "test"  # Sets of this name are never chosen by, even where they have labels.
REPORT = "ensemble.json"
AVERAGE = "average"
ANSWERS = "answers"  # Of a set without a name.

MEMBERS = flags.DEFINE_list("members", None, "Folders of the runs, comma-separated.", required=True)
OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder for the averages.", required=True)
GREEDY = flags.DEFINE_boolean("greedy", False, "Choose among the members, by the dev set.")
NULL_THRESHOLD = flags.DEFINE_float(
    "null_score_diff_threshold",
    None,
    "Null odds up to which a question is answered (SQuAD 2.0). Not given: what is best for a "
    "labelled set, and 0 for another.",
)


def main():
    from evaluation import prediction_files, row_averages, span_averages

    if any(map(run_files.is_remote, [*MEMBERS.value, OUTPUT_DIR.value])):
        command_line.prepare_tensorflow()
    folders = check_folders(MEMBERS.value, OUTPUT_DIR.value)
    task = shared_task({folder: prediction_files.read_task(folder) for folder in folders})
    if task["kind"] == "span":
        form = span_averages.SpanAverages(task, NULL_THRESHOLD.value)
    else:
        form = row_averages.RowAverages(task)
    report = {"task": task["task"], "members": folders, "greedy": GREEDY.value}
    if GREEDY.value:
        report["order"] = choose(form, folders)
        folders = report["members"] = [step["member"] for step in report["order"]]
    sets = common_sets(form, folders)
    warn_of_others(form, folders, sets)
    members = {name: form.load(folders, name) for name in sets}
    averages = {name: form.average(members[name]) for name in sets}
    report["scores"] = {}
    for name, average in averages.items():
        form.write(OUTPUT_DIR.value, name, average)
        predicted = dict(zip([*folders, AVERAGE], [*members[name], average], strict=True))
        scores = {of: form.score(predictions) for of, predictions in predicted.items()}
        if scores[AVERAGE]:
            report["scores"][name] = scores
            print(f"{name or ANSWERS}:\n{table(scores)}")
    for name, content in ((prediction_files.TASK, task), (REPORT, report)):
        write_json(os.path.join(OUTPUT_DIR.value, name), content)
    named = ", ".join(name or ANSWERS for name in sets)
    print(f"Wrote the averages of {len(folders)} runs to {OUTPUT_DIR.value}: {named}.")


def check_folders(folders, output_dir):
    """Returns the members' folders.

    Raises:
        ValueError: fewer than two, one twice, or the output would go into one of them.
    """
    real = [os.path.realpath(folder) for folder in folders]
    if len(folders) < 2 or len(set(real)) < len(real):
        raise ValueError(f"`members` must be two different folders or more. Received: {folders}.")
    if os.path.realpath(output_dir) in real:
        raise ValueError(f"`output_dir` must be none of the members. Received: {output_dir}.")
    for folder in folders:
        if not run_files.is_folder(folder):
            raise FileNotFoundError(f"`members` must be folders. Received: {folder}.")
    return folders


def shared_task(tasks):
    """Returns the task that all runs were trained for.

    Args:
        tasks: dict, folder -> dict of `prediction_files.read_task`.

    Raises:
        ValueError: they differ.
    """
    (first, task), *others = tasks.items()
    for folder, other in others:
        for key in ("task", "kind", "labels"):
            if other[key] != task[key]:
                raise ValueError(
                    f"`members` must be runs of one task. Received: {key}={task[key]} in {first}, "
                    f"{key}={other[key]} in {folder}."
                )
    return task


def common_sets(form, folders):
    """Returns the names of the sets that all runs have predicted.

    Args:
        form: RowAverages or SpanAverages.
        folders: list of str.

    Raises:
        ValueError: there is none.
    """
    sets = {folder: form.names(folder) for folder in folders}
    common = sorted(set.intersection(*map(set, sets.values())))
    if not common:
        raise ValueError(
            "`members` must have predictions of the same sets (--do_eval, --do_predict). "
            f"Received: {sets}."
        )
    return common


def warn_of_others(form, folders, sets):
    """Tells of sets that only some runs have predicted."""
    for folder in folders:
        if left_out := sorted(set(form.names(folder)) - set(sets)):
            print(
                f"warning: not averaged, since other members lack it: {', '.join(left_out)} "
                f"of {folder}",
                file=sys.stderr,
            )


def choose(form, folders):
    """Chooses members by the first dev set, and prints the order.

    Returns:
        A list of {"member": folder, "score": float}.

    Raises:
        ValueError: there is no labelled dev set.
    """
    from evaluation import member_choice
    from evaluation.repeated_runs import worth

    sets = common_sets(form, folders)
    name = next((name for name in sets if not name.startswith(TEST)), None)
    members = dict(zip(folders, form.load(folders, name), strict=True)) if name is not None else {}
    if not members or not form.score(members[folders[0]]):
        raise ValueError(
            "`greedy` chooses by a labelled dev set. Received: predictions of "
            f"{', '.join(sets)}, with none."
        )

    def score(chosen):
        averaged = form.average([members[folder] for folder in chosen])
        metric, value = next(iter(form.score(averaged).items()))
        return worth(value, metric)

    order = member_choice.choose(folders, score)
    for number, (folder, value) in enumerate(order, 1):
        print(f"{number}. {'+ ' if number > 1 else ''}{folder}: {value:.4f}")
    if len(order) < len(folders):
        print("None of the others raises the score.")
    return [{"member": folder, "score": value} for folder, value in order]


def table(scores):
    """Writes the scores of members and average as plain text.

    Args:
        scores: dict, name -> dict, metric -> float.
    """
    width = max(map(len, scores))
    widths = {name: max(10, len(name)) for name in scores[AVERAGE]}
    lines = [" " * width + "".join(f"  {name:>{widths[name]}}" for name in widths)]
    for of, values in scores.items():
        cells = (f"  {values[name]:>{widths[name]}.4f}" for name in widths)
        lines.append(f"{of:<{width}}" + "".join(cells))
    return "\n".join(lines)


def write_json(path, value):
    content = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    run_files.write_bytes(path, content.encode())


if __name__ == "__main__":
    command_line.run(main)
