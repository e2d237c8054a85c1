"""Compares what two models compute of one input.

Only programs import this module.

Shapes: B batch, C choices, T tokens, V vocabulary.
"""

import numpy as np
import tensorflow as tf

from conversion import model_sources

TOLERANCE = 1e-5  # Largest difference of one model in two forms, in float32.
LENGTH = 24
LENGTHS = (LENGTH, 17, 9, 6)  # Pieces in each row that are not padding.
# Odd in ways that tokenizers differ in.
TEXTS = (
    "The capital of France is Paris.",
    "In 2,013 runners, 1,000 more; naïve cafés cost 3,50 €.",
    "ΟΔΥΣΣΕΥΣ, ﬁne ½ ＡＢ (x-y) `quoted' ''twice''",
    "北京是中国的首都。 हिन्दी 한국어",
    "tabs\tand\u00a0blanks \u200b [MASK] <pad> 👩‍👩",
)


def fixed_batch(config_a, config_b=None):
    """Returns a batch that both models can take: dict of int32[B, T] and what the heads want."""
    configs = [config_a, config_b or config_a]
    vocab_size, longest, segments = (
        min(getattr(config, name) for config in configs)
        for name in ("vocab_size", "max_position_embeddings", "type_vocab_size")
    )
    length = min(LENGTH, longest)
    generator = np.random.default_rng(0)
    mask = np.arange(length) < np.minimum(LENGTHS, length)[:, np.newaxis]
    features = {
        "input_ids": generator.integers(0, vocab_size, mask.shape) * mask,
        "input_mask": mask,
        "segment_ids": generator.integers(0, segments, mask.shape) * mask,
        "masked_lm_positions": np.tile(np.arange(length), (len(LENGTHS), 1)),
        "p_mask": ~mask,
    }
    return {name: tf.constant(values, tf.int32) for name, values in features.items()}


def outputs(source, batch):
    """Runs a model on a batch.

    Args:
        source: model_sources.Source.
        batch: of `fixed_batch`.

    Returns:
        dict of name to float32 array, without what needs weights that were not there.
    """
    model = model_sources.build(source)
    found = dict(model.encoder(batch))
    if not source.has("bert/pooler/"):
        del found["pooled_output"]
    if source.kind == "pretraining":
        heads = {"masked_lm_logits": "cls/predictions/"}
        heads["sentence_order_logits"] = "cls/seq_relationship/"
        computed = model(batch)
        found |= {name: computed[name] for name, prefix in heads.items() if source.has(prefix)}
    elif source.kind == "choice":
        choices = {name: value[tf.newaxis] for name, value in batch.items()}
        choices["choice_mask"] = tf.ones([1, len(LENGTHS)])
        found |= model(choices)
    elif source.kind != "encoder":
        found |= model(batch)
    return {name: value.numpy() for name, value in found.items() if value.dtype.is_floating}


def largest_differences(source_a, source_b):
    """Returns, for each output that both models have, the largest difference: dict of float.

    Where one vocabulary is longer, as after pieces were added, the common part is compared.

    Raises:
        ValueError: the outputs are of other sizes.
    """
    batch = fixed_batch(source_a.config, source_b.config)
    found_a, found_b = outputs(source_a, batch), outputs(source_b, batch)
    differences = {}
    for name in found_a.keys() & found_b.keys():
        a, b = found_a[name], found_b[name]
        if name == "masked_lm_logits":
            common = min(a.shape[-1], b.shape[-1])
            a, b = a[..., :common], b[..., :common]
        if a.shape != b.shape:
            raise ValueError(
                f"Models must have outputs of one size to be compared. Received: {name} of "
                f"{list(a.shape)} from {source_a.path}, of {list(b.shape)} from {source_b.path}."
            )
        differences[name] = float(np.max(np.abs(a - b)))
    return differences


def equal_arrays(source_a, source_b):
    """Counts weights, slots among them, that both have bit by bit: (equal, all)."""
    arrays_a, arrays_b = source_a.arrays | source_a.slots, source_b.arrays | source_b.slots
    names = arrays_a.keys() | arrays_b.keys()
    equal = [n for n in names if is_same(arrays_a.get(n), arrays_b.get(n))]
    return len(equal), len(names)


def is_same(a, b):
    return a is not None and b is not None and np.array_equal(a, b)


def compare_tokenizers(source_a, source_b):
    """Returns a sentence that says whether both cut text alike."""
    held = [source.tokenizer for source in (source_a, source_b)]
    if None in held:
        absent = [s.path for s, t in zip((source_a, source_b), held, strict=True) if t is None]
        return f"tokenizer: none in {' and '.join(absent)}"
    if held[0].fingerprint == held[1].fingerprint:
        return "tokenizer: the same"
    ids = [[t.encode(text, allow_markers=True) for t in held] for text in TEXTS]
    same = sum(a == b for a, b in ids)
    return f"tokenizer: another; {same} of {len(TEXTS)} texts give the same ids"
