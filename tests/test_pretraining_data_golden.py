"""The original's pretraining data: layout and ids exactly, statistics within its own noise."""

import json

import numpy as np
import pytest
from conftest import golden_folder, spm_model_file

from data import corpus, masking, ngrams, packing, tokenization, tokenized_documents
from data.pretraining_examples import ExampleSettings, make_examples

GOLDEN = golden_folder("pretraining_data")
CASES = {case["name"]: case for case in json.loads((GOLDEN / "manifest.json").read_text())}
STATISTICS_FILE = GOLDEN / "statistics.json"
STATISTICS = json.loads(STATISTICS_FILE.read_text()) if STATISTICS_FILE.exists() else {}
# Three times the noise that the goldens' README gives.
SHARE, LABEL_RATE, MASKED_FRACTION, MEAN_LENGTH = 0.036, 0.06, 0.0015, 3.0
ENGLISH_LETTERS = set("abcdefghijklmnopqrstuvwxyz")
SIGNS = set('!"#$%&"()*+,-./:;?@[\\]^_`{|}~')
WORD_START = "\u2581"


def records(name):
    """Reads a case as arrays [n, ...] by feature."""
    lines = (GOLDEN / f"{name}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {feature: np.array([row[feature] for row in rows]) for feature in rows[0]}


def load_tokenizer(flags):
    path = spm_model_file() if flags["spm_model_file"] else GOLDEN / flags["vocab_file"]
    return tokenization.load(path, lower=flags["do_lower_case"])


def restored_ids(examples):
    """Puts the labels back at their places."""
    ids = examples["input_ids"].copy()
    row, slot = np.nonzero(examples["masked_lm_weights"])
    ids[row, examples["masked_lm_positions"][row, slot]] = examples["masked_lm_ids"][row, slot]
    return ids


def segments(examples):
    """Finds the segments by `segment_ids`: two lists of arrays of ids."""
    ids, found = restored_ids(examples), []
    for number in (0, 1):
        places = (examples["segment_ids"] == number) & (examples["input_mask"] == 1)
        found.append(
            [row[chosen][1 - number : -1] for row, chosen in zip(ids, places, strict=True)]
        )
    return found


@pytest.mark.parametrize("name", CASES)
def test_golden_layout_is_what_packing_makes_of_the_two_segments(name):
    golden = records(name)
    first, second = segments(golden)
    ends = np.cumsum([len(segment) for segment in first + second])
    places = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)  # int[2 n, 2]
    ids = np.concatenate(first + second).astype(np.int32)
    cls, sep = golden["input_ids"][0, 0], golden["input_ids"][0, golden["input_mask"][0].sum() - 1]
    packed = packing.pack(
        ids,
        np.zeros(len(ids), bool),
        *np.split(places, 2),
        max_seq_length=CASES[name]["flags"]["max_seq_length"],
        special_ids=(cls, sep, 0),
    )
    assert len(ids) > 100 and len(golden["input_ids"]) == CASES[name]["instances"]
    np.testing.assert_array_equal(packed["input_ids"], restored_ids(golden))
    for feature in ("input_mask", "segment_ids"):
        np.testing.assert_array_equal(packed[feature], golden[feature], feature)
    special = (golden["input_mask"] == 1) & ~packed["is_text"]
    assert (golden["token_boundary"][special] == 1).all()
    assert not golden["token_boundary"][golden["input_mask"] == 0].any()


@pytest.mark.parametrize("name", CASES)
def test_golden_labels_fill_their_slots_and_are_as_many_as_ours(name):
    golden, flags = records(name), CASES[name]["flags"]
    weights, positions = golden["masked_lm_weights"], golden["masked_lm_positions"]
    halves = 2 if flags["do_permutation"] else 1  # Ours makes no permuted places.
    assert weights.shape[1] == halves * flags["max_predictions_per_seq"]
    expected = masking.num_to_predict(
        golden["input_mask"].sum(axis=1), flags["masked_lm_prob"], flags["max_predictions_per_seq"]
    )
    num_masked = weights.sum(axis=1)
    assert (num_masked <= halves * expected).all()
    # A word of many pieces may not fit into the rest of the budget; that is rare.
    assert np.mean(num_masked == expected) > 0.95 or halves > 1
    assert (np.diff(weights, axis=1) <= 0).all()
    assert (np.diff(positions, axis=1)[weights[:, 1:] == 1] > 0).all()
    assert not positions[weights == 0].any() and not golden["masked_lm_ids"][weights == 0].any()


@pytest.mark.parametrize("name", CASES)
def test_golden_segments_are_runs_of_our_pieces_of_the_text(name):
    tokenizer = load_tokenizer(CASES[name]["flags"])
    documents = [
        np.concatenate([tokenizer.encode(line) for line in document.lines]).astype(np.int32)
        for document in corpus.read_documents(str(GOLDEN / "input.txt"))
    ]
    texts = [document.tobytes() for document in documents]
    golden = records(name)
    label = golden["next_sentence_labels"][:, 0]
    for first, second, is_random in zip(*segments(golden), label, strict=True):
        runs = [segment.astype(np.int32).tobytes() for segment in (first, second)]
        holders = [{i for i, text in enumerate(texts) if run in text} for run in runs]
        assert all(holders)
        if not is_random:
            assert holders[0] & holders[1]


def original_starts_word(piece, kind):
    """Says whether the original takes a piece for the start of a word (:393-416)."""
    if kind == "wordpiece":
        return not piece.startswith("##")
    alphabet = ENGLISH_LETTERS | SIGNS
    is_foreign = not all(character.lower() in alphabet for character in piece)
    return piece.startswith((WORD_START, "<")) or piece in SIGNS or is_foreign


