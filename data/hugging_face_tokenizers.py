"""Writes tokenizers as Hugging Face's libraries load them without code of ours.

`tokenizer.json` says all there is to do, step by step, so what reads it gives these ids,
where transformers' own class for ALBERT would not: that one drops more marks than the original,
takes `` and '' for quotation marks and leaves a comma at its number. Beside it lie the pieces
in the form that others read, and `tokenizer_config.json`.
"""

import base64
import os
import sys
import unicodedata

from sentencepiece import sentencepiece_model_pb2

from data import files
from data.wordpiece_tokenizer import CONTINUATION, LONGEST_WORD

PIECES_FILES = {"sentencepiece": "spiece.model", "wordpiece": "vocab.txt"}
WORD_START = "\u2581"
UNIGRAM, USER_DEFINED = 1, 4  # SentencePiece's numbers for a kind of model and of piece.
# A piece that is never to be found: the original splits it after the fact, and transformers
# takes this much off, too (convert_slow_tokenizer.py: AlbertConverter).
NEVER = 100.0
BLANKS = r"[\t-\r\x{1c}-\x{1f} \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
BLANKS += r"\x{205f}\x{3000}]+"  # Those of Python's `str.split`.
ROLES = ("pad", "unk", "cls", "sep", "mask")


def write(folder, tokenizer, max_length):
    """Writes the tokenizer's files.

    Args:
        folder: path.
        tokenizer: a Tokenizer.
        max_length: int, longest sequence that the model takes.

    Raises:
        ValueError: the SentencePiece model is of a kind that `tokenizer.json` cannot tell.
    """
    names = {role: tokenizer.pieces[getattr(tokenizer, f"{role}_id")] for role in ROLES}
    whole = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_tokens(tokenizer),
        **STEPS[tokenizer.kind](tokenizer),
        "post_processor": template(tokenizer, names),
    }
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **{f"{role}_token": name for role, name in names.items()},
        **own_settings(tokenizer),
    }
    files.write_json(os.path.join(folder, "tokenizer.json"), whole)
    files.write_json(os.path.join(folder, "tokenizer_config.json"), described)
    files.write_bytes(os.path.join(folder, PIECES_FILES[tokenizer.kind]), tokenizer.model_bytes)


def own_settings(tokenizer):
    """Returns the settings under AlbertTokenizer's or BertTokenizer's names, and one of ours."""
    settings = tokenizer.settings
    lower = {"do_lower_case": settings["lower"]}
    if tokenizer.kind == "sentencepiece":
        kept = ("keep_accents", "digit_comma_split")
        return lower | {name: settings[name] for name in kept}
    strips = False if settings["keep_accents"] else None  # None: as `do_lower_case` says.
    return lower | {"strip_accents": strips, "tokenize_chinese_chars": True}


def added_tokens(tokenizer):
    """Lists the special pieces, which stand for themselves wherever a text has their names."""
    return [
        {
            "id": number,
            "content": tokenizer.pieces[number],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for number in sorted(tokenizer.special_ids)
    ]


def template(tokenizer, names):
    """Returns the step that puts [CLS] and [SEP] around texts: [CLS] A [SEP] B [SEP]."""

    def special(role, segment):
        return {"SpecialToken": {"id": names[role], "type_id": segment}}

    def sequence(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special("cls", 0), sequence("A", 0), special("sep", 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, sequence("B", 1), special("sep", 1)],
        "special_tokens": {
            names[role]: {
                "id": names[role],
                "ids": [getattr(tokenizer, f"{role}_id")],
                "tokens": [names[role]],
            }
            for role in ("cls", "sep")
        },
    }


def replace(pattern, content):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def sentencepiece_steps(tokenizer):
    """Returns normalizer, pre_tokenizer, model and decoder of a SentencePiece tokenizer.

    Raises:
        ValueError: the model is not a unigram model.
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes)
    if proto.trainer_spec.model_type != UNIGRAM:
        raise ValueError(
            "Hugging Face's form is written of SentencePiece's unigram models, as ALBERT's are. "
            "Received: another kind."
        )
    metaspace = {"type": "Metaspace", "replacement": WORD_START, "prepend_scheme": "always"}
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers(tokenizer, proto)},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {**metaspace, "split": True}],
        },
        "decoder": {**metaspace, "split": True},
        "model": {
            "type": "Unigram",
            "unk_id": tokenizer.unk_id,
            "vocab": scores(tokenizer, proto),
            "byte_fallback": proto.trainer_spec.byte_fallback,
        },
    }


def normalizers(tokenizer, proto):
    """Lists what is done to a text before it is cut, as `text_normalization.normalize` does."""
    steps = [replace(BLANKS, " ")]
    if not tokenizer.settings["keep_accents"]:
        steps += [{"type": "NFKD"}, replace(f"[{combining_marks()}]", "")]
    if tokenizer.settings["lower"]:
        # The form of sigma that ends a word; the rest of lower-casing knows no neighbours.
        steps += [replace(r"(?<=\p{L})\x{3a3}(?!\p{L})", "\u03c2"), {"type": "Lowercase"}]
    spec = proto.normalizer_spec
    if spec.name.startswith("nmt_nfkc"):
        # What the table below does, too; but `tokenizers` looks a character up together with the
        # marks behind it, and loses those where it finds the character.
        steps += [{"type": "NFKC"}, replace(r"[\x{2581}\x{fffd}]", " ")]
    if charsmap := spec.precompiled_charsmap:
        encoded = base64.b64encode(charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": encoded})
    return steps


def combining_marks():
    """Returns the characters that the original drops, those with a combining class, as ranges."""
    ranges = []
    for number in range(sys.maxunicode + 1):
        if not unicodedata.combining(chr(number)):
            continue
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)


def scores(tokenizer, proto):
    """Lists [piece, log probability] by id, such that the likeliest cut is the tokenizer's.

    A user-defined piece is always found, for a bonus that SentencePiece gives it
    (unigram_model.cc: EncodeOptimized); one that ends in digit and comma never is.
    """
    best = max(piece.score for piece in proto.pieces if piece.type == UNIGRAM)
    rows = []
    for piece in proto.pieces:
        text, score = piece.piece, piece.score
        if piece.type == USER_DEFINED:
            score = len(text.encode()) * best - 0.1
        splits = tokenizer.settings["digit_comma_split"] and len(text) > 1
        if splits and text[-1] == "," and text[-2].isdigit():
            score -= NEVER
        rows.append([text, score])
    return rows


def wordpiece_steps(tokenizer):
    """Returns normalizer, pre_tokenizer, model and decoder of a WordPiece tokenizer."""
    settings = tokenizer.settings
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": settings["lower"] and not settings["keep_accents"],
            "lowercase": settings["lower"],
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": tokenizer.pieces[tokenizer.unk_id],
            "continuing_subword_prefix": CONTINUATION,
            "max_input_chars_per_word": LONGEST_WORD,
            "vocab": {piece: number for number, piece in enumerate(tokenizer.pieces)},
        },
    }


STEPS = {"sentencepiece": sentencepiece_steps, "wordpiece": wordpiece_steps}
