"""What simple counting achieves at pretraining's two tasks: what a model must beat.

Examples are a dict of arrays with the names of the records' features, `n` rows each:
n: examples, T: tokens, P: masked positions, K: contexts (positions of pieces), M: masked
positions that count, L: seen contexts. Nothing here learns more than a table.
"""

import dataclasses

import numpy as np

PIECES = 1 << 20  # More than any vocabulary has; the cube of it still fits into int64.


def restored_ids(examples):
    """Puts the masked-out pieces back where they stood.

    Args:
        examples: dict with int[n, T] `input_ids`, int[n, P] `masked_lm_positions` and
            `masked_lm_ids`, float[n, P] `masked_lm_weights`.

    Returns:
        int64[n, T].
    """
    ids = np.array(examples["input_ids"], np.int64)
    rows, slots = np.nonzero(examples["masked_lm_weights"])
    positions = examples["masked_lm_positions"][rows, slots]
    ids[rows, positions] = examples["masked_lm_ids"][rows, slots]
    return ids


def masked_labels(examples):
    """Returns the pieces that are to be predicted: int64[M]."""
    return np.array(examples["masked_lm_ids"], np.int64)[examples["masked_lm_weights"] > 0]


def most_frequent(pieces):
    """Returns the piece that occurs most often (of several, the smallest id)."""
    return int(np.argmax(np.bincount(pieces)))


def accuracy(guesses, truth):
    """Measures a guess, with the standard error of its share of hits.

    Args:
        guesses: array [M], or one value for all.
        truth: array [M], M > 0.

    Returns:
        (float, float): accuracy in [0, 1], its binomial standard error.
    """
    share = float(np.mean(guesses == truth))
    return share, float(np.sqrt(share * (1 - share) / len(truth)))


