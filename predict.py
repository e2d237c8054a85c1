"""Asks a trained model, from its folder alone.

    python predict.py fill-mask --model_folder=output "The capital of [MASK] is Paris."
    python predict.py order --model_folder=output "He opened the door." "Then he left."
    python predict.py embed --model_folder=output --input_file=texts.txt --output_file=texts.npy
    python predict.py classify --model_folder=mrpc --text_b="Ada left." "Ada went away."
    python predict.py answer --model_folder=squad --context="Ada was born in London." "Where?"
    python predict.py choose --model_folder=race --context="Tom ate." --question="Tom was _ ." \\
        hungry asleep

fill-mask  ranks the pieces for each [MASK]; of a pretrained model, as are order and embed
order      tells how likely two segments are swapped: that the second came first
embed      turns texts into vectors, JSON lines or .npy; of any model
classify   tells classes, labels or a number, of texts or pairs; trained by run_classifier.py
answer     cuts the answers to questions out of a context; trained by run_squad.py
choose     chooses among options; trained by run_race.py

What is asked are the words behind the command, the rows of --input_file, or the lines of standard
input, each answered as it comes. A line holds a text; classify: text [TAB text_b]; order: text_a
TAB text_b; answer: question TAB context; choose: a passage of RACE, a JSON object. A file holds
such lines; or named columns (.csv, .jsonl, .json, --text_columns); or SQuAD's JSON; or RACE's
passages.
"""

import dataclasses
import io
import json
import sys

from absl import flags

import command_line
from data import files
from serving import prediction_inputs
from serving.prediction_commands import COMMANDS, as_list, check, told

MODEL_FOLDER = flags.DEFINE_string(
    "model_folder", None, "A training run's --output_dir, or Google's or Hugging Face's folder."
)
INPUT_FILE = flags.DEFINE_string("input_file", None, "File of what is asked.")
TEXT_COLUMNS = flags.DEFINE_list("text_columns", [], "Names of the columns of --input_file.")
JSON = flags.DEFINE_bool("json", False, "Whether to print one JSON object for each answer.")
OUTPUT_FILE = flags.DEFINE_string(
    "output_file", None, "embed: .npy or .jsonl for the vectors, in the order of the texts."
)
TOP_K = flags.DEFINE_integer(
    "top_k", 5, "fill-mask, classify: pieces or labels that are shown.", lower_bound=1
)
TEXT_B = flags.DEFINE_string("text_b", None, "classify: the second text of each pair.")
CONTEXT = flags.DEFINE_string("context", None, "answer, choose: what the questions are about.")
QUESTION = flags.DEFINE_string("question", None, "answer, choose: a question about --context.")
POOLING = flags.DEFINE_enum(
    "pooling",
    "mean",
    ["mean", "cls", "pooled"],
    "embed: mean over the real tokens; the first token; or the pooler's output.",
)
LAYER = flags.DEFINE_string(
    "layer", "-1", "embed: 0, the projected embeddings, to the last layer, -1; or all."
)
LONG_TEXTS = flags.DEFINE_enum(
    "long_texts",
    None,
    ["refuse", "cut", "windows"],
    "What becomes of a text that is longer than the model reads: an error; cut, as in training; "
    "classify: read in windows that overlap by half, whose logits are averaged. Not given: windows "
    "where the model was trained with them, an error otherwise.",
)
MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length", None, "Pieces that the model reads at most. Not given: as in training."
)
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Texts computed together.", lower_bound=1)

GIVEN = {"text_b": TEXT_B, "context": CONTEXT, "question": QUESTION}  # Columns that flags give.


def choose_command(words):
    """Returns (name, Command) of the first word; raises ValueError for an unknown one."""
    if words[:1] and words[0] in COMMANDS:
        return words[0], COMMANDS[words[0]]
    raise ValueError(
        f"The first word must be one of {', '.join(COMMANDS)}. Received: "
        f"{' '.join(words[:1]) or 'nothing'}."
    )


def check_flags(name, command):
    """Refuses flags that are missing, or that are another command's."""
    if not MODEL_FOLDER.value:
        raise ValueError("`model_folder` must name a training run's folder. Received: nothing.")
    for flag in sorted({flag for other in COMMANDS.values() for flag in other.flags}):
        if command_line.is_given(flag) and flag not in command.flags:
            users = [other for other in COMMANDS if flag in COMMANDS[other].flags]
            raise ValueError(f"`{flag}` is for {', '.join(users)}. Received: {name}.")
    if LONG_TEXTS.value == "windows" and name != "classify":
        raise ValueError(f"`long_texts` windows is for classify. Received: {name}.")
    if OUTPUT_FILE.value and not OUTPUT_FILE.value.endswith((".npy", ".jsonl")):
        raise ValueError(
            f"`output_file` must end in .npy or .jsonl. Received: {OUTPUT_FILE.value}."
        )
    if TEXT_COLUMNS.value and not INPUT_FILE.value:
        raise ValueError("`text_columns` are those of `input_file`. Received: no `input_file`.")


