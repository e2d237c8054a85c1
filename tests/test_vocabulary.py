import collections
import json
import tracemalloc

import pytest
from made_tokenizers import config, english_lines

from data import tokenization, vocabulary

FIXED_PIECES = [
    "<pad>",
    "<unk>",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "(",
    ")",
    '"',
    "-",
    ".",
    "–",
    "£",
    "€",
]
WORDS = (
    "red blue green black white grey",
    "cat dog fox horse mole",
    "sat ran slept jumped",
    "barn river house tree bridge",
)
TINY = ["a b", "b c", "c a"]


def animal_lines():
    """Returns 2,000 lines of one pattern with words of a few kinds."""
    colours, animals, verbs, places = (words.split() for words in WORDS)
    return [
        f"The {colours[i % 6]} {animals[i // 6 % 5]} {verbs[i // 30 % 4]} near the "
        f"{places[i // 120 % 5]} ({i * 7919 % 10_000} £)."
        for i in range(2000)
    ]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_special_pieces_and_signs_come_first_and_nothing_marks_the_ends():
    tokenizer = vocabulary.train(animal_lines(), config(vocab_size=300))
    assert tokenizer.vocab_size == 300
    assert tokenizer.pieces[:13] == FIXED_PIECES
    assert not {"<s>", "</s>"} & set(tokenizer.pieces)
    ids = tokenizer.encode('("-.–£€)')
    assert set(range(5, 13)) <= set(ids)


def test_training_again_gives_the_same_vocabulary():
    first, second = (vocabulary.train(animal_lines(), config(vocab_size=200)) for _ in range(2))
    assert first.fingerprint == second.fingerprint


def test_a_text_too_small_names_the_largest_size_which_then_works():
    for lines in (TINY, animal_lines(), english_lines()[:200]):
        with pytest.raises(ValueError, match="must be at most .* Received: 30000") as caught:
            vocabulary.train(lines, config(vocab_size=30_000))
        largest = int(str(caught.value).split("at most ")[1].split(",")[0])
        assert vocabulary.train(lines, config(vocab_size=largest)).vocab_size == largest
        with pytest.raises(ValueError, match=f"at most {largest}"):
            vocabulary.train(lines, config(vocab_size=largest + 1))


def test_a_soft_limit_takes_what_the_text_supplies():
    tokenizer = vocabulary.train(TINY, config(vocab_size=30_000, soft_vocab_limit=True))
    assert tokenizer.vocab_size == 20
    assert tokenizer.pieces[:13] == FIXED_PIECES


def test_a_size_too_small_for_the_characters_names_the_smallest_which_then_works():
    with pytest.raises(ValueError, match="must be at least .* Received: 20") as caught:
        vocabulary.train(animal_lines(), config(vocab_size=20))
    smallest = int(str(caught.value).split("at least ")[1].split(",")[0])
    assert vocabulary.train(animal_lines(), config(vocab_size=smallest)).vocab_size == smallest


def test_a_text_without_characters_is_refused():
    with pytest.raises(ValueError, match="SentencePiece can train on. Received: "):
        vocabulary.train(["\u0301"], config())


def test_a_rare_digit_is_not_unknown():
    lines = [*["only words without numbers"] * 20_000, "except 7,"]
    tokenizer = vocabulary.train(lines, config(vocab_size=100, soft_vocab_limit=True))
    assert tokenizer.unk_id not in tokenizer.encode("7,")
    assert tokenizer.unk_id in tokenizer.encode("x")  # As rare, and left out.


@pytest.mark.parametrize("lower", [True, False])
def test_text_is_normalized_for_training_as_it_will_be_for_use(lower):
    tokenizer = vocabulary.train(
        ["École Élan"] * 9 + ["Hôtel Été"] * 9,
        config(vocab_size=60, soft_vocab_limit=True, lower=lower),
    )
    assert tokenizer.settings["lower"] is lower
    letters = set("".join(tokenizer.pieces[13:]))
    assert not letters & set("Éôé")
    assert ("E" in letters) is not lower


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("short enough", ["short enough"]),
        ("exactly 12 b", ["exactly 12 b"]),
        ("blanks are where it is cut", ["blanks are", "where it is", "cut"]),
        ("withoutablankanywhere", ["withoutablan", "kanywhere"]),
        ("é" * 13, ["é" * 6, "é" * 6, "é"]),
        ("漢" * 9, ["漢" * 4, "漢" * 4, "漢"]),
        ("trailing blank              ", ["trailing", "blank       "]),
    ],
)
def test_a_long_line_is_split_at_blanks_and_between_characters(line, parts):
    assert vocabulary.split_line(line, 12) == parts


