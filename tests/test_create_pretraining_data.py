"""Data creation as a whole: text files in, record files and their metadata out."""

import importlib.metadata
import os
import re
import sys

import numpy as np
import programs
import pytest
import tensorflow as tf
from created_data import create, english_tokenizer, write_text
from made_tokenizers import wordpiece_tokenizer

from data import create_pretraining_data, metadata, record_checks, record_reading, record_sets
from data.creation_settings import CreationSettings
from data.pretraining_examples import ExampleSettings

PROGRAM = "data.create_pretraining_data"


@pytest.fixture(scope="module")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    english_tokenizer().save(str(folder))
    return str(folder)


def records_of(*paths):
    """Returns the raw records of files, in order."""
    return list(record_reading.read([str(path) for path in paths]).as_numpy_iterator())


def ids_of(records, max_seq_length=32, max_predictions=5):
    """Returns int64[n, T]: the ids of records, labels put back."""
    parsed = record_reading.parse(tf.constant(records), max_seq_length, max_predictions)
    examples = {name: values.numpy() for name, values in parsed.items()}
    ids = examples["input_ids"]
    row, slot = np.nonzero(examples["masked_lm_weights"])
    ids[row, examples["masked_lm_positions"][row, slot]] = examples["masked_lm_ids"][row, slot]
    return ids


