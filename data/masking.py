"""Masks pieces of text and makes their labels, for many examples at once.

n: examples, T: tokens, P: masked positions, V: vocabulary; over all examples, W: words,
M: pieces of text.
"""

import dataclasses

import numpy as np

from data import ngrams

KEPT, RANDOM = 0.8, 0.9  # Below 0.8 [MASK], then 10 % as it was, then 10 % random (BERT, 3.1).
REPLACEMENT_UNITS = ("piece", "ngram")


@dataclasses.dataclass(frozen=True)
class MaskPolicy:
    """What is masked and by what.

    Attributes:
        masked_lm_prob: float in [0, 1], share of an example's pieces to mask.
        max_predictions: int, P.
        ngram: int, words of the longest n-gram.
        favor_shorter_ngram: bool, whether p(n) ~ 1/n; else p(n) ~ 1/(ngram + 1 - n).
        whole_words: bool, else every piece is a word of its own.
        replacement_unit: "piece" or "ngram": what one draw of 80/10/10 decides for.
        mask_id: int.
        ordinary_ids: int32[<= V], what a random replacement may be.
    """

    masked_lm_prob: float
    max_predictions: int
    ngram: int
    favor_shorter_ngram: bool
    whole_words: bool
    replacement_unit: str
    mask_id: int
    ordinary_ids: np.ndarray


def num_uniforms(max_seq_length, max_predictions):
    """Returns how many random numbers `mask` takes for an example."""
    return max_seq_length + (1 + max_seq_length) + 2 * max_predictions


def num_to_predict(num_pieces, masked_lm_prob, max_predictions):
    """Returns how many pieces to mask in examples (create_pretraining_data.py:459-464).

    Args:
        num_pieces: int[n], special pieces included.

    Returns:
        int64[n]; halves are rounded to even, and it is 1 at least unless the share is 0.
    """
    if not masked_lm_prob:
        return np.zeros(len(num_pieces), np.int64)
    wanted = np.maximum(1, np.rint(num_pieces * masked_lm_prob)).astype(np.int64)
    return np.minimum(wanted, max_predictions)


def mask(examples, policy, uniforms):
    """Masks pieces and makes their labels.

    Args:
        examples: dict of input_ids int32[n, T], input_mask and token_boundary [n, T], and
            is_text bool[n, T], as `packing.pack` makes it.
        policy: MaskPolicy.
        uniforms: float64[n, num_uniforms(T, P)] in [0, 1). Differs from the original: its
            n-gram lengths come from a generator that is never seeded
            (create_pretraining_data.py:498).

    Returns:
        dict of input_ids int32[n, T], int32[n, P] masked_lm_positions (rising) and
        masked_lm_ids, float32[n, P] masked_lm_weights; all 0 beyond the masked ones.
    """
    is_text, length = examples["is_text"], examples["is_text"].shape[1]
    cutting, taking, replacing = np.split(uniforms, [length, 2 * length + 1], axis=1)
    tables = ngrams.length_tables(policy.ngram, policy.favor_shorter_ngram, length)
    starts_word = examples["token_boundary"].astype(bool) if policy.whole_words else is_text
    cut = ngrams.cut(is_text, starts_word, tables, cutting)
    num_pieces = examples["input_mask"].sum(axis=1)
    budgets = num_to_predict(num_pieces, policy.masked_lm_prob, policy.max_predictions)
    is_taken = np.repeat(ngrams.take(cut, budgets, taking), cut.word_pieces)  # bool[M]
    unit = np.arange(len(is_taken))
    if policy.replacement_unit == "ngram":
        unit = np.repeat(np.arange(len(cut.row)), cut.num_pieces)
    return replace(examples["input_ids"], cut.place[is_taken], unit[is_taken], policy, replacing)


def replace(ids, place, unit, policy, uniforms):
    """Puts [MASK], the same piece or a random one into some places.

    Differs from the original: a random one is never a special piece
    (create_pretraining_data.py:535).

    Args:
        ids: int32[n, T].
        place: int64[k], rising, into the flattened ids.
        unit: int64[k], rising; places with the same number share one draw of 80/10/10.
        policy: MaskPolicy.
        uniforms: float64[n, 2 P] in [0, 1): which of the three, and which random piece.

    Returns:
        As `mask`.
    """
    row, column = np.divmod(place, ids.shape[1])
    slot = ngrams.running_count(row, len(ids))
    is_first = np.diff(unit, prepend=-1) > 0  # Of its unit.
    draws = uniforms[row, slot][is_first][np.cumsum(is_first) - 1]
    choice = uniforms[row, policy.max_predictions + slot] * len(policy.ordinary_ids)
    labels = ids[row, column]
    others = np.where(draws < RANDOM, labels, policy.ordinary_ids[choice.astype(np.int64)])
    ids = ids.copy()
    ids[row, column] = np.where(draws < KEPT, policy.mask_id, others)

    shape = len(ids), policy.max_predictions
    positions, label_ids = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    positions[row, slot], label_ids[row, slot], weights[row, slot] = column, labels, 1
    return {
        "input_ids": ids,
        "masked_lm_positions": positions,
        "masked_lm_ids": label_ids,
        "masked_lm_weights": weights,
    }
