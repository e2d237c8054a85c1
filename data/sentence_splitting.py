"""From a docstring or a page of plain documentation to its sentences of English prose.

What is not prose goes: code, doctests, tables, headings, directives, formulas, bare
types of parameter lists. No model and no word list beyond a few dozen function words:
a paragraph is prose because its sentences look like sentences.
"""

import inspect
import re

FENCE = re.compile(r"\s*(```|~~~)")
DOCTEST = re.compile(r"\s*(>>>|\.\.\. |\.\.\.$|In \[\d+\]:|Out\[\d+\]:|\$ )")
DIRECTIVE = re.compile(r"\s*\.\. (\S.*)$")
# Their indented body is prose like any other; the body of every other directive is not.
ADMONITION = re.compile(
    r"(note|warning|tip|hint|important|caution|attention|danger|admonition|seealso|rubric"
    r"|versionadded|versionchanged|deprecated)::\s*[\d.]*\s*(?P<text>.*)"
)
RULE = re.compile(r"[=\-~^\"'`#*+_.:<>|][=\-~^\"'`#*+_.:<>|\s]{2,}$")
BULLET = re.compile(r"(?:[*+\-•]|\(?(?:\d{1,2}|[a-zA-Z])[.)])\s+")
# "name: text", "name (float, optional): text", ":param name: text", "@param name: text".
FIELD = re.compile(
    r"(?:[:@]\w[^:]{0,60}:|[`*]{0,2}[A-Za-z_]\w*[`*]{0,2}(?: ?\([^)]*\))?:)(?:\s+|$)"
)
COLUMN_GAP = re.compile(r"\S {3,}\S")

INLINE = (
    (re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)"), r"\1"),  # Markdown link.
    (re.compile(r"\s?\[[#\w-]{1,20}\]_"), ""),  # Footnote mark.
    (re.compile(r":(?:\w+:)?\w+:`~?[^`<]*?([^`<.]+?)(?:\s*<[^`>]*>)?`"), r"\1"),  # Role.
    (re.compile(r"`([^`<]+?)\s*<[^`>]*>`__?"), r"\1"),  # Link with its address.
    (re.compile(r"`{1,2}([^`]*)`{1,2}_{0,2}"), r"\1"),  # Code, title or link.
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),  # Bold.
    (re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])"), r"\1"),  # Emphasis.
    (re.compile(r"(?<![\w_])_([^_\s][^_]*)_(?![\w_])"), r"\1"),
)
MARKUP = re.compile(r"[\[`*_:]")

# A stop, what closes after it, blanks, and the start of something that begins a sentence.
BOUNDARY = re.compile(r"[.!?][\"')\]*`_]*\s+(?=[\"'(\[`*:]*[A-Z0-9]|[`:])")
ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'`])(?:(?-i:[A-Z])|e\.g|i\.e|a\.k\.a|w\.r\.t|vs|cf|viz|al|approx|resp|incl|ca"
    r"|figs?|eqn?s?|sect?|chap|vol|pp|eds?|refs?|thm|dr|mrs?|prof|st|proc|conf)\.$",
    re.IGNORECASE,
)

FUNCTION_WORD = re.compile(
    r"\b(?:a|about|after|all|also|an|and|any|are|as|at|be|because|been|before|between|both|but|by"
    r"|can|cannot|could|do|does|each|either|every|for|from|had|has|have|how|if|in|into|is|it|its"
    r"|may|more|most|must|no|not|of|on|one|only|or|other|our|out|over|same|should|since|so|some|such|than"
    r"|that|the|their|them|then|there|these|they|this|those|to|under|unless|until|up|used|using|was|we"
    r"|were|what|when|where|whether|which|while|who|will|with|without|would|you|your)\b",
    re.IGNORECASE,
)
MIN_WORDS = 4
MIN_FUNCTION_WORDS = 0.1  # English prose has 35 to 50 %; a list of names or a title next to none.
MIN_LETTERS = 0.75  # Of all characters but blanks.
NOT_PROSE = re.compile(
    r"[{}<>|\\=@#$^~`]|::|://|\(\)|\w_\w|\w\.\w+\.\w|\*\*|__|\.\.|\d\]|[^\x20-\x7e–—‘’“”]"
)
WORD = re.compile(r"[A-Za-z]+(?:['’-][A-Za-z]+)*")


def indentation(line):
    return len(line) - len(line.lstrip())


