"""Lists what a model's folder lacks: weights, config, vocabulary, tokenizer settings, labels.

Only programs import this module.
"""

import os

from conversion import model_sources
from folders import foreign_folders, model_folder
from training import weight_files

# Where settings that decide the ids are kept: ours, then that of others.
SETTINGS_PLACES = (
    os.path.join(model_folder.TOKENIZER, "settings.json"),
    foreign_folders.TOKENIZER_SETTINGS,
)


def gaps(path):
    """Lists what is missing for a model to be used from a folder alone.

    Args:
        path: a folder, or a checkpoint in one.

    Returns:
        list[str], a sentence for each gap; empty where nothing is missing.
    """
    found = []
    config = reading(found, "config", lambda: model_folder.read_config(path))
    tokenizer = reading(found, "vocabulary", lambda: model_folder.read_tokenizer(path))
    if not model_sources.find_keras(path):
        reading(found, "weights", lambda: weight_files.find(path))
    if tokenizer and not any(model_folder.find(path, place) for place in SETTINGS_PLACES):
        found.append(
            "tokenizer settings: none say whether text is lower-cased and accents are kept; the "
            "original's defaults are taken"
        )
    if config and tokenizer and tokenizer.vocab_size > config.vocab_size:
        found.append(
            f"vocabulary: {tokenizer.vocab_size} pieces, but the model has {config.vocab_size} rows"
        )
    return found or label_gaps(path)


def reading(found, name, read):
    """Returns what `read` gives; where it gives None or refuses, `found` gets a sentence."""
    try:
        value = read()
    except (FileNotFoundError, ValueError) as error:
        found.append(f"{name}: {error}")
        return None
    if value is None:
        found.append(f"{name}: none")
    return value


def label_gaps(path):
    """Lists what is missing of the names of a classifier's classes, of a folder that is whole."""
    try:
        source = model_sources.read(path)
    except ValueError as error:
        return [f"weights: {error}"]
    if source.kind not in ("classes", "multilabel"):
        return []
    number = len(source.arrays["output_weights"])
    if len(source.labels) == number:
        return []
    return [f"label names: {len(source.labels) or 'none'} for {number} classes"]
