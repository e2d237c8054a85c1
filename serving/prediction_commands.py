"""The commands of predict.py: what each is asked, how it answers, how that is shown.

Only predict.py imports this module.
"""

import dataclasses
from collections.abc import Callable

from serving.prediction_inputs import Form

WORD_START = "\u2581"
INDENT = " " * 4  # Before an answer, below what was asked.
NOT_TOLD = ("context", "options")  # Of a row, in JSON: they may be long, and are known.


@dataclasses.dataclass(frozen=True)
class Command:
    """One of predict.py's commands.

    Attributes:
        form: prediction_inputs.Form of its rows.
        flags: names of the flags that it takes beside those that all take.
        ask: function of (predictor.Predictor, rows, dict of its flags' values) to a dict for
            each row.
        show: function of (row, its dict, top_k) to the lines that a reader sees; None: JSON.
    """

    form: Form
    flags: tuple[str, ...]
    ask: Callable
    show: Callable


def column(rows, name):
    return [row[name] for row in rows]


def told(row, result):
    """Returns the dict of one answer, of JSON values: what was asked, then what is answered."""
    return {name: value for name, value in row.items() if name not in NOT_TOLD} | result


def percent(probability):
    return f"{100 * probability:.1f}%"


def piece(text):
    """Returns a piece as a reader wants it: a word by itself, without its mark."""
    return text[1:] if text.startswith(WORD_START) and text[1:] else text


def fill_mask(model, rows, options):
    masks = model.fill_mask(column(rows, "text"), options["top_k"])
    return [{"masks": of_text} for of_text in masks]


def show_masks(row, result, top_k):
    lines = [
        "  ".join(f"{piece(one['piece'])} {percent(one['probability'])}" for one in ranked)
        for ranked in result["masks"]
    ]
    return [row["text"], *(f"{INDENT}{line}" for line in lines)]


def order(model, rows, options):
    pairs = [(row["text_a"], row["text_b"]) for row in rows]
    return [{"swapped": float(probability)} for probability in model.order(pairs)]


def show_order(row, result, top_k):
    probability = result["swapped"]
    said = f"swapped {percent(probability)}  in order {percent(1 - probability)}"
    return [f"{row['text_a']} | {row['text_b']}", f"{INDENT}{said}"]


def embed(model, rows, options):
    vectors = model.embed(column(rows, "text"), options["pooling"], options["layer"])
    return [{"embedding": vector} for vector in vectors]


def as_list(vectors):
    """Returns float32[..., H] as lists; nine digits tell a float32 exactly."""
    if vectors.ndim > 1:
        return [as_list(vector) for vector in vectors]
    return [float(f"{value:.9g}") for value in vectors]


def check(model, name, options):
    """Raises ValueError where a predictor.Predictor cannot answer a command at all."""
    if name == "embed":
        model.check_embedding(options["pooling"], options["layer"])
    else:
        model.trained.check(name)


def classify(model, rows, options):
    return model.classify(
        [(row["text"], row["text_b"]) if "text_b" in row else row["text"] for row in rows]
    )


def show_classes(row, result, top_k):
    text = " | ".join(row[name] for name in ("text", "text_b") if name in row)
    if "number" in result:
        return [text, f"{INDENT}{result['number']:.4f}"]
    ranked = sorted(result["probabilities"].items(), key=lambda pair: -pair[1])[:top_k]
    line = "  ".join(f"{label} {percent(probability)}" for label, probability in ranked)
    if "labels" in result:
        line = f"{', '.join(result['labels']) or 'none'}  ({line})"
    return [text, f"{INDENT}{line}"]


def answer(model, rows, options):
    return model.answer(column(rows, "question"), column(rows, "context"))


def show_answer(row, result, top_k):
    said = f"{result['best']} {percent(result['probability'])}"
    odds = ""
    if "null_odds" in result:
        odds = f"null odds {result['null_odds']:.4f}, threshold {result['threshold']:.4f}"
    if result["answer"] is None:
        likeliest = "" if result["best"] is None else f"likeliest otherwise: {said}"
        why = "; ".join(filter(None, [odds, likeliest]))
        return [row["question"], f"{INDENT}no answer" + (f"  ({why})" if why else "")]
    return [row["question"], f"{INDENT}{said}" + (f"  ({odds})" if odds else "")]


def choose(model, rows, options):
    names = ("question", "options", "context")
    return model.choose(*(column(rows, name) for name in names))


def show_choice(row, result, top_k):
    options = zip(row["options"], result["probabilities"], strict=True)
    line = "  ".join(f"{option} {percent(probability)}" for option, probability in options)
    return [row["question"], f"{INDENT}{result['option']}  ({line})"]


CUT = "long_texts"
COMMANDS = {
    "fill-mask": Command(Form(("text",)), ("top_k",), fill_mask, show_masks),
    "order": Command(Form(("text_a", "text_b")), (CUT,), order, show_order),
    "embed": Command(Form(("text",)), ("output_file", "pooling", "layer", CUT), embed, show=None),
    "classify": Command(
        Form(("text", "text_b"), num_optional=1), ("top_k", "text_b", CUT), classify, show_classes
    ),
    "answer": Command(
        Form(("question", "context"), kind="questions"),
        ("context", "question", CUT),
        answer,
        show_answer,
    ),
    "choose": Command(
        Form(("question", "context"), kind="passages"),
        ("context", "question", CUT),
        choose,
        show_choice,
    ),
}
