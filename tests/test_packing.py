import numpy as np

from data import packing

CLS, SEP, PAD = 2, 3, 0
IDS = np.arange(10, 30, dtype=np.int32)
STARTS_WORD = np.arange(20) % 3 == 0


def pack(first, second, max_seq_length=12):
    return packing.pack(
        IDS,
        STARTS_WORD,
        np.array(first),
        None if second is None else np.array(second),
        max_seq_length=max_seq_length,
        special_ids=(CLS, SEP, PAD),
    )


def test_two_segments_stand_between_special_pieces():
    packed = pack([(0, 3), (5, 9)], [(3, 5), (0, 5)])
    expected = {
        "input_ids": [
            [CLS, 10, 11, 12, SEP, 13, 14, SEP, PAD, PAD, PAD, PAD],
            [CLS, 15, 16, 17, 18, SEP, 10, 11, 12, 13, 14, SEP],
        ],
        "input_mask": [[1] * 8 + [0] * 4, [1] * 12],
        "segment_ids": [[0] * 5 + [1] * 3 + [0] * 4, [0] * 6 + [1] * 6],
        "token_boundary": [
            [1, 1, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0],
            [1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1],
        ],
        "is_text": [
            [0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0],
            [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0],
        ],
    }
    assert packed.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(packed[name], values, name)


def test_one_segment_has_one_separator_and_no_second_segment():
    packed = pack([(0, 3), (4, 14)], None)
    np.testing.assert_array_equal(packed["input_ids"][0], [CLS, 10, 11, 12, SEP] + [PAD] * 7)
    np.testing.assert_array_equal(packed["input_ids"][1], [CLS, *range(14, 24), SEP])
    assert not packed["segment_ids"].any()
    np.testing.assert_array_equal(packed["input_mask"].sum(axis=1), [5, 12])
