"""From what a trained model is asked to its features; what is too long is refused or cut.

Only programs and `predictor` import this module. n: examples, T: tokens.
"""

import dataclasses

import numpy as np

from data import classification, features, multiple_choice, race, span_windows, squad
from data.classification_tables import Table
from serving import trained_models

WITHOUT_END = 1 << 30  # Pieces; more than any text has.
REFUSE, CUT, WINDOWS = LONG_TEXTS = ("refuse", "cut", "windows")


@dataclasses.dataclass(frozen=True)
class Reading:
    """How a model reads: as it was trained to, by the settings of these names in its folder.

    Attributes:
        max_seq_length: int, pieces of a sequence, special ones included.
        long_texts: one of LONG_TEXTS: whether what is longer is refused; cut as in training; or,
            where it is to be classified, read in windows, and refused elsewhere.
        max_qa_length: int, pieces of a question and an option together.
        doc_stride: int, pieces from one window over a context to the next.
        max_query_length: int, pieces of a question about a context.
        max_answer_length: int, pieces of an answer.
        n_best_size: int, answers among which an answer's probability is.
    """

    max_seq_length: int
    long_texts: str = REFUSE
    max_qa_length: int = 128
    doc_stride: int = 128
    max_query_length: int = 64
    max_answer_length: int = 30
    n_best_size: int = 20

    def __post_init__(self):
        if self.long_texts not in LONG_TEXTS:
            raise ValueError(
                f"`long_texts` must be one of {LONG_TEXTS}. Received: {self.long_texts!r}."
            )

    @property
    def cuts(self):
        return self.long_texts == CUT

    @property
    def windows(self):
        """How contexts are read: span_windows.WindowSettings."""
        return span_windows.WindowSettings(
            self.max_seq_length, self.doc_stride, self.max_query_length
        )


def kept_long_texts(trained):
    """Returns WINDOWS where a classifier's folder says that it reads long texts so, else None."""
    is_classifier = bool(trained.task) and trained.task["kind"] in trained_models.CLASSIFICATION
    in_windows = is_classifier and trained.settings.get("long_texts") == WINDOWS
    return WINDOWS if in_windows else None


def as_trained(trained, max_seq_length=None, long_texts=None):
    """Returns the Reading that a model was trained with.

    Args:
        trained: trained_models.TrainedModel.
        max_seq_length: in place of the one that it was trained with, or None. A model without
            a run's settings takes as much as its table of positions reaches.
        long_texts: as of Reading; None: WINDOWS where the folder says so, else REFUSE.

    Raises:
        ValueError: the model's table of positions is shorter.
    """
    kept = {
        field.name: trained.settings[field.name]
        for field in dataclasses.fields(Reading)
        if trained.settings.get(field.name) is not None
    }
    asked = {"long_texts": long_texts or kept_long_texts(trained) or REFUSE}
    asked["max_seq_length"] = max_seq_length or kept.get("max_seq_length") or trained.longest
    if not 1 <= asked["max_seq_length"] <= trained.longest:
        raise ValueError(
            "`max_seq_length` must lie within what the model was made for. Received: "
            f"max_seq_length={asked['max_seq_length']}, max_position_embeddings={trained.longest}."
        )
    return Reading(**{**kept, **asked})


def of_masks(texts, tokenizer, reading):
    """Returns Features of n texts: [CLS] text [SEP], in which [MASK] stands for itself.

    Raises:
        ValueError: a text has no mask, or too many pieces; none is ever cut.
    """
    sequences = [
        [tokenizer.cls_id, *tokenizer.encode(text, allow_markers=True), tokenizer.sep_id]
        for text in texts
    ]
    for text, ids in zip(texts, sequences, strict=True):
        if tokenizer.mask_id not in ids:
            raise ValueError(f"A text must hold at least one [MASK]. Received: {text!r}.")
    made = features.pack([{"input_ids": ids, "segment_ids": [0] * len(ids)} for ids in sequences])
    check_lengths(made, reading, texts)
    return made


