import unicodedata

import made_tokenizers
import numpy as np
import pytest
from conftest import shared_data, spm_model_file
from made_tokenizers import odd_strings, sentencepiece_tokenizer, wordpiece_tokenizer

from data import character_offsets, span_windows, squad, tokenization
from data.span_windows import WindowSettings

ITEMS = " ".join(f"item{number}" for number in range(1, 301))
CAFE = "  Café “Größe” — costs €5, in São Paulo."
# What models of SentencePiece drop or take for blanks; and marks, which go with what is before.
NO_LETTERS = "".join(
    character
    for character in "".join(made_tokenizers.ODD_PARTS)
    if unicodedata.category(character)[0] in "CMZ" or character in "\u2581\ufffd"
)


def asked(context, *texts_and_starts):
    """Makes a training set of questions about one context, one for each answer."""
    questions = [
        squad.Question(f"q{n}", "Which one is last but one?", 0, (text,), start, False)
        for n, (text, start) in enumerate(texts_and_starts)
    ]
    return squad.QuestionSet([context], questions)


def training_windows(question_set, tokenizer, **settings):
    return span_windows.make_windows(question_set, tokenizer, WindowSettings(**settings))


def targets(features, windows, contexts):
    """Returns for each window the text its answer has; None where it points at [CLS]."""
    found = []
    for number in range(len(windows)):
        start, end, is_impossible = (
            int(features.columns[name][number]) for name in span_windows.COLUMNS
        )
        offset = windows.offsets[number]
        if is_impossible:
            assert start == end == 0
            found.append(None)
            continue
        first = windows.character_starts[offset + start]
        last = windows.character_ends[offset + end]
        assert first >= 0 and last > first
        found.append(contexts[0][first:last].strip())
    return found


def tokens_in_windows(windows):
    """Returns the set of (start, end) of the pieces that each window shows."""
    pairs = np.stack([windows.character_starts, windows.character_ends], axis=1)
    return [
        {tuple(pair) for pair in pairs[start:end].tolist() if pair[0] >= 0}
        for start, end in zip(windows.offsets[:-1], windows.offsets[1:], strict=True)
    ]


@pytest.mark.parametrize("doc_stride", [1, 16, 61, 128])
@pytest.mark.parametrize("make", [sentencepiece_tokenizer, wordpiece_tokenizer])
def test_every_piece_is_in_a_window_and_the_answer_where_it_is_whole(make, doc_stride):
    tokenizer = make()
    questions = asked(ITEMS, ("item299", ITEMS.index("item299")))
    settings = {"max_seq_length": 64, "max_query_length": 20, "doc_stride": doc_stride}
    features, windows, lost = training_windows(questions, tokenizer, **settings)
    _, starts, ends = tokenizer.encode_with_offsets(ITEMS)
    ends = np.maximum(ends, starts + 1)  # A word's mark without a word has the next character.
    pieces = set(zip(starts.tolist(), ends.tolist(), strict=True))
    shown = tokens_in_windows(windows)
    assert set().union(*shown) == pieces and not lost
    start = ITEMS.index("item299")
    answer = {piece for piece in pieces if piece[1] > start and piece[0] < start + 7}
    expected = ["item299" if answer <= window else None for window in shown]
    assert targets(features, windows, questions.contexts) == expected
    assert "item299" in expected and None in expected
    assert features.lengths().max() <= 64


def test_a_window_is_cls_question_sep_paragraph_sep():
    tokenizer = wordpiece_tokenizer()
    questions = squad.ask("The walking.", "a the?")
    features, windows, _ = span_windows.make_windows(questions, tokenizer, WindowSettings())
    pieces = tokenizer.ids_to_pieces(features.sequences["input_ids"])
    assert pieces == ["[CLS]", "a", "the", "[UNK]", "[SEP]", "the", "walk", "##ing", ".", "[SEP]"]
    assert features.sequences["segment_ids"].tolist() == [0] * 5 + [1] * 5
    assert features.sequences["p_mask"].tolist() == [0, 1, 1, 1, 1, 0, 0, 0, 0, 1]
    assert windows.character_starts.tolist() == [-1] * 5 + [0, 4, 8, 11] + [-1]
    assert windows.character_ends.tolist() == [-1] * 5 + [3, 8, 11, 12] + [-1]
    assert windows.is_max_context.tolist() == [False] * 5 + [True] * 4 + [False]
    assert not features.columns


def test_a_long_question_is_cut_and_the_paragraph_kept():
    questions = squad.ask("The walking.", "the " * 50)
    settings = WindowSettings(max_query_length=3)
    features, _, _ = span_windows.make_windows(questions, wordpiece_tokenizer(), settings)
    assert features.lengths().tolist() == [1 + 3 + 1 + 4 + 1]


def test_each_piece_has_most_context_in_one_window():
    questions = squad.ask(ITEMS, "the?")
    settings = WindowSettings(max_seq_length=40, doc_stride=9, max_query_length=8)
    tokenizer = sentencepiece_tokenizer()
    _, windows, _ = span_windows.make_windows(questions, tokenizer, settings)
    best = np.flatnonzero(windows.is_max_context)
    _, starts, _ = tokenizer.encode_with_offsets(ITEMS)
    np.testing.assert_array_equal(windows.character_starts[best], starts)


@pytest.mark.parametrize("context", ["", " \t ", "\x00"])
def test_a_question_about_nothing_has_a_window_too(context):
    for tokenizer in (sentencepiece_tokenizer(), wordpiece_tokenizer()):
        questions = squad.ask(context, "the?")
        _, windows, _ = span_windows.make_windows(questions, tokenizer, WindowSettings())
        assert windows.question_index.tolist() == [0]


