"""Cuts a document into pairs of segments: in order or swapped, or with a random second one.

A document is a stretch of one array of piece ids, its sentences follow each other in it,
and so do the segments of a pair: a segment is no more than two offsets.
S: sentences of a document.
"""

import bisect
import dataclasses

NUM_SPECIAL_PIECES = {"sop": 3, "nsp": 3, "none": 2}  # [CLS] A [SEP] B [SEP], or [CLS] A [SEP].
SHORTEST_TARGET = 2  # Pieces (create_pretraining_data.py:275).


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two segments as they stand in an example, each a range of offsets into the ids.

    `label` is 1 where they are swapped or the second is random. `second` is None for an
    example of one segment.
    """

    first: tuple[int, int]
    second: tuple[int, int] | None
    label: int


def cut_chunks(offsets, target, backwards=False, min_sentences=2):
    """Cuts a document into chunks of at least `target` pieces, the last one apart.

    A walk always ends a chunk with the sentence that overflows the target, and a
    sentence that overflows is a long one. Walked forwards only, as the original does
    (create_pretraining_data.py:283-291), the second segment tends to be the longer and
    the two lengths tell the order, 53.5 % on a corpus of books. Differs from the original:
    `cut_pairs` walks half of the documents backwards, so the long sentence is as often in
    the first segment.

    Differs from the original: a chunk has two sentences at least, also where the first alone
    reaches the target; a single sentence left over takes the one before it once more.
    The original pairs it with a random document's text even for order prediction (:314).

    Args:
        offsets: list[int] of S + 1 rising offsets: where sentences start, and the end.
        target: int, pieces.
        backwards: bool, whether the walk starts at the end of the document.
        min_sentences: int, 2, or 1 where a single sentence is a chunk too.

    Returns:
        A list of (start, end) ranges of sentences, in the order of the walk. A document
        of fewer sentences than `min_sentences` is a single, shorter, range.
    """
    num_sentences = len(offsets) - 1
    if backwards:
        mirrored = [offsets[-1] - offset for offset in reversed(offsets)]
        chunks = cut_chunks(mirrored, target, min_sentences=min_sentences)
        return [(num_sentences - end, num_sentences - start) for start, end in chunks]
    chunks, start = [], 0
    while start < num_sentences:
        end = bisect.bisect_left(offsets, offsets[start] + target, start + 1)
        end = min(max(end, start + min_sentences), num_sentences)
        start = max(0, min(start, end - min_sentences))
        chunks.append((start, end))
        start = end
    return chunks


def truncate(first, second, max_pieces, generator):
    """Shortens the longer segment until both fit, each piece at its front or back by a coin.

    As the original (create_pretraining_data.py:598-615), for all pieces at once.

    Args:
        first, second: (start, end) offsets.
        max_pieces: int, the most pieces that both may have together.
        generator: numpy.random.Generator.

    Returns:
        (first, second), shortened.
    """
    lengths = first[1] - first[0], second[1] - second[0]
    excess = sum(lengths) - max_pieces
    if excess <= 0:
        return first, second
    down_to_equal = min(excess, abs(lengths[0] - lengths[1]))
    rest = excess - down_to_equal  # Of two equal segments the second gives a piece first.
    cuts = [rest // 2, rest - rest // 2]
    cuts[0 if lengths[0] > lengths[1] else 1] += down_to_equal
    return shorten(first, cuts[0], generator), shorten(second, cuts[1], generator)


def shorten(segment, num_pieces, generator):
    """Cuts pieces off a segment, each at the front or at the back by a fair coin."""
    at_front = int(generator.binomial(num_pieces, 0.5))
    return segment[0] + at_front, segment[1] - (num_pieces - at_front)


def draw_target(max_pieces, short_seq_prob, generator):
    """Draws the length that a document's chunks reach (create_pretraining_data.py:282-284)."""
    if generator.random() < short_seq_prob:
        return int(generator.integers(min(SHORTEST_TARGET, max_pieces), max_pieces + 1))
    return max_pieces


