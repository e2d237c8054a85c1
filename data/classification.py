"""Features of classification: a text or a pair of texts, as the original lays them out.

n: rows.
"""

import json

import numpy as np

from data import feature_cache, sequence_pairs
from data.features import Features

SHORTEST = 5  # [CLS] a [SEP] b [SEP].


def make_features(table, tokenizer, max_seq_length, cache_folder=None):
    """Turns the rows of a table into features.

    A pair is cut at the end of whichever text is longer. A row whose second text has no
    pieces is a single text, as in the original (classifier_utils.py:575).

    Args:
        table: a classification_tables.Table.
        tokenizer: a Tokenizer.
        max_seq_length: pieces of an example, special ones included.
        cache_folder: folder to keep the features in, or None.

    Returns:
        Features of n examples, with `label_ids` where the table has labels;
        `truncated_share` of them lost pieces.

    Raises:
        ValueError: `max_seq_length` is too short for a pair.
    """
    if max_seq_length < SHORTEST:
        raise ValueError(
            f"`max_seq_length` must be at least {SHORTEST}. Received: {max_seq_length}."
        )
    texts = json.dumps([table.texts_a, table.texts_b])
    labels = [] if table.label_ids is None else [table.label_ids.tobytes()]
    key = feature_cache.key([texts, *labels], tokenizer, max_seq_length=max_seq_length)
    return feature_cache.cached(
        cache_folder, key, lambda: tokenize_rows(table, tokenizer, max_seq_length)
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
