import dataclasses
import multiprocessing

import numpy as np
import pytest
from made_tokenizers import english_lines, wordpiece_tokenizer

from data import pretraining_examples, records, tokenized_documents
from data.corpus import Document
from data.pretraining_examples import ExampleCounts, ExampleSettings

WORDS = "the red kite rose . it circled barn zinc melts slowly oak leaves fell children raked them"
SETTINGS = ExampleSettings(max_seq_length=32, dupe_factor=1)


def a3_documents():
    return [
        Document(["the red kite rose .", "it circled the barn ."], 1),
        Document(["zinc melts slowly ."], 4),
        Document(["oak leaves fell .", "children raked them ."], 6),
    ]


def english_documents(lines_each=12):
    lines = english_lines()
    starts = range(0, len(lines) - lines_each, lines_each)
    return [Document(lines[start : start + lines_each], start + 1) for start in starts]


def letters_tokenizer():
    """Knows every ASCII word, by its letters."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    return wordpiece_tokenizer(words=[*letters, *("##" + letter for letter in letters), *"'`:/*"])


def make(documents, tokenizer, settings=SETTINGS, passes=(0,)):
    """Returns the examples of some passes, by feature, and the counts."""
    tokenized = tokenized_documents.tokenize(documents, tokenizer)
    counts = pretraining_examples.count_documents(tokenized, settings)
    blocks = []
    for number in passes:
        for examples, some in pretraining_examples.make_examples(
            tokenized, tokenizer, settings, number
        ):
            blocks.append(examples)
            counts.add(some)
    return {name: np.concatenate([some[name] for some in blocks]) for name in blocks[0]}, counts


def restored_ids(examples):
    ids = examples["input_ids"].copy()
    row, slot = np.nonzero(examples["masked_lm_weights"])
    ids[row, examples["masked_lm_positions"][row, slot]] = examples["masked_lm_ids"][row, slot]
    return ids


def as_set(examples):
    """Returns the examples as a set of serialized records."""
    return set(records.serialize(examples))


def test_order_examples_are_pure():
    """Case A3: never two documents in an example, and half of the pairs swapped."""
    tokenizer = wordpiece_tokenizer(words=WORDS.split())
    settings = dataclasses.replace(SETTINGS, dupe_factor=400, short_seq_prob=0.0)
    examples, counts = make(a3_documents(), tokenizer, settings, range(400))
    assert counts.num_examples == 800 and counts.num_skipped_documents == 1
    labels = examples["next_sentence_labels"]
    assert 0.44 < labels.mean() < 0.56
    sentences = {
        tokenizer.decode(tokenizer.encode(line)): (number, place)
        for number, document in enumerate(a3_documents())
        for place, line in enumerate(document.lines)
    }
    for ids, segment_ids, mask, label in zip(
        restored_ids(examples), examples["segment_ids"], examples["input_mask"], labels, strict=True
    ):
        first, second = (
            sentences[tokenizer.decode(ids[(segment_ids == number) & (mask == 1)].tolist())]
            for number in (0, 1)
        )
        assert first[0] == second[0] != 1
        assert (first[1], second[1]) == ((1, 0) if label else (0, 1))


def test_the_features_are_those_of_the_records_with_their_shapes():
    examples, counts = make(english_documents(), letters_tokenizer())
    num_examples = counts.num_examples
    assert set(examples) == set(records.FEATURES) and num_examples > 100
    for name in records.TOKEN_FEATURES:
        assert examples[name].shape == (num_examples, 32)
    for name in records.MASKED_FEATURES:
        assert examples[name].shape == (num_examples, 5)  # round(32 x 0.15)
    assert examples["next_sentence_labels"].shape == (num_examples,)
    assert len(records.serialize(examples)) == num_examples


def test_the_default_number_of_predictions_is_the_length_times_the_share():
    """Differs from the original, whose 20 mask 3.9 % of 512 pieces."""
    assert ExampleSettings().max_predictions == 77
    assert ExampleSettings(max_seq_length=128).max_predictions == 19
    assert ExampleSettings(max_predictions_per_seq=20).max_predictions == 20


def test_the_defaults_are_those_of_the_original():
    settings = ExampleSettings()
    assert (settings.max_seq_length, settings.masked_lm_prob, settings.ngram) == (512, 0.15, 3)
    assert (settings.dupe_factor, settings.random_seed) == (40, 12345)
    assert (settings.short_seq_prob, settings.sentence_objective) == (0.1, "sop")
    assert settings.do_whole_word_mask and settings.favor_shorter_ngram
    assert settings.replacement_unit == "piece"


@pytest.mark.parametrize(
    "changes",
    [
        {"max_seq_length": 4},
        {"masked_lm_prob": 1.5},
        {"short_seq_prob": -0.1},
        {"ngram": 0},
        {"dupe_factor": 0},
        {"random_seed": 2**32},
        {"max_predictions_per_seq": 33, "max_seq_length": 32},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(changes):
    name, value = next(iter(changes.items()))
    with pytest.raises(ValueError, match=f"`{name}` must lie in .* Received: {value}"):
        ExampleSettings(**changes)


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_an_example_depends_on_its_document_the_seed_and_the_pass_alone(objective):
    tokenizer, documents = letters_tokenizer(), english_documents()[:60]
    settings = dataclasses.replace(SETTINGS, sentence_objective=objective)
    together = as_set(make(documents, tokenizer, settings)[0])
    apart = [as_set(make(documents[i : i + 7], tokenizer, settings)[0]) for i in range(0, 60, 7)]
    assert set.union(*apart) == together
    assert as_set(make(documents[::-1], tokenizer, settings)[0]) == together
    other_seed = as_set(make(documents, tokenizer, dataclasses.replace(settings, random_seed=7))[0])
    other_pass = as_set(make(documents, tokenizer, settings, passes=(1,))[0])
    assert max(len(others & together) for others in (other_seed, other_pass)) < 0.1 * len(together)


def serialized_examples():
    examples, _ = make(english_documents()[:20], letters_tokenizer())
    return records.serialize(examples)


def test_another_process_makes_the_same_examples():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(serialized_examples) == serialized_examples()


def test_many_examples_of_one_document_are_made_in_some_blocks_without_a_seam():
    lines = english_lines()
    (document,) = [Document(lines, 1)]
    tokenizer = letters_tokenizer()
    tokenized = tokenized_documents.tokenize([document], tokenizer)
    blocks = list(pretraining_examples.make_examples(tokenized, tokenizer, SETTINGS, 0))
    sizes = [counts.num_examples for _, counts in blocks]
    assert len(blocks) > 2 and max(sizes) < 2 * pretraining_examples.EXAMPLES_AT_ONCE
    ids = np.concatenate([restored_ids(examples) for examples, _ in blocks])
    assert len(np.unique(ids, axis=0)) > 0.99 * len(ids)


def test_without_an_objective_there_is_one_segment_and_no_label():
    settings = dataclasses.replace(SETTINGS, sentence_objective="none")
    examples, counts = make([*a3_documents()], wordpiece_tokenizer(words=WORDS.split()), settings)
    assert counts.num_examples == 3 and counts.num_skipped_documents == 0
    assert not examples["segment_ids"].any() and not examples["next_sentence_labels"].any()


def test_whether_segments_share_their_topic_does_not_tell_the_order():
    """Demand P06: where a pair mixed documents its bags of pieces would differ more."""
    tokenizer, documents = letters_tokenizer(), english_documents(lines_each=20)
    rates = {}
    for objective in ("sop", "nsp"):
        settings = dataclasses.replace(SETTINGS, max_seq_length=256, sentence_objective=objective)
        examples, _ = make(documents, tokenizer, settings, range(8))
        ids, labels = restored_ids(examples), examples["next_sentence_labels"]
        bags = np.zeros((2, len(ids), tokenizer.vocab_size))
        rows = np.arange(len(ids))[:, None]
        np.add.at(bags, (examples["segment_ids"], rows, ids), examples["input_mask"])
        bags /= np.linalg.norm(bags, axis=2, keepdims=True)
        likeness = (bags[0] * bags[1]).sum(axis=1)
        rates[objective] = np.mean((likeness < np.median(likeness)) == labels)
    assert abs(rates["sop"] - 0.5) < 0.03 and rates["nsp"] > 0.55


def test_counts_say_what_became_of_the_text():
    tokenizer = wordpiece_tokenizer(words=WORDS.split())
    settings = dataclasses.replace(SETTINGS, short_seq_prob=0.0)
    _, counts = make(a3_documents(), tokenizer, settings, range(3))
    assert counts == ExampleCounts(
        num_documents=3,
        num_sentences=5,
        num_pieces=22,
        num_skipped_documents=1,
        num_skipped_pieces=4,
        num_examples=6,
        num_pieces_used=54,
        num_masked=12,
        num_wanted=12,
    )