def sentence_order_pairs(documents, index, max_pieces, target, generator):
    """Pairs of consecutive segments, of which a fair coin swaps every other (ALBERT, 3.1).

    A document of one sentence gives none. Args and returns: as of `document_pairs`.
    """
    offsets, pairs = documents[index], []
    backwards = generator.random() < 0.5
    for start, end in cut_chunks(offsets, target, backwards):
        if end - start < 2:
            break
        middle = offsets[int(generator.integers(start + 1, end))]
        segments = (offsets[start], middle), (middle, offsets[end])
        label = int(generator.random() < 0.5)
        segments = truncate(segments[label], segments[1 - label], max_pieces, generator)
        pairs.append(Pair(*segments, label))
    return pairs


def next_sentence_pairs(documents, index, max_pieces, target, generator):
    """Pairs of which every other has a random second segment (BERT, 3.1).

    As the original (create_pretraining_data.py:291-349): what a random segment displaces
    is used by the next pair, and a single sentence always gets a random segment. It
    comes from another document, or from this one where there is no other. Args
    and returns: as of `document_pairs`.
    """
    offsets, pairs, start = documents[index], [], 0
    while start < len(offsets) - 1:
        end = bisect.bisect_left(offsets, offsets[start] + target, start + 1)
        end = min(end, len(offsets) - 1)
        middle = int(generator.integers(start + 1, end)) if end - start > 1 else end
        first, second, label = (offsets[start], offsets[middle]), (offsets[middle], offsets[end]), 0
        if end - start == 1 or generator.random() < 0.5:
            missing = target - (first[1] - first[0])
            second, label = random_segment(documents, index, missing, generator), 1
            end = middle
        pairs.append(Pair(*truncate(first, second, max_pieces, generator), label))
        start = end
    return pairs


def random_segment(documents, index, length, generator):
    """Draws sentences of at least `length` pieces, or up to their document's end."""
    others = len(documents) - 1
    chosen = (index + 1 + int(generator.integers(others))) % len(documents) if others else index
    offsets = documents[chosen]
    start = int(generator.integers(len(offsets) - 1))
    end = bisect.bisect_left(offsets, offsets[start] + length, start + 1)
    return offsets[start], offsets[min(end, len(offsets) - 1)]


def single_segments(documents, index, max_pieces, target, generator):
    """Segments of consecutive sentences, each alone in its example (ALBERT, Table 5, "None").

    Args and returns: as of `document_pairs`.
    """
    offsets, pairs = documents[index], []
    for start, end in cut_chunks(offsets, target, min_sentences=1):
        excess = max(0, offsets[end] - offsets[start] - max_pieces)
        segment = shorten((offsets[start], offsets[end]), excess, generator)
        pairs.append(Pair(segment, None, 0))
    return pairs


OBJECTIVES = {
    "sop": sentence_order_pairs,
    "nsp": next_sentence_pairs,
    "none": single_segments,
}


def document_pairs(objective, documents, index, max_seq_length, short_seq_prob, generator):
    """Cuts one document into the segments of its examples.

    Args:
        objective: a key of OBJECTIVES.
        documents: list of list[int]: for each document S + 1 rising offsets into the
            ids, where its sentences start and where it ends. Other documents than that
            of `index` matter to "nsp" alone.
        index: int, the document to cut.
        max_seq_length: int, T; the special pieces take their part of it.
        short_seq_prob: float in [0, 1], the probability of a shorter target, which one
            draw decides for the whole document.
        generator: numpy.random.Generator.

    Returns:
        list[Pair], in the order of the walk.
    """
    max_pieces = max_seq_length - NUM_SPECIAL_PIECES[objective]
    target = draw_target(max_pieces, short_seq_prob, generator)
    return OBJECTIVES[objective](documents, index, max_pieces, target, generator)