@dataclasses.dataclass(frozen=True)
class GuessTable:
    """The most frequent piece in each context that was seen.

    contexts: int64[L], sorted; guesses: int64[L]; shares: float64[L], of the context's
    occurrences those with the guess.
    """

    contexts: np.ndarray
    guesses: np.ndarray
    shares: np.ndarray

    @classmethod
    def count(cls, contexts, pieces):
        """Counts which piece stands in which context.

        Args:
            contexts: int64[K], a number less than PIECES ** 2 for each context.
            pieces: int64[K], the piece in each, less than PIECES.
        """
        num_pieces = int(pieces.max()) + 1
        pairs, counts = np.unique(contexts * num_pieces + pieces, return_counts=True)
        order = np.lexsort((-counts, pairs // num_pieces))  # In a context the frequent first.
        pairs, counts = pairs[order], counts[order]
        seen, first = np.unique(pairs // num_pieces, return_index=True)
        shares = counts[first] / np.add.reduceat(counts, first)
        return cls(seen, pairs[first] % num_pieces, shares)

    def look_up(self, contexts):
        """Finds the guess for each context.

        Args:
            contexts: int64[M].

        Returns:
            (int64[M], float64[M]): guess and share; where the context was never seen the
            share is 0 and the guess means nothing.
        """
        at = np.minimum(np.searchsorted(self.contexts, contexts), len(self.contexts) - 1)
        return self.guesses[at], np.where(self.contexts[at] == contexts, self.shares[at], 0.0)


@dataclasses.dataclass(frozen=True)
class NeighbourTables:
    """Guesses a piece from its two neighbours as the model sees them, masks and all.

    Unseen pairs are guessed from the one neighbour whose best guess is the surer, and
    where neither was ever seen, as the most frequent piece.
    """

    pair: GuessTable
    left: GuessTable
    right: GuessTable
    most_frequent: int

    @classmethod
    def count(cls, examples):
        """Counts over every position of a piece in the examples, masked or not.

        Args:
            examples: dict as in this module's docstring.
        """
        inputs = np.asarray(examples["input_ids"], np.int64)
        inside = inner_positions(examples)
        rows, positions = np.nonzero(inside)
        pieces = restored_ids(examples)[inside]  # int64[K]
        left, right = inputs[rows, positions - 1], inputs[rows, positions + 1]
        return cls(
            pair=GuessTable.count(pair_key(left, right), pieces),
            left=GuessTable.count(left, pieces),
            right=GuessTable.count(right, pieces),
            most_frequent=most_frequent(pieces),
        )

    def guess(self, examples):
        """Guesses the masked pieces of examples, in the order of `masked_labels`.

        Args:
            examples: dict as in this module's docstring.

        Returns:
            int64[M].
        """
        rows, slots = np.nonzero(examples["masked_lm_weights"])
        positions = examples["masked_lm_positions"][rows, slots]
        inputs = np.asarray(examples["input_ids"], np.int64)
        left, right = inputs[rows, positions - 1], inputs[rows, positions + 1]
        by_left, left_share = self.left.look_up(left)
        by_right, right_share = self.right.look_up(right)
        by_pair, pair_share = self.pair.look_up(pair_key(left, right))
        by_one = np.where(left_share > right_share, by_left, by_right)
        is_known = (left_share > 0) | (right_share > 0)
        by_one = np.where(is_known, by_one, self.most_frequent)
        return np.where(pair_share > 0, by_pair, by_one)


def pair_key(left, right):
    """Makes one number of two neighbours: int64[K]."""
    return left * PIECES + right


def inner_positions(examples):
    """Says which positions hold a piece of A or B: not [CLS], not [SEP], not padding.

    [CLS] is the first, a [SEP] the last of its segment; the ids of both stay unknown here.

    Args:
        examples: dict as in this module's docstring.

    Returns:
        bool[n, T].
    """
    mask = np.asarray(examples["input_mask"], bool)
    segments = np.asarray(examples["segment_ids"])
    next_mask = np.pad(mask[:, 1:], ((0, 0), (0, 1)))
    next_segments = np.pad(segments[:, 1:], ((0, 0), (0, 1)))
    ends_segment = ~next_mask | (next_segments != segments)
    inside = mask & ~ends_segment
    inside[:, 0] = False
    return inside


def segment_lengths(examples):
    """Counts the pieces of A and of B.

    Args:
        examples: dict as in this module's docstring.

    Returns:
        int64[n, 2].
    """
    inside = inner_positions(examples)
    in_b = inside & (np.asarray(examples["segment_ids"]) == 1)
    num_b = in_b.sum(axis=1)
    return np.stack([inside.sum(axis=1) - num_b, num_b], axis=1)


def bag_differences(examples):
    """Lists how much more often each piece stands in B than in A, without its place.

    Args:
        examples: dict as in this module's docstring.

    Returns:
        (int64[K], int64[K], int64[K]): row, piece and 1 for a piece of B, -1 for one of A;
        entries of one row and piece are to be summed.
    """
    inside = inner_positions(examples)
    rows, _ = np.nonzero(inside)
    signs = np.where(np.asarray(examples["segment_ids"])[inside] == 1, 1, -1)
    return rows, restored_ids(examples)[inside], signs


def end_pieces(examples, num_ends=3):
    """Lists what stands where A and B meet, and where they begin: pieces, and pairs of them.

    Args:
        examples: dict as in this module's docstring.
        num_ends: how many of the last pieces of A are paired with the first of B.

    Returns:
        list of n lists of str, the features of each example.
    """
    inside = inner_positions(examples)
    in_b = np.asarray(examples["segment_ids"]) == 1
    features = []
    for ids, real, second in zip(restored_ids(examples), inside, in_b, strict=True):
        a, b = ids[real & ~second], ids[real & second]
        ends = {"first of A": a[:num_ends], "last of A": a[::-1][:num_ends]}
        ends |= {"first of B": b[:num_ends], "last of B": b[::-1][:num_ends]}
        names = [f"{end} {i} {piece}" for end, of in ends.items() for i, piece in enumerate(of)]
        names += [
            f"meet {i} {j} {left} {right}"
            for i, left in enumerate(ends["last of A"])
            for j, right in enumerate(ends["first of B"])
        ]
        features.append(names)
    return features
