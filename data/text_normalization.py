"""What happens to text before it is cut into pieces: blanks, accents, case, control characters."""

import functools
import itertools
import re
import unicodedata

SURROGATES = re.compile("[\ud800-\udfff]")  # Halves of characters; no encoding can write them.
# Control characters that `str.split` takes for blanks and BERT's tokenizer removes.
CONTROL_BLANKS = re.compile("[\x0b\x0c\x1c-\x1f\x85]+")
CJK_RANGES = (  # Of BERT's BasicTokenizer; Hangul and kana are not among them.
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def without_surrogates(text):
    """Puts U+FFFD for the lone surrogates that a lenient reader leaves in a text."""
    return text if text.isascii() else SURROGATES.sub("\ufffd", text)


def normalize(text, *, lower=True, keep_accents=False):
    """Prepares text for SentencePiece as the original does (tokenization.py: preprocess_text).

    Blanks are collapsed, the text is decomposed (NFKD), combining marks are dropped,
    then it is lower-cased. Differs from the original: `keep_accents` leaves marks and
    composition alone, so that accented text decodes to what it was.

    Args:
        text: str.
        lower: bool, whether upper case becomes lower case.
        keep_accents: bool, whether decomposition and the loss of marks are left out.

    Returns:
        str.
    """
    text = " ".join(text.split())
    if not text.isascii():
        text = without_surrogates(text)
        if not keep_accents:
            decomposed = unicodedata.normalize("NFKD", text)
            text = "".join(itertools.filterfalse(unicodedata.combining, decomposed))
    return text.lower() if lower else text


def split_at_blanks(text):
    """Splits text into the runs that BERT's basic tokenizer treats one by one."""
    return CONTROL_BLANKS.sub("", without_surrogates(text)).split()


def basic_tokens(run, *, lower=True, keep_accents=False):
    """Splits a run without blanks into words and signs (tokenization.py: BasicTokenizer).

    Control characters and U+FFFD are removed, CJK characters and punctuation stand
    alone. Accents are stripped only when text is lower-cased, and not with `keep_accents`.

    Args:
        run: str, of `split_at_blanks`.
        lower: bool, whether upper case becomes lower case.
        keep_accents: bool, whether accents stay when text is lower-cased.

    Returns:
        list[str].
    """
    text = "".join(map(cleaned, run))
    text = text.lower() if lower else text
    if lower and not keep_accents and not text.isascii():
        decomposed = unicodedata.normalize("NFD", text)
        text = "".join(itertools.filterfalse(is_accent, decomposed))
    return "".join(map(with_signs_apart, text)).split()


@functools.cache
def cleaned(character):
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf"):
        return ""
    is_cjk = any(first <= ord(character) <= last for first, last in CJK_RANGES)
    return f" {character} " if is_cjk else character


@functools.cache
def is_accent(character):
    return unicodedata.category(character) == "Mn"


@functools.cache
def with_signs_apart(character):
    """Puts blanks around a sign: each of ASCII's, "$" and "^" included, or Unicode's P."""
    if character.isascii():
        is_sign = character.isprintable() and not character.isalnum() and character != " "
    else:
        is_sign = unicodedata.category(character).startswith("P")
    return f" {character} " if is_sign else character
