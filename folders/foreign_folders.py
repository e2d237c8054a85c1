"""Reads config and tokenizer of folders that others made: Google's archives, Hugging Face's.

Google's hold `albert_config.json` or `bert_config.json`, and `30k-clean.model` or a
`vocab.txt`, beside the checkpoint (in `assets/` where it is a TF-Hub module); Hugging Face's
`config.json`, `spiece.model` or `vocab.txt`, and `tokenizer_config.json`. Only programs import
this module.
"""

import json
import os

import tensorflow as tf

from data import files, tokenization
from modeling import foreign_configs
from modeling.config import AlbertConfig

GOOGLE_BERT, HUGGING_FACE = "bert_config.json", "config.json"
TOKENIZER_SETTINGS, FAST_TOKENIZER = "tokenizer_config.json", "tokenizer.json"


def read_config(folder):
    """Returns the AlbertConfig of a folder, or None where it holds none.

    Raises:
        ValueError: the folder's model cannot be this one; the message names the file.
    """
    readers = {
        GOOGLE_BERT: from_google_bert,
        HUGGING_FACE: foreign_configs.from_hugging_face,
    }
    for name, reader in readers.items():
        path = os.path.join(folder, name)
        if files.exists(path):
            try:
                values = read_json(path)
                if name == HUGGING_FACE and "model_type" not in values:
                    continue  # A file of somebody else's, under a common name.
                return reader(values)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
    return None


def from_google_bert(values):
    """Makes a config of `bert_config.json`, in which some of ALBERT's come, too."""
    if "embedding_size" in values:
        return AlbertConfig.from_dict(values)
    return foreign_configs.from_google_bert(values)


def read_json(path):
    """Returns the dict that a JSON file holds; raises ValueError if it holds none."""
    values = json.loads(files.read_bytes(path))
    if not isinstance(values, dict):
        raise ValueError(f"it must be one JSON object. Received: {str(values)[:100]}.")
    return values


def read_tokenizer(folder, **settings):
    """Returns the Tokenizer of a folder, or None where it holds none.

    Args:
        folder: path.
        **settings: `lower`, `keep_accents`, `digit_comma_split`, where the user says them.

    Raises:
        ValueError: there are several, one of another kind, or a setting contradicts the
            folder's own.
    """
    path = find_pieces(folder)
    if path is None:
        return None
    described = os.path.join(folder, TOKENIZER_SETTINGS)
    held = {}
    if files.exists(described):
        try:
            held = settings_of(read_json(described), is_word_piece=not path.endswith(".model"))
        except ValueError as error:
            raise ValueError(f"{described}: {error}") from error
    asked = {name: value for name, value in settings.items() if value is not None}
    tokenization.check_agreement(folder, {**asked, **held}, asked)
    if path.endswith(FAST_TOKENIZER):
        return from_fast_tokenizer(path, {**tokenization.DEFAULTS, **asked, **held})
    return tokenization.load(path, **{**asked, **held})


def find_pieces(folder):
    """Returns the path of a folder's SentencePiece model or list of word pieces, or None."""
    for patterns in (("*.model", "vocab*.txt"), (FAST_TOKENIZER,), ("*.vocab",)):
        found = [path for p in patterns for path in tf.io.gfile.glob(os.path.join(folder, p))]
        if len(found) > 1:
            names = ", ".join(sorted(os.path.basename(path) for path in found))
            raise ValueError(f"A folder must hold one tokenizer. Received: {folder}, with {names}.")
        if found:
            return found[0]
    return None


def settings_of(values, is_word_piece):
    """Turns the keys of a `tokenizer_config.json` into the settings of `tokenization.load`.

    Args:
        values: dict; what it does not tell is as transformers has it.
        is_word_piece: bool; otherwise SentencePiece.

    Raises:
        ValueError: the tokenizer does what ours does not.
    """
    lower = values.get("do_lower_case", True)
    if not is_word_piece:
        ours = {n: values[n] for n in ("digit_comma_split",) if n in values}  # In our own alone.
        return {"lower": lower, "keep_accents": values.get("keep_accents", False), **ours}
    strips = values.get("strip_accents")  # None: as `lower` says.
    if not values.get("tokenize_chinese_chars", True) or (strips and not lower):
        raise ValueError(
            "`tokenize_chinese_chars` must be true, and accents may be stripped only from text "
            f"that is lower-cased. Received: do_lower_case={lower}, strip_accents={strips}, "
            f"tokenize_chinese_chars={values.get('tokenize_chinese_chars', True)}."
        )
    return {"lower": lower, "keep_accents": strips is False}


def from_fast_tokenizer(path, settings):
    """Makes a WordPieceTokenizer of a `tokenizer.json`, where a folder holds no `vocab.txt`.

    Args:
        path: of the file.
        settings: dict of lower, keep_accents and digit_comma_split.

    Raises:
        ValueError: its pieces are of another kind; what they give could differ from what
            SentencePiece itself gives.
    """
    model = read_json(path).get("model", {})
    if model.get("type") != "WordPiece" or model.get("continuing_subword_prefix") != "##":
        raise ValueError(
            f"{path} must hold a WordPiece model where no other file has the pieces. Received: "
            f"{model.get('type')}. Put the SentencePiece model (spiece.model) beside it."
        )
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    return tokenization.WordPieceTokenizer("\n".join(pieces).encode(), settings)
