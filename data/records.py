"""Pretraining examples as TFRecords: their features, their bytes, and the files' safe writing.

The features are the original's (create_pretraining_data.py:156-189), so that either
program reads the other's records. n: examples in a block, T: tokens, P: masked positions.
"""

import contextlib
import itertools
import os

import numpy as np

TOKEN_FEATURES = ("input_ids", "input_mask", "segment_ids", "token_boundary")  # int64[T]
MASKED_FEATURES = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")  # [P]
FEATURES = (*TOKEN_FEATURES, *MASKED_FEATURES, "next_sentence_labels")  # The last is int64[1].
FLOAT_FEATURES = ("masked_lm_weights",)

LARGEST_INTEGER = 2**31 - 1  # The model reads int32.
FRAME_BYTES = 16  # A TFRecord's length, its CRC, and the CRC of the data.

# Tags of protocol buffers: (field number << 3) | 2, as everything here is length-delimited.
# Example.features, Features.feature, the entry's key, Int64List.value and FloatList.value are
# field 1, the entry's value is field 2.
FIRST, SECOND = 0x0A, 0x12
FLOAT_LIST, INT64_LIST = 0x12, 0x1A  # Fields 2 and 3 of Feature.


def serialize(examples):
    """Turns a block of examples into serialized `tf.train.Example` protocol buffers.

    Every feature has one length, so a block is a byte matrix: each message has the same
    columns, and those that a row's shorter varints do not fill are left out at the end.
    That is several times faster than building `tf.train.Example` objects; blocks of 256
    and more are the fastest. Pickling the list costs under a microsecond a record.

    Args:
        examples: for every name of FEATURES an array [n, T], [n, P] or, for
            `next_sentence_labels`, [n] or [n, 1]; integers in [0, 2**31 - 1], but
            float for `masked_lm_weights`.

    Returns:
        A list of n bytes objects.

    Raises:
        ValueError: a feature is missing or unknown, has another number of rows, or
            holds an integer out of range.
    """
    arrays = checked_arrays(examples)
    columns, lengths = [], 0
    for name in FEATURES:
        entry_columns, entry_lengths = feature_entry(name, arrays[name])
        columns += entry_columns
        lengths = lengths + entry_lengths
    columns, lengths = delimited(FIRST, columns, lengths)
    matrix = np.concatenate([values for values, _ in columns], axis=1)  # uint8[n, width]
    is_used = np.concatenate([used for _, used in columns], axis=1)  # bool[n, width]
    buffer = matrix[is_used].tobytes()
    ends = np.cumsum(lengths).tolist()
    return [buffer[start:end] for start, end in itertools.pairwise([0, *ends])]


