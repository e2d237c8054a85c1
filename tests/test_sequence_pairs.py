import numpy as np

from data import sequence_pairs
from tests import made_tokenizers

TOKENIZER = made_tokenizers.wordpiece_tokenizer()
CLS, SEP = TOKENIZER.cls_id, TOKENIZER.sep_id


def stretches(*lists):
    ids = np.array([number for one in lists for number in one], np.int32)
    ends = np.cumsum([len(one) for one in lists])
    lengths = np.array([len(one) for one in lists])
    return sequence_pairs.Stretches(ids, ends - lengths, lengths)


def popped(first, second, room):
    """Cuts a pair piece by piece, as the original does."""
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pairs_are_cut_as_piece_by_piece():
    first, second = (side.ravel() for side in np.meshgrid(np.arange(25), np.arange(1, 25)))
    for room in range(2, 30):
        kept = sequence_pairs.pair_lengths(first, second, room)
        expected = [popped(a, b, room) for a, b in zip(first, second, strict=True)]
        np.testing.assert_array_equal(np.stack(kept, axis=1), expected)


def test_special_pieces_stand_around_the_stretches():
    input_ids, segment_ids, offsets = sequence_pairs.lay_out(
        stretches([10, 11], [], [12]),
        stretches([20], [21, 22], []),
        np.array([True, True, False]),
        TOKENIZER,
    )
    assert offsets.tolist() == [0, 6, 11, 14]
    assert input_ids.tolist() == [
        *(CLS, 10, 11, SEP, 20, SEP),
        *(CLS, SEP, 21, 22, SEP),
        *(CLS, 12, SEP),
    ]
    assert segment_ids.tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0]


def test_a_sequence_that_is_not_there_is_empty():
    first = stretches([10], [11], [12]).first(np.array([1, 0, 1]))
    second = stretches([20, 21], [], [22]).last(np.array([1, 0, 1]))
    input_ids, segment_ids, offsets = sequence_pairs.lay_out(
        first, second, np.ones(3, bool), TOKENIZER, is_there=np.array([True, False, True])
    )
    assert offsets.tolist() == [0, 5, 5, 10]
    assert input_ids.tolist() == [CLS, 10, SEP, 21, SEP, CLS, 12, SEP, 22, SEP]
    assert segment_ids.tolist() == [0, 0, 0, 1, 1] * 2


def test_texts_are_tokenized_as_one_by_one():
    texts = ["the walk", "", "a (3)"]
    tokenized = sequence_pairs.Stretches.of(texts, TOKENIZER)
    for number, text in enumerate(texts):
        one = tokenized[number : number + 1]
        places = sequence_pairs.places(one.starts, one.lengths)
        assert tokenized.ids[places].tolist() == TOKENIZER.encode(text)
