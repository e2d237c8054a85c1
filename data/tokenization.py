"""Loads tokenizers: from a tokenizer folder, a model folder, a SentencePiece model or a word list.

The settings that decide the ids (lower-casing, accents, the digit and comma rule)
are stored beside the model, so every caller agrees on them. No TensorFlow in here.
"""

import json
import os

from data import files
from data.sentencepiece_tokenizer import SentencePieceTokenizer
from data.tokenizer_base import MODEL_FILES, SETTINGS_FILE, kind_of_folder
from data.wordpiece_tokenizer import WordPieceTokenizer

KINDS = {kind.kind: kind for kind in (SentencePieceTokenizer, WordPieceTokenizer)}
DEFAULTS = {"lower": True, "keep_accents": False, "digit_comma_split": True}


def load(path, *, lower=None, keep_accents=None, digit_comma_split=None):
    """Loads a tokenizer.

    Args:
        path: a tokenizer folder (a model and `settings.json`), a model folder (its
            `tokenizer/` is taken), a SentencePiece `.model` or a WordPiece `vocab.txt`; the
            model file of a tokenizer folder stands for the folder.
        lower: bool, whether text is lower-cased, or None: as the folder's settings
            say, True for a bare file. So for the others.
        keep_accents: bool, False for a bare file.
        digit_comma_split: bool, True for a bare file.

    Returns:
        A SentencePieceTokenizer or a WordPieceTokenizer.

    Raises:
        FileNotFoundError: there is no model at `path`.
        ValueError: the model cannot be read or lacks a special piece, or a setting
            contradicts the folder's.
    """
    asked = {"lower": lower, "keep_accents": keep_accents, "digit_comma_split": digit_comma_split}
    asked = {name: value for name, value in asked.items() if value is not None}
    folder, kind, model_path = find_model(os.fspath(path))
    settings = {**DEFAULTS, **asked}
    if folder:
        settings = read_settings(folder, kind)
        check_agreement(folder, settings, asked)
    vocab_size = settings.pop("vocab_size", None)
    try:
        tokenizer = KINDS[kind](files.read_bytes(model_path), settings)
    except ValueError as error:
        raise ValueError(f"{model_path}: {error}") from None
    if vocab_size not in (None, tokenizer.vocab_size):
        raise ValueError(
            f"{model_path} must have the {vocab_size} pieces that {SETTINGS_FILE} beside it names. "
            f"Received: {tokenizer.vocab_size} pieces."
        )
    return tokenizer


def find_model(path):
    """Finds the model that a path means.

    Args:
        path: str, as of `load`.

    Returns:
        (folder, kind, path of the model file); folder is None for a bare file, one that is not
        the model of a tokenizer folder.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the path is that of a SentencePiece `.vocab`.
    """
    if path.endswith(".vocab"):
        raise ValueError(
            "a tokenizer must be a SentencePiece model, not the list of its pieces. Received: "
            f"{path}. Give `{path.removesuffix('.vocab')}.model`."
        )
    if not files.exists(path):
        raise FileNotFoundError(f"a tokenizer must exist. Received: {path}.")
    if not files.is_folder(path):
        kind = "wordpiece" if path.endswith(".txt") else "sentencepiece"
        folder, name = os.path.dirname(path) or ".", os.path.basename(path)
        is_folders = name == MODEL_FILES[kind] and kind_of_folder(folder) == kind
        return folder if is_folders else None, kind, path
    inner = os.path.join(path, "tokenizer")
    folder = inner if files.is_folder(inner) else path
    for kind, name in MODEL_FILES.items():
        if files.exists(os.path.join(folder, name)):
            return folder, kind, os.path.join(folder, name)
    raise FileNotFoundError(
        f"a tokenizer folder must hold {' or '.join(MODEL_FILES.values())}. Received: {folder}."
    )


def read_settings(folder, kind):
    """Reads a tokenizer folder's settings.

    Returns:
        dict of lower, keep_accents, digit_comma_split and vocab_size.

    Raises:
        FileNotFoundError, ValueError: there are none, or not those of such a folder.
    """
    path = os.path.join(folder, SETTINGS_FILE)
    if not files.exists(path):
        raise FileNotFoundError(
            f"a tokenizer folder must hold {SETTINGS_FILE}. Received: {folder}. Give the model "
            f"file {MODEL_FILES[kind]} itself to use the default settings."
        )
    try:
        settings = json.loads(files.read_bytes(path))
        is_right = settings.pop("kind") == kind and settings.keys() == {*DEFAULTS, "vocab_size"}
        is_right = is_right and all(type(settings[name]) is bool for name in DEFAULTS)
    except (AttributeError, KeyError, TypeError, ValueError):
        is_right = False
    if not is_right:
        raise ValueError(
            f"{path} must hold kind ({kind}), {', '.join(DEFAULTS)} and vocab_size. Received: "
            f"{files.read_bytes(path)[:300]!r}."
        )
    return settings


def check_agreement(folder, settings, asked):
    """Raises ValueError, with both values, where `asked` contradicts a folder's settings."""
    for name, value in asked.items():
        if settings[name] != value:
            raise ValueError(
                f"`{name}` must be {settings[name]}, as the tokenizer in {folder} was made. "
                f"Received: {name}={value}."
            )
