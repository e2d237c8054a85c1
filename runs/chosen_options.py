"""What a model of multiple choice says of questions: scores, warnings, files.

Only programs import this module. n: questions, C: options of a question at most.
"""

import numpy as np

from data import files, race
from evaluation import metrics, prediction_files
from runs import classified_rows


def chance_loss(questions):
    """Returns the loss, in nats, of a guess among the options that each question has."""
    return float(np.mean([np.log(len(options)) for options in questions.options]))


def metrics_of(questions):
    """Returns the names of what `score` gives, list[str]; `questions` may be None."""
    levels = list(dict.fromkeys(questions.levels)) if questions else []
    return ["accuracy", *(f"accuracy_{level}" for level in levels if len(levels) > 1)]


def score(questions, logits):
    """Scores the choices.

    Args:
        questions: race.Questions, labelled.
        logits: float32[n, C].

    Returns:
        dict of float: `accuracy`, and `accuracy_<level>` where there are several levels.
    """
    found = by_level(questions, logits)
    return {name: value for name, value in found.items() if name.startswith("accuracy")}


def by_level(questions, logits):
    predicted = metrics.predictions(logits)
    return metrics.accuracy_by_level(questions.label_ids, predicted, questions.levels)


def report(questions, split, logits):
    """Prints the final scores of one set with their numbers of questions, and returns them.

    Args:
        questions, logits: as of `score`; unlabelled ones have no scores.
        split: the set's name; figures of all but "dev" bear it.

    Returns:
        dict of name to float.
    """
    classified_rows.warn_of_collapse(metrics.predictions(logits), split, race.LETTERS)
    if questions.label_ids is None:
        return {}
    found, scores = by_level(questions, logits), score(questions, logits)
    figures = (
        f"{name} {value:.4f} ({found[name.replace('accuracy', 'num_examples')]:,} questions)"
        for name, value in scores.items()
    )
    print(f"{split}: {'  '.join(figures)}")
    return scores if split == "dev" else {f"{split}_{name}": scores[name] for name in scores}


def write(questions, split, logits, folder):
    """Writes the choices, with the probabilities of the options that each question has.

    Args:
        questions, split, logits: as of `report`.
        folder: path.
    """
    files.check_folder(folder)
    predicted, probabilities = metrics.predictions(logits), metrics.probabilities(logits)
    rows = []
    for number, row_id in enumerate(questions.ids):
        row = {"id": row_id, "prediction": int(predicted[number])}
        if questions.label_ids is not None:
            row["label"] = int(questions.label_ids[number])
        of_options = probabilities[number, : len(questions.options[number])]
        row["probabilities"] = [round(float(value), 6) for value in of_options]
        rows.append(row)
    path = prediction_files.path_of(folder, split)
    prediction_files.write(path, rows)
    print(f"{split}: choices in {path}")
