"""Classification data sets as rows of one table: where their texts and labels are, how they score.

GLUE in the layout that its download script makes; Chinese sets in that of their release or
of the CLUE benchmark. One's own data makes a row too (data/classification_tables.py).
"""

import dataclasses
from collections.abc import Mapping

LABEL_KINDS = ("classes", "multilabel", "number")
ID_COLUMNS = ("index", "id")  # Taken where no other is named: a file's first of these.
NLI_LABELS = ("contradiction", "entailment", "neutral")  # The original's order.
RTE_LABELS = ("entailment", "not_entailment")
BINARY = ("0", "1")

TSV = {"train": ("train.tsv",), "dev": ("dev.tsv",), "test": ("test.tsv",)}
MNLI_FILES = {
    "train": ("train.tsv",),
    "dev_matched": ("dev_matched.tsv",),
    "dev_mismatched": ("dev_mismatched.tsv",),
    "test_matched": ("test_matched.tsv",),
    "test_mismatched": ("test_mismatched.tsv",),
}
CLUE_FILES = {  # CLUE's names first, then those of FewCLUE's whole few-shot sets.
    "train": ("train.json", "train_few_all.json"),
    "dev": ("dev.json", "dev_few_all.json"),
    "test": ("test.json", "test_public.json"),
}
OCNLI_FILES = {**CLUE_FILES, "train": ("train.json", "train.50k.json", "train_few_all.json")}
COLA_COLUMNS = ("source", "label", "mark", "sentence")  # Its train.tsv and dev.tsv name none.
LCQMC_COLUMNS = ("text_a", "text_b", "label")


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """One data set.

    Attributes:
        directory: the folder's name inside `data_dir`; the files may lie in `data_dir` too.
        text_columns: one, or two for a pair. Their names are the same in all files.
        label_column: may be missing in test files.
        labels: class names; a class's id is its place. Empty: the label is a number.
        metrics: names of evaluation/metrics.py; the first picks the best checkpoint.
        files: split -> names of its file, the first of which that exists is taken. A
            name that begins with "dev" or "test" is one of perhaps several such splits.
        headers: split -> column names, where the file has no line of them.
        label_kind: of LABEL_KINDS; "multilabel" labels a row, none to all.
        label_separator: between several labels in one cell; JSON lines may hold a list.
        id_column: empty: `index` or `id` where there is one, else rows count from 0.
        leave_out_broken: whether train and dev rows with another number of columns are
            left out and counted. QQP's official files hold some.
        left_out_labels: labels that mean there is none; such rows are left out and counted.
        submissions: split -> the name under which the GLUE site takes its predictions.
        ranked_label: of rows with the same first text, the class that just one belongs
            to; empty where there is no such rule (evaluation/ranking.py).
    """

    directory: str
    text_columns: tuple[str, ...]
    label_column: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=lambda: TSV)
    headers: Mapping[str, bool | tuple[str, ...]] = dataclasses.field(default_factory=dict)
    label_kind: str = "classes"
    label_separator: str = ","
    id_column: str = ""
    leave_out_broken: bool = False
    left_out_labels: tuple[str, ...] = ()
    submissions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ranked_label: str = ""

    def splits(self, kind):
        """Returns the names of the splits of one kind ("train", "dev" or "test"), in order."""
        return tuple(name for name in self.files if name.split("_")[0] == kind)

    @property
    def num_outputs(self):
        """Returns how many logits a head needs: one a class or label, or one for a number."""
        return len(self.labels) or 1


def _glue(directory, text_columns, label_column, labels, metrics, **more):
    """Returns the row of a GLUE task whose test.tsv is submitted as `<directory>.tsv`."""
    more = {"submissions": {"test": f"{directory}.tsv"}, **more}
    return ClassificationTask(directory, text_columns, label_column, labels, metrics, **more)


SENTENCES = ("sentence1", "sentence2")
ACCURACY = ("accuracy",)
TASKS = {
    "CoLA": _glue(
        "CoLA",
        ("sentence",),
        "label",
        BINARY,
        ("matthews", "accuracy"),
        headers={"train": COLA_COLUMNS, "dev": COLA_COLUMNS},
    ),
    "SST-2": _glue("SST-2", ("sentence",), "label", BINARY, ACCURACY),
    "MRPC": _glue("MRPC", ("#1 String", "#2 String"), "Quality", BINARY, ("accuracy", "f1")),
    "STS-B": _glue(
        "STS-B",
        SENTENCES,
        "score",
        (),
        ("pearson", "spearman", "mean_squared_error"),
        label_kind="number",
    ),
    # Differs from the original: it drops short rows in silence (classifier_utils.py:388).
    "QQP": _glue(
        "QQP",
        ("question1", "question2"),
        "is_duplicate",
        BINARY,
        ("accuracy", "f1"),
        leave_out_broken=True,
    ),
    "MNLI": _glue(
        "MNLI",
        SENTENCES,
        "gold_label",
        NLI_LABELS,
        ACCURACY,
        files=MNLI_FILES,
        submissions={"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
    ),
    "QNLI": _glue(
        "QNLI", ("question", "sentence"), "label", RTE_LABELS, ACCURACY, ranked_label="entailment"
    ),
    "RTE": _glue("RTE", SENTENCES, "label", RTE_LABELS, ACCURACY),
    "WNLI": _glue("WNLI", SENTENCES, "label", BINARY, ACCURACY, ranked_label="1"),
    # Unlabelled; predicted by a model of MNLI.
    "AX": _glue(
        "diagnostic",
        SENTENCES,
        "label",
        NLI_LABELS,
        ACCURACY,
        files={"test": ("diagnostic.tsv",)},
        submissions={"test": "AX.tsv"},
    ),
    "ChnSentiCorp": ClassificationTask("chnsenticorp", ("text_a",), "label", BINARY, ACCURACY),
    "LCQMC": ClassificationTask(
        "lcqmc",
        ("text_a", "text_b"),
        "label",
        BINARY,
        ACCURACY,
        headers=dict.fromkeys(TSV, LCQMC_COLUMNS),
    ),
    "TNEWS": ClassificationTask(
        "tnews",
        ("sentence",),
        "label",
        tuple(str(number) for number in range(100, 117) if number not in (105, 111)),
        ACCURACY,
        files=CLUE_FILES,
    ),
    "AFQMC": ClassificationTask("afqmc", SENTENCES, "label", BINARY, ACCURACY, files=CLUE_FILES),
    "OCNLI": ClassificationTask(
        "ocnli",
        SENTENCES,
        "label",
        NLI_LABELS,
        ACCURACY,
        files=OCNLI_FILES,
        left_out_labels=("-",),
    ),
    "CMNLI": ClassificationTask(
        "cmnli",
        SENTENCES,
        "label",
        NLI_LABELS,
        ACCURACY,
        files=CLUE_FILES,
        left_out_labels=("-",),
    ),
}