def of_texts(texts, tokenizer, reading, in_windows=False):
    """Returns Features of n texts, each a str, or a pair of them: [CLS] A [SEP] B [SEP].

    A pair whose second text has no pieces is a single text, as in training. With `in_windows` a
    long text may have several examples, as of `classification.make_features`.

    Raises:
        ValueError: a text has too many pieces, and is neither to be cut nor read in windows.
    """
    pairs = [(text, "") if isinstance(text, str) else tuple(text) for text in texts]
    table = Table("", [""] * len(pairs), [a for a, _ in pairs], [b for _, b in pairs], None)
    longest = reading.max_seq_length if reading.cuts or in_windows else WITHOUT_END
    made = classification.make_features(table, tokenizer, longest, in_windows=in_windows)
    if longest == WITHOUT_END:
        check_lengths(made, reading, [" ".join(pair) for pair in pairs])
    return made


def of_choices(questions, tokenizer, reading):
    """Returns Features of race.Questions.

    Raises:
        ValueError: a context, question and option have too many pieces together, or question
            and option have, and they are not to be cut.
    """
    lengths = (reading.max_seq_length, reading.max_qa_length)
    if reading.cuts:
        return multiple_choice.make_features(questions, tokenizer, *lengths)
    made = multiple_choice.make_features(questions, tokenizer, WITHOUT_END, WITHOUT_END)
    check_lengths(made, reading, questions.questions)
    seconds = np.concatenate([[0], np.cumsum(made.sequences["segment_ids"])])[made.offsets]
    longest = np.diff(seconds).reshape(len(made), -1).max(axis=1) - 1  # Without [SEP].
    refuse_longer(
        longest,
        reading.max_qa_length,
        questions.questions,
        "A question and an option must have at most {} pieces together.",
    )
    return made


def of_questions(questions, tokenizer, reading):
    """Returns (Features, span_windows.Windows) of a squad.QuestionSet.

    A context may be of any length: it is read through several windows.

    Raises:
        ValueError: a question has too many pieces, and is not to be cut.
    """
    if not reading.cuts:
        texts = [question.text for question in questions.questions]
        lengths = np.array([len(tokenizer.encode(text)) for text in texts])
        problem = "A question must have at most {} pieces."
        refuse_longer(lengths, reading.max_query_length, texts, problem)
    made, windows, _ = span_windows.make_windows(questions, tokenizer, reading.windows)
    return made, windows


def check_lengths(made, reading, texts):
    """Raises ValueError where Features hold a sequence that the model does not take."""
    problem = "A text must have at most {} pieces, [CLS] and [SEP] among them."
    refuse_longer(made.lengths(), reading.max_seq_length, texts, problem)


def refuse_longer(lengths, most, texts, problem):
    """Raises ValueError that names the first text whose length is over `most`.

    Args:
        lengths: int[n], in pieces.
        most: int.
        texts: n str.
        problem: str, the first sentence, with {} for `most`.
    """
    for number in np.flatnonzero(lengths > most)[:1]:
        raise ValueError(
            f"{problem.format(most)} Received: {lengths[number]} pieces in "
            f"{texts[number][:60]!r}..."
        )


def question_set(questions, contexts):
    """Returns a squad.QuestionSet of n questions about n contexts; equal ones are read once."""
    numbers = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    asked = [
        squad.Question(str(number), question, numbers[context])
        for number, (question, context) in enumerate(zip(questions, contexts, strict=True))
    ]
    return squad.QuestionSet(list(numbers), asked)


def choice_questions(questions, options, contexts):
    """Returns race.Questions of n questions with their options, about n contexts.

    Raises:
        ValueError: a question has too few options, or too many.
    """
    if len(options) != len(questions):
        raise ValueError(
            "There must be options for each question. Received: "
            f"{len(options)} lists of options, {len(questions)} questions."
        )
    for question, texts in zip(questions, options, strict=True):
        if not 2 <= len(texts) <= len(race.LETTERS):
            raise ValueError(
                f"The options of a question must be 2 to {len(race.LETTERS)}. Received: "
                f"{len(texts)} for {question[:60]!r}."
            )
    numbers = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    return race.Questions(
        ids=[str(number) for number in range(len(questions))],
        levels=[""] * len(questions),
        articles=list(numbers),
        article_numbers=np.array([numbers[context] for context in contexts]),
        questions=list(questions),
        options=[list(texts) for texts in options],
        label_ids=None,
    )
