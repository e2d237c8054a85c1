"""Runs data creation on English text that is made on the spot."""

import re

from made_tokenizers import english_lines, wordpiece_tokenizer

from data import create_pretraining_data
from data.creation_settings import CreationSettings
from data.pretraining_examples import ExampleSettings


def english_tokenizer():
    """Makes a WordPiece vocabulary of the words and signs of the English lines."""
    words = set(re.findall("[a-z]+|[^a-z ]", "\n".join(english_lines()).lower()))
    return wordpiece_tokenizer(words=sorted(words | set("0123456789")))


def write_text(path, repetitions=1, lines_each=10):
    """Writes documents of English; those of a repetition are marked by its number."""
    lines = english_lines()
    documents = [
        "\n".join(f"{line} {number}" for line in lines[start : start + lines_each])
        for number in range(repetitions)
        for start in range(0, len(lines), lines_each)
    ]
    path.write_text("\n\n".join(documents) + "\n")
    return path


def create(tokenizer, input_file, output_file, *, examples=(), **settings):
    """Runs data creation in this process, for short sequences and one pass by default."""
    chosen = {"max_seq_length": 32, "dupe_factor": 1, **dict(examples)}
    create_pretraining_data.run(
        CreationSettings(
            input_file=str(input_file),
            output_file=str(output_file),
            tokenizer=tokenizer,
            **{"num_workers": 1, "max_unknown_rate": 1.0, **settings},
        ),
        ExampleSettings(**chosen),
    )
