import itertools

import numpy as np
import pytest

from data import sentence_pairs


def make_documents(lengths_of_documents):
    """Turns lists of sentence lengths into offsets; the documents follow each other."""
    documents, start = [], 0
    for lengths in lengths_of_documents:
        documents.append(list(itertools.accumulate(lengths, initial=start)))
        start = documents[-1][-1]
    return documents


def random_documents(num_documents, seed=0, max_sentences=40):
    """Draws documents whose sentences have skewed lengths, as those of books have."""
    generator = np.random.default_rng(seed)
    return make_documents(
        1 + generator.geometric(0.06, generator.integers(1, max_sentences + 1))
        for _ in range(num_documents)
    )


def pairs_of(objective, documents, max_seq_length, short_seq_prob=0.1, seed=0):
    """Returns (document, pair) for all pairs of one pass."""
    generator = np.random.default_rng(seed)
    return [
        (index, pair)
        for index in range(len(documents))
        for pair in sentence_pairs.document_pairs(
            objective, documents, index, max_seq_length, short_seq_prob, generator
        )
    ]


def length(segment):
    return segment[1] - segment[0]


@pytest.mark.parametrize("backwards", [False, True])
def test_chunks_reach_the_target_with_their_last_sentence(backwards):
    offsets = list(itertools.accumulate([5, 6, 7, 8, 9, 10, 11, 12], initial=100))
    chunks = sentence_pairs.cut_chunks(offsets, 15, backwards)
    expected = [(0, 3), (3, 5), (5, 7), (6, 8)]
    if backwards:
        expected = [(6, 8), (4, 6), (2, 4), (0, 2)]
    assert chunks == expected


def test_walked_from_the_other_end_a_document_is_the_mirrored_one():
    generator = np.random.default_rng(1)
    for _ in range(50):
        lengths = generator.integers(1, 30, generator.integers(1, 20)).tolist()
        (offsets,), (mirrored,) = make_documents([lengths]), make_documents([lengths[::-1]])
        size = len(lengths)
        assert sentence_pairs.cut_chunks(offsets, 40, backwards=True) == [
            (size - end, size - start) for start, end in sentence_pairs.cut_chunks(mirrored, 40)
        ]


@pytest.mark.parametrize("max_seq_length", [8, 32, 128])
@pytest.mark.parametrize("short_seq_prob", [0, 1])
def test_every_sentence_of_a_document_of_several_is_in_a_chunk_of_two_or_more(
    max_seq_length, short_seq_prob
):
    """Differs from the original, which leaves single sentences to a random document's text."""
    generator = np.random.default_rng(2)
    for offsets in random_documents(200):
        target = sentence_pairs.draw_target(max_seq_length, short_seq_prob, generator)
        for backwards in (False, True):
            chunks = sentence_pairs.cut_chunks(offsets, target, backwards)
            covered = set(itertools.chain(*(range(*chunk) for chunk in chunks)))
            assert covered == set(range(len(offsets) - 1))
            if len(offsets) > 2:
                assert min(end - start for start, end in chunks) >= 2


def test_over_one_pass_every_sentence_is_in_an_example():
    """Of one length, so that chunks are full exactly and nothing is cut off."""
    generator = np.random.default_rng(3)
    documents = make_documents([5] * generator.integers(2, 60) for _ in range(300))
    reached = np.zeros(documents[-1][-1], bool)
    for _, pair in pairs_of("sop", documents, 63, short_seq_prob=0):
        for segment in (pair.first, pair.second):
            reached[slice(*segment)] = True
    assert reached.all()


def test_an_order_pair_is_two_neighbouring_segments_of_one_document():
    """Differs from the original: a one-sentence chunk is never paired with another document."""
    documents = random_documents(300)
    pairs = pairs_of("sop", documents, 10**6)
    for index, pair in pairs:
        earlier, later = (pair.second, pair.first) if pair.label else (pair.first, pair.second)
        assert earlier[1] == later[0]
        assert earlier[0] == documents[index][0] and later[1] == documents[index][-1]
        assert later[0] in documents[index][1:-1]
    assert len(pairs) == sum(len(offsets) > 2 for offsets in documents)
    assert abs(np.mean([pair.label for _, pair in pairs]) - 0.5) < 0.1


def test_half_of_the_pairs_are_swapped():
    labels = [pair.label for _, pair in pairs_of("sop", random_documents(2000), 64)]
    assert abs(np.mean(labels) - 0.5) < 0.015


@pytest.mark.parametrize("max_seq_length", [8, 64, 129])
@pytest.mark.parametrize("objective", sentence_pairs.OBJECTIVES)
def test_an_example_fits_and_no_segment_is_empty(objective, max_seq_length):
    documents = random_documents(200)
    for _, pair in pairs_of(objective, documents, max_seq_length, short_seq_prob=0.5):
        segments = [pair.first] if pair.second is None else [pair.first, pair.second]
        lengths = list(map(length, segments))
        assert min(lengths) >= 1
        assert sum(lengths) + sentence_pairs.NUM_SPECIAL_PIECES[objective] <= max_seq_length


