"""One's own data as a row of the table of tasks, without code."""

import collections
import dataclasses

from data import tables
from data.classification_tables import as_text, label_names, read_columns
from data.classification_tasks import LABEL_KINDS, ClassificationTask
from data.pretraining_examples import setting

METRICS = {  # The first picks the best checkpoint.
    "classes": ("accuracy", "macro_f1", "matthews"),
    "multilabel": ("micro_f1", "macro_f1", "accuracy"),
    "number": ("pearson", "spearman", "mean_squared_error"),
}
HEADERS = {"auto": None, "yes": True, "no": False}


@dataclasses.dataclass(frozen=True)
class CustomData:
    """Where one's own data is. Each field is a command-line flag too."""

    train_file: str = setting(
        "", "Rows to train on: .tsv (no quoting), .csv (quoted) or .jsonl (an object a line)."
    )
    dev_file: str = setting("", "Labelled rows to evaluate on.")
    test_file: str = setting("", "Rows that --do_predict predicts; labels may be missing.")
    text_columns: str = setting(
        "text",
        "The column of the text, or two for a pair, separated by a comma: names, or numbers "
        "from 0.",
    )
    label_column: str = setting("label", "The column of the label: its name, or number from 0.")
    id_column: str = setting(
        "", "The column of a row's id; by default `index` or `id`, else rows count from 0."
    )
    label_kind: str = setting(
        "classes", "One of some classes, several labels a row, or a number.", LABEL_KINDS
    )
    labels: str = setting(
        "",
        "The classes or labels, separated by commas; by default those found in --train_file, "
        "sorted as text.",
    )
    label_separator: str = setting(",", "What stands between several labels in one cell.")
    header: str = setting(
        "auto",
        "Whether the first line names the columns; auto: unless all columns are given by number.",
        tuple(HEADERS),
    )

    def __post_init__(self):
        if not (self.train_file or self.dev_file or self.test_file):
            raise ValueError(
                "`train_file`, `dev_file` or `test_file` must name a file of rows. Received: none."
            )
        if not 1 <= len(split_names(self.text_columns)) <= 2:
            raise ValueError(
                "`text_columns` must be one column, or two separated by a comma. Received: "
                f"{self.text_columns!r}."
            )
        labels = split_names(self.labels)
        if labels and (self.label_kind == "number" or len(set(labels)) < len(labels)):
            raise ValueError(
                "`labels` must be different names, and none for a number. Received: "
                f"labels={self.labels!r}, label_kind={self.label_kind!r}."
            )

    def has_header(self):
        """Says whether the first line of TSV and CSV names the columns."""
        if HEADERS[self.header] is not None:
            return HEADERS[self.header]
        columns = [*split_names(self.text_columns), self.label_column, self.id_column]
        return not all(column.isdecimal() for column in columns if column)


def split_names(names):
    return [name.strip() for name in names.split(",") if name.strip()]


def custom_task(custom, metrics=(), labels=()):
    """Makes the row of one's own data.

    Args:
        custom: CustomData.
        metrics: names of evaluation/metrics.py; by default METRICS of the label's kind.
        labels: names of the classes or labels, whatever is in them; by default those of `custom`.

    Returns:
        ClassificationTask, to be read with `data_dir=""`. It has the splits whose files are named.

    Raises:
        FileNotFoundError, ValueError: no labels are given and they cannot be found in the
            training file.
    """
    named = {"train": custom.train_file, "dev": custom.dev_file, "test": custom.test_file}
    named = {split: (path,) for split, path in named.items() if path}
    task = ClassificationTask(
        directory="",
        text_columns=tuple(split_names(custom.text_columns)),
        label_column=custom.label_column,
        labels=tuple(labels) or tuple(split_names(custom.labels)),
        metrics=tuple(metrics) or METRICS[custom.label_kind],
        files=named,
        headers=dict.fromkeys(named, custom.has_header()),
        label_kind=custom.label_kind,
        label_separator=custom.label_separator,
        id_column=custom.id_column,
    )
    if not task.labels and task.label_kind != "number":
        task = dataclasses.replace(task, labels=find_labels(task, custom.train_file))
    least = 1 if task.label_kind == "multilabel" else 2
    if task.label_kind != "number" and len(task.labels) < least:
        raise ValueError(f"`labels` must be at least {least}. Received: {list(task.labels)}.")
    return task


def find_labels(task, train_file):
    """Returns the labels of the training file, sorted as text: tuple[str, ...].

    A header that is read as a row would become a class of its own without anybody
    noticing, so a class that only the first line has is refused where no header is read.
    """
    if not train_file:
        raise ValueError("`labels` must be given where there is no `train_file`. Received: none.")
    columns = read_columns(task, train_file, "train")
    cells = columns.values[task.label_column]
    several = task.label_kind == "multilabel"
    rows = [label_names(task, cell) if several else [as_text(cell)] for cell in cells]
    counts = collections.Counter(name for names in rows for name in names)
    for line, names in zip(columns.lines, rows, strict=True):
        if any(not name or "\n" in name for name in names):
            raise ValueError(
                f"{train_file}, line {line}: a row must have a label, of one line. Received: "
                f"{tables.shortened(names)}."
            )
    if task.headers["train"] is False and any(counts[name] == 1 for name in rows[0]):
        raise ValueError(
            f"{train_file}, line 1: a label must occur on other lines too, or the line is taken "
            f"for a header. Received: {tables.shortened(cells[0])}. Say whether there is a header, "
            "or give `labels`."
        )
    return tuple(sorted(counts))