@pytest.mark.parametrize("name", CASES)
def test_golden_word_starts_differ_from_ours_where_the_alphabet_rules_not_the_mark(name):
    """Differs from the original: signs, digits and accented letters alone start no word."""
    tokenizer, golden = load_tokenizer(CASES[name]["flags"]), records(name)
    document = corpus.Document((GOLDEN / "input.txt").read_text().splitlines(), 1)
    lines = [line for line in document.lines if line.strip()]
    tokenized = tokenized_documents.tokenize([corpus.Document(lines, 1)], tokenizer)
    ours = dict(zip(tokenized.ids.tolist(), tokenized.starts_word.tolist(), strict=True))
    is_text = golden["input_mask"] == 1
    ids = restored_ids(golden)
    is_text &= (ids != tokenizer.cls_id) & (ids != tokenizer.sep_id)
    unspaced = tokenized_documents.unspaced_pieces(tokenizer)
    for number, boundary in zip(ids[is_text], golden["token_boundary"][is_text], strict=True):
        piece = tokenizer.pieces[number]
        if number != tokenizer.unk_id:  # Of that, the original goes by the unknown text.
            assert boundary == original_starts_word(piece, tokenizer.kind), piece
        if tokenizer.kind == "wordpiece":
            assert ours[number] == boundary
        elif not piece.startswith(WORD_START) and not unspaced[number]:
            assert not ours[number], piece
        else:
            assert ours[number] and boundary, piece


def our_statistics(flags):
    """Makes our examples of the statistics' text at the original's flags.

    Returns:
        (examples by feature, number of examples, lengths of the accepted n-grams).
    """
    tokenizer = load_tokenizer({"spm_model_file": True, **flags})
    documents = tokenized_documents.tokenize(
        list(corpus.read_documents(str(GOLDEN / "stats_input.txt"))), tokenizer
    )
    settings = ExampleSettings(
        sentence_objective="nsp" if flags["random_next_sentence"] else "sop",
        **{
            name: flags[name]
            for name in ExampleSettings.__dataclass_fields__
            if name in flags and name != "sentence_objective"
        },
    )
    blocks, lengths = [], []
    take = ngrams.take

    def observed_take(found, budgets, uniforms):
        taken = take(found, budgets, uniforms)
        ends = np.cumsum(found.num_words)
        lengths.append(np.add.reduceat(taken.astype(int), ends - found.num_words))
        return taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngrams, "take", observed_take)
        for number in range(settings.dupe_factor):
            blocks += [some for some, _ in make_examples(documents, tokenizer, settings, number)]
    examples = {name: np.concatenate([some[name] for some in blocks]) for name in blocks[0]}
    lengths = np.concatenate(lengths)
    return examples, lengths[lengths > 0], tokenizer


@pytest.mark.parametrize("name", STATISTICS)
def test_golden_statistics_are_ours_where_we_do_not_differ_on_purpose(name):
    flags, golden = STATISTICS[name]["flags"], STATISTICS[name]["stats"]
    examples, ngram_lengths, tokenizer = our_statistics(flags)
    size = examples["input_mask"].sum(axis=1)
    masked = examples["masked_lm_weights"] == 1

    assert abs(size.mean() - golden["length_mean"]) < MEAN_LENGTH
    budgets = masking.num_to_predict(
        size, flags["masked_lm_prob"], flags["max_predictions_per_seq"]
    )
    assert (masked.sum(axis=1) <= budgets).all()
    assert np.mean(masked.sum(axis=1) < budgets) < 0.003  # The original's shortfall: 0.
    # A fixed number of masks is a share of the length, so its tolerance is that of the length.
    by_length = golden["at_max_predictions_fraction"] * MEAN_LENGTH / golden["length_mean"]
    fraction = golden["masked_fraction_of_tokens"]
    assert abs(masked.sum() / size.sum() - fraction) < MASKED_FRACTION + by_length * fraction

    row, slot = np.nonzero(masked)
    ids = examples["input_ids"][row, examples["masked_lm_positions"][row, slot]]
    labels = examples["masked_lm_ids"][row, slot]
    assert abs(np.mean(ids == tokenizer.mask_id) - golden["replaced_by_MASK"]) < SHARE
    assert abs(np.mean(ids == labels) - golden["kept_original"]) < SHARE
    # Differs from the original: no random replacement is a special piece.
    assert not np.isin(ids[ids != labels], list(tokenizer.special_ids - {tokenizer.mask_id})).any()

    # Differs from the original, which labels one-sentence chunks 1: order is a fair coin.
    label_rate = golden["sop_label1_rate"] if flags["random_next_sentence"] else 0.5
    assert abs(examples["next_sentence_labels"].mean() - label_rate) < LABEL_RATE
    # Differs from the original: n-grams are accepted as p(n), not shorter.
    shares = np.bincount(ngram_lengths, minlength=flags["ngram"] + 1)[1:] / len(ngram_lengths)
    expected = ngrams.probabilities(flags["ngram"], flags["favor_shorter_ngram"])
    if flags["favor_shorter_ngram"]:
        np.testing.assert_allclose(shares, expected, atol=SHARE)
    else:  # Budgets of some 11 pieces, 3 words of 1.5: single words must fill them up.
        np.testing.assert_allclose(shares, expected, atol=0.1)
        theirs = [golden["ngram_accepted_words_share"][str(n + 1)] for n in range(flags["ngram"])]
        assert np.abs(shares - expected).max() < np.abs(theirs - expected).max()
