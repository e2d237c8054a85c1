"""A trained model in three lines of Python: what predict.py asks, asked from a program.

    from predictor import from_folder
    model = from_folder("output")
    model.classify(["A fine film.", "A waste of time."])

Every method takes many inputs at once, sorts them by length, and answers in the inputs' order. The
first call of a method builds its graph; all later calls reuse it, whatever their number and
length.

Shapes: n inputs, B batch, H hidden, L layers.
"""

import functools

import numpy as np

from runs import classified_rows, question_answers
from serving import prediction_features, prediction_results, trained_models, warm_model
from serving.warm_model import WarmModel


def from_folder(folder, *, max_seq_length=None, long_texts=None, batch_size=32):
    """Loads a trained model from its folder alone.

    Args:
        folder: a run's --output_dir, whose best weights are taken; or a Google or Hugging Face
            folder.
        max_seq_length: pieces of a sequence at most; None: as in training.
        long_texts: "refuse" raises ValueError for a longer text; "cut" cuts it, as training
            did; "windows" has `classify` read it in windows that overlap by half, whose logits
            are averaged, and is "refuse" elsewhere; None: "windows" for a classifier that was
            trained with them, else "refuse". Contexts of `answer` may always be of any length.
        batch_size: B at most.

    Returns:
        Predictor.

    Raises:
        FileNotFoundError: the folder lacks its config, its tokenizer or its weights.
        ValueError: they do not fit one another, or an argument is out of range.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Received: {batch_size}.")
    trained = trained_models.load(folder)
    reading = prediction_features.as_trained(trained, max_seq_length, long_texts)
    return Predictor(trained, reading, batch_size)


class Predictor:
    """A trained model that stays warm; `from_folder` makes it.

    Every method raises ValueError where the model has no head for it, or a text has more pieces
    than the model reads.

    Args:
        trained: trained_models.TrainedModel.
        reading: prediction_features.Reading.
        batch_size: B at most.
    """

    def __init__(self, trained, reading, batch_size):
        self.trained, self.reading = trained, reading
        self.warm = WarmModel(trained.model, reading.max_seq_length, batch_size)

    def fill_mask(self, texts, top_k=5):
        """Ranks the pieces for each [MASK] of each text by their probability.

        Args:
            texts: list of n str, each with one [MASK] or more.
            top_k: pieces for each mask.

        Returns:
            n lists with one list for each mask, in the text's order, of `top_k` dicts, the
            likeliest first: `piece` str, as the vocabulary has it, `probability` in [0, 1].
        """
        self.trained.check("fill-mask")
        tokenizer = self.trained.tokenizer
        if top_k < 1:
            raise ValueError(f"`top_k` must be at least 1. Received: {top_k}.")
        made = prediction_features.of_masks(checked(texts), tokenizer, self.reading)

        def more(batch):
            positions = warm_model.mask_positions(batch["input_ids"], tokenizer.mask_id)
            return {
                "masked_lm_positions": positions,
                "top_k": np.array(min(top_k, tokenizer.vocab_size), np.int32),
            }

        rows = self.warm.run("fill-mask", warm_model.masked_words, made, more)
        is_mask = np.array(made.sequences["input_ids"] == tokenizer.mask_id)
        num_masks = np.add.reduceat(is_mask.astype(int), made.offsets[:-1])
        return prediction_results.masks(rows, num_masks, tokenizer.pieces)

    def classify(self, texts):
        """Tells the class of each text, its labels, or its number, as the model was trained.

        Args:
            texts: list of n str, or of pairs (str, str).

        Returns:
            n dicts. For classes: `label` str, `probability`, and `probabilities`, dict of label
            to float in [0, 1]. For several labels a text: `labels`, list of those whose
            probability is over a half, and `probabilities`. For a number: `number` float.
        """
        self.trained.check("classify")
        in_windows = self.reading.long_texts == prediction_features.WINDOWS
        made = self._features(texts, in_windows)
        rows = self.warm.run("logits", warm_model.logits, made)
        logits = np.stack([row["logits"] for row in rows])  # float32[windows, C]
        logits = classified_rows.per_row(made, logits)  # float32[n, C]
        kind, labels = (self.trained.task[name] for name in ("kind", "labels"))
        return prediction_results.classes(logits, kind, labels)

    def answer(self, questions, contexts):
        """Cuts the answers to questions out of contexts.

        Args:
            questions: list of n str.
            contexts: list of n str of any length, or one str for all.

        Returns:
            n dicts: `answer` str, or None where there is none; `best` str, the likeliest one
            even so; `probability` in [0, 1] of `best` among the `n_best_size` likeliest;
            `start` and `end`, its characters in the context (exclusive). Of a model of SQuAD
            2.0 also `null_odds`, how much speaks for no answer, and `threshold`, the odds up
            to which there is one. `best`, `start` and `end` are None in a context of no text.
        """
        self.trained.check("answer")
        contexts = for_each(contexts, checked(questions))
        asked = prediction_features.question_set(questions, contexts)
        tokenizer = self.trained.tokenizer
        made, windows = prediction_features.of_questions(asked, tokenizer, self.reading)
        rows = self.warm.run("logits", warm_model.logits, made)
        outputs = {name: [row[name] for row in rows] for name in rows[0]}
        known = question_answers.Questions("", asked, made, windows)
        scores = question_answers.score(outputs, known, self.reading)
        return prediction_results.answers(scores, self.threshold, self.reading.n_best_size)

    @functools.cached_property
    def threshold(self):
        """The null odds up to which a question is answered: those tuned for the model, or 0."""
        return question_answers.threshold_of(self.trained.folder)

    def choose(self, questions, options, contexts):
        """Chooses among the options of questions about contexts.

        Args:
            questions: list of n str; an option stands in its blank `_`, or behind it.
            options: n lists of 2 to 5 str.
            contexts: list of n str, or one str for all.

        Returns:
            n dicts: `choice`, the option's number from 0, `option` str, `probability`, and
            `probabilities`, a float in [0, 1] for each option.
        """
        self.trained.check("choose")
        contexts = for_each(contexts, checked(questions))
        asked = prediction_features.choice_questions(questions, options, contexts)
        made = prediction_features.of_choices(asked, self.trained.tokenizer, self.reading)
        rows = self.warm.run("logits", warm_model.logits, made)
        return prediction_results.choices(rows, asked.options)

    def order(self, pairs):
        """Tells how likely it is that two segments are swapped: that B came before A.

        Args:
            pairs: list of n pairs (A str, B str), neighbours in a text.

        Returns:
            float32[n], probabilities in [0, 1].
        """
        self.trained.check("order")
        for pair in pairs:
            if isinstance(pair, str) or not all(pair):
                raise ValueError(f"Two segments must be given, A and B. Received: {pair!r}.")
        rows = self.warm.run("order", warm_model.sentence_order, self._features(pairs))
        return np.stack([row["probabilities"][1] for row in rows])

    def embed(self, texts, pooling="mean", layer=-1):
        """Turns texts into vectors of the encoder's hidden width.

        Args:
            texts: list of n str, or of pairs (str, str).
            pooling: "mean" over the real tokens, [CLS] and [SEP] among them; "cls", the first
                token; "pooled", what the pooler makes of the first token of the last layer.
            layer: 0 is the projected embeddings, L the last layer, as is -1; "all": each.

        Returns:
            float32[n, H], or float32[n, L + 1, H] of all layers.
        """
        self.check_embedding(pooling, layer)
        if layer != warm_model.ALL_LAYERS:
            # One graph for both names of a layer, and the last layer's is the short one.
            num_states = warm_model.num_states(self.trained.model)
            layer = -1 if layer % num_states == num_states - 1 else layer % num_states
        compute = warm_model.embeddings(pooling, layer)
        rows = self.warm.run(("embed", pooling, layer), compute, self._features(texts))
        return np.stack([row["vectors"] for row in rows])

    def check_embedding(self, pooling, layer):
        """Raises ValueError where `embed` could not give these; arguments as its own."""
        warm_model.check_embedding(self.trained.model, pooling, layer)
        if pooling == "pooled":
            self.trained.check("pool")

    def _features(self, texts, in_windows=False):
        tokenizer = self.trained.tokenizer
        return prediction_features.of_texts(checked(texts), tokenizer, self.reading, in_windows)


def checked(texts):
    """Returns texts or pairs; raises ValueError unless they are a list of at least one."""
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"A list of at least one text must be given. Received: {texts!r}.")
    for text in texts:
        parts = [text] if isinstance(text, str) else text
        if not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"A text must be a str, or a pair of them. Received: {text!r}.")
    return texts


def for_each(contexts, questions):
    """Returns a context for each question: the one given, or those given."""
    contexts = [contexts] * len(questions) if isinstance(contexts, str) else contexts
    if len(contexts) != len(questions):
        raise ValueError(
            "There must be a context for each question, or one for all. Received: "
            f"{len(contexts)} contexts, {len(questions)} questions."
        )
    return contexts
