"""What predict.py is asked: words of the command line, lines, or the rows of a file.

A row is a dict of str by the names in a Form's columns; `id` where a file has one.
"""

import dataclasses
import json
import os
import re

from data import files, race, squad, tables

TAB = "\t"
WITH_HEADER = (".csv", ".jsonl", ".json")  # Files whose columns have names.
LINES = "standard input"


@dataclasses.dataclass(frozen=True)
class Form:
    """What a row of a command holds.

    Attributes:
        columns: names of its parts, in the order in which they stand in a line, TAB between.
        num_optional: how many of the last ones may be missing.
        given: dict of column to the value that a flag gives for all rows.
        kind: "texts"; "questions", whose files may be SQuAD's; or "passages", RACE's, in lines
            too.
    """

    columns: tuple[str, ...]
    num_optional: int = 0
    given: dict[str, str] = dataclasses.field(default_factory=dict)
    kind: str = "texts"

    @property
    def asked(self):
        """The columns that no flag gives."""
        return [column for column in self.columns if column not in self.given]

    @property
    def least(self):
        """How many columns must be there."""
        return max(1, len(self.asked) - self.num_optional)

    def row(self, parts, place):
        """Returns the row of some parts; raises ValueError where they are too few or too many."""
        if not self.least <= len(parts) <= len(self.asked):
            names = [f"[{name}]" for name in self.asked[self.least :]]
            raise ValueError(
                f"{place}: there must be {' TAB '.join([*self.asked[: self.least], *names])}. "
                f"Received: {tables.shortened(TAB.join(parts))}."
            )
        return self.given | dict(zip(self.asked, parts, strict=False))


def from_words(words, form):
    """Returns the rows of the command line's words.

    Each word is a row, whose parts TAB may part; where a row has two parts at least, two words are
    one; with passages the words are the options of one question.

    Raises:
        ValueError: the words are too few or too many.
    """
    if form.kind == "passages":
        if missing := form.asked:
            raise ValueError(
                f"Options need `context` and `question`. Received: no {' and no '.join(missing)}."
            )
        return [{**form.given, "options": words}]
    if form.least > 1 and not any(TAB in word for word in words):
        return [form.row(words, "the words")]
    return [row for word in words for row in from_line(word, form, "a word")]


def from_line(line, form, place):
    """Returns the rows of a line: one, or those of a passage's questions.

    Args:
        line: str.
        form: Form.
        place: str, where it stands, for messages.

    Raises:
        ValueError: it does not hold what the form says.
    """
    if form.kind != "passages":
        return [form.row(line.split(TAB) if len(form.asked) > 1 else [line], place)]
    try:
        passage = json.loads(line)
    except ValueError:
        raise race.fault(place, "a passage must be one JSON object", line) from None
    return of_passage(race.checked_passage(passage, place, 1), place)


def of_passage(passage, place):
    """Returns a row for each question of a passage."""
    return [
        {
            "id": f"{passage['id']}-{number}",
            "question": question,
            "options": options,
            "context": passage["article"],
        }
        for number, (question, options, _) in enumerate(race.questions_of(passage, place))
    ]


def from_file(path, form, text_columns=()):
    """Reads the rows of a file.

    Args:
        path: str. Passages are in RACE's form. Questions may be SQuAD's (`.json`). Otherwise
            `.csv`, `.jsonl` and `.json` have named columns, and so have other files with
            `text_columns`; without, they have a row a line.
        form: Form.
        text_columns: names of the columns that are the form's; empty: those of the same name,
            which may be missing where the form says so.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not in that form, or has no rows; the line is named.
    """
    if not files.exists(path):
        raise FileNotFoundError(f"`input_file` must exist. Received: {path}.")
    ending = os.path.splitext(path)[1]
    if form.kind == "passages":
        passages = race.read_passages(path)
        rows = [row for _, n, one in passages for row in of_passage(one, f"{path}, line {n}")]
    elif form.kind == "questions" and ending == ".json" and not text_columns:
        if form.given:
            raise ValueError(
                f"{path} has contexts and questions of its own. Received: it, and "
                f"`{' and '.join(form.given)}`."
            )
        rows = of_questions(squad.read(path, "2.0"))
    elif text_columns or ending in WITH_HEADER:
        rows = of_table(path, form, text_columns)
    else:
        rows = of_lines(path, tables.read_text(path), form)
    if not rows:
        raise ValueError(f"{path} must hold at least one row. Received: none.")
    return rows


def of_questions(asked):
    """Returns a row for each question of a squad.QuestionSet."""
    return [
        {"id": one.id, "question": one.text, "context": asked.contexts[one.context_index]}
        for one in asked.questions
    ]


def of_table(path, form, text_columns):
    """Reads rows by the names of columns; `id` is taken where there is one."""
    columns = list(text_columns) or form.asked[: form.least]
    form.row(columns, f"`text_columns` {','.join(columns)}")
    optional = [] if text_columns else form.asked[form.least :]
    beside = [] if "id" in columns else ["id"]
    found = tables.read(path, columns, optional=[*optional, *beside])
    columns += [column for column in optional if column in found.values]
    ids = [{"id": id} for id in found.values.get("id", [])] or [{}] * len(found.lines)
    rows = []
    for number, line in enumerate(found.lines):
        parts = [found.values[column][number] for column in columns]
        if not all(isinstance(part, str) for part in parts):
            raise ValueError(
                f"{path}, line {line}: {', '.join(columns)} must be text. Received: {parts}."
            )
        rows.append(ids[number] | form.row(parts, f"{path}, line {line}"))
    return rows


def of_lines(path, text, form):
    """Returns the row of each line; a blank one would shift those behind it against the answers.

    Args:
        path: str, for messages.
        text: str, what it holds.
        form: Form.
    """
    rows = []
    for number, line in enumerate(re.split(r"\r?\n", text.rstrip()) if text.strip() else [], 1):
        if not line.strip():
            raise ValueError(f"{path}, line {number} must hold a text. Received: a blank line.")
        rows += from_line(line, form, f"{path}, line {number}")
    return rows


def from_stream(stream, form):
    """Yields what each line of a stream holds, as it comes; blank lines are left out.

    Args:
        stream: iterable of str.
        form: Form.

    Yields:
        (place of the line, its rows, or the ValueError that says what is wrong with it).
    """
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        place = f"{LINES}, line {number}"
        try:
            yield place, from_line(line.strip("\r\n"), form, place)
        except ValueError as error:
            yield place, error
