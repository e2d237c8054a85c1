import dataclasses
import io

import numpy as np
import pytest

from data import features


def choices():
    """Returns two examples of a choice of two; the second lacks its second choice."""
    return features.pack(
        [
            {
                "input_ids": [[2, 7, 3], [2, 8, 9, 3]],
                "segment_ids": [[0, 0, 0], [0, 1, 1, 1]],
                "label_ids": 1,
            },
            {"input_ids": [[2, 3], []], "segment_ids": [[0, 0], []], "label_ids": 0},
        ],
        num_choices=2,
    )


def assert_equal(one, other):
    assert one.num_choices == other.num_choices
    assert one.truncated_share == other.truncated_share
    np.testing.assert_array_equal(one.offsets, other.offsets)
    for mine, theirs in ((one.sequences, other.sequences), (one.columns, other.columns)):
        assert mine.keys() == theirs.keys()
        for name in mine:
            assert mine[name].dtype == theirs[name].dtype
            np.testing.assert_array_equal(mine[name], theirs[name])


def test_sequences_stand_one_after_another_without_padding():
    packed = choices()
    assert len(packed) == 2
    assert packed.sequences["input_ids"].tolist() == [2, 7, 3, 2, 8, 9, 3, 2, 3]
    assert packed.offsets.tolist() == [0, 3, 7, 9, 9]
    assert packed.lengths().tolist() == [4, 2]
    assert packed.sequence("input_ids", 0, 1).tolist() == [2, 8, 9, 3]
    assert packed.sequence("input_ids", 1, 1).tolist() == []


def test_columns_are_int32_or_float32():
    one = {"input_ids": [2, 3], "segment_ids": [0, 0]}
    kinds = {"label_ids": 3.5, "start_positions": 7, "is_impossible": True, "many": [0.0, 1.0]}
    packed = features.pack([{**one, **kinds}])
    assert {name: values.dtype.name for name, values in packed.columns.items()} == {
        "label_ids": "float32",
        "start_positions": "int32",
        "is_impossible": "int32",
        "many": "float32",
    }
    assert packed.columns["many"].shape == (1, 2)


def test_what_was_saved_is_loaded(tmp_path):
    written = dataclasses.replace(choices(), truncated_share=0.5)
    written.save(str(tmp_path / "features.npz"))
    assert_equal(features.load(str(tmp_path / "features.npz")), written)


def test_no_pickle_is_ever_loaded(tmp_path):
    content = io.BytesIO()
    np.savez(content, offsets=np.array([object()], dtype=object))
    (tmp_path / "features.npz").write_bytes(content.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        features.load(str(tmp_path / "features.npz"))


def test_parts_put_together_are_the_whole():
    together = features.concatenate(
        [choices(), dataclasses.replace(choices(), truncated_share=0.5)]
    )
    assert together.truncated_share == 0.25
    assert len(together) == 4
    assert together.sequence("segment_ids", 2, 1).tolist() == [0, 1, 1, 1]
    assert together.columns["label_ids"].tolist() == [1, 0, 1, 0]
    assert together.offsets.tolist() == [0, 3, 7, 9, 9, 12, 16, 18, 18]


def test_no_examples_are_features_too():
    empty = features.pack([])
    assert len(empty) == 0
    assert empty.lengths().tolist() == []
