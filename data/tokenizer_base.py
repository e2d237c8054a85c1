"""What the tokenizers of both kinds share: special pieces, ids and pieces, the folder they write.

V: pieces of the vocabulary.
"""

import collections
import functools
import hashlib
import itertools
import json
import os
import re

import numpy as np

from data import files

MODEL_FILES = {"sentencepiece": "spm.model", "wordpiece": "vocab.txt"}  # By kind.
SETTINGS_FILE = "settings.json"
SPECIAL_PIECES = {  # Role -> the names it may have.
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "CLS": ("[CLS]",),
    "SEP": ("[SEP]",),
    "MASK": ("[MASK]",),
}


def find_special_ids(ids):
    """Finds the ids of the special pieces; they are distinct, as pieces are.

    Args:
        ids: dict, piece -> id.

    Returns:
        list[int], in the order of SPECIAL_PIECES.

    Raises:
        ValueError: one is missing.
    """
    found = {
        role: next((ids[name] for name in names if name in ids), None)
        for role, names in SPECIAL_PIECES.items()
    }
    missing = [
        f"{role} ({' or '.join(SPECIAL_PIECES[role])})"
        for role, number in found.items()
        if number is None
    ]
    if missing:
        raise ValueError(
            "pad, unk, CLS, SEP and MASK must be five distinct pieces of the vocabulary. "
            f"Missing: {', '.join(missing)}. Received: {len(ids)} pieces, first {list(ids)[:5]}. "
            "`python -m data.train_vocabulary` makes a vocabulary that has them."
        )
    return list(found.values())


def kind_of_folder(folder):
    """Returns the kind that a tokenizer folder's settings name; None where it is no such folder."""
    path = os.path.join(folder, SETTINGS_FILE)
    if not files.exists(path):
        return None
    try:
        kind = json.loads(files.read_bytes(path))["kind"]
        return kind if kind in MODEL_FILES else None
    except (KeyError, TypeError, ValueError):
        return None


class Tokenizer:
    """Text to piece ids and back. The two kinds add how text is normalised and cut.

    Attributes:
        kind: "sentencepiece" or "wordpiece".
        model_bytes: bytes of the model file.
        pieces: list[str], pieces by id; vocab_size is its length.
        settings: dict of kind, lower, keep_accents, digit_comma_split.
        pad_id, unk_id, cls_id, sep_id, mask_id: int, five distinct ids.
        special_ids: frozenset of the five.
        markers: re.Pattern, matches the name of a special piece in a text.
        word_starts: bool[V], whether a piece starts a word; True for special pieces. The
            unknown piece starts one in WordPiece, where it is a word, and not in
            SentencePiece, where the word-start mark is a piece before it.
    """

    def __init__(self, model_bytes, pieces, settings):
        self.model_bytes, self.pieces = model_bytes, pieces
        self.settings = {"kind": self.kind, **settings}
        self.vocab_size = len(pieces)
        self._ids = {piece: number for number, piece in enumerate(pieces)}
        special_ids = find_special_ids(self._ids)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = special_ids
        self.special_ids = frozenset(special_ids)
        markers = (re.escape(pieces[number]) for number in special_ids)
        self.markers = re.compile(f"({'|'.join(markers)})")
        self.word_starts = np.array([self._starts_word(piece) for piece in pieces])
        self.word_starts[list(self.special_ids - {self.unk_id})] = True

    def __reduce__(self):
        settings = {name: value for name, value in self.settings.items() if name != "kind"}
        return type(self), (self.model_bytes, settings)

    def tokenize(self, text):
        """Cuts text into pieces, list[str]; SentencePiece leaves unknown stretches as they are."""
        return self.split(self.normalize(text))

    def encode(self, text, allow_markers=False):
        """Turns text into piece ids.

        Args:
            text: str.
            allow_markers: bool, whether "[MASK]" and the other special pieces in the
                text stand for themselves; otherwise text never gives a special id
                other than the unknown one.

        Returns:
            list[int].
        """
        if not allow_markers:
            return self._encode(text)
        ids = []
        for part in self.markers.split(text):
            ids += [self._ids[part]] if self.markers.fullmatch(part) else self._encode(part)
        return ids

    def encode_with_offsets(self, text):
        """Turns text into piece ids, and says which characters each piece stands for.

        The ids are those of `encode`. Every character belongs to a piece, but for blanks
        and those that leave nothing in a piece, as control characters; pieces that
        share a character both have it.

        Args:
            text: str.

        Returns:
            (list[int], int32[M], int32[M]): ids, and for each piece where it begins in
            `text` and where it ends (exclusive). A piece may begin with the blank before
            a word. Neither ever decreases.
        """
        raise NotImplementedError

    def ids_to_pieces(self, ids):
        """Returns the pieces of ids; raises ValueError for one out of range."""
        wrong = [number for number in ids if not 0 <= number < self.vocab_size]
        if wrong:
            raise ValueError(
                f"ids must lie in [0, {self.vocab_size}), the vocabulary. Received: {wrong[:5]}."
            )
        return [self.pieces[number] for number in ids]

    def pieces_to_ids(self, pieces):
        """Returns the ids of pieces; the unknown id for what is none."""
        return [self._ids.get(piece, self.unk_id) for piece in pieces]

    def decode(self, ids):
        """Turns ids into text, without padding, CLS and SEP."""
        left_out = {self.pad_id, self.cls_id, self.sep_id}
        return self._join([number for number in ids if number not in left_out])

    def unknown_rate(self, lines, num_words=10):
        """Measures how well the vocabulary covers a text.

        Args:
            lines: list[str].
            num_words: int, how many offending words to return.

        Returns:
            (float, list[str]): the share of unknown pieces in [0, 1], and the most
            frequent words that hold one.
        """
        ids, _ = self.encode_lines(lines)
        rate = float(np.mean(ids == self.unk_id)) if len(ids) else 0.0
        if not rate:
            return rate, []
        words = collections.Counter(w for line in lines for w in self.normalize(line).split())
        offending = (word for word, _ in words.most_common() if self.unk_id in self.encode(word))
        return rate, list(itertools.islice(offending, num_words))

    @functools.cached_property
    def fingerprint(self):
        """SHA-256 over the model file and the settings: equal for equal ids from any text."""
        settings = json.dumps(self.settings, sort_keys=True).encode()
        return hashlib.sha256(self.model_bytes + settings).hexdigest()

    def contents(self):
        """Returns what a tokenizer folder holds: dict of a file's name to its bytes."""
        settings = {**self.settings, "vocab_size": self.vocab_size}
        text = json.dumps(settings, indent=2) + "\n"
        return {MODEL_FILES[self.kind]: self.model_bytes, SETTINGS_FILE: text.encode()}

    def save(self, folder):
        """Writes the tokenizer folder that `load` reads: the model file and `settings.json`.

        The model of a tokenizer of the other kind, which the folder held before, goes.
        """
        kind_before = kind_of_folder(folder)
        for name, content in self.contents().items():
            files.write_bytes(os.path.join(folder, name), content)
        if kind_before not in (None, self.kind):
            other_model = os.path.join(folder, MODEL_FILES[kind_before])
            if files.exists(other_model):
                files.remove(other_model)