def layer():
    """Returns what --layer says: an int, or "all"."""
    try:
        return LAYER.value if LAYER.value == "all" else int(LAYER.value)
    except ValueError:
        raise ValueError(
            f"`layer` must be a whole number or all. Received: {LAYER.value}."
        ) from None


def read_rows(words, form):
    """Returns the rows of the words, the flags or the file; None: they are on standard input."""
    if words and INPUT_FILE.value:
        raise ValueError(
            f"What is asked comes as words or in `input_file`. Received: both, {words[0]!r} and "
            f"{INPUT_FILE.value}."
        )
    if form.kind == "passages" and form.given and not words:
        raise ValueError(
            f"`{' and '.join(form.given)}` need options, as words. Received: none; a file or "
            "standard input holds passages with questions and options of their own."
        )
    if form.kind == "questions" and not form.asked:
        if words or INPUT_FILE.value:
            raise ValueError(
                "`context` and `question` ask one question. Received: them, and "
                f"{words[0] if words else INPUT_FILE.value!r}."
            )
        return [form.given]
    if INPUT_FILE.value:
        return prediction_inputs.from_file(INPUT_FILE.value, form, TEXT_COLUMNS.value)
    return prediction_inputs.from_words(words, form) if words else None


def lines_of(command, row, result):
    """Returns the text that is printed for one answer."""
    if JSON.value or command.show is None:
        return json.dumps(told(row, result), ensure_ascii=False, default=as_list)
    return "\n".join(command.show(row, result, TOP_K.value))


def answer_rows(command, ask, rows):
    """Answers all rows at once; prints the answers, or writes vectors to --output_file."""
    results = ask(rows)
    texts = (lines_of(command, *pair) for pair in zip(rows, results, strict=True))
    path = OUTPUT_FILE.value
    if not path:
        for text in texts:
            print(text)
    elif path.endswith(".npy"):
        import numpy as np

        content = io.BytesIO()
        np.save(content, np.array([result["embedding"] for result in results], np.float32))
        files.write_bytes(path, content.getvalue())
    else:
        files.write_bytes(path, "".join(f"{text}\n" for text in texts).encode())
    if path:
        print(f"vectors of {len(rows):,} texts: {path}")


def answer_stream(command, ask, form):
    """Answers each line of standard input as it comes; one that is wrong costs a line of its own.

    Raises:
        ValueError: there was no line, or some had no answer.
    """
    num_lines = num_wrong = 0
    for place, rows in prediction_inputs.from_stream(sys.stdin, form):
        num_lines += 1
        try:
            if isinstance(rows, ValueError):
                raise rows
            for row, result in zip(rows, ask(rows), strict=True):
                print(lines_of(command, row, result), flush=True)
        except ValueError as error:
            num_wrong += 1
            message = command_line.one_line(error)
            message = message if message.startswith(place) else f"{place}: {message}"
            print(f"error: {message}", file=sys.stderr, flush=True)
            if JSON.value:  # So that answers and lines are in step.
                print(json.dumps({"error": message}, ensure_ascii=False), flush=True)
    if not num_lines:
        raise ValueError(
            "A text must be given, as a word, in `input_file` or on standard input. Received: none."
        )
    if num_wrong:
        raise ValueError(f"{num_wrong:,} of {num_lines:,} lines have no answer.")


def main(words):
    name, command = choose_command(words)
    check_flags(name, command)
    given = {column: flag.value for column, flag in GIVEN.items() if flag.value is not None}
    form = dataclasses.replace(command.form, given=given)
    options = {"top_k": TOP_K.value, "pooling": POOLING.value, "layer": layer()}
    rows = read_rows(words[1:], form)
    command_line.prepare_tensorflow()
    command_line.compile_quietly()
    import predictor

    model = predictor.from_folder(
        MODEL_FOLDER.value,
        max_seq_length=MAX_SEQ_LENGTH.value,
        long_texts=LONG_TEXTS.value,
        batch_size=BATCH_SIZE.value,
    )
    check(model, name, options)

    def ask(rows):
        return command.ask(model, rows, options)

    if rows is None and OUTPUT_FILE.value:
        rows = prediction_inputs.of_lines(prediction_inputs.LINES, sys.stdin.read(), form)
    if rows is None:
        answer_stream(command, ask, form)
    else:
        answer_rows(command, ask, rows)


if __name__ == "__main__":
    command_line.run(main, takes_arguments=True)
