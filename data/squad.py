"""Questions about paragraphs: SQuAD 1.1 and 2.0 files, and the Chinese sets in their form.

CMRC 2018 has a form of its own besides, which is read too; DRCD has SQuAD's.
"""

import collections
import dataclasses
import functools
import json
import os
import re

from data import files

VERSIONS = ("1.1", "2.0")


@dataclasses.dataclass(frozen=True)
class Question:
    """One question about one paragraph.

    Attributes:
        id: str.
        text: str.
        context_index: int, which of the file's contexts it asks about.
        answers: tuple of str, the texts that are right; none if there is no answer, or
            none is known.
        answer_start: int, where the first answer begins in the context, in characters;
            None without answers.
        is_impossible: bool, whether the context has no answer; None if that is not known.
    """

    id: str
    text: str
    context_index: int
    answers: tuple[str, ...] = ()
    answer_start: int | None = None
    is_impossible: bool | None = None


@dataclasses.dataclass(frozen=True)
class QuestionSet:
    """The questions of a file, in its order.

    Attributes:
        contexts: list of str, the paragraphs as they are in the file.
        questions: list of Question.
        notices: list of str, what the user should know of how the file was read.
    """

    contexts: list[str]
    questions: list[Question]
    notices: list[str] = dataclasses.field(default_factory=list)

    @property
    def is_labelled(self):
        """Whether it is known what is right; of all questions, or of none."""
        return bool(self.questions) and self.questions[0].is_impossible is not None

    def gold_answers(self):
        """Returns a dict from each question's id to its right answers; None if unlabelled."""
        if not self.is_labelled:
            return None
        return {question.id: list(question.answers) for question in self.questions}

    def for_decoding(self):
        """Returns what evaluation/span_scores.py keeps of the questions beside their scores."""
        return {
            "ids": [question.id for question in self.questions],
            "golds": self.gold_answers(),
            "contexts": self.contexts,
            "context_index": [question.context_index for question in self.questions],
        }


def ask(context, question, id="question"):
    """Makes a set of one question that nobody has answered."""
    return QuestionSet([context], [Question(id, question, 0)])


def read(path, version="1.1", *, is_training=False):
    """Reads a file of questions, with or without answers.

    A question is answerable if it has answers, unanswerable if it says
    `is_impossible`, or if under version 2.0 its list of answers is empty; otherwise it is
    not labelled.

    Args:
        path: str, a JSON file.
        version: "1.1" or "2.0"; only the second knows unanswerable questions.
        is_training: bool, whether the questions must be labelled, with answers that stand
            in their contexts. To score predictions the answers' texts are enough, and an
            answer that is not found has no `answer_start`.

    Returns:
        QuestionSet.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no such JSON, an id comes twice, a question is unanswerable under
            version 1.1, only some are labelled, or what training needs is not there.
            The file, the question's id and the value are named.
    """
    path = os.fspath(path)
    if version not in VERSIONS:
        raise ValueError(f"`version` must be one of {VERSIONS}. Received: {version!r}.")
    contexts, questions = [], []
    for context, entries in paragraphs(path, read_json(path)):
        questions += [read_question(path, entry, version, len(contexts)) for entry in entries]
        contexts.append(context)
    if not questions:
        raise ValueError(f"{path} must hold questions. Received: {len(contexts)} contexts, none.")
    check_ids(path, questions)
    check_labels(path, questions, is_training)
    found = [with_answer_found(question, contexts) for question in questions]
    if not is_training:
        return QuestionSet(contexts, found)
    check_answers(path, questions, found, contexts)
    return QuestionSet(contexts, found, training_notices(path, questions, found))


def read_json(path):
    """Reads a JSON file. Raises FileNotFoundError, or ValueError that names it."""
    if not files.exists(path):
        raise FileNotFoundError(f"a file of questions must exist. Received: {path}.")
    try:
        return json.loads(files.read_bytes(path).decode("utf-8-sig"))
    except ValueError as error:  # Of either kind: the bytes' or the JSON's.
        raise ValueError(f"{path} must be JSON in UTF-8. Received: {error}.") from None


def paragraphs(path, content):
    """Yields (context, its questions' entries) for each paragraph, in either form."""
    require = functools.partial(_required, path)
    if isinstance(content, list):  # CMRC 2018's own form.
        for entry in content:
            yield require(entry, "context_text", str), require(entry, "qas", list)
        return
    for article in require(content, "data", list):
        for paragraph in require(article, "paragraphs", list):
            yield require(paragraph, "context", str), require(paragraph, "qas", list)


def read_question(path, entry, version, context_index):
    """Reads one question, whose answer may stand elsewhere than it says.

    Args and raises: as of `read`; entry: what the file has.

    Returns:
        Question.
    """
    is_cmrc = isinstance(entry, dict) and "query_id" in entry
    names = ("query_id", "query_text") if is_cmrc else ("id", "question")
    id, text = (_required(path, entry, name, str) for name in names)
    answers, is_impossible = read_label(f"{path}, question `{id}`", entry, version)
    texts = tuple(text for text, _ in answers)
    return Question(
        id, text, context_index, texts, answers[0][1] if answers else None, is_impossible
    )


