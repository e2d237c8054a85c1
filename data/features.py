"""Tokenized examples of any length, column by column: what fine-tuning is fed from.

n: examples, C: sequences an example has (choices; 1 elsewhere), M: pieces of all sequences.
"""

import dataclasses
import io

import numpy as np

from data import files

# Names whose values are a number for each piece; every other name is a column.
SEQUENCE_NAMES = ("input_ids", "segment_ids", "p_mask")
PLAIN_FIELDS = ("offsets", "num_choices", "truncated_share")


@dataclasses.dataclass(frozen=True)
class Features:
    """Tokenized examples, without padding: batches pad them to a length of their own.

    Attributes:
        sequences: dict, name -> int32[M], the values of all sequences one after another.
            Always `input_ids` and `segment_ids` (0 or 1); for spans also `p_mask` (1 on
            what cannot be an answer).
        offsets: int64[n * C + 1], where each sequence starts, and the end. A choice that
            an example lacks is an empty sequence.
        columns: dict, name -> array[n, ...]. `label_ids`: int32[n] for classes and
            choices, float32[n] for a number, float32[n, labels] of 0 and 1 for several
            labels a row; for spans `start_positions`, `end_positions` and
            `is_impossible`, int32[n]. Without them the examples are unlabelled.
        num_choices: int, C.
        truncated_share: float in [0, 1], the share of examples whose text was cut.
    """

    sequences: dict[str, np.ndarray]
    offsets: np.ndarray
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    num_choices: int = 1
    truncated_share: float = 0.0

    def __post_init__(self):
        assert {"input_ids", "segment_ids"} <= self.sequences.keys() <= set(SEQUENCE_NAMES)
        assert (len(self.offsets) - 1) % self.num_choices == 0
        assert all(len(values) == self.offsets[-1] for values in self.sequences.values())
        assert all(len(values) == len(self) for values in self.columns.values())

    def __len__(self):
        return (len(self.offsets) - 1) // self.num_choices

    def lengths(self):
        """Returns the length of each example's longest sequence, in pieces: int64[n]."""
        return np.diff(self.offsets).reshape(len(self), self.num_choices).max(axis=1)

    def sequence(self, name, example, choice=0):
        """Returns one sequence of one example: int32[its length]."""
        number = example * self.num_choices + choice
        return self.sequences[name][self.offsets[number] : self.offsets[number + 1]]

    def save(self, path):
        """Writes the features to an `.npz` file, which is either whole or not there."""
        stored = {f"sequences.{name}": values for name, values in self.sequences.items()}
        stored.update({f"columns.{name}": values for name, values in self.columns.items()})
        stored.update({name: getattr(self, name) for name in PLAIN_FIELDS})
        content = io.BytesIO()
        np.savez(content, **stored)
        files.write_bytes(path, content.getvalue())


def load(path):
    """Reads what `Features.save` wrote; nothing in the file is executed.

    Raises:
        ValueError, KeyError, EOFError, zipfile.BadZipFile: it is no such file.
    """
    with np.load(io.BytesIO(files.read_bytes(path)), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    offsets, num_choices, truncated_share = (arrays.pop(name) for name in PLAIN_FIELDS)
    kinds = {"sequences": {}, "columns": {}}
    for name, values in arrays.items():
        kind, _, name = name.partition(".")
        kinds[kind][name] = values
    return Features(
        offsets=offsets,
        num_choices=int(num_choices),
        truncated_share=float(truncated_share),
        **kinds,
    )


def pack(examples, num_choices=1):
    """Packs examples that were made one by one.

    Args:
        examples: list of dicts with equal keys. Under a name of SEQUENCE_NAMES: a list of
            ints, or with several choices a list of `num_choices` such lists (empty ones
            for choices that the example lacks). Under any other name: its value of that
            column; ints become int32, floats float32.
        num_choices: int, C.

    Returns:
        Features.
    """
    names = list(examples[0]) if examples else ["input_ids", "segment_ids"]
    sequences, columns = {}, {}
    offsets = np.zeros(len(examples) * num_choices + 1, np.int64)
    for name in names:
        values = [example[name] for example in examples]
        if name in SEQUENCE_NAMES:
            lists = values if num_choices == 1 else [one for many in values for one in many]
            offsets[1:] = np.cumsum([len(one) for one in lists])
            sequences[name] = np.fromiter((x for one in lists for x in one), np.int32, offsets[-1])
        else:
            array = np.array(values)
            columns[name] = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
    return Features(sequences, offsets, columns, num_choices)


def concatenate(parts):
    """Puts features one after another; all have the same names and number of choices.

    Args:
        parts: list of Features, at least one.
    """
    first = parts[0]
    num_truncated = sum(part.truncated_share * len(part) for part in parts)
    ends = np.cumsum([0, *(part.offsets[-1] for part in parts)])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Features(
        {name: np.concatenate([p.sequences[name] for p in parts]) for name in first.sequences},
        np.concatenate([*starts, ends[-1:]]),
        {name: np.concatenate([p.columns[name] for p in parts]) for name in first.columns},
        first.num_choices,
        num_truncated / max(1, sum(map(len, parts))),
    )
