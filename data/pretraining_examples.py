"""Documents to pretraining examples: a pure function of the text, the settings and the pass.

n: examples, T: tokens, P: masked positions.
"""

import dataclasses

import numpy as np

from data import masking, packing, sentence_pairs

EXAMPLES_AT_ONCE = 256  # Enough to make NumPy's overhead small; few keep memory small.


def setting(default, help, choices=None):
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices})


@dataclasses.dataclass(frozen=True)
class ExampleSettings:
    """How examples are made. Each field is a command-line flag too."""

    max_seq_length: int = setting(512, "Pieces of an example, special ones included.")
    max_predictions_per_seq: int = setting(
        0, "Most masked pieces of an example; 0: max_seq_length x masked_lm_prob, rounded."
    )
    masked_lm_prob: float = setting(0.15, "Share of an example's pieces to mask.")
    ngram: int = setting(3, "Words of the longest n-gram that is masked as one.")
    favor_shorter_ngram: bool = setting(
        True, "Lengths are drawn as 1/n, shorter ones more often; false: the other way round."
    )
    do_whole_word_mask: bool = setting(True, "Mask all pieces of a word together.")
    replacement_unit: str = setting(
        "piece",
        "What one draw of 80 % [MASK], 10 % kept, 10 % random decides for.",
        masking.REPLACEMENT_UNITS,
    )
    sentence_objective: str = setting(
        "sop",
        "sop: segments in order or swapped; nsp: the next or a random one (the original's "
        "--random_next_sentence); none: one segment.",
        tuple(sentence_pairs.OBJECTIVES),
    )
    short_seq_prob: float = setting(0.1, "Probability that a document's examples are shorter.")
    dupe_factor: int = setting(40, "Passes over the text, each with other pairs and masks.")
    random_seed: int = setting(12345, "The same seed gives the same examples.")

    def __post_init__(self):
        limits = {
            "max_seq_length": (5, 2**16),
            "max_predictions_per_seq": (0, self.max_seq_length),
            "masked_lm_prob": (0, 1),
            "ngram": (1, 100),
            "short_seq_prob": (0, 1),
            "dupe_factor": (1, 2**31),
            "random_seed": (0, 2**32 - 1),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(
                    f"`{name}` must lie in [{low}, {high}]. Received: {getattr(self, name)}."
                )

    @property
    def max_predictions(self):
        """P. Differs from the original: its 20 (:54) mask 3.9 % of 512 pieces, not 15 %."""
        by_length = max(1, round(self.max_seq_length * self.masked_lm_prob))
        return self.max_predictions_per_seq or by_length


# The settings that tell how pieces are masked, which may be done when records are read.
OF_MASKING = (
    "masked_lm_prob",
    "ngram",
    "favor_shorter_ngram",
    "do_whole_word_mask",
    "replacement_unit",
)
NOT_OF_MASKING = tuple(
    field.name for field in dataclasses.fields(ExampleSettings) if field.name not in OF_MASKING
)


@dataclasses.dataclass
class ExampleCounts:
    """What the documents are, and what came of them, all passes together."""

    num_documents: int = 0
    num_sentences: int = 0
    num_pieces: int = 0
    num_skipped_documents: int = 0  # Of one sentence: they give no pair in order or swapped.
    num_skipped_pieces: int = 0
    num_examples: int = 0
    num_pieces_used: int = 0  # In an example, special pieces apart.
    num_masked: int = 0
    num_wanted: int = 0  # Masked ones if `max_predictions_per_seq` were no limit.

    def add(self, other):
        """Adds the counts of other documents or passes."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def mask_policy(settings, tokenizer):
    """Returns the masking.MaskPolicy of some settings and a vocabulary."""
    is_ordinary = np.ones(tokenizer.vocab_size, bool)
    is_ordinary[list(tokenizer.special_ids)] = False
    return masking.MaskPolicy(
        masked_lm_prob=settings.masked_lm_prob,
        max_predictions=settings.max_predictions,
        ngram=settings.ngram,
        favor_shorter_ngram=settings.favor_shorter_ngram,
        whole_words=settings.do_whole_word_mask,
        replacement_unit=settings.replacement_unit,
        mask_id=tokenizer.mask_id,
        ordinary_ids=np.flatnonzero(is_ordinary).astype(np.int32),
    )


def document_generator(random_seed, pass_number, document_key):
    """Returns the random numbers of one document in one pass.

    They depend on nothing else, so neither the number of workers nor the other
    documents change an example ("nsp" apart, which takes text from the others).

    Args:
        random_seed, pass_number: int, 32 bits each.
        document_key: int, 64 bits.

    Returns:
        numpy.random.Generator over Philox, a generator that counts.
    """
    key = document_key << 64 | pass_number << 32 | random_seed
    return np.random.Generator(np.random.Philox(key=key))


def draw_pairs(documents, settings, pass_number):
    """Yields the pairs of some documents and the random numbers to mask them.

    Args:
        documents: tokenized_documents.Documents.
        settings: ExampleSettings.
        pass_number: int, from 0.

    Yields:
        (list of n sentence_pairs.Pair, float64[n, num_uniforms(T, P)]), where n is
        EXAMPLES_AT_ONCE, somewhat more, or what is left at the end.
    """
    num_uniforms = masking.num_uniforms(settings.max_seq_length, settings.max_predictions)
    rows, uniforms = [], []
    for index, key in enumerate(documents.keys):
        generator = document_generator(settings.random_seed, pass_number, key)
        pairs = sentence_pairs.document_pairs(
            settings.sentence_objective,
            documents.offsets,
            index,
            settings.max_seq_length,
            settings.short_seq_prob,
            generator,
        )
        for start in range(0, len(pairs), EXAMPLES_AT_ONCE):
            some = pairs[start : start + EXAMPLES_AT_ONCE]
            rows += some
            uniforms.append(generator.random((len(some), num_uniforms)))
            if len(rows) >= EXAMPLES_AT_ONCE:
                yield rows, np.concatenate(uniforms)
                rows, uniforms = [], []
    if rows:
        yield rows, np.concatenate(uniforms)


def make_examples(documents, tokenizer, settings, pass_number):
    """Makes the examples of some documents in one pass over the text.

    Args:
        documents: tokenized_documents.Documents.
        tokenizer: the Tokenizer that made them.
        settings: ExampleSettings.
        pass_number: int, from 0 to dupe_factor - 1.

    Yields:
        (examples, ExampleCounts): a dict of the original's features for some n, by
        document in order: int32[n, T] input_ids, uint8[n, T] input_mask,
        segment_ids and token_boundary, int32[n, P] masked_lm_positions and
        masked_lm_ids, float32[n, P] masked_lm_weights, int64[n] next_sentence_labels.
    """
    policy = mask_policy(settings, tokenizer)
    special_ids = tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id
    for pairs, uniforms in draw_pairs(documents, settings, pass_number):
        first = np.array([pair.first for pair in pairs])
        second = None
        if settings.sentence_objective != "none":
            second = np.array([pair.second for pair in pairs])
        examples = packing.pack(
            documents.ids,
            documents.starts_word,
            first,
            second,
            max_seq_length=settings.max_seq_length,
            special_ids=special_ids,
        )
        counts = count_masked(examples, policy)
        examples.update(masking.mask(examples, policy, uniforms))
        counts.num_masked = int(examples["masked_lm_weights"].sum())
        del examples["is_text"]
        examples["next_sentence_labels"] = np.array([pair.label for pair in pairs])
        yield examples, counts


def count_masked(examples, policy):
    """Counts examples, their pieces of text, and the pieces to mask if there were no limit."""
    num_pieces = examples["input_mask"].sum(axis=1)
    wanted = masking.num_to_predict(num_pieces, policy.masked_lm_prob, num_pieces.max())
    return ExampleCounts(
        num_examples=len(num_pieces),
        num_pieces_used=int(examples["is_text"].sum()),
        num_wanted=int(wanted.sum()),
    )


def count_documents(documents, settings):
    """Counts documents, sentences and pieces, and what the settings' passes leave out of them."""
    sizes = [offsets[-1] - offsets[0] for offsets in documents.offsets]
    single = [
        size
        for size, offsets in zip(sizes, documents.offsets, strict=True)
        if len(offsets) == 2 and settings.sentence_objective == "sop"
    ]
    return ExampleCounts(
        num_documents=len(sizes),
        num_sentences=sum(len(offsets) - 1 for offsets in documents.offsets),
        num_pieces=sum(sizes),
        num_skipped_documents=len(single),
        num_skipped_pieces=sum(single),
    )
