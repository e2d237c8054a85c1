"""Small models of every kind in every form, for the tests of what turns one into another."""

import dataclasses

import numpy as np
from made_models import randomize, small_config

from conversion import model_sources, model_writers

NUM_CLASSES = {"classes": 3, "multilabel": 4}
LABELS = {"classes": ["no", "maybe", "naïve"], "multilabel": ["a", "b", "c", "d"]}
BERT_LIKE = {"sharing": "none", "embedding_size": 16, "hidden_act": "gelu_erf"}


def random_source(kind, tokenizer=None, without=(), **config):
    """Returns a model of random weights, as if it had been read.

    Args:
        kind: of model_kinds.KINDS.
        tokenizer: Tokenizer, whose pieces the vocabulary then has.
        without: prefixes of names of weights that are not there.
        **config: fields of `made_models.small_config`.
    """
    size = {"vocab_size": tokenizer.vocab_size} if tokenizer else {}
    config = small_config(**{**size, **config})
    model = randomize(model_sources.make_model(config, kind, NUM_CLASSES.get(kind, 1)))
    named = (model.encoder if kind == "encoder" else model).named_variables()
    return model_sources.Source(
        path="random",
        config=config,
        kind=kind,
        arrays={n: v.numpy() for n, v in named.items() if not n.startswith(tuple(without))},
        tokenizer=tokenizer,
        labels=LABELS.get(kind, []),
    )


def hop(source, form, folder):
    """Writes a model in a form, and returns it as it is read again."""
    model_writers.write(source, form, str(folder))
    return model_sources.read(folder)


def assert_same_model(found, expected):
    """Compares all but where it came from; weights bit by bit."""
    assert found.arrays.keys() == expected.arrays.keys()
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array, err_msg=name)
    assert found.config == expected.config
    assert (found.kind, found.labels) == (expected.kind, expected.labels)
    fingerprints = [s.tokenizer and s.tokenizer.fingerprint for s in (found, expected)]
    assert fingerprints[0] == fingerprints[1]


def with_slots(source, step=7):
    """Returns the source as after training: with slots and a counter."""
    slots = {
        f"{name}/{slot}": np.full_like(array, value)
        for name, array in source.arrays.items()
        for slot, value in (("adam_m", 0.5), ("adam_v", 0.25))
    }
    return dataclasses.replace(source, slots=slots, step=step)
