"""The files in which a run keeps its predictions: JSON lines beside a `task.json`.

Each line is an object with `id`, `label` (where there is one), `prediction`, and, unless the
prediction is a number, `probabilities`: of the classes, of each label for itself, or of the
choices. `task.json` holds `task`, `kind`, `labels` and `metrics`, the first of which counts.
"""

import collections
import io
import json
import os

from evaluation import run_files

TASK = "task.json"
SUFFIX = "_predictions.jsonl"
KINDS = ("classes", "multilabel", "number", "choice", "span")
NUM_NAMED = 3  # Of the ids that differ, in an error.


def read_task(folder):
    """Reads what a run was trained for.

    Raises:
        FileNotFoundError: the folder has no `task.json`.
        ValueError: it lacks a key, or its kind is none of KINDS.
    """
    path = os.path.join(folder, TASK)
    if not run_files.exists(path):
        raise FileNotFoundError(
            f"A run's folder must have a {TASK}, which every fine-tuning program writes. "
            f"Received: {folder}, without one."
        )
    task = json.loads(run_files.read_bytes(path))
    if missing := sorted({"task", "kind", "labels", "metrics"} - set(task)):
        raise ValueError(f"{path} must have all keys. Received: one without {missing}.")
    if task["kind"] not in KINDS:
        raise ValueError(f"`kind` in {path} must be one of {KINDS}. Received: {task['kind']!r}.")
    return task


def names(folder):
    """Lists the sets that a run has predicted, such as "dev" and "test"."""
    found = (name for name in run_files.names_in(folder) if name.endswith(SUFFIX))
    return sorted(name.removesuffix(SUFFIX) for name in found)


def path_of(folder, name):
    """Returns the file of one set of predictions."""
    return os.path.join(folder, name + SUFFIX)


def read(path):
    """Reads a file of predictions.

    Returns:
        A list of dicts, in order.

    Raises:
        ValueError: a line is no such object, or an id comes twice.
    """
    rows, lines = [], {}
    for number, line in enumerate(io.StringIO(run_files.read_bytes(path).decode()), 1):
        try:
            row = json.loads(line)
            key, _ = row["id"], row["prediction"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}:{number} must be a JSON object with `id` and `prediction`. "
                f"Received: {line.strip()[:80]!r}."
            ) from error
        if lines.setdefault(key, number) != number:
            raise ValueError(
                f"{path} must have each id once. Received: id {key!r} in lines "
                f"{lines[key]} and {number}."
            )
        rows.append(row)
    return rows


def write(path, rows):
    """Writes predictions; the file has its name only once it is complete.

    Args:
        path: str.
        rows: iterable of dicts.
    """
    content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    run_files.write_bytes(path, content.encode())


def matched(rows_by_run):
    """Puts the rows of several runs in the order of the first, by their ids.

    Args:
        rows_by_run: dict, name of a run -> its rows.

    Returns:
        A list of lists of dicts, in the order of the runs.

    Raises:
        ValueError: the runs have not the same ids, or not the same labels.
    """
    (first, rows), *others = rows_by_run.items()
    result = [rows]
    for run, other in others:
        by_id = {row["id"]: row for row in other}
        check_ids({first: [row["id"] for row in rows], run: list(by_id)})
        result.append([by_id[row["id"]] for row in rows])
        for mine, theirs in zip(rows, result[-1], strict=True):
            if mine.get("label") != theirs.get("label"):
                raise ValueError(
                    f"The runs must have the same labels. Received: id {mine['id']!r} with "
                    f"{mine.get('label')!r} in {first} and {theirs.get('label')!r} in {run}."
                )
    return result


def check_ids(ids_by_run):
    """Refuses two runs whose ids differ, and names the difference."""
    runs = collections.Counter(key for ids in ids_by_run.values() for key in ids)
    alone = {
        run: [key for key in ids if runs[key] < len(ids_by_run)] for run, ids in ids_by_run.items()
    }
    if any(alone.values()):
        found = "; ".join(
            f"{run} alone has {len(keys):,}: {', '.join(map(str, keys[:NUM_NAMED]))}"
            + (", ..." if len(keys) > NUM_NAMED else "")
            for run, keys in alone.items()
            if keys
        )
        raise ValueError(f"The runs must have predicted the same ids. Received: {found}.")
