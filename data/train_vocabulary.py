"""Trains a SentencePiece vocabulary on raw text and writes a tokenizer folder.

  python -m data.train_vocabulary --input_file=my.txt --output_dir=tokenizer --vocab_size=30000

The text has one sentence a line; blank lines are passed over. The other programs take
the folder as it is: lower-casing and accents are settings of the vocabulary.
"""

import time

import command_line
from data import files, vocabulary

NUM_LINES_TRIED = 10_000


def describe_text(counts):
    """Says in a line what was read."""
    line = (
        f"Read {counts.num_lines:,} lines, {counts.num_bytes / 1e6:,.1f} MB, "
        f"{counts.num_split_lines:,} of them too long and split. "
        f"Training on {counts.num_sampled_lines:,} lines."
    )
    if counts.num_bad_bytes:
        line += f" {counts.num_bad_bytes:,} bytes are not UTF-8, first in {counts.places[0]}."
    return line


def describe_vocabulary(tokenizer, config, lines):
    """Says in a line what was made; `lines` are text to try it on."""
    size = f"{tokenizer.vocab_size:,} pieces"
    if tokenizer.vocab_size < config.vocab_size:
        size += f", all that the text supplies of {config.vocab_size:,},"
    unknown_rate, _ = tokenizer.unknown_rate(lines[:: len(lines) // NUM_LINES_TRIED + 1])
    return f"Wrote {size} to {config.output_dir}; {unknown_rate:.3%} of the text's are unknown."


def main():
    started = time.time()
    config = command_line.from_flags(vocabulary.VocabularyConfig)
    files.check_folder(config.output_dir)
    lines, counts = vocabulary.read_sample(config)
    print(describe_text(counts))
    tokenizer = vocabulary.train(lines, config)
    vocabulary.save(tokenizer, config, counts)
    print(describe_vocabulary(tokenizer, config, lines), f"{time.time() - started:.0f} s.")


if __name__ == "__main__":
    command_line.define_flags(vocabulary.VocabularyConfig)
    command_line.run(main)