def checked_arrays(examples):
    """Returns the features as matrices of n rows, after checking what `serialize` requires."""
    if set(examples) != set(FEATURES):
        raise ValueError(
            f"An example must have the features {FEATURES}. Received: {set(examples)}."
        )
    num_examples = len(examples["input_ids"])
    arrays = {}
    for name in FEATURES:
        array = np.asarray(examples[name])
        if len(array) != num_examples:
            raise ValueError(
                f"`{name}` must have as many rows as `input_ids`. Received: {len(array)} rows, "
                f"and {num_examples} of `input_ids`."
            )
        arrays[name] = array.reshape(num_examples, array.size // max(num_examples, 1))
        if name not in FLOAT_FEATURES and array.size:
            check_integers(name, array)
    return arrays


def check_integers(name, array):
    """Raises ValueError unless the array holds integers that fit the model's int32."""
    if array.dtype.kind not in "iub":
        raise ValueError(f"`{name}` must hold integers. Received: {array.dtype}.")
    if array.min() < 0 or array.max() > LARGEST_INTEGER:
        raise ValueError(
            f"`{name}` must lie in [0, {LARGEST_INTEGER}]. Received: values from "
            f"{array.min()} to {array.max()}."
        )


def feature_entry(name, array):
    """Returns one entry of the map in `tf.train.Features`: the name and the feature's values.

    Args:
        name: the feature's name.
        array: [n, length], of any integer type or, for FLOAT_FEATURES, of any float type.

    Returns:
        (columns, lengths) as of `delimited`.
    """
    num_examples = len(array)
    if name in FLOAT_FEATURES:
        kind = FLOAT_LIST
        values = np.ascontiguousarray(array, "<f4").view(np.uint8)
        packed = values, np.ones(values.shape, bool)
    else:
        kind = INT64_LIST
        packed = varints(array)
    key = bytes([FIRST, len(name)]) + name.encode()
    value_list = delimited(FIRST, [packed], packed[1].sum(axis=1))
    feature = delimited(kind, *value_list)
    columns, lengths = delimited(SECOND, *feature)
    return delimited(FIRST, [constant(key, num_examples), *columns], lengths + len(key))


def delimited(tag, columns, lengths):
    """Puts a tag and a length before a message.

    Args:
        tag: int, one byte.
        columns: list of (uint8[n, width], bool[n, width]): bytes, and which of them count.
        lengths: int[n], bytes that count in each row.

    Returns:
        (columns, lengths) of the longer message.
    """
    length_column = varints(lengths[:, None])
    columns = [constant(bytes([tag]), len(lengths)), length_column, *columns]
    return columns, lengths + 1 + length_column[1].sum(axis=1)


def constant(content, num_examples):
    """Returns a column with the same bytes in each row."""
    values = np.broadcast_to(np.frombuffer(content, np.uint8), (num_examples, len(content)))
    return values, np.broadcast_to(True, values.shape)


def varints(array):
    """Encodes integers as protocol buffers' varints: 7 bits a byte, the lowest first.

    Args:
        array: int[n, length], in [0, 2**31 - 1].

    Returns:
        (uint8[n, length * k], bool[n, length * k]), where k <= 5 is the number of bytes of
        the largest value: bytes, and which of them count.
    """
    num_bytes = max(1, -(-int(array.max(initial=0)).bit_length() // 7))
    if num_bytes == 1:
        return array.astype(np.uint8), np.broadcast_to(True, array.shape)
    array = array.astype(np.int32, copy=False)
    values = np.empty((*array.shape, num_bytes), np.uint8)
    is_used = np.ones((*array.shape, num_bytes), bool)
    for i in range(num_bytes):
        rest = array >> (7 * i)
        values[..., i] = (rest & 0x7F) | ((rest > 0x7F) << 7)
        if i:
            is_used[..., i] = rest > 0
    return values.reshape(len(array), -1), is_used.reshape(len(array), -1)


def temporary_name(path):
    """Returns where a file is written until it is complete: hidden, and with another ending."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.partial")


@contextlib.contextmanager
def write_errors(path):
    """Turns TensorFlow's errors while writing a file into an OSError that names the file."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"`output_file` must be writable. Received: {path} ({error.message})."
        ) from error


class ShardWriter:
    """Writes records to several files in turn, which get their names only when all is complete.

    Local paths and whatever `tf.io.gfile` reads (`gs://...`). A context manager: entering
    opens the files under temporary names (so it fails before any work where they cannot
    be written), leaving renames them; an exception inside removes them and leaves what
    stood under the final names before. Entering imports TensorFlow: start worker
    processes first.

        with ShardWriter(["train-0.tfrecord", "train-1.tfrecord"]) as writer:
            writer.write(serialize(examples))
        metadata.write(..., shards=writer.shards)

    Attributes:
        num_examples: records written so far.
        shards: list of {"file": path, "num_examples": int, "num_bytes": int}, one per file.
    """

    def __init__(self, output_files):
        """Takes the files' final paths.

        Raises:
            ValueError: there is none, or one is given twice.
        """
        if not output_files or len(set(output_files)) < len(output_files):
            raise ValueError(
                f"`output_file` must name one or more different files. Received: {output_files}."
            )
        self.shards = [{"file": path, "num_examples": 0, "num_bytes": 0} for path in output_files]
        self.num_examples = 0
        self._writers = []

    def __enter__(self):
        """Opens the temporary files.

        Raises:
            OSError: one cannot be written.
        """
        import tensorflow as tf

        try:
            for shard in self.shards:
                path = shard["file"]
                if tf.io.gfile.isdir(path):
                    raise IsADirectoryError(f"`output_file` must name files. Received: {path}.")
                with write_errors(path):
                    tf.io.gfile.makedirs(os.path.dirname(path) or ".")
                    self._writers.append(tf.io.TFRecordWriter(temporary_name(path)))
        except OSError:
            self._remove_temporary_files()
            raise
        return self

    def write(self, records):
        """Appends records, one to each file in turn, so that the files' sizes are even.

        Args:
            records: list of bytes, as `serialize` returns it.
        """
        num_files = len(self.shards)
        for offset in range(num_files):
            index = (self.num_examples + offset) % num_files
            share, shard = records[offset::num_files], self.shards[index]
            with write_errors(shard["file"]):
                for record in share:
                    self._writers[index].write(record)
            shard["num_examples"] += len(share)
            shard["num_bytes"] += sum(map(len, share)) + FRAME_BYTES * len(share)
        self.num_examples += len(records)

    def __exit__(self, kind, error, traceback):
        """Gives the files their names, or removes them after an exception.

        Raises:
            ValueError: there were fewer records than files; no file is left then.
        """
        import tensorflow as tf

        try:
            for shard, writer in zip(self.shards, self._writers, strict=True):
                with write_errors(shard["file"]):
                    writer.close()
            if kind is None:
                self._refuse_empty_shards()
                for shard in self.shards:
                    with write_errors(shard["file"]):
                        path = shard["file"]
                        tf.io.gfile.rename(temporary_name(path), path, overwrite=True)
        finally:
            self._remove_temporary_files()

    def _refuse_empty_shards(self):
        if self.num_examples < len(self.shards):
            raise ValueError(
                "Each file of `output_file` must get at least one example. Received: "
                f"{self.num_examples} examples for {len(self.shards)} files."
            )

    def _remove_temporary_files(self):
        import tensorflow as tf

        for shard in self.shards:
            path = temporary_name(shard["file"])
            if tf.io.gfile.exists(path):
                tf.io.gfile.remove(path)
