"""Asks a trained model.

    python predict.py fill-mask --model_folder=output "The capital of [MASK] is Paris."

fill-mask ranks the pieces for each [MASK] of each text by their probability. Texts are
the words after `fill-mask`, one text each, or the lines of standard input.
"""

import sys

from absl import flags

import command_line

MODEL_FOLDER = flags.DEFINE_string(
    "model_folder", None, "A training run's --output_dir, or Google's or Hugging Face's folder."
)
TOP_K = flags.DEFINE_integer("top_k", 5, "Pieces shown for each mask.", lower_bound=1)


def load(folder):
    """Returns the model and the tokenizer of a run's folder.

    Raises:
        FileNotFoundError: the folder lacks its config, its tokenizer or its weights.
        ValueError: the weights are not those of the config.
    """
    import model_folder
    from modeling import models

    parts = {
        model_folder.CONFIG: model_folder.read_config(folder),
        model_folder.TOKENIZER: model_folder.read_tokenizer(folder),
    }
    for name, part in parts.items():
        if part is None:
            raise FileNotFoundError(
                f"`model_folder` must hold {name}, as a training run's --output_dir does. "
                f"Received: {folder}."
            )
    model = models.PretrainingModel(parts[model_folder.CONFIG])
    needed = ("bert/", "cls/predictions/")
    model_folder.load_weights(model.named_variables(), folder, required_prefix=needed)
    return model, parts[model_folder.TOKENIZER]


def masked_ids(model, tokenizer, text):
    """Turns a text into ids, list[int], with [CLS] before it and [SEP] behind.

    Raises:
        ValueError: there is no mask, or the text is too long for the model.
    """
    ids = [tokenizer.cls_id, *tokenizer.encode(text, allow_markers=True), tokenizer.sep_id]
    if tokenizer.mask_id not in ids:
        raise ValueError(f"A text must hold at least one [MASK]. Received: {text!r}.")
    most = model.settings["config"]["max_position_embeddings"]
    if len(ids) > most:
        raise ValueError(
            f"A text must have at most {most} pieces, [CLS] and [SEP] among them. Received: "
            f"{len(ids)} pieces in {text[:60]!r}..."
        )
    return ids


def fill_mask(model, tokenizer, ids, top_k):
    """Ranks the pieces for each mask of one text.

    Args:
        model: PretrainingModel.
        tokenizer: a Tokenizer.
        ids: list[int] of `masked_ids`.
        top_k: int, pieces for each mask.

    Returns:
        For each mask, a list of top_k (piece, probability), the likeliest first.
    """
    import numpy as np
    import tensorflow as tf

    positions = [index for index, piece in enumerate(ids) if piece == tokenizer.mask_id]
    batch = {
        "input_ids": tf.constant([ids]),
        "input_mask": tf.ones([1, len(ids)], tf.int32),
        "segment_ids": tf.zeros([1, len(ids)], tf.int32),
        "masked_lm_positions": tf.constant([positions]),
    }
    probabilities = tf.nn.softmax(model(batch)["masked_lm_logits"][0]).numpy()  # float[P, V]
    best = np.argsort(-probabilities, axis=1)[:, :top_k]
    return [
        [(tokenizer.pieces[piece], float(row[piece])) for piece in pieces]
        for row, pieces in zip(probabilities, best, strict=True)
    ]


def shown(piece):
    """Returns a piece as a reader wants it: a word by itself, a continuation after a dash."""
    return piece[1:] if piece.startswith("\u2581") and piece[1:] else piece


def main(words):
    if words[:1] != ["fill-mask"]:
        raise ValueError(
            f"The first word must be fill-mask. Received: {' '.join(words[:1]) or 'nothing'}."
        )
    if not MODEL_FOLDER.value:
        raise ValueError("`model_folder` must name a training run's folder. Received: nothing.")
    texts = words[1:] or [line.strip() for line in sys.stdin if line.strip()]
    if not texts:
        raise ValueError("A text must be given, as a word or on standard input. Received: none.")
    command_line.prepare_tensorflow()
    command_line.compile_quietly()
    model, tokenizer = load(MODEL_FOLDER.value)
    for text, ids in [(text, masked_ids(model, tokenizer, text)) for text in texts]:
        print(text)
        for ranked in fill_mask(model, tokenizer, ids, TOP_K.value):
            print("   ", "  ".join(f"{shown(piece)} {100 * p:.1f}%" for piece, p in ranked))


if __name__ == "__main__":
    command_line.run(main, takes_arguments=True)