@pytest.mark.parametrize("make", [sentencepiece_tokenizer, wordpiece_tokenizer])
def test_blanks_before_the_text_do_not_move_the_answer(make):
    tokenizer = make(words=("cafe", *"€5")) if make is wordpiece_tokenizer else make()
    assert CAFE.index("€5") == 23
    questions = asked(CAFE, ("€5", 23), ("Café", 2), ("Paulo.", CAFE.index("Paulo.")), (CAFE, 0))
    features, windows, lost = training_windows(questions, tokenizer)
    found = targets(features, windows, questions.contexts)
    if make is sentencepiece_tokenizer:
        assert found[0] == "€5"  # WordPiece has "€5" in one piece with nothing else, or not.
    assert "€5" in found[0] and len(found[0]) <= 3
    assert found[1:] == ["Café", "Paulo.", CAFE.strip()] and not lost


def test_answers_at_the_first_and_the_last_word_are_answers():
    context = "Yes it is so"
    for tokenizer in (sentencepiece_tokenizer(), wordpiece_tokenizer()):
        questions = asked(context, ("Yes", 0), ("so", 10), (context, 0))
        features, windows, _ = training_windows(questions, tokenizer)
        assert targets(features, windows, questions.contexts) == ["Yes", "so", context]


def test_an_answer_with_blanks_around_it_is_that_without_them():
    questions = asked("the walk is here", (" walk ", 3))
    features, windows, _ = training_windows(questions, wordpiece_tokenizer())
    assert targets(features, windows, questions.contexts) == ["walk"]


def test_an_unanswerable_question_points_at_cls():
    questions = squad.QuestionSet(["the walk"], [squad.Question("q", "a", 0, (), None, True)])
    features, windows, lost = training_windows(questions, wordpiece_tokenizer())
    assert targets(features, windows, questions.contexts) == [None] and not lost


def test_an_answer_of_which_normalisation_leaves_nothing_is_told():
    questions = asked("the \x00 walk", ("\x00", 4), ("walk", 6))
    features, windows, lost = training_windows(questions, wordpiece_tokenizer())
    assert lost == ["q0"]
    assert targets(features, windows, questions.contexts) == [None, "walk"]


def odd_questions(number):
    """Makes paragraphs of odd Unicode, with a question about one of the words of each."""
    contexts, questions = [], []
    for context in odd_strings(3 * number, seed=7):
        runs = character_offsets.RUN.finditer(context)
        words = [match for match in runs if match[0].strip(NO_LETTERS)]
        if words and len(contexts) < number:
            word = words[len(contexts) % len(words)]
            answer = (word[0],), word.start(), False
            questions.append(squad.Question(f"q{len(contexts)}", "?", len(contexts), *answer))
            contexts.append(context)
    assert len(contexts) == number
    return squad.QuestionSet(contexts, questions)


def check_recovery(question_set, tokenizer):
    """Asserts that the answer to each question is what its pieces cover."""
    features, windows, lost = training_windows(question_set, tokenizer)
    assert windows.question_index.tolist() == list(range(len(question_set.questions)))
    assert not lost and not features.columns["is_impossible"].any()
    offsets = windows.offsets[:-1]
    starts, ends = (features.columns[name] for name in span_windows.COLUMNS[:2])
    firsts, lasts = (
        windows.character_starts[offsets + starts],
        windows.character_ends[offsets + ends],
    )
    for question, first, last in zip(question_set.questions, firsts, lasts, strict=True):
        context, gold = question_set.contexts[question.context_index], question.answers[0]
        assert context[first:last].strip(NO_LETTERS) == gold.strip(NO_LETTERS), (context, gold)


def test_words_of_1000_odd_paragraphs_are_recovered_from_their_pieces():
    questions = odd_questions(1000)
    for tokenizer in (sentencepiece_tokenizer(), wordpiece_tokenizer()):
        check_recovery(questions, tokenizer)


def test_words_of_1000_odd_paragraphs_are_recovered_by_the_released_vocabularies():
    questions = odd_questions(1000)
    for path in (spm_model_file(), shared_data("spm/vocab_chinese.txt")):
        check_recovery(questions, tokenization.load(path))


def test_real_answers_are_recovered_from_their_pieces():
    tokenizer = tokenization.load(spm_model_file())
    questions = squad.read(shared_data("squad/xquad.en.json"), is_training=True)
    features, windows, lost = training_windows(questions, tokenizer)
    exact = whole = 0
    for number in np.flatnonzero(features.columns["is_impossible"] == 0):
        question = questions.questions[windows.question_index[number]]
        start, end = (features.columns[name][number] for name in span_windows.COLUMNS[:2])
        offset = windows.offsets[number]
        first = windows.character_starts[offset + start]
        context = questions.contexts[question.context_index]
        text = context[first : windows.character_ends[offset + end]].strip()
        assert question.answers[0].strip() in text
        exact += text == question.answers[0].strip()
        whole += 1
    assert not lost and whole >= len(questions.questions)
    assert exact > 0.985 * whole  # The rest end inside a piece, as "2003–04" in "2003–04s".


def test_a_chinese_answer_is_cut_with_its_full_width_signs():
    tokenizer = tokenization.load(shared_data("spm/vocab_chinese.txt"))
    context = "他说：“你好，世界！”（１９９９年）然后走了。"
    answer = "你好，世界！”（１９９９年）"
    questions = asked(context, (answer, context.index(answer)))
    features, windows, _ = training_windows(questions, tokenizer)
    assert targets(features, windows, questions.contexts) == [answer]


@pytest.mark.parametrize(
    "settings",
    [{"doc_stride": 0}, {"max_query_length": -1}, {"max_seq_length": 20, "max_query_length": 17}],
)
def test_settings_without_room_are_refused(settings):
    with pytest.raises(ValueError, match="Received"):
        WindowSettings(**settings)