def test_the_files_are_the_same_for_any_number_of_workers(tmp_path, tokenizer_folder, monkeypatch):
    # So small a text would be left to one process.
    monkeypatch.setattr(create_pretraining_data, "BYTES_A_WORKER", 100_000)
    text = write_text(tmp_path / "text.txt", repetitions=8)
    assert text.stat().st_size > 1_200_000  # Three blocks.
    contents = []
    for num_workers in (1, 2, 3):
        output = tmp_path / f"{num_workers}.tfrecord"
        heldout = tmp_path / f"heldout-{num_workers}.tfrecord"
        create(
            tokenizer_folder,
            text,
            output,
            num_workers=num_workers,
            heldout_file=str(heldout),
            examples={"max_seq_length": 128, "dupe_factor": 2},
        )
        contents.append(output.read_bytes() + heldout.read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_the_order_in_which_files_are_named_does_not_matter(tmp_path, tokenizer_folder):
    paths = [
        write_text(tmp_path / f"{name}.txt", lines_each=size) for name, size in (("a", 5), ("b", 7))
    ]
    for name, order in (("one", paths), ("other", paths[::-1])):
        create(tokenizer_folder, ",".join(map(str, order)), tmp_path / f"{name}.tfrecord")
    assert (tmp_path / "one.tfrecord").read_bytes() == (tmp_path / "other.tfrecord").read_bytes()


def test_another_seed_gives_other_examples(tmp_path, tokenizer_folder):
    text = write_text(tmp_path / "text.txt")
    for seed in (1, 2):
        create(
            tokenizer_folder, text, tmp_path / f"{seed}.tfrecord", examples={"random_seed": seed}
        )
    first, second = (set(records_of(tmp_path / f"{seed}.tfrecord")) for seed in (1, 2))
    assert len(first & second) < 0.1 * len(first)


def test_shards_hold_the_examples_of_the_single_file_and_passes_have_their_own(
    tmp_path, tokenizer_folder
):
    text = write_text(tmp_path / "text.txt")
    for dupe_factor, num_shards in ((2, 1), (2, 4), (1, 1)):
        create(
            tokenizer_folder,
            text,
            tmp_path / f"{dupe_factor}-{num_shards}.tfrecord",
            num_shards=num_shards,
            examples={"dupe_factor": dupe_factor},
        )
    shards = sorted(tmp_path.glob("2-4-*"))
    assert [path.name for path in shards] == [f"2-4-0000{i}-of-00004.tfrecord" for i in range(4)]
    assert sorted(records_of(*shards)) == sorted(records_of(tmp_path / "2-1.tfrecord"))
    assert sorted(records_of(*shards[::2])) == sorted(records_of(tmp_path / "1-1.tfrecord"))


def test_what_is_held_out_are_the_last_documents_once(tmp_path, tokenizer_folder):
    text = write_text(tmp_path / "text.txt")
    output, heldout = tmp_path / "train.tfrecord", tmp_path / "heldout.tfrecord"
    create(
        tokenizer_folder,
        text,
        output,
        heldout_file=str(heldout),
        heldout_fraction=0.1,
        examples={"dupe_factor": 3},
    )
    content = text.read_bytes()
    starts = [match.end() for match in re.finditer(rb"\n\n", content)]
    num_heldout = sum(start > round(0.9 * len(content)) for start in starts)
    training, kept = metadata.read([str(output), str(heldout)])
    assert kept.counts["num_documents"] == num_heldout > 30
    assert training.counts["num_documents"] == 400 - num_heldout
    assert 2 * kept.counts["num_pieces_used"] > kept.counts["num_pieces"]  # One pass.
    assert kept.counts["num_pieces_used"] <= 1.1 * kept.counts["num_pieces"]
    inside, apart = (
        {row.tobytes() for row in ids_of(records_of(path))} for path in (output, heldout)
    )
    assert len(inside & apart) < 0.1 * len(apart)  # Some lines come again.


def test_the_metadata_hold_settings_counts_and_the_tokenizer(
    tmp_path, tokenizer_folder, monkeypatch
):
    # On machines with TPUs the distribution has another name.
    monkeypatch.setattr(importlib.metadata, "version", None)
    output = tmp_path / "folder" / "train.tfrecord"
    create(tokenizer_folder, write_text(tmp_path / "text.txt"), output)
    (known,) = metadata.read([str(output)])
    assert (known.max_seq_length, known.max_predictions_per_seq) == (32, 5)
    assert known.sentence_objective == "sop"
    assert (
        known.settings["random_seed"] == 12345 and known.settings["tokenizer"] == tokenizer_folder
    )
    assert known.tokenizer_sha256 == english_tokenizer().fingerprint
    assert known.counts["num_examples"] == len(records_of(output))
    assert known.counts["text"]["num_lines"] == 4000
    assert known.versions.keys() == set(record_sets.VERSIONED)
    assert known.versions["tensorflow"] == tf.__version__
    record_checks.check([str(output)], max_seq_length=32, max_predictions_per_seq=5)
    with pytest.raises(ValueError, match="32.*64"):
        record_checks.check([str(output)], max_seq_length=64)


@pytest.mark.parametrize("objective", ["sop", "nsp"])
def test_the_two_names_of_nsp_must_not_contradict_each_other(tmp_path, objective):
    flags = {"input_file": tmp_path / "absent", "output_file": tmp_path / "x.tfrecord"}
    flags |= {"random_next_sentence": True, "sentence_objective": objective}
    result = programs.run(PROGRAM, **flags)
    expected = "`random_next_sentence` means" if objective == "sop" else "no file matches"
    assert result.exit_code == 1 and expected in result.stderr


def test_remote_paths_are_read_and_written_through_tensorflow(tmp_path, tokenizer_folder):
    """`ram://` goes the way of `gs://`."""
    text = write_text(tmp_path / "text.txt").read_text()
    with tf.io.gfile.GFile("ram://text/a.txt", "w") as file:
        file.write(text)
    create(tokenizer_folder, "ram://text/*.txt", "ram://out/train.tfrecord")
    create(tokenizer_folder, tmp_path / "text.txt", tmp_path / "train.tfrecord")
    assert records_of("ram://out/train.tfrecord") == records_of(tmp_path / "train.tfrecord")
    assert metadata.read(["ram://out/train.tfrecord"])[0].max_seq_length == 32


@pytest.mark.parametrize("num_documents", [1, 2, 3])
@pytest.mark.parametrize("objective", ["sop", "nsp", "none"])
def test_corpora_of_few_documents_work(tmp_path, tokenizer_folder, objective, num_documents):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(["a b c\nd e\nf"] * num_documents))
    output = tmp_path / "x.tfrecord"
    create(tokenizer_folder, text, output, examples={"sentence_objective": objective})
    assert len(records_of(output)) >= num_documents