def read_label(where, entry, version):
    """Reads what is known of the answer.

    Args:
        where: str, the file and the question, for messages.
        entry: dict, the question as the file has it.
        version: as of `read`.

    Returns:
        (list of (text, start or None), is_impossible): as of `Question`.
    """
    answers = entry.get("answers")
    is_impossible = entry.get("is_impossible")
    if answers is not None and not isinstance(answers, list):
        raise ValueError(f"{where}: `answers` must be a list. Received: {answers!r}.")
    read_answers = [_answer(where, answer) for answer in answers or ()]
    if version == "1.1" and is_impossible:
        raise ValueError(
            f"{where}: version 1.1 knows no question without an answer. Received: "
            f"is_impossible={is_impossible}. `--version=2.0` does."
        )
    if is_impossible and read_answers:
        raise ValueError(
            f"{where}: an impossible question must have no answers. Received: "
            f"is_impossible={is_impossible}, answers={answers!r}."
        )
    if read_answers:
        return read_answers, False
    is_empty_list = version == "2.0" and answers == [] and is_impossible is None
    return [], True if is_impossible or is_empty_list else None


def with_answer_found(question, contexts):
    """Returns the question with the place where its first answer does stand, or None.

    Differs from the original: it takes `answer_start` at its word. Here the nearest place
    that has the answer's text is taken.
    """
    if not question.answers:
        return question
    context, text = contexts[question.context_index], question.answers[0]
    start = question.answer_start or 0
    if start >= 0 and context.startswith(text, start):
        return dataclasses.replace(question, answer_start=start)
    places = [match.start() for match in re.finditer(f"(?={re.escape(text)})", context)]
    nearest = min(places, key=lambda place: abs(place - start), default=None)
    return dataclasses.replace(question, answer_start=nearest)


def check_answers(path, questions, found, contexts):
    """Raises ValueError if a context lacks an answer, as `with_answer_found` has sought it."""
    for question, sought in zip(questions, found, strict=True):
        if sought.answers and sought.answer_start is None:
            context, text = contexts[question.context_index], question.answers[0]
            there = context[max(0, question.answer_start or 0) :][: len(text)]
            raise ValueError(
                f"{path}, question `{question.id}`: an answer must stand in its context. Received: "
                f"{text!r} at answer_start={question.answer_start}, where the context of "
                f"{len(context)} characters has {there!r}."
            )


def check_ids(path, questions):
    """Raises ValueError if an id comes twice: predictions are told apart by it."""
    counts = collections.Counter(question.id for question in questions)
    id, count = counts.most_common(1)[0]
    if count > 1:
        raise ValueError(f"{path}: ids must differ. Received: `{id}` {count} times.")


def check_labels(path, questions, is_training):
    """Raises ValueError if only some questions are labelled, or in training none."""
    labelled = [question.is_impossible is not None for question in questions]
    if all(labelled) or not any(labelled) and not is_training:
        return
    first = questions[labelled.index(False)]
    raise ValueError(
        f"{path}: {'every question' if is_training else 'either every question or none'} must "
        f"have answers or say `is_impossible`. Received: `{first.id}` without, and "
        f"{labelled.count(False)} of {len(labelled)} in all."
    )


def training_notices(path, questions, found):
    """Says in sentences how the answers are used.

    Args:
        path: str.
        questions: list of Question, as the file has them.
        found: list of Question, with their answers found.

    Returns:
        list of str.
    """
    pairs = [(before.answer_start, after) for before, after in zip(questions, found, strict=True)]
    kinds = {
        "questions have several answers; training uses the first": [
            after.id for _, after in pairs if len(set(after.answers)) > 1
        ],
        "answers have no `answer_start`; the first place that has their text is used": [
            after.id for given, after in pairs if given is None and after.answers
        ],
        "answers do not stand at their `answer_start`; the nearest place that has their text is "
        "used": [after.id for given, after in pairs if given not in (None, after.answer_start)],
    }
    return [
        f"{path}: {len(ids)} {what} ({', '.join(ids[:5])}{', ...' if len(ids) > 5 else ''})"
        for what, ids in kinds.items()
        if ids
    ]


def _answer(where, answer):
    """Returns (text, start) of an answer; CMRC's own form has its text alone."""
    text, start = (answer, None) if isinstance(answer, str) else (None, None)
    if isinstance(answer, dict):
        text, start = answer.get("text"), answer.get("answer_start")
    if not isinstance(text, str) or not text.strip() or not isinstance(start, int | None):
        raise ValueError(
            f"{where}: an answer must have a `text` and an `answer_start`. Received: {answer!r}."
        )
    return text, start


def _required(path, entry, name, kind):
    """Returns `entry[name]`, which must be there and of that kind."""
    value = entry.get(name) if isinstance(entry, dict) else None
    if not isinstance(value, kind):
        known = entry.get("id", "") if isinstance(entry, dict) else ""
        raise ValueError(
            f"{path}: every entry must have `{name}`, {kind.__name__}. Received: {value!r} in "
            f"{str(entry)[:100]}{f' (id `{known}`)' if known else ''}."
        )
    return value
