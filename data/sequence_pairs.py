"""Lays stretches of pieces out as [CLS] A [SEP] or [CLS] A [SEP] B [SEP], unpadded, many at once.

S: sequences, M: pieces of all sequences or of all texts.
"""

import dataclasses

import numpy as np

SEQUENCES_AT_ONCE = 16_384  # So that the places take little memory beside what they fill.


@dataclasses.dataclass(frozen=True)
class Stretches:
    """A stretch of pieces for each of S sequences.

    ids: int32[M], the pieces they are taken from; starts, lengths: int64[S].
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, texts, tokenizer):
        """Tokenizes texts, list of S str, all at once."""
        ids, offsets = tokenizer.encode_lines(texts)
        return cls(ids, offsets[:-1], np.diff(offsets))

    def first(self, lengths):
        """Keeps the first pieces of each: as many as `lengths`, int64[S], says."""
        return dataclasses.replace(self, lengths=lengths)

    def last(self, lengths):
        """Keeps the last pieces of each."""
        return dataclasses.replace(
            self, starts=self.starts + self.lengths - lengths, lengths=lengths
        )

    def __getitem__(self, sequences):
        """Returns the stretches of some of the sequences."""
        return dataclasses.replace(
            self, starts=self.starts[sequences], lengths=self.lengths[sequences]
        )


def lay_out(first, second, is_pair, tokenizer, is_there=None):
    """Puts the special pieces around the stretches.

    Args:
        first: Stretches, A.
        second: Stretches, B; empty where there is none.
        is_pair: bool[S], whether a B (of no pieces, even) and its [SEP] come behind A.
        tokenizer: a Tokenizer, for its special ids.
        is_there: bool[S], False for a sequence that is left empty, even of special pieces; None:
            all are there.

    Returns:
        (int32[M], int32[M], int64[S + 1]): input_ids, segment_ids, where sequences start.
    """
    is_there = np.ones(len(is_pair), bool) if is_there is None else is_there
    num_special = np.where(is_there, np.where(is_pair, 3, 2), 0)
    lengths = num_special + first.lengths + second.lengths
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    input_ids = np.full(offsets[-1], tokenizer.sep_id, np.int32)
    segment_ids = np.zeros(offsets[-1], np.int32)
    input_ids[offsets[:-1][is_there]] = tokenizer.cls_id
    for begin in range(0, len(is_pair), SEQUENCES_AT_ONCE):
        some = slice(begin, begin + SEQUENCES_AT_ONCE)
        a, b, starts = first[some], second[some], offsets[:-1][some]
        middles = starts + a.lengths + 2
        input_ids[places(starts + 1, a.lengths)] = a.ids[places(a.starts, a.lengths)]
        input_ids[places(middles, b.lengths)] = b.ids[places(b.starts, b.lengths)]
        has_b = (is_pair & is_there)[some]
        segment_ids[places(middles, np.where(has_b, b.lengths + 1, 0))] = 1
    return input_ids, segment_ids, offsets


def places(starts, lengths):
    """Returns the places of all stretches' pieces, one stretch after another: int64[M]."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def pair_lengths(first, second, room):
    """Says how much of A and B is kept so that a pair fits.

    The longer one loses its last piece, B if they are equal, until they fit
    (classifier_utils.py: _truncate_seq_pair); here all at once.

    Args:
        first, second: int64[S], pieces of A and B.
        room: int, pieces for both.

    Returns:
        (int64[S], int64[S]).
    """
    kept = np.minimum(first, np.maximum(room - second, (room + 1) // 2))
    return kept, np.minimum(second, room - kept)