@pytest.mark.parametrize(
    "line, said",
    [("北京 是 北 京", "what the text separates by blanks"), ("北京京北北京", "has no effect")],
)
def test_chinese_gets_whole_words_where_it_is_segmented_and_else_a_notice(
    tmp_path, capsys, line, said
):
    wordpiece_tokenizer(words=["是"]).save(str(tmp_path / "tokenizer"))
    (tmp_path / "text.txt").write_text(f"{line}\n{line}\n\n" * 9)
    output = tmp_path / "x.tfrecord"
    create(str(tmp_path / "tokenizer"), tmp_path / "text.txt", output)
    captured = capsys.readouterr()
    assert said in captured.out + captured.err
    boundaries = record_reading.parse(tf.constant(records_of(output)), 32, 5)["token_boundary"]
    num_words = (boundaries.numpy().sum(axis=1) - 3).tolist()
    assert set(num_words) == {2 * 4 if " " in line else 2 * 6}


def test_verifying_names_the_bad_files(tmp_path, tokenizer_folder, capsys):
    text = write_text(tmp_path / "text.txt")
    output = tmp_path / "x.tfrecord"
    create(tokenizer_folder, text, output, num_shards=2)
    pattern = str(tmp_path / "x-*.tfrecord")
    verification = CreationSettings(output_file=pattern, verify=True)
    create_pretraining_data.run(verification, ExampleSettings())
    assert "2 record files are sound" in capsys.readouterr().out
    damaged = tmp_path / "x-00001-of-00002.tfrecord"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    with pytest.raises(ValueError, match="1 of 2 record files are bad"):
        create_pretraining_data.run(verification, ExampleSettings())
    assert f"{damaged}: " in capsys.readouterr().out


def test_the_originals_flags_work(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(english_tokenizer().model_bytes)
    text = write_text(tmp_path / "text.txt")
    result = programs.succeed(
        programs.run(
            PROGRAM,
            vocab_file=tmp_path / "vocab.txt",
            input_file=text,
            output_file=f"{tmp_path}/a.tfrecord,{tmp_path}/b.tfrecord",
            do_lower_case=True,
            do_whole_word_mask=True,
            favor_shorter_ngram=True,
            random_next_sentence=True,
            max_seq_length=64,
            ngram=3,
            max_predictions_per_seq=10,
            random_seed=12345,
            dupe_factor=2,
            masked_lm_prob=0.15,
            short_seq_prob=0.1,
            num_workers=2,
            max_unknown_rate=1,
        )
    )
    assert "examples" in result.stdout and result.stderr == ""
    (known,) = metadata.read([str(tmp_path / "a.tfrecord")])
    assert known.sentence_objective == "nsp" and len(known.shards) == 2


def test_the_program_ends_with_one_line_and_exit_code_1(tmp_path, tokenizer_folder):
    (tmp_path / "text.txt").write_bytes(b"\r\n" * 50)
    result = programs.run(
        PROGRAM,
        tokenizer=tokenizer_folder,
        input_file=tmp_path / "text.txt",
        output_file=tmp_path / "x.tfrecord",
    )
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "only blank lines" in result.stderr
    assert os.listdir(tmp_path) == ["text.txt"]


def test_the_help_shows_the_layout_of_the_text():
    result = programs.succeed(programs.run(PROGRAM, "--help"))
    assert "The first sentence of a document.\n    Its second sentence." in result.stdout
    assert "--sentence_objective" in result.stdout and "CPU" in result.stdout


def peak_memory(tokenizer, text, folder, dupe_factor):
    """Returns the most memory, in kB, that a run with one worker has at a time."""
    process = programs.start(
        PROGRAM,
        tokenizer=tokenizer,
        input_file=text,
        output_file=folder / "x.tfrecord",
        max_seq_length=128,
        dupe_factor=dupe_factor,
        num_workers=1,
        max_unknown_rate=1,
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, process.stderr.read()
    return usage.ru_maxrss


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's kB")
def test_memory_does_not_grow_with_the_passes_or_the_text(tmp_path, tokenizer_folder):
    """Case A4: 5 MB in documents of ten lines."""
    text = write_text(tmp_path / "text.txt", repetitions=26)
    assert text.stat().st_size > 5_000_000
    one, five = (peak_memory(tokenizer_folder, text, tmp_path, passes) for passes in (1, 5))
    assert five <= 1.15 * one
    larger = write_text(tmp_path / "larger.txt", repetitions=104)
    assert peak_memory(tokenizer_folder, larger, tmp_path, 1) <= 1.2 * one