def end_of_block(lines, start, indent):
    """Returns the index of the first line after a block that is deeper than `indent`."""
    while start < len(lines) and (not lines[start].strip() or indentation(lines[start]) > indent):
        start += 1
    return start


def drop_code(lines):
    """Yields the lines that are not code: a blank line stands for what is left out.

    Args:
        lines: list of str, without tabs.

    Yields:
        str, lines in order. Fenced blocks, doctests up to the next blank line, blocks
        after `::` and directives other than notes and the like are gone.
    """
    i = 0
    while i < len(lines):
        line = lines[i]
        directive = DIRECTIVE.match(line)
        if FENCE.match(line):
            i = next((j for j in range(i + 1, len(lines)) if FENCE.match(lines[j])), i) + 1
            yield ""
        elif DOCTEST.match(line):
            i = next((j for j in range(i, len(lines)) if not lines[j].strip()), len(lines))
        elif directive:
            admonition = ADMONITION.match(directive.group(1))
            if admonition:
                i += 1
                yield ""
                yield " " * (indentation(line) + 3) + admonition.group("text")
            else:
                i = end_of_block(lines, i + 1, indentation(line))
                yield ""
        else:
            i += 1
            yield line
            if line.rstrip().endswith("::"):
                i = end_of_block(lines, i, indentation(line))
                yield ""


def paragraphs(text):
    """Yields the paragraphs of a docstring or a plain page that may be prose, each on one line.

    A list item or the description of one argument is a paragraph of its own, without
    its bullet, name and type.

    Args:
        text: str, a docstring as it stands in the source.

    Yields:
        str, with inline markup still in it.
    """
    paragraph, indent, hanging = [], 0, False
    for line in [*drop_code(inspect.cleandoc(text).expandtabs().splitlines()), ""]:
        body = line.strip()
        item = BULLET.match(body) or FIELD.match(body)
        deeper = indentation(line) - indent
        continues = paragraph and body and not item and (deeper == 0 or (hanging and deeper > 0))
        if RULE.match(body):
            paragraph = []  # What is underlined is a heading.
            continue
        if not continues:
            if paragraph:
                yield " ".join(paragraph)
            paragraph, indent, hanging = [], indentation(line), bool(item)
            body = body[item.end() :] if item else body
        elif deeper > 0:
            indent, hanging = indentation(line), False
        if body or hanging:
            paragraph.append(body)


def without_markup(sentence):
    """Returns the text of a sentence: links, roles, code marks and emphasis read as words."""
    if MARKUP.search(sentence):
        for pattern, replacement in INLINE:
            sentence = pattern.sub(replacement, sentence)
    return " ".join(sentence.split())


def split_sentences(paragraph):
    """Splits one paragraph where a stop ends a sentence and not just an abbreviation.

    Args:
        paragraph: str, on one line.

    Returns:
        A list of str; together they are the paragraph, blanks at the joints apart.
    """
    sentences, start = [], 0
    for match in BOUNDARY.finditer(paragraph):
        if not ABBREVIATION.search(paragraph, start, match.start() + 1):
            sentences.append(paragraph[start : match.end()].strip())
            start = match.end()
    return [*sentences, paragraph[start:].strip()]


def is_prose(sentence):
    """Says whether a sentence without markup is a whole one, in English, and of words."""
    words = WORD.findall(sentence)
    if len(words) < MIN_WORDS or not re.match(r"[\"'(\[‘“]?[A-Z0-9]", sentence):
        return False
    if not re.search(r"[.!?][\"')\]’”]*$", sentence) or NOT_PROSE.search(sentence):
        return False
    num_letters = sum(map(len, words))
    num_function_words = len(FUNCTION_WORD.findall(sentence))
    letters_enough = num_letters >= MIN_LETTERS * len(sentence.replace(" ", ""))
    return letters_enough and num_function_words >= MIN_FUNCTION_WORDS * len(words)


def prose_sentences(text):
    """Lists the sentences of English prose in a docstring or a plain page, in order.

    Args:
        text: str, a docstring as it stands in the source.

    Returns:
        A list of str without line breaks, markup or blanks at the ends.
    """
    sentences = []
    for paragraph in paragraphs(text):
        if not COLUMN_GAP.search(paragraph):
            cleaned = map(without_markup, split_sentences(paragraph))
            sentences.extend(filter(is_prose, cleaned))
    return sentences
