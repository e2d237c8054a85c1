"""Sequences laid out in a graph are those of the host."""

import made_tokenizers
import numpy as np
import tensorflow as tf

from data import classification, graph_features, graph_tokenization, length_batches
from data.classification_tables import Table

WORDS = ["old", "fox", "river", "sailor", "letter"]


def strings(texts):
    return tf.constant([text.encode() for text in texts])


def test_long_texts_are_read_through_the_hosts_windows():
    generator = np.random.default_rng(0)
    lengths = [
        (0, 0),
        (13, 0),
        (14, 0),
        (15, 0),
        (60, 0),
        (5, 8),
        (6, 8),
        (40, 3),
        (40, 30),
        (3, 30),
    ]
    pairs = [[" ".join(generator.choice(WORDS, size)) for size in sizes] for sizes in lengths]
    texts, others = (list(column) for column in zip(*pairs, strict=True))
    tokenizer = made_tokenizers.wordpiece_tokenizer(WORDS)
    table = Table("", [""] * len(texts), texts, others, None)
    made = classification.make_features(table, tokenizer, 16, in_windows=True)
    twin = graph_tokenization.of_tokenizer(tokenizer)
    encoded = (twin.encode(strings(column)) for column in (texts, others))
    batch, row = graph_features.in_windows(*encoded, twin.special_ids, 16)
    assert row.numpy().tolist() == made.columns["row"].tolist()
    assert len(made) > len(texts) + 10
    expected = length_batches.pad(made, np.arange(len(made)), len(made), 16)
    for name, values in batch.items():
        np.testing.assert_array_equal(values, expected[name], name)
