"""Refuses record files that contradict the training that asks for them, before it begins."""

import tensorflow as tf

from data import metadata, record_reading

REMEDIES = {
    "max_seq_length": "Set the flag to the data's value, or create the data again.",
    "max_predictions_per_seq": "Set the flag to the data's value, or create the data again.",
    "sentence_objective": "Train with the data's objective, or create the data again.",
    "tokenizer_sha256": "Use the tokenizer that the data was created with.",
    "vocab_size": "Use the configuration that belongs to the data's tokenizer.",
}


def check(
    files,
    *,
    max_seq_length=None,
    max_predictions_per_seq=None,
    sentence_objective=None,
    tokenizer_sha256=None,
    vocab_size=None,
):
    """Refuses record files that contradict what training expects.

    Without a `metadata.json` (the original writes none) the lengths are those of a file's
    first record, and the other settings are not known.

    Args:
        files: list of paths.
        max_seq_length, max_predictions_per_seq, sentence_objective, tokenizer_sha256: what
            training has; None is not checked.
        vocab_size: the model's, which may be larger than the data's.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: there is no file, or one contradicts its metadata or an argument.
    """
    wanted = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
        "sentence_objective": sentence_objective,
        "tokenizer_sha256": tokenizer_sha256,
        "vocab_size": vocab_size,
    }
    if not files:
        raise ValueError("`input_file` must name at least one record file. Received: none.")
    for path in files:
        if not tf.io.gfile.exists(path):
            raise FileNotFoundError(f"`input_file` must name files that exist. Received: {path}.")
    for path, known in zip(files, metadata.read(files), strict=True):
        stored = stored_settings(path, known)
        for name, value in wanted.items():
            if value is not None and name in stored and not agree(name, stored[name], value):
                raise ValueError(
                    f"`{name}` must be the same in data and training. Received: {stored[name]} in "
                    f"{path}, but {value} for training. {REMEDIES[name]}"
                )


def agree(name, stored, value):
    return stored <= value if name == "vocab_size" else stored == value


def stored_settings(path, known):
    """Returns what is known of a file's records, by the keys of REMEDIES.

    Args:
        path: a record file.
        known: its Metadata or None.

    Raises:
        ValueError: the file is not as long as its metadata says, or is no record file.
    """
    if known is None:
        lengths = record_reading.file_lengths(path)
        return dict(zip(("max_seq_length", "max_predictions_per_seq"), lengths, strict=True))
    expected, size = known.shard(path)["num_bytes"], tf.io.gfile.stat(path).length
    if size != expected:
        raise ValueError(
            f"{path} must have the {expected} bytes that its {metadata.FILE_NAME} says. Received: "
            f"{size} bytes. It is cut or from another run: create the data again."
        )
    return {name: getattr(known, name) for name in REMEDIES}


def told_examples(files):
    """Returns how many records files have by their metadata, or None where one has none."""
    known = metadata.read(files)
    if not all(known):
        return None
    return sum(k.shard(path)["num_examples"] for path, k in zip(files, known, strict=True))


def count_examples(files):
    """Returns a dict by path of the number of records, from the metadata or by reading them."""
    return {
        path: known.shard(path)["num_examples"] if known else record_reading.count(path)
        for path, known in zip(files, metadata.read(files), strict=True)
    }