@pytest.mark.parametrize(
    "lengths, max_pieces, expected",
    [((10, 4), 12, (8, 4)), ((4, 10), 12, (4, 8)), ((9, 9), 11, (6, 5)), ((20, 8), 11, (6, 5))],
)
def test_truncation_shortens_the_longer_segment_as_the_original_does(lengths, max_pieces, expected):
    generator = np.random.default_rng(0)
    first, second = (100, 100 + lengths[0]), (500, 500 + lengths[1])
    starts = []
    for _ in range(2000):
        shortened = sentence_pairs.truncate(first, second, max_pieces, generator)
        assert tuple(map(length, shortened)) == expected
        assert first[0] <= shortened[0][0] and shortened[0][1] <= first[1]
        starts.append((shortened[0][0] - 100, shortened[1][0] - 500))
    cuts = np.array(lengths) - expected
    np.testing.assert_allclose(np.mean(starts, axis=0), cuts / 2, atol=0.15)  # Fair coins.


def test_a_short_target_is_drawn_evenly_from_two_pieces_to_all():
    generator = np.random.default_rng(0)
    assert {sentence_pairs.draw_target(61, 0, generator) for _ in range(99)} == {61}
    targets = [sentence_pairs.draw_target(61, 1, generator) for _ in range(6000)]
    assert set(targets) == set(range(2, 62))
    assert abs(np.mean(targets) - 31.5) < 1


def rate_of_a_table_of_lengths(documents, max_seq_length, num_passes=4):
    """Tells the order from the two lengths alone: a table of cells, half filled, half scored."""
    rows = [
        (length(pair.first), length(pair.second), pair.label, index % 2)
        for seed in range(num_passes)
        for index, pair in pairs_of("sop", documents, max_seq_length, seed=seed)
    ]
    first, second, label, part = np.array(rows).T
    cell = (first * 8 // max_seq_length) * 8 + second * 8 // max_seq_length
    cell = cell * 3 + np.sign(first - second) + 1
    votes = np.bincount(cell[part == 0], label[part == 0] - 0.5, minlength=cell.max() + 1)
    return np.mean((votes[cell[part == 1]] > 0) == label[part == 1]), (part == 1).sum()


def test_the_two_lengths_do_not_tell_the_order(monkeypatch):
    """Differs from the original, in whose data they do: walked forwards only, ours would too."""
    documents = random_documents(2000, max_sentences=60)
    rate, num_scored = rate_of_a_table_of_lengths(documents, 64)
    assert num_scored > 25_000 and abs(rate - 0.5) < 0.01
    cut_chunks = sentence_pairs.cut_chunks
    monkeypatch.setattr(
        sentence_pairs, "cut_chunks", lambda offsets, target, _: cut_chunks(offsets, target)
    )
    leaking_rate, _ = rate_of_a_table_of_lengths(documents, 64)
    assert leaking_rate > 0.53


@pytest.mark.parametrize("num_documents", [1, 2, 3])
@pytest.mark.parametrize("objective", sentence_pairs.OBJECTIVES)
def test_corpora_of_few_documents_work(objective, num_documents):
    documents = make_documents([[7, 8, 9, 10]] * num_documents)
    pairs = pairs_of(objective, documents, 30)
    assert {index for index, _ in pairs} == set(range(num_documents))


def test_a_random_next_segment_comes_from_another_document_and_the_true_one_is_used_later():
    documents = make_documents([[5] * 12] * 5)
    pairs = [(i, p) for seed in range(200) for i, p in pairs_of("nsp", documents, 33, 0, seed)]
    for index, pair in pairs:
        start, end = documents[index][0], documents[index][-1]
        assert start <= pair.first[0] < pair.first[1] <= end
        in_document = start <= pair.second[0] < end
        assert in_document != pair.label
        if not pair.label:
            assert pair.first[1] == pair.second[0]
    is_whole = [length(p.first) + length(p.second) == 30 for _, p in pairs if p.label]
    assert np.mean(is_whole) > 0.5  # The random segment fills the target where it can.
    for seed in range(20):
        covered = set()
        for index, pair in pairs_of("nsp", documents, 33, 0, seed):
            if index == 0:
                covered |= set(range(*pair.first))
                covered |= set() if pair.label else set(range(*pair.second))
        assert covered == set(range(60))


def test_a_single_sentence_gets_a_random_next_one_as_in_the_original():
    (_, pair), *_ = pairs_of("nsp", make_documents([[9], [4, 4, 4]]), 64)
    assert pair.label == 1 and pair.first == (0, 9) and pair.second[0] >= 9


def test_without_an_objective_examples_are_single_segments_that_cover_the_document():
    documents = make_documents([[3] * 50, [4]])
    pairs = pairs_of("none", documents, 20, 0)
    assert all(pair.second is None and pair.label == 0 for _, pair in pairs)
    assert [pair.first for index, pair in pairs if index == 1] == [(150, 154)]
    assert [pair.first for index, pair in pairs if index == 0] == [
        (start, min(start + 18, 150)) for start in range(0, 150, 18)
    ]
