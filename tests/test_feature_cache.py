import numpy as np
import pytest

from data import feature_cache, features
from tests import made_tokenizers

TOKENIZER = made_tokenizers.wordpiece_tokenizer()


def made(number):
    return features.pack([{"input_ids": [number], "segment_ids": [0], "label_ids": 1}])


def first_id(folder, key, number):
    """Returns the one id of the features under a key; they are made of `number` if at all."""
    return feature_cache.cached(folder, key, lambda: made(number)).sequences["input_ids"][0]


def test_the_same_key_gives_the_same_features_without_making_them(tmp_path):
    key = feature_cache.key(["text"], TOKENIZER, max_seq_length=8)
    assert first_id(str(tmp_path), key, 5) == 5
    assert first_id(str(tmp_path), key, 6) == 5
    assert [path.name for path in tmp_path.iterdir()] == [f"features-{key[:16]}.npz"]


def test_any_change_is_another_key():
    keys = [
        feature_cache.key(["text"], TOKENIZER, max_seq_length=8),
        feature_cache.key(["Text"], TOKENIZER, max_seq_length=8),
        feature_cache.key(["text"], TOKENIZER, max_seq_length=9),
        feature_cache.key(["text"], TOKENIZER, max_seq_length=8, level="high"),
        feature_cache.key(["te", "xt"], TOKENIZER, max_seq_length=8),
        feature_cache.key(
            ["text"], made_tokenizers.wordpiece_tokenizer(lower=False), max_seq_length=8
        ),
    ]
    assert len(set(keys)) == len(keys)


def test_text_and_its_bytes_are_the_same_content():
    assert feature_cache.key(["é"], TOKENIZER) == feature_cache.key(["é".encode()], TOKENIZER)


@pytest.mark.parametrize("damage", [lambda content: content[:100], lambda content: b"no archive"])
def test_a_damaged_file_is_made_again(tmp_path, damage):
    key = feature_cache.key(["text"], TOKENIZER)
    first_id(str(tmp_path), key, 5)
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert first_id(str(tmp_path), key, 6) == 6
    assert first_id(str(tmp_path), key, 7) == 6


def test_without_a_folder_nothing_is_kept():
    key = feature_cache.key(["text"], TOKENIZER)
    assert [first_id(None, key, number) for number in (5, 6)] == [5, 6]


def test_the_truncated_share_is_kept(tmp_path):
    one = features.Features(
        {name: np.zeros(1, np.int32) for name in ("input_ids", "segment_ids")},
        np.array([0, 1]),
        truncated_share=0.5,
    )
    for _ in range(2):
        kept = feature_cache.cached(str(tmp_path), "0" * 64, lambda: one)
        assert kept.truncated_share == 0.5
