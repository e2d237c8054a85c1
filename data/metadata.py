"""`metadata.json`: what the record files of a folder hold and how they were made.

One file per folder lists the sets of records in it, one set for each run that wrote
there (training and held-out records may share a folder). A run replaces the sets that were
written to the same `output_file`, in however many shards. Two runs that end in one folder at
the same moment can lose one's entry; training then refuses its files as not listed.
"""

import dataclasses
import json
import os
import re

from data import files
from data.records import temporary_name, write_errors

FILE_NAME = "metadata.json"
FORMAT_VERSION = 1
SHARD_NUMBER = re.compile(r"-\d{5,}-of-\d{5,}(?=(\.[^.]*)?$)")  # As CreationSettings numbers them.


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What a run of data creation says about the records that it wrote."""

    settings: dict  # Every setting of the run, by flag.
    max_seq_length: int  # T of each record.
    max_predictions_per_seq: int  # P of each record.
    sentence_objective: str
    vocab_size: int  # Each id is less.
    tokenizer_sha256: str
    counts: dict  # Documents, lines, examples, ..., by name.
    shards: list  # {"file": path, "num_examples": int, "num_bytes": int}, as ShardWriter.shards.
    versions: dict  # Of the packages that made the data.

    def shard(self, path):
        """Returns the shard's row, or None where the set does not hold this file."""
        name = os.path.basename(path)
        return next((row for row in self.shards if row["file"] == name), None)


def write(metadata):
    """Writes a set's metadata into each folder that holds some of its shards, atomically.

    Args:
        metadata: Metadata; the shards' files are paths, of which a folder's metadata
            keeps its own, by name.

    Raises:
        OSError: a folder cannot be written.
        ValueError: a folder holds a malformed `metadata.json`.
    """
    for folder in sorted({os.path.dirname(shard["file"]) for shard in metadata.shards}):
        shards = [
            {**shard, "file": os.path.basename(shard["file"])}
            for shard in metadata.shards
            if os.path.dirname(shard["file"]) == folder
        ]
        sets = read_folder(folder) or []
        replaced = replaced_sets(sets, [shard["file"] for shard in shards])
        others = [old for old in sets if old not in replaced]
        sets = [*others, dataclasses.replace(metadata, shards=shards)]
        write_json(
            os.path.join(folder, FILE_NAME),
            {"format_version": FORMAT_VERSION, "sets": [dataclasses.asdict(row) for row in sets]},
        )


def replaced_sets(sets, names):
    """Returns those of a folder's sets that a run replaces.

    Args:
        sets: list of Metadata, of `read_folder`.
        names: list of the files' names that the run writes in the folder.
    """
    outputs = {SHARD_NUMBER.sub("", name) for name in names}
    return [
        old
        for old in sets
        if not outputs.isdisjoint(SHARD_NUMBER.sub("", shard["file"]) for shard in old.shards)
    ]


def write_json(path, content):
    """Writes a JSON file that is either whole or not there."""
    import tensorflow as tf

    with write_errors(path):
        with tf.io.gfile.GFile(temporary_name(path), "w") as file:
            file.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        tf.io.gfile.rename(temporary_name(path), path, overwrite=True)


def read_folder(folder):
    """Returns the sets of a folder's `metadata.json`: list of Metadata, or None without one.

    Raises:
        ValueError: the file is not what this version writes.
    """
    path = os.path.join(folder, FILE_NAME)
    if not files.exists(path):
        return None
    try:
        content = json.loads(files.read_bytes(path))
        if content["format_version"] != FORMAT_VERSION:
            raise ValueError(f"format_version {content['format_version']}")
        return [Metadata(**row) for row in content["sets"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must be of format_version {FORMAT_VERSION}, as data creation writes it. "
            f"Received: {error}. Move that file away and create the data again, or use another "
            "folder."
        ) from error


def read(paths):
    """Finds the metadata of each record file in its folder.

    Args:
        paths: list of record files.

    Returns:
        A list with a Metadata per file, or None where the folder has no `metadata.json`
        (the original writes none).

    Raises:
        ValueError: a folder's `metadata.json` is malformed or does not list the file.
    """
    folders = {folder: read_folder(folder) for folder in {os.path.dirname(path) for path in paths}}
    found = []
    for path in paths:
        sets = folders[os.path.dirname(path)]
        holders = [row for row in sets or [] if row.shard(path)]
        if sets is not None and not holders:
            raise ValueError(
                f"{path} must be listed in the {FILE_NAME} beside it. Received: a file that is "
                "left from an earlier run or comes from elsewhere. Remove it, or give records "
                "of another origin a folder of their own."
            )
        found.append(holders[0] if holders else None)
    return found
