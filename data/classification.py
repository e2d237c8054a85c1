"""Features of classification: a text or a pair of texts, as the original lays them out.

n: rows.
"""

import dataclasses
import json

import numpy as np

from data import feature_cache, sequence_pairs
from data.features import Features

SHORTEST = 5  # [CLS] a [SEP] b [SEP].


def make_features(table, tokenizer, max_seq_length, in_windows=False, cache_folder=None):
    """Turns the rows of a table into features.

    A pair is cut at the end of whichever text is longer, unless read in windows. A row whose
    second text has no pieces is a single text, as in the original (classifier_utils.py:575).

    Args:
        table: a classification_tables.Table.
        tokenizer: a Tokenizer.
        max_seq_length: pieces of an example, special ones included.
        in_windows: whether a row that is too long becomes several examples, windows over its
            first text that overlap by half, instead of being cut; a second text longer than
            half of the room is cut all the same.
        cache_folder: folder to keep the features in, or None.

    Returns:
        Features of n examples, with `label_ids` where the table has labels;
        `truncated_share` of the rows lost pieces. In windows there may be more examples than
        rows; the column `row`, int32[examples], tells whose each is.

    Raises:
        ValueError: `max_seq_length` is too short for a pair.
    """
    if max_seq_length < SHORTEST:
        raise ValueError(
            f"`max_seq_length` must be at least {SHORTEST}. Received: {max_seq_length}."
        )
    texts = json.dumps([table.texts_a, table.texts_b])
    labels = [] if table.label_ids is None else [table.label_ids.tobytes()]
    settings = {"max_seq_length": max_seq_length, "in_windows": in_windows}
    key = feature_cache.key([texts, *labels], tokenizer, **settings)
    tokenize = tokenize_in_windows if in_windows else tokenize_rows
    return feature_cache.cached(
        cache_folder, key, lambda: tokenize(table, tokenizer, max_seq_length)
    )


def tokenize_rows(table, tokenizer, max_seq_length):
    """Makes the features. Args and returns: as of `make_features`."""
    first = sequence_pairs.Stretches.of(table.texts_a, tokenizer)
    second = sequence_pairs.Stretches.of(table.texts_b or [""] * len(table), tokenizer)
    is_pair = second.lengths > 0
    pair = sequence_pairs.pair_lengths(first.lengths, second.lengths, max_seq_length - 3)
    kept_a = np.where(is_pair, pair[0], np.minimum(first.lengths, max_seq_length - 2))
    kept_b = np.where(is_pair, pair[1], 0)
    input_ids, segment_ids, offsets = sequence_pairs.lay_out(
        first.first(kept_a), second.first(kept_b), is_pair, tokenizer
    )
    is_cut = (kept_a < first.lengths) | (kept_b < second.lengths)
    return Features(
        {"input_ids": input_ids, "segment_ids": segment_ids},
        offsets,
        {} if table.label_ids is None else {"label_ids": table.label_ids},
        truncated_share=float(np.mean(is_cut)),
    )


def tokenize_in_windows(table, tokenizer, max_seq_length):
    """Makes the features. Args and returns: as of `make_features`."""
    first = sequence_pairs.Stretches.of(table.texts_a, tokenizer)
    second = sequence_pairs.Stretches.of(table.texts_b or [""] * len(table), tokenizer)
    is_pair = second.lengths > 0
    room = max_seq_length - np.where(is_pair, 3, 2)  # int64[n], for both texts.
    fits = first.lengths + second.lengths <= room
    kept_b = np.where(fits, second.lengths, np.minimum(second.lengths, room // 2))
    room_a = room - kept_b
    kept_a = np.minimum(first.lengths, room_a)
    stride = np.maximum(room_a // 2, 1)
    num_windows = 1 - (-(first.lengths - kept_a) // stride)
    row = np.repeat(np.arange(len(table)), num_windows)
    number = np.arange(len(row)) - np.repeat(np.cumsum(num_windows) - num_windows, num_windows)
    begins = np.minimum(number * stride[row], (first.lengths - kept_a)[row])
    windows = dataclasses.replace(first, starts=first.starts[row] + begins, lengths=kept_a[row])
    input_ids, segment_ids, offsets = sequence_pairs.lay_out(
        windows, second.first(kept_b)[row], is_pair[row], tokenizer
    )
    columns = {"row": row.astype(np.int32)}
    if table.label_ids is not None:
        columns["label_ids"] = table.label_ids[row]
    return Features(
        {"input_ids": input_ids, "segment_ids": segment_ids},
        offsets,
        columns,
        truncated_share=float(np.mean(kept_b < second.lengths)),
    )
