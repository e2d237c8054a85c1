"""Features of multiple choice: the passage with the question and each of its options.

n: questions, C: options of a question at most, S = n * C sequences.
"""

import json

import numpy as np

from data import feature_cache, race, sequence_pairs
from data.features import Features


def make_features(questions, tokenizer, max_seq_length, max_qa_length=128, cache_folder=None):
    """Turns questions into features, C sequences each: [CLS] passage [SEP] question option [SEP].

    Question and option keep their last `max_qa_length` pieces, the passage its first ones
    (race_utils.py:199). Differs from the original: question and option never take more
    than the sequence holds, where its slice went negative and the sequence too long; and
    where the option in a blank would be cut off with the question's beginning, so that
    options could not be told apart, it is put behind the question.

    Args:
        questions: race.Questions.
        tokenizer: a Tokenizer.
        max_seq_length: pieces of a sequence, special ones included.
        max_qa_length: pieces of question and option together.
        cache_folder: folder to keep the features in, or None.

    Returns:
        Features of n examples with C choices, C that of the question with the most options;
        a lacking choice is an empty sequence. `label_ids` where there are answers.
        `truncated_share` of the examples lost pieces in one choice or more.

    Raises:
        ValueError: the lengths leave no room.
    """
    if max_seq_length < 5 or max_qa_length < 1:
        raise ValueError(
            "`max_seq_length` must be at least 5 and `max_qa_length` 1. Received: "
            f"max_seq_length={max_seq_length}, max_qa_length={max_qa_length}."
        )
    content = json.dumps(
        [
            questions.articles,
            questions.article_numbers.tolist(),
            questions.questions,
            questions.options,
            None if questions.label_ids is None else questions.label_ids.tolist(),
        ]
    )
    lengths = {"max_seq_length": max_seq_length, "max_qa_length": max_qa_length}
    return feature_cache.cached(
        cache_folder,
        feature_cache.key([content], tokenizer, **lengths),
        lambda: tokenize_questions(questions, tokenizer, **lengths),
    )


def tokenize_questions(questions, tokenizer, max_seq_length, max_qa_length):
    """Makes the features. Args and returns: as of `make_features`."""
    num_choices = max(map(len, questions.options))
    numbers = np.array([len(options) for options in questions.options])
    is_there = (np.arange(num_choices) < numbers[:, None]).ravel()  # bool[S]
    room = min(max_qa_length, max_seq_length - 3)
    endings = tokenize_endings(questions, tokenizer, num_choices, room)
    passages = sequence_pairs.Stretches.of(questions.articles, tokenizer)
    passages = passages[np.repeat(questions.article_numbers, num_choices)]
    kept_b = np.minimum(endings.lengths, room)
    kept_a = np.where(is_there, np.minimum(passages.lengths, max_seq_length - 3 - kept_b), 0)
    input_ids, segment_ids, offsets = sequence_pairs.lay_out(
        passages.first(kept_a), endings.last(kept_b), is_there, tokenizer, is_there
    )
    is_cut = is_there & ((kept_a < passages.lengths) | (kept_b < endings.lengths))
    return Features(
        {"input_ids": input_ids, "segment_ids": segment_ids},
        offsets,
        {} if questions.label_ids is None else {"label_ids": questions.label_ids},
        num_choices,
        float(np.mean(is_cut.reshape(-1, num_choices).any(axis=1))),
    )


def tokenize_endings(questions, tokenizer, num_choices, room):
    """Tokenizes each question with each of its options.

    Args:
        num_choices: C.
        room: pieces that are kept of each.

    Returns:
        sequence_pairs.Stretches of S; those of lacking choices are empty.
    """
    texts = []
    for question, options in zip(questions.questions, questions.options, strict=True):
        filled = [race.ending(question, option) for option in options]
        texts += filled + [""] * (num_choices - len(options))
    endings = sequence_pairs.Stretches.of(texts, tokenizer)
    is_long = (endings.lengths > room).reshape(-1, num_choices).any(axis=1)
    hidden = [
        number
        for number in np.nonzero(is_long)[0]
        if race.BLANK.search(questions.questions[number])
        and look_alike(endings, number * num_choices, len(questions.options[number]), room)
    ]
    return options_behind(endings, hidden, questions, tokenizer, num_choices)


def look_alike(endings, first, number, room):
    """Says whether some of `number` endings from `first` on differ only in what is not kept."""
    places = range(first, first + number)
    ends = [(endings.starts[p], endings.starts[p] + endings.lengths[p]) for p in places]
    whole = {tuple(endings.ids[start:end]) for start, end in ends}
    kept = {tuple(endings.ids[max(start, end - room) : end]) for start, end in ends}
    return len(kept) < len(whole)


def options_behind(endings, hidden, questions, tokenizer, num_choices):
    """Replaces the endings of some questions by the question, its blank left, and the option.

    Args:
        endings: sequence_pairs.Stretches of S.
        hidden: numbers of the questions.

    Returns:
        sequence_pairs.Stretches of S.
    """
    texts, rows = [], []
    for number in hidden:
        for choice, option in enumerate(questions.options[number]):
            texts.append(f"{questions.questions[number]} {option}")
            rows.append(number * num_choices + choice)
    if not rows:
        return endings
    behind = sequence_pairs.Stretches.of(texts, tokenizer)
    starts, lengths = endings.starts.copy(), endings.lengths.copy()
    starts[rows], lengths[rows] = behind.starts + len(endings.ids), behind.lengths
    return sequence_pairs.Stretches(np.concatenate([endings.ids, behind.ids]), starts, lengths)
