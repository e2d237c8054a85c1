"""Lays segments out as [CLS] A [SEP] B [SEP] and padding, or [CLS] A [SEP] and padding.

n: examples, T: tokens, M: pieces of a stretch of text.
"""

import numpy as np


def pack(ids, starts_word, first, second, *, max_seq_length, special_ids):
    """Lays out many examples at once.

    Args:
        ids: int32[M], pieces of text.
        starts_word: bool[M], whether each starts a word.
        first: int[n, 2], where the first segment starts and ends in `ids`.
        second: int[n, 2], the same of the second, or None for examples of one segment.
        max_seq_length: int, T; no example is longer.
        special_ids: (CLS, SEP, pad), three ids.

    Returns:
        dict of input_ids int32[n, T], uint8[n, T] of input_mask, segment_ids and
        token_boundary (1 where a word starts and on special pieces; 0 on padding), and
        is_text bool[n, T], False on special pieces and padding.
    """
    table = np.concatenate([ids, np.array(special_ids, np.int32)])
    boundaries = np.concatenate([starts_word, [True, True, False]]).astype(np.uint8)
    cls_place, sep_place, pad_place = len(ids) + np.arange(3)
    columns = np.arange(max_seq_length)
    middle = 1 + first[:, 1:] - first[:, :1]  # int[n, 1], the place of the first [SEP].
    places = columns - 1 + first[:, :1]  # int[n, T], into `table`.
    end = middle
    if second is not None:
        end = middle + 1 + second[:, 1:] - second[:, :1]  # The place of the last [SEP].
        in_second = columns > middle
        places = np.where(in_second, columns - middle - 1 + second[:, :1], places)
    places[columns > end] = pad_place
    places[:, 0] = cls_place
    np.put_along_axis(places, middle, sep_place, axis=1)
    np.put_along_axis(places, end, sep_place, axis=1)
    input_mask = (columns <= end).astype(np.uint8)
    return {
        "input_ids": table[places],
        "input_mask": input_mask,
        "segment_ids": input_mask & (columns > middle),
        "token_boundary": boundaries[places],
        "is_text": places < len(ids),
    }
