"""Makes a labelled set out of the documentation that is already installed.

    python -m data.sample_labels --output_dir=demo/libraries

The task: which library does a description come from? Writes train.tsv and dev.tsv with
the columns `label` and `text`; the texts of dev.tsv come from modules that train.tsv has
nothing of. Sentences that name a library are left out. Nothing is downloaded and no package
is imported. The same installation gives the same files, byte for byte.
"""

import collections
import os
import pathlib
import sys
import time

from absl import flags
from tqdm import tqdm

import command_line
from data import files, installed_documentation, library_labels

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements.txt"
MIN_LIBRARIES = 4

OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder for the two files.", required=True)
NUM_WORKERS = flags.DEFINE_integer(
    "num_workers", os.cpu_count(), "Processes that read files.", lower_bound=1
)


def main():
    start = time.perf_counter()
    files.check_folder(OUTPUT_DIR.value)
    distributions, missing = installed_documentation.required_distributions(
        REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    )
    if missing:
        print(f"Required but not installed: {', '.join(missing)}.", file=sys.stderr)
    modules = library_labels.modules(distributions)
    labels, _, paths = zip(*modules, strict=True)
    read = installed_documentation.read_files(list(paths), NUM_WORKERS.value)
    bar = tqdm(read, total=len(paths), desc="Reading", unit=" files", disable=None, leave=False)
    rows = library_labels.split(
        [(label, documents or []) for label, documents in zip(labels, bar, strict=True)]
    )
    check(rows["train"])
    for side, side_rows in rows.items():
        lines = ["label\ttext", *("\t".join(row) for row in side_rows), ""]
        path = os.path.join(OUTPUT_DIR.value, f"{side}.tsv")
        files.write_bytes(path, "\n".join(lines).encode())
    print(f"{describe(rows, len(modules))}, in {time.perf_counter() - start:.0f} s.")


def check(rows):
    """Refuses a set that is no task."""
    found = sorted({label for label, _ in rows})
    if len(found) < MIN_LIBRARIES:
        raise ValueError(
            f"{MIN_LIBRARIES} libraries with enough documentation must be installed. Received: "
            f"{', '.join(found) or 'none'}. `pip install -r requirements.txt` installs them."
        )


def describe(rows, num_modules):
    """Says in a line what was made."""
    counts = collections.Counter(label for label, _ in rows["dev"])
    libraries = ", ".join(sorted(counts))
    majority = max(counts.values()) / len(rows["dev"])
    return (
        f"Labelled texts: {num_modules:,} modules read, {len(rows['train']):,} texts to train on "
        f"and {len(rows['dev']):,} of held-out modules in {OUTPUT_DIR.value}; {len(counts)} "
        f"libraries ({libraries}), the largest with {majority:.1%} of the held-out texts"
    )


if __name__ == "__main__":
    command_line.run(main)