def test_long_lines_are_split_counted_and_learnt(tmp_path):
    line = " ".join(english_lines())[:10_000]
    path = write(tmp_path / "long.txt", [line] * 5 + ["a short one"])
    settings = config(input_file=path, vocab_size=200)
    lines, counts = vocabulary.read_sample(settings)
    assert (counts.num_lines, counts.num_split_lines) == (6, 5)
    assert counts.num_sampled_lines == len(lines) == 5 * 3 + 1
    assert " ".join(lines[:3]).split() == line.split()
    assert vocabulary.train(lines, settings).vocab_size == 200


def test_a_sample_keeps_the_order_of_the_text_and_both_bounds():
    lines = [f"{number:06}" for number in range(5000)]
    sample = vocabulary.sample_lines(lines, max_lines=100, max_bytes=10**9, seed=1)
    assert len(sample) == 100
    assert sample == sorted(set(sample))
    size = sample[0].__sizeof__()
    sample = vocabulary.sample_lines(lines, max_lines=10**9, max_bytes=70 * size, seed=1)
    assert len(sample) == 70


def test_a_sample_of_everything_is_everything():
    lines = english_lines()
    assert vocabulary.sample_lines(lines, max_lines=10**9, max_bytes=10**9, seed=1) == lines


def test_a_sample_depends_on_the_seed_alone():
    def sample(seed):
        return vocabulary.sample_lines(english_lines(), max_lines=50, max_bytes=10**9, seed=seed)

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


def test_a_line_is_as_likely_in_the_sample_wherever_it_stands():
    counts = collections.Counter()
    for seed in range(400):
        counts.update(vocabulary.sample_lines("abcdefghij", max_lines=3, max_bytes=999, seed=seed))
    # 120 expected, standard deviation 9.
    assert sum(counts.values()) == 1200
    assert all(80 < counts[letter] < 160 for letter in "abcdefghij")


def test_the_memory_of_a_sample_does_not_grow_with_the_text():
    def peak(num_lines):
        tracemalloc.start()
        lines = (f"line {number} of a long text" for number in range(num_lines))
        vocabulary.sample_lines(lines, max_lines=10**9, max_bytes=100_000, seed=0)
        _, bytes_at_most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return bytes_at_most

    assert peak(100_000) < 1.1 * peak(10_000)


def test_text_is_read_from_all_files_and_bad_bytes_are_counted(tmp_path):
    write(tmp_path / "a.txt", ["first", "", "second"])
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfthird with some words\r\nfourth caf\xe9\r\n")
    lines, counts = vocabulary.read_sample(config(input_file=str(tmp_path / "*.txt")))
    assert lines == ["first", "second", "third with some words", "fourth caf\ufffd"]
    assert (counts.num_lines, counts.num_documents, counts.num_bad_bytes) == (4, 3, 1)
    assert counts.places == [f"{tmp_path / 'b.txt'} line 2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have lines that are not blank.*0 bytes"),
        (b" \r\n\n\t\n", "must have lines that are not blank"),
        (bytes(range(256)) * 10, "must be UTF-8.*first in .* line 2"),
    ],
)
def test_a_file_without_text_is_refused(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        vocabulary.read_sample(config(input_file=str(tmp_path / "file")))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"input_file": ""}, "`input_file` must be given"),
        ({"output_dir": ""}, "`output_dir` must be given"),
        ({"vocab_size": 13}, "more than the 13.*Received: 13"),
        ({"character_coverage": 1.5}, r"lie in \(0, 1\].*Received: 1.5"),
        ({"input_sentence_size": 0}, "`input_sentence_size` must be at least 1.*Received: 0"),
        ({"max_sentence_length": 3}, "`max_sentence_length` must be at least 8"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        config(**setting)


def test_the_folder_holds_the_tokenizer_its_pieces_and_how_it_was_made(tmp_path):
    path = write(tmp_path / "text.txt", animal_lines())
    settings = config(
        input_file=path, output_dir=str(tmp_path / "out"), vocab_size=5000, soft_vocab_limit=True
    )
    lines, counts = vocabulary.read_sample(settings)
    tokenizer = vocabulary.train(lines, settings)
    vocabulary.save(tokenizer, settings, counts)

    assert tokenization.load(tmp_path / "out").fingerprint == tokenizer.fingerprint
    stored = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert stored["vocab_size"] == tokenizer.vocab_size < 5000
    report = json.loads((tmp_path / "out" / "vocabulary.json").read_text())
    assert report["settings"]["vocab_size"] == 5000
    assert report["vocab_size"] == tokenizer.vocab_size
    assert report["tokenizer_sha256"] == tokenizer.fingerprint
    assert report["counts"]["num_sampled_lines"] == 2000
    listed = (tmp_path / "out" / "spm.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in listed] == tokenizer.pieces
