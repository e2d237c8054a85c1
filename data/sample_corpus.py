"""Makes a corpus of English out of the documentation that is already installed.

    python -m data.sample_corpus --output_file=demo/corpus.txt

Reads the docstrings of Python's standard library and of the packages that
requirements.txt asks for, and the pages of Python's help(). Nothing is downloaded and
no package is imported. Each docstring or page is a document: one sentence a line, a
blank line between documents. Code, tables, bare types of parameter lists, documents of
fewer than two sentences (they tell nothing about the order of sentences) and
repetitions are left out. The same installation gives the same file, byte for byte.
"""

import os
import pathlib
import sys
import time

from absl import flags
from tqdm import tqdm

import command_line
from data import installed_documentation

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements.txt"
MIN_MEGABYTES = 5  # Less hardly teaches a tiny model anything.

OUTPUT_FILE = flags.DEFINE_string("output_file", None, "The corpus to write.", required=True)
NUM_WORKERS = flags.DEFINE_integer(
    "num_workers", os.cpu_count(), "Processes that read files.", lower_bound=1
)


def main():
    start = time.perf_counter()
    pathlib.Path(OUTPUT_FILE.value).parent.mkdir(parents=True, exist_ok=True)
    distributions, missing = installed_documentation.required_distributions(
        REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    )
    files = installed_documentation.source_files(distributions)
    repetitions = installed_documentation.Repetitions()
    not_parsed = []

    def documents():
        yield from map(repetitions.new_part, installed_documentation.pages())
        read = installed_documentation.read_files(files, NUM_WORKERS.value)
        bar = tqdm(read, total=len(files), desc="Reading", unit=" files", disable=None, leave=False)
        for path, found in zip(files, bar, strict=True):
            if found is None:
                not_parsed.append(path)
            yield from map(repetitions.new_part, found or [])

    num_documents, num_sentences, megabytes = installed_documentation.write_documents(
        filter(None, documents()), OUTPUT_FILE.value
    )
    print(
        f"Sample corpus: {len(files):,} files read, {num_documents:,} documents, {num_sentences:,} "
        f"sentences, {megabytes:.1f} MB in {time.perf_counter() - start:.0f} s: {OUTPUT_FILE.value}"
    )
    warn(megabytes, missing, not_parsed)


def warn(megabytes, missing, not_parsed):
    """Tells on stderr what is less than it should be."""
    if not_parsed:
        print(f"Left out: {len(not_parsed)} files that this Python cannot parse.", file=sys.stderr)
    if missing:
        print(f"Required but not installed: {', '.join(missing)}.", file=sys.stderr)
    if megabytes < MIN_MEGABYTES:
        print(
            f"warning: the corpus should have {MIN_MEGABYTES} MB at least. "
            "Install the packages with `pip install -r requirements.txt`.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    command_line.run(main)
