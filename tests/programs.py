"""Runs the programs: in a process of their own, as a user does, or in this one, to save time.

Also makes what they need: a tiny config, and text whose every sentence can be learnt.
"""

import contextlib
import dataclasses
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
from absl import flags
from absl.testing import flagsaver

import command_line

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "TMPDIR")  # Nothing that quietens TensorFlow.
TINY = {
    "hidden_size": 64,
    "embedding_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": 32,
}
WORDS = {
    "adjective": "red blue old young small large quick slow happy sad bright dark warm cold green",
    "noun": "fox horse river garden baker sailor window teacher mountain letter kitchen doctor",
    "verb": "finds paints follows carries watches opens remembers builds sells visits cleans",
    "preposition": "near behind under above without beside",
}
OPENINGS = ("first", "then", "later", "finally")
VOCAB_SIZE = 300  # Of the toy's word list.
WITH_WORDS = ("convert_checkpoint", "predict")
FLAG_TABLES = {}  # Program -> its flags, for those that ran in this process.


@dataclasses.dataclass(frozen=True)
class Result:
    """What a program leaves."""

    exit_code: int
    stdout: str
    stderr: str


def flag_words(settings):
    """Turns {"do_eval": True} into ["--do_eval=True"]."""
    return [f"--{name}={value}" for name, value in settings.items()]


def start(program, *words, variables=(), **settings):
    """Starts a program in a process of its own, with a clean environment.

    Args:
        program: "run_pretraining", or "data.train_vocabulary".
        *words: what stands on its command line beside flags.
        variables: dict of what its environment has beside what all have.
        **settings: its flags.

    Returns:
        subprocess.Popen; stdin, stdout and stderr are pipes of text.
    """
    environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    module = ["-m", program] if "." in program else [f"{program}.py"]
    return subprocess.Popen(
        [sys.executable, *module, *words, *flag_words(settings)],
        cwd=REPOSITORY,
        env={**environment, "CUDA_VISIBLE_DEVICES": "-1", **dict(variables)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program, *words, text="", **settings):
    """Runs a program to its end in a process of its own; `text` is its standard input."""
    with start(program, *words, **settings) as process:
        stdout, stderr = process.communicate(text)
    return Result(process.returncode, stdout, stderr)


def copied(table):
    """Copies what absl knows of flags, deep enough for a program's to be added to the copy."""
    return {
        name: {key: list(v) if isinstance(v, list) else v for key, v in value.items()}
        if isinstance(value, dict)
        else value
        for name, value in table.items()
    }


@contextlib.contextmanager
def imported(program):
    """Imports a program, and lets its flags alone be there: absl has one table for a process.

    Programs share the names of flags, and define them when they are imported.
    """
    table = vars(flags.FLAGS)
    before = dict(table)
    table.update(FLAG_TABLES.setdefault(program, copied(table)))
    try:
        yield importlib.import_module(program)
    finally:
        table.update(before)


def call(program, *words, text="", **settings):
    """Runs a program in this process, which has TensorFlow already; arguments as of `run`.

    Whatever it raises that is not a user's mistake comes through.
    """
    argv = [program, *words, *flag_words(settings)]
    stdout, stderr, exit_code = io.StringIO(), io.StringIO(), 0
    with (
        imported(program) as module,
        flagsaver.flagsaver(),
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "stdin", io.StringIO(text)),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        warnings.catch_warnings(),
    ):
        try:
            command_line.run(module.main, takes_arguments=program in WITH_WORDS)
        except SystemExit as ending:
            exit_code = ending.code or 0
    return Result(exit_code, stdout.getvalue(), stderr.getvalue())


def succeed(result):
    """Returns the result; fails, showing what was printed, unless the program succeeded."""
    assert result.exit_code == 0, result.stdout + result.stderr
    return result


def write_config(folder, vocab_size, **changes):
    """Writes the config of a tiny model and returns its path."""
    path = folder / "config.json"
    path.write_text(json.dumps({**TINY, "vocab_size": vocab_size, **changes}))
    return path


def toy_document(generator):
    """Draws a document of four sentences: its words come again, and their order can be told."""
    drawn = {kind: generator.permutation(words.split()) for kind, words in WORDS.items()}
    hero = f"{drawn['adjective'][0]} {drawn['noun'][0]}"
    place = f"{drawn['preposition'][0]} the {drawn['adjective'][1]} {drawn['noun'][1]}"
    return [
        f"{opening} the {hero} {verb} the {thing} {place} ."
        for opening, verb, thing in zip(OPENINGS, drawn["verb"], drawn["noun"][2:], strict=False)
    ]


def write_toy_text(folder, num_documents=16):
    """Writes documents of invented sentences and returns the path."""
    generator = np.random.default_rng(0)
    documents = ["\n".join(toy_document(generator)) for _ in range(num_documents)]
    path = folder / "toy.txt"
    path.write_text("\n\n".join(documents) + "\n")
    return path


def write_word_list(folder):
    """Writes a WordPiece vocabulary of exactly VOCAB_SIZE pieces and returns its path."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", ".", *OPENINGS]
    pieces += " ".join(WORDS.values()).split()
    pieces += [f"[unused{i}]" for i in range(VOCAB_SIZE - len(pieces))]
    path = folder / "vocab.txt"
    path.write_text("\n".join(pieces) + "\n")
    return path


def write_toy_records(folder, tokenizer, **settings):
    """Makes records of the toy text, with `python -m data.create_pretraining_data`.

    Args:
        folder: pathlib.Path.
        tokenizer: dict that names it by flag, such as {"vocab_file": path}.
        **settings: flags.

    Returns:
        The path of the record file.
    """
    path = folder / "records" / "train.tfrecord"
    settings = {"max_seq_length": TINY["max_position_embeddings"], "num_workers": 1, **settings}
    text = write_toy_text(folder)
    succeed(
        run(
            "data.create_pretraining_data",
            input_file=text,
            output_file=path,
            **tokenizer,
            **settings,
        )
    )
    return path
