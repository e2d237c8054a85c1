"""Data creation by Apache Beam, on its DirectRunner: the records are those of --num_workers."""

import importlib.util

import pytest
from created_data import create, english_tokenizer, write_text

from data import beam_pipeline, corpus, corpus_parts, metadata, record_making, record_reading

HAS_BEAM = bool(importlib.util.find_spec("apache_beam"))
needs_beam = pytest.mark.skipif(
    not HAS_BEAM,
    reason="Apache Beam is an extra: requirements-beam.txt.",
)


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    english_tokenizer().save(str(folder))
    return str(folder)


@pytest.fixture
def texts(tmp_path):
    """A pattern of three files, one of which has a byte order mark."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, repetitions in enumerate((1, 4, 1)):
        path = write_text(folder / f"{number}.txt", repetitions, lines_each=7 + number)
        if number == 1:
            path.write_bytes(corpus.UTF8_MARK + path.read_bytes())
    return str(folder / "*.txt")


def records_in(folder, pattern):
    paths = sorted(map(str, folder.glob(pattern)))
    return paths, sorted(record_reading.read(paths).as_numpy_iterator())


@needs_beam
@pytest.mark.parametrize("objective", ["sop", "nsp"])
def test_the_records_and_their_counts_are_those_of_worker_processes(
    texts, tokenizer_folder, tmp_path, objective, monkeypatch
):
    monkeypatch.setattr(record_making, "PASSES_AT_ONCE", 1)
    known = {}
    for runner in ("local", "beam"):
        folder = tmp_path / runner
        create(
            tokenizer_folder,
            texts,
            folder / "train.tfrecord",
            num_shards=3,
            heldout_file=str(folder / "heldout.tfrecord"),
            heldout_fraction=0.4,
            runner=runner,
            examples={
                "dupe_factor": 2,
                "max_seq_length": 128,
                "sentence_objective": objective,
            },
        )
        paths, train = records_in(folder, "train-*-of-00003.tfrecord")
        heldout = records_in(folder, "heldout.tfrecord")
        assert len(paths) == 3 and len(train) > 1000 and len(heldout[1]) > 100
        written = metadata.read([*paths, *heldout[0]])
        rows = [row for some in (written[0], written[3]) for row in some.shards]
        for path, row in zip([*paths, *heldout[0]], rows, strict=True):
            assert row["num_examples"] == record_reading.count([path])
        known[runner] = train, heldout[1], written[0].counts, written[3].counts
        assert not list(folder.glob("*.json.*")) and not list(folder.glob("*report*"))
    assert known["beam"] == known["local"]


@pytest.mark.parametrize("objective", ["sop", "none"])
def test_files_read_apart_hold_out_what_they_do_together(texts, objective):
    paths = corpus.expand_patterns(texts)
    num_bytes = sum(map(corpus.num_text_bytes, paths))
    for share in (0.1, 0.5, 0.9, 1):
        bound = round(share * num_bytes)
        apart = beam_pipeline.divide(paths, objective, bound)
        assert [text.paths for text in apart] == [[path] for path in paths]
        (together,) = beam_pipeline.divide(paths, "nsp", bound)
        stretches = []
        for some in (apart, [together]):
            blocks = {}
            for text in some:
                counts = corpus.CorpusCounts()
                for part in corpus_parts.read_parts(text.paths, counts, text.num_training_bytes):
                    for block in part.blocks:
                        key = block.path, part.is_heldout
                        blocks[key] = blocks.get(key, b"") + block.data
            stretches.append(blocks)
        assert stretches[0] == stretches[1]


@needs_beam
def test_a_text_without_examples_leaves_an_error_and_no_file(tokenizer_folder, tmp_path):
    (tmp_path / "text.txt").write_text("a single line\n\nand another\n")
    with pytest.raises(ValueError, match="all too short"):
        create(
            tokenizer_folder,
            tmp_path / "text.txt",
            tmp_path / "out" / "x.tfrecord",
            runner="beam",
        )
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(HAS_BEAM, reason="Apache Beam is installed.")
def test_without_beam_the_remedy_is_named(tokenizer_folder, tmp_path):
    text = write_text(tmp_path / "text.txt")
    with pytest.raises(ValueError, match="`pip install -r requirements-beam.txt`"):
        create(tokenizer_folder, text, tmp_path / "x.tfrecord", runner="beam")
