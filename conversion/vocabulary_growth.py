"""Adds pieces to a model: rows of the embedding table, its output and the output's bias together.

    source = model_sources.read("albert_base")
    source = vocabulary_growth.with_tokens(source, ["covid", "mrna"])
    model = model_sources.build(source)

Only programs import this module.

Shapes: V vocabulary, E embedding.
"""

import dataclasses

import numpy as np

from data import added_pieces

TABLE, BIAS = "bert/embeddings/word_embeddings", "cls/predictions/output_bias"


def with_tokens(source, pieces, seed=0):
    """Adds pieces to vocabulary and model. What it computes of the old ones stays what it was.

    Args:
        source: model_sources.Source.
        pieces: list[str], as of `added_pieces.with_pieces`.
        seed: int, tells the new rows.

    Returns:
        Source.

    Raises:
        ValueError: there is no tokenizer, or a piece cannot be added.
    """
    if source.tokenizer is None:
        raise ValueError(
            "A tokenizer must lie beside the weights for pieces to be added to it. Received: "
            f"{source.path}, without one. `tokenizer` names another."
        )
    return grown(source, added_pieces.with_pieces(source.tokenizer, list(pieces)), seed)


def with_tokenizer(source, tokenizer, seed=0):
    """Gives a model another tokenizer, whose first pieces must be those of its own.

    Args and returns: as of `with_tokens`.

    Raises:
        ValueError: an id would mean something else than it did, or a text give other ids.
    """
    size = source.config.vocab_size
    if source.tokenizer is None and tokenizer.vocab_size > size:
        raise ValueError(
            "A tokenizer with pieces that the model has no rows for must be seen to begin with the "
            f"model's own. Received: {tokenizer.vocab_size} pieces for {size} rows, and "
            f"{source.path} without a tokenizer."
        )
    if source.tokenizer and source.tokenizer.settings != tokenizer.settings:
        raise ValueError(
            "A new tokenizer must have the old one's settings. Received: "
            f"{tokenizer.settings} for {source.tokenizer.settings}."
        )
    old = source.tokenizer.pieces if source.tokenizer else []
    different = [i for i, piece in enumerate(old) if tokenizer.pieces[i : i + 1] != [piece]]
    if different:
        first = different[0]
        raise ValueError(
            "A new tokenizer must begin with the old one's pieces, so that ids mean what they did. "
            f"Received: {tokenizer.pieces[first : first + 1]} for {old[first]!r}, id {first}."
        )
    return grown(source, tokenizer, seed)


def grown(source, tokenizer, seed=0):
    """Returns the Source with rows for all pieces of the tokenizer; it has no fewer than before."""
    size = max(tokenizer.vocab_size, source.config.vocab_size)
    more = size - source.config.vocab_size
    arrays = grow(source.arrays, more, source.config.initializer_range, seed)
    slots = {
        name: np.pad(slot, [(0, more), (0, 0)][: slot.ndim])
        if name.rpartition("/")[0] in (TABLE, BIAS)
        else slot
        for name, slot in source.slots.items()
    }
    config = dataclasses.replace(source.config, vocab_size=size)
    return dataclasses.replace(
        source, config=config, tokenizer=tokenizer, arrays=arrays, slots=slots
    )


def grow(arrays, more, stddev, seed=0):
    """Adds rows to the embedding table, which is the output, too, and to the output's bias.

    New rows are random around the mean of the old, so that they differ and are no outliers;
    a new piece's bias is the least of the old, so that it begins as one of the rare.

    Args:
        arrays: dict of the model's name to array; the bias may be absent.
        more: int, rows to add.
        stddev: float, of the new rows.
        seed: int.

    Returns:
        dict of the same names.
    """
    table = arrays[TABLE]
    noise = np.random.default_rng(seed).standard_normal((more, table.shape[1]))
    rows = table.mean(axis=0) + stddev * noise
    result = {**arrays, TABLE: np.concatenate([table, rows.astype(table.dtype)])}
    if BIAS in arrays:
        bias = arrays[BIAS]
        result[BIAS] = np.concatenate([bias, np.full(more, bias.min(), bias.dtype)])
    return result
