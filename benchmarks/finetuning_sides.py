"""Who is compared in benchmarks/finetuning_scores.py: our program, a plain Hugging Face loop.

A side is a row: a function of (Job, folder of data, scratch folder, number of threads) that
fine-tunes and returns the dev metrics of the weights after the last step.
"""

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import numpy as np

from data import classification_tables
from data.classification_tasks import TASKS
from evaluation import metrics

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SELECTION_SEED = 0  # Which rows make a shortened training set; the same for all seeds and sides.
WARMUP = 0.1  # Of the steps: the programs' default, and the other loop's.
NEVER = 10**9  # Steps between evaluations: so the only one is that of the last weights.


@dataclasses.dataclass(frozen=True)
class Job:
    """What one side learns from one seed; two that differ in the side alone are compared."""

    task: str
    side: str
    seed: int
    encoder: str
    learning_rate: float
    train_batch_size: int
    max_seq_length: int
    dropout: float
    num_train_epochs: int
    max_train_rows: int | None


def shorten(job, data_dir, folder):
    """Writes the job's task with some of its training rows, the first of a seeded shuffle.

    Args:
        job: Job.
        data_dir: GLUE's folder.
        folder: where to write.

    Returns:
        The folder to read in place of `data_dir`; itself, where all rows train.
    """
    if job.max_train_rows is None:
        return data_dir
    task = TASKS[job.task]
    train, dev = (classification_tables.find_file(task, data_dir, s) for s in ("train", "dev"))
    with open(train, encoding="utf-8", newline="\n") as file:
        lines = file.readlines()
    header = lines[:1] if task.headers.get("train", True) is True else []
    rows = lines[len(header) :]
    order = np.random.default_rng(SELECTION_SEED).permutation(len(rows))
    chosen = [rows[row] for row in sorted(order[: job.max_train_rows])]
    inner = os.path.join(folder, task.directory)
    os.makedirs(inner)
    with open(os.path.join(inner, os.path.basename(train)), "w", encoding="utf-8") as file:
        file.writelines(header + chosen)
    shutil.copy(dev, inner)
    return folder


def read_examples(job, data_dir, split, tokenizer):
    """Tokenizes a split as Hugging Face's tokenizer does: list of dicts for `collate`."""
    task = TASKS[job.task]
    table = classification_tables.read(task, data_dir, split)
    texts = [texts for texts in (table.texts_a, table.texts_b) if texts]
    encoded = tokenizer(
        *texts, truncation=True, max_length=job.max_seq_length, return_token_type_ids=True
    )
    kind = float if task.label_kind == "number" else int
    columns = encoded["input_ids"], encoded["token_type_ids"], table.label_ids
    return [
        {"input_ids": ids, "token_type_ids": types, "label": kind(label)}
        for ids, types, label in zip(*columns, strict=True)
    ]


def run_hugging_face(job, data_dir, folder, num_threads):
    """Fine-tunes with PyTorch in this process."""
    del folder  # It keeps nothing.
    import torch
    import transformers

    from benchmarks import hugging_face_loop

    torch.set_num_threads(num_threads)
    torch.manual_seed(job.seed)
    task = TASKS[job.task]
    tokenizer = transformers.AutoTokenizer.from_pretrained(job.encoder)
    train, dev = (read_examples(job, data_dir, split, tokenizer) for split in ("train", "dev"))
    model = hugging_face_loop.pretrained(
        job.encoder,
        task.num_outputs,
        hidden_dropout_prob=job.dropout,
        attention_probs_dropout_prob=job.dropout,
    )
    batches = hugging_face_loop.random_batches(train, job.train_batch_size, job.seed)
    num_steps = len(batches) * job.num_train_epochs
    trainer = hugging_face_loop.Trainer(model, job.learning_rate, num_steps)
    for _ in range(job.num_train_epochs):
        for batch in batches:
            trainer.step(batch)
    logits = hugging_face_loop.predict(model, dev, job.train_batch_size)
    labels = np.array([example["label"] for example in dev])
    return metrics.score(task.metrics, labels, metrics.predictions(logits, task.label_kind))


def run_ours(job, data_dir, folder, num_threads, more_flags=()):
    """Fine-tunes with run_classifier.py, and reads the metrics that it writes."""
    output = os.path.join(folder, "output")
    settings = {
        "task": job.task,
        "data_dir": data_dir,
        "init_checkpoint": job.encoder,
        "output_dir": output,
        "learning_rate": job.learning_rate,
        "train_batch_size": job.train_batch_size,
        "max_seq_length": job.max_seq_length,
        "num_train_epochs": job.num_train_epochs,
        "hidden_dropout_prob": job.dropout,
        "attention_probs_dropout_prob": job.dropout,
        "save_checkpoints_steps": NEVER,
        "seed": job.seed,
    }
    threads = {f"TF_NUM_{kind}_THREADS": str(num_threads) for kind in ("INTRAOP", "INTEROP")}
    words = [*(f"--{name}={value}" for name, value in settings.items()), *more_flags]
    result = subprocess.run(
        [sys.executable, "run_classifier.py", *words],
        cwd=REPOSITORY,
        env=os.environ | threads,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
    with open(os.path.join(output, "metrics.jsonl"), encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["split"] != "train"]
    assert len(rows) == 1, f"One evaluation, after the last step. Received: {rows}."
    return {name: rows[0][name] for name in TASKS[job.task].metrics}


def run_ours_corrected(job, *arguments):
    """Fine-tunes with Adam as PyTorch has it, where ours is the original's by default."""
    return run_ours(job, *arguments, more_flags=["--bias_correction", "--epsilon=1e-8"])


def run_ours_matched(job, *arguments):
    """Fine-tunes so, and at the rates of Hugging Face's schedule once the warm-up is over.

    Its decay begins where the warm-up ends; the original's is counted from step 0 and lower.
    """
    rate = job.learning_rate / (1 - WARMUP)
    return run_ours_corrected(dataclasses.replace(job, learning_rate=rate), *arguments)


SIDES = {
    "hugging_face": run_hugging_face,
    "ours": run_ours,
    "ours_corrected": run_ours_corrected,
    "ours_matched": run_ours_matched,
}
