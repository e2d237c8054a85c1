"""The records of a pretraining run: found, checked against the run, and how to mask them anew.

Only programs import this module. V: pieces of the vocabulary.
"""

import dataclasses
import os

import numpy as np

from data import (
    corpus,
    dynamic_masking,
    files,
    metadata,
    pretraining_examples,
    record_checks,
    record_reading,
    tokenization,
    tokenized_documents,
)
from data.metadata import Metadata
from data.tokenizer_base import Tokenizer
from folders import model_folder


@dataclasses.dataclass(frozen=True)
class Records:
    """The records of a run.

    Attributes:
        train, heldout: list[str] of paths; either may be empty.
        lengths: {"max_seq_length": T, "max_predictions_per_seq": P}, as they were made.
        sentence_objective: "sop", "nsp" or "none".
        described: what their `metadata.json` says; None without one (the original writes none).
        tokenizer: the Tokenizer that they were made with, or None: nothing tells.
    """

    train: list[str]
    heldout: list[str]
    lengths: dict
    sentence_objective: str
    described: Metadata | None
    tokenizer: Tokenizer | None

    @property
    def vocab_size(self):
        """V, or None where nothing tells."""
        known = self.described or self.tokenizer
        return known.vocab_size if known else None

    @property
    def tokenizer_sha256(self):
        """The fingerprint of the tokenizer that they were made with, or None: nothing tells."""
        if self.described:
            return self.described.tokenizer_sha256
        return self.tokenizer.fingerprint if self.tokenizer else None

    def masking_settings(self):
        """Returns the settings that the records were masked by, as far as they are known."""
        told = self.described.settings if self.described else {}
        return {name: told[name] for name in pretraining_examples.OF_MASKING if name in told}


def find(train, heldout, *, asked, tokenizer):
    """Finds a run's records, and checks them against one another and what is asked for.

    Args:
        train, heldout: patterns with commas between; None: none of that use.
        asked: dict of `max_seq_length`, `max_predictions_per_seq` and `sentence_objective`;
            None: as the records have it.
        tokenizer: path of the records' tokenizer; None: beside them, if anywhere.

    Returns:
        Records.

    Raises:
        ValueError, FileNotFoundError: patterns match nothing, or files contradict each other,
            the tokenizer or what is asked for.
    """
    train, heldout = (corpus.expand_patterns(names) if names else [] for names in (train, heldout))
    paths = [*train, *heldout]
    (described,) = metadata.read(paths[:1])
    stored = record_checks.stored_settings(paths[0], described)
    agreed = {name: asked[name] or stored.get(name) for name in asked}
    record_checks.check(paths, **agreed, tokenizer_sha256=stored.get("tokenizer_sha256"))
    objective = agreed.pop("sentence_objective") or "sop"
    path = tokenizer or model_folder.find(paths[0], model_folder.TOKENIZER)
    kept = tokenization.load(path) if path else None
    if kept and described and kept.fingerprint != described.tokenizer_sha256:
        raise ValueError(
            "The records must be made with the tokenizer that is kept. Received: records of "
            f"{described.tokenizer_sha256[:12]}..., but {kept.fingerprint[:12]}... in {path}. "
            "Name the right one with `tokenizer`, or create the data again."
        )
    return Records(train, heldout, agreed, objective, described, kept)


def check_config(config, records, weights):
    """Refuses a config or weights that the records do not fit; notes a needlessly large table.

    Args:
        config: AlbertConfig.
        records: Records.
        weights: path of the weights that are begun with or evaluated, or None.
    """
    if records.tokenizer_sha256:
        model_folder.check_tokenizer(weights, records.tokenizer_sha256)
    length = records.lengths["max_seq_length"]
    if length > config.max_position_embeddings:
        raise ValueError(
            "`max_position_embeddings` must reach as far as the records. Received: "
            f"{config.max_position_embeddings}, and records of {length}."
        )
    if (records.vocab_size or 0) > config.vocab_size:
        raise ValueError(
            "`vocab_size` of the config must be that of the records' tokenizer. Received: "
            f"{config.vocab_size}, and records with {records.vocab_size}."
        )
    if (records.vocab_size or config.vocab_size) < config.vocab_size:
        print(
            f"note: the config's vocab_size {config.vocab_size} is larger than the tokenizer's "
            f"{records.vocab_size}: the rest of the table is not used"
        )


def with_tokenizer(records, weights, folder):
    """Finds the records' tokenizer, where none is beside them, beside the weights; or warns.

    Args:
        records: Records.
        weights: path of the weights that are begun with, or None.
        folder: of the run, which is to keep the tokenizer.

    Returns:
        Records.
    """
    if records.tokenizer:
        return records
    held = model_folder.read_tokenizer(weights) if records.described else None
    if held and held.fingerprint == records.tokenizer_sha256:
        return dataclasses.replace(records, tokenizer=held)
    if not files.exists(os.path.join(folder, model_folder.TOKENIZER)):
        print(
            f"warning: nothing tells the tokenizer of {records.train[0]}, so {folder} will hold "
            "none, which predict.py and others need. Name it with `--tokenizer`"
        )
    return records


def dynamic(records, settings, seed):
    """Says how to mask records anew each time they are read.

    Args:
        records: Records.
        settings: pretraining_examples.ExampleSettings, of which those of masking and P matter;
            P need not be that of the records.
        seed: int, the run's.

    Returns:
        dynamic_masking.DynamicMasking.

    Raises:
        ValueError: nothing tells the records' tokenizer, or it is another.
    """
    if not records.tokenizer:
        raise ValueError(
            "`tokenizer` must name the records' tokenizer where they are masked anew. Received: "
            f"none, and there is none beside {records.train[0]}."
        )
    check_special_pieces(records)
    marks = None
    if not records.described:
        word_starts = records.tokenizer.word_starts
        is_unspaced = tokenized_documents.unspaced_pieces(records.tokenizer)
        marks = dynamic_masking.word_marks(word_starts, is_unspaced)
    policy = pretraining_examples.mask_policy(settings, records.tokenizer)
    return dynamic_masking.DynamicMasking(policy, records.sentence_objective == "sop", marks, seed)


def describe(masking, length):
    """Says in a line how records of T = `length` are masked anew; T and P may limit the share."""
    policy = masking.policy
    share, limit = f"{policy.masked_lm_prob:.0%} of the pieces", policy.max_predictions
    if round(length * policy.masked_lm_prob) > limit:
        share += f" (but {limit} at most, {limit / length:.1%} of {length})"
    return (
        f"masks{' and the order of segments' * masking.swaps} are drawn each time a record is "
        f"read: {share}, n-grams of up to {policy.ngram} words"
    )


def check_special_pieces(records):
    """Raises ValueError unless the first record has the tokenizer's [CLS] and [SEP] in place."""
    serialized = next(iter(record_reading.read(records.train[:1]).batch(1)))
    parsed = record_reading.parse(serialized, *records.lengths.values())
    ids, mask, segments = (
        parsed[name].numpy()[0] for name in ("input_ids", "input_mask", "segment_ids")
    )
    end = int(mask.sum()) - 1
    found = ids[[0, end - int(segments.sum()), end]]
    tokenizer = records.tokenizer
    if np.any(found != [tokenizer.cls_id, tokenizer.sep_id, tokenizer.sep_id]):
        raise ValueError(
            "the records must have the [CLS] and [SEP] of `tokenizer`, "
            f"{tokenizer.cls_id} and {tokenizer.sep_id}. Received: {', '.join(map(str, found))} in "
            f"their places in {records.train[0]}. Name the tokenizer that they were made with."
        )
