"""Compares what a served model gives with the model in memory, from ids and from texts.

Only programs import this module.
"""

import numpy as np
import tensorflow as tf

from data import length_batches
from runs import classified_rows, question_answers
from serving import export_formats, prediction_features, prediction_results
from serving.exported_model import POSITIONS

LENGTHS = (5, 12, 27, 40)  # Pieces of the inputs that formats are checked with.
BATCH, NUM_CHOICES = 5, 3  # Four batches of five: 20 inputs.
TEXTS = (  # Odd in ways that tokenizers differ in.
    "The capital of France is Paris.",
    "In 2,013 runners, 1,000 more; naïve cafés cost 3,50 €.",
    "ΟΔΥΣΣΕΥΣ, ﬁne ½ ＡＢ (x-y) `quoted' ''twice''",
    "北京是中国的首都。 हिन्दी 한국어",
    "tabs\tand\u00a0blanks \u200b <b> 👩\u200d👩",
)


def fixed_batches(exported):
    """Yields 20 inputs of the ids signature in batches of several lengths: dicts of arrays."""
    config, inputs = exported.model.settings["config"], exported.id_inputs()
    generator = np.random.default_rng(0)
    for length in (min(length, config["max_position_embeddings"]) for length in LENGTHS):
        shape = (BATCH, length) if exported.kind != "choice" else (BATCH, NUM_CHOICES, length)
        lengths = generator.integers(3, length + 1, (*shape[:-1], 1))
        mask = np.arange(length) < lengths
        batch = {
            "input_ids": generator.integers(0, config["vocab_size"], shape) * mask,
            "input_mask": mask,
            "segment_ids": (np.arange(length) > lengths // 2) * mask,
            "p_mask": ~mask,
            POSITIONS: generator.integers(0, 3, (BATCH, 2)),
        }
        batch = {name: values.astype(np.int32) for name, values in batch.items()}
        batch["choice_mask"] = np.ones(shape[:-1], np.float32)
        yield {name: batch[name] for name in inputs}


def difference(run, exported):
    """Returns the largest difference between what was written and the model, on 20 inputs.

    Args:
        run: function of `write`.
        exported: exported_model.ExportedModel.

    Returns:
        float; infinity where a number is none, or an integer differs.
    """
    worst = 0.0
    for batch in fixed_batches(exported):
        expected = of_model(exported, batch)
        worst = max(worst, largest(run(batch), expected))
    return worst


def of_model(exported, batch):
    """Returns what the model in memory gives: dict of array. It runs as predict.py runs it."""
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    return {name: tensor.numpy() for name, tensor in exported.compute(tensors).items()}


def largest(found, expected):
    """Returns the largest difference over what two dicts of arrays share, and all must."""
    if missing := expected.keys() - found.keys():
        raise ValueError(f"Outputs must be {sorted(expected)}. Received: none of {missing}.")
    gaps = [0.0]
    for name, values in expected.items():
        given = np.asarray(found[name])
        if given.shape != values.shape or not np.isfinite(given).all():
            return float("inf")
        gaps.append(float(np.abs(given.astype(np.float64) - values).max(initial=0)))
    return max(gaps)


def text_difference(folder, exported):
    """Returns the largest difference between the text signature and the tokenizer with the model.

    Args:
        folder: the SavedModel.
        exported: exported_model.ExportedModel.
    """
    texts = list(TEXTS)
    others = [*texts[1:], ""]
    if exported.kind == "choice":
        others[-1] = texts[0]  # An empty option is none.
        options = [[a, b, "both"] for a, b in zip(others, texts, strict=True)]
        given = {"question": texts, "options": options, "context": others}
        expected = of_choices(exported, **given)
    elif exported.kind == "span":
        given = {"question": texts, "context": [" ".join(texts * 3), *others[1:]]}
        expected = of_answers(exported, **given)
    else:
        given = {"text": [" ".join(texts * 9), *texts[1:]], "text_b": others}
        expected = of_texts(exported, **given)
    encoded = {n: np.char.encode(np.array(values), "utf-8") for n, values in given.items()}
    return largest(export_formats.saved_runner(folder, "text")(encoded), expected)


def of_features(exported, made):
    """Returns what the model in memory gives for data.features.Features: dict of array."""
    longest = exported.model.settings["config"]["max_position_embeddings"]
    batch = length_batches.pad(made, np.arange(len(made)), len(made), longest)
    inputs = {name: batch[name] for name in exported.id_inputs() if name in batch}
    if exported.fills_masks:
        inputs[POSITIONS] = np.zeros((len(made), 0), np.int32)
    found = of_model(exported, inputs)
    found.pop("masked_lm_logits", None)
    return found


def of_texts(exported, text, text_b):
    """Returns what the host makes of pairs of texts: dict of array."""
    pairs, tokenizer = list(zip(text, text_b, strict=True)), exported.trained.tokenizer
    in_windows = exported.reading.long_texts == prediction_features.WINDOWS
    made = prediction_features.of_texts(pairs, tokenizer, exported.reading, in_windows)
    found = of_features(exported, made)
    if not in_windows:
        return found
    logits = tf.constant(classified_rows.per_row(made, found["logits"]))
    return {name: values.numpy() for name, values in exported.of_logits(logits).items()}


def of_choices(exported, question, options, context):
    """Returns what the host makes of options: dict of array."""
    asked = prediction_features.choice_questions(question, options, context)
    made = prediction_features.of_choices(asked, exported.trained.tokenizer, exported.reading)
    return of_features(exported, made)


def of_answers(exported, question, context):
    """Returns what the host answers, in numbers: dict of array."""
    trained, reading = exported.trained, exported.reading
    asked = prediction_features.question_set(question, context)
    made, windows = prediction_features.of_questions(asked, trained.tokenizer, reading)
    known = question_answers.Questions("", asked, made, windows)
    scores = question_answers.score(of_features(exported, made), known, reading)
    threshold = question_answers.threshold_of(trained.folder)
    rows = prediction_results.answers(scores, threshold, reading.n_best_size)
    nowhere = {"start": -1, "end": -1}  # As a graph says that it is None.
    return {
        name: np.array([nowhere[name] if row[name] is None else row[name] for row in rows])
        for name in rows[0].keys() - {"answer", "best"}
    }
