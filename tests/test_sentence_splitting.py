"""What is prose in a docstring, and where its sentences end."""

import pytest

from data import sentence_splitting

NUMPY_STYLE = """
    Return evenly spaced numbers over an interval. The endpoint can be left out.

    Parameters
    ----------
    start : array_like
        The value that the sequence starts with. It may be
        of any numeric type.
    num : int, optional
        an integer

    Returns
    -------
    samples : ndarray

    .. note:: The step is not exact when the type is an integer.

    .. math:: x_k = x_0 + k h

        This is a formula and not a sentence of the text.

    Examples
    --------
    >>> linspace(0, 1, 3)
    array([0. , 0.5, 1. ])

    This is how it is used::

        linspace(0, 1)  # This is a comment in the code.

    The last paragraph is prose again.
"""

GOOGLE_STYLE = """Computes the `loss` of a batch.

    The `loss` is the mean over the batch. See :class:`~losses.Loss` for the formula.

    Args:
      labels: A tensor of the true labels.
        Its type must be an integer.
      logits (tensor): scores
      *args: More tensors that are passed to the function.

    Returns:
      A tensor with the value of the loss.

    ```python
    The_code = "is not part of the text."
    ```
"""


def test_a_numpy_docstring_keeps_its_prose_and_loses_types_code_and_formulas():
    assert sentence_splitting.prose_sentences(NUMPY_STYLE) == [
        "Return evenly spaced numbers over an interval.",
        "The endpoint can be left out.",
        "The value that the sequence starts with.",
        "It may be of any numeric type.",
        "The step is not exact when the type is an integer.",
        "The last paragraph is prose again.",
    ]


def test_a_google_docstring_keeps_its_prose_without_names_and_markup():
    assert sentence_splitting.prose_sentences(GOOGLE_STYLE) == [
        "Computes the loss of a batch.",
        "The loss is the mean over the batch.",
        "See Loss for the formula.",
        "A tensor of the true labels.",
        "Its type must be an integer.",
        "More tensors that are passed to the function.",
        "A tensor with the value of the loss.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "=====  ======\nname   Means that this is a name.\n=====  ======",
        "A heading that could be a sentence.\n-----------------------------------",
        "| This is the cell of a table. |",
        "name        The name of the thing.\nvalue       The value of the thing.",
        "    +---+---+\n    | a | b |\n    +---+---+",
        "whether or not the model is trained.",
        "This one has no stop at its end",
        "Alice, Bob, Carol, Dave, Erin, Frank.",
        "Siehe auch die Seite, welche hierzu mehr erklärt.",
        "Die Liste enthält alle Werte dieser Tabelle.",
        "Set x = y + z in the call of the function.",
        "Download it from https://example.org at your own risk.",
        "Yes.",
    ],
)
def test_what_is_not_english_prose_is_left_out(text):
    assert sentence_splitting.prose_sentences(text) == []


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("It is, e.g. `x`, fine. So is i.e. this.", ["It is, e.g. `x`, fine.", "So is i.e. this."]),
        ("See Smith et al. 2001. It is short.", ["See Smith et al. 2001.", "It is short."]),
        ("By J. Smith. He wrote it.", ["By J. Smith.", "He wrote it."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Use GET, PUT, etc. If not, stop.", ["Use GET, PUT, etc.", "If not, stop."]),
        ("Version 3.11 is used! Is it? Yes.", ["Version 3.11 is used!", "Is it?", "Yes."]),
    ],
)
def test_a_stop_ends_a_sentence_unless_it_ends_an_abbreviation(paragraph, sentences):
    assert sentence_splitting.split_sentences(paragraph) == sentences


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("Use ``axis`` and *any* **bold** word.", "Use axis and any bold word."),
        ("See :func:`numpy.linalg.norm` [1]_ there.", "See norm there."),
        ("See :ref:`the guide <guide>` for it.", "See the guide for it."),
        ("Read the `manual <https://x.org>`_ first.", "Read the manual first."),
        ("Read [the manual](https://x.org) first.", "Read the manual first."),
        ("Pass *args and **kwargs to it.", "Pass *args and **kwargs to it."),
    ],
)
def test_markup_reads_as_its_words(markup, text):
    assert sentence_splitting.without_markup(markup) == text


def test_list_items_are_paragraphs_of_their_own_without_their_bullets():
    text = """The order is this:

    * The first item stands on
      two lines of the text.
    - The second item is short.
    3. The third item has a number.
    """
    assert sentence_splitting.prose_sentences(text) == [
        "The first item stands on two lines of the text.",
        "The second item is short.",
        "The third item has a number.",
    ]


def test_a_line_of_blanks_ends_a_paragraph_and_is_no_rule_under_a_heading():
    text = "    The first paragraph is here.\n          \n    The second paragraph is there."
    assert sentence_splitting.prose_sentences(text) == [
        "The first paragraph is here.",
        "The second paragraph is there.",
    ]
