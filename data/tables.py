"""Reads files of rows (TSV, CSV, JSON lines) by column; every fault names its file and line.

A file of one row a line, `.tsv` or `.txt`, has tabs between columns and no quoting, as
GLUE's have; `.csv` is quoted as RFC 4180 says; `.jsonl` or `.json` holds an object a line.
Blank lines at the end of a file are no rows.
"""

import csv
import dataclasses
import io
import json
import os

from data import files

LARGEST_CELL = 2**31 - 1  # Characters; the module's own 131,072 are less than long documents.


@dataclasses.dataclass(frozen=True)
class Columns:
    """Some columns of a file, row by row.

    Attributes:
        path: str, the file.
        lines: list[int], the line on which each row begins; the first of a file is 1.
        values: dict, column -> list of str (of any JSON value in JSON lines). A column
            that was optional and that the file has not is not in it.
        broken_lines: list[int], lines of the rows left out.
    """

    path: str
    lines: list[int]
    values: dict[str, list]
    broken_lines: list[int]


def read(path, columns, *, optional=(), header=True, leave_out_broken=False):
    """Reads some columns of a file.

    Args:
        path: str, a local or remote file; its ending says how it is read.
        columns: names of columns that must be there. A number that is no name counts the
            columns of TSV and CSV from 0.
        optional: names of columns that may be missing as a whole.
        header: True: the first line names the columns. False: no line does, and the
            columns are numbered. A tuple of names: those of a file without such a line,
            or the last columns of which it lacks; a first line of just these names is
            taken for what it is. Of no effect on JSON lines.
        leave_out_broken: bool, whether rows with another number of columns are left out
            and counted; otherwise they are an error.

    Returns:
        Columns.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it cannot be read, has no rows, lacks a column, or a row is broken.
    """
    ending = os.path.splitext(path)[1]
    if ending not in READERS:
        raise ValueError(f"a file of rows must end in one of {list(READERS)}. Received: {path}.")
    if not files.exists(path):
        raise FileNotFoundError(f"a file of rows must exist. Received: {path}.")
    rows = READERS[ending](path, read_text(path))
    if READERS[ending] is json_rows:
        return pick_keys(path, rows, columns, optional)
    names, rows = name_columns(rows, header)
    check_not_empty(path, rows)
    broken = [line for line, row in rows if len(row) != len(names)]
    if broken and not leave_out_broken:
        bad = dict(rows)[broken[0]]
        raise ValueError(
            f"{path}, line {broken[0]}: a row must have {len(names)} columns "
            f"({', '.join(names)}). Received: {len(bad)}, {shortened(bad)}."
        )
    rows = [(line, row) for line, row in rows if len(row) == len(names)]
    places = find_columns(path, names, columns, optional)
    values = {name: [row[place] for _, row in rows] for name, place in places.items()}
    return Columns(path, [line for line, _ in rows], values, broken)


def read_text(path):
    """Returns a file's text, without a byte-order mark; raises ValueError unless it is UTF-8."""
    content = files.read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {line}: text must be UTF-8. Received: bytes "
            f"{content[error.start : error.start + 4]!r}."
        ) from None


def tsv_rows(path, text):
    """Returns a list of (line, list of str). Nothing but a newline ends a row."""
    lines = text.rstrip("\r\n").split("\n") if text.strip() else []
    return [(number, line.rstrip("\r").split("\t")) for number, line in enumerate(lines, 1)]


def csv_rows(path, text):
    """Returns a list of (line on which the row begins, list of str)."""
    csv.field_size_limit(LARGEST_CELL)
    reader = csv.reader(io.StringIO(text.rstrip("\r\n"), newline=""), strict=True)
    rows, line = [], 1
    try:
        for row in reader:
            rows.append((line, row))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {line}: a row must be well-formed CSV. Received: {error}."
        ) from None
    return rows


def json_rows(path, text):
    """Returns a list of (line, dict)."""
    rows = []
    for number, line in enumerate(text.rstrip().split("\n") if text.strip() else [], 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number}: a line must be one JSON object. Received: "
                f"{shortened(line)}."
            )
        rows.append((number, row))
    return rows


READERS = {
    ".tsv": tsv_rows,
    ".txt": tsv_rows,
    ".csv": csv_rows,
    ".jsonl": json_rows,
    ".json": json_rows,
}


def name_columns(rows, header):
    """Takes the header off, if there is one.

    Args:
        rows: list of (line, list of str).
        header: as of `read`.

    Returns:
        (names of the columns, rows below the header).
    """
    first = rows[0][1] if rows else []
    if header is True:
        return first, rows[1:]
    if header is False:
        return [str(number) for number in range(len(first))], rows
    names = list(header[: len(first)])
    return names, rows[1:] if first == names else rows


def check_not_empty(path, rows):
    if not rows:
        raise ValueError(f"{path} must hold at least one row. Received: none.")


def find_columns(path, names, columns, optional):
    """Returns dict, column -> its place; raises ValueError where one is missing or there twice."""
    places, missing = {}, []
    for column in (*columns, *optional):
        if names.count(column) > 1:
            raise ValueError(f"{path} must have one column `{column}`. Received: {names}.")
        if column in names:
            places[column] = names.index(column)
        elif column.isdecimal() and int(column) < len(names):
            places[column] = int(column)
        elif column in columns:
            missing.append(column)
    if missing:
        raise ValueError(
            f"{path} must have the columns {missing}. Received: a file of the columns {names}."
        )
    return places


def pick_keys(path, rows, columns, optional):
    """Takes some keys out of JSON lines. Args: rows: list of (line, dict). Returns: Columns."""
    check_not_empty(path, rows)
    values = {}
    for column in (*columns, *optional):
        lacking = [line for line, row in rows if row.get(column) is None]
        if column in optional and len(lacking) == len(rows):
            continue
        if lacking:
            raise ValueError(
                f"{path}, line {lacking[0]}: a row must have `{column}`. Received: "
                f"{shortened(dict(rows)[lacking[0]])}."
            )
        values[column] = [row[column] for _, row in rows]
    return Columns(path, [line for line, _ in rows], values, [])


def shortened(value, length=200):
    """Returns the beginning of what a value looks like."""
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}..."
