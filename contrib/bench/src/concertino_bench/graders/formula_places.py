r"""Where the mathematical answer stands in a reply.

It is the last `\boxed{}` (several in a row are one list), unless a "final answer is" stands behind it; else what "the
answer is" says, in any language that `answers` knows; else the whole text if it is not prose; else the last formula or
number of the text. The invariant: repeats in patterns are bounded, so the time grows with the length of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .answers import Marked, bare, boxes, marked, sentences, spoken
from .formula_text import tidy
from .numeric import Number, last_number

# Characters: the end of a reply without a mark, an answer that is compared, and words between boxes of one list.
_TAIL = 3000
_LONGEST = 2000
_BETWEEN = 120
_MATH = re.compile(
    r"\$\$((?:[^$\\]|\\.){1,2000})\$\$|(?<!\\)\$((?:[^$\n\\]|\\.){1,2000})\$(?!\d)"
    r"|\\\(((?:[^$\\]|\\[^()]){1,2000})\\\)|\\\[((?:[^$\\]|\\[^\[\]]){1,2000})\\\]",
    re.DOTALL,
)
_SENTENCE = re.compile(r"[.。](?:\s|$)|\s+I hope")
_COMMAND = re.compile(
    r"\\(?:begin|end)\s?\{[A-Za-z*]{1,20}\}(?:\{[clr|]{1,40}\})?|\\text\s?\{[^{}]{0,200}\}|\\[A-Za-z]+"
    r"|\b(?:percentage|percent|pct|degrees|units|and|or)\b"
)
_WORD = re.compile(r"[^\W_]+|[=:]|\.(?=\s)")
_JOINING = frozenset({"and", "or", "for", "part", "case", "with", "the", "a", "b", "c", "d", "i", "ii", "iii"})
_JOINS = re.compile(r",|;|&|\b(?:and|or|as well as|et|ou|und|oder|y|o|e)\b|和|或|及|与|と|и|или|و", re.IGNORECASE)
# Words behind which a box is another result, or a correction, and not one more of the same list.
_PARTS = re.compile(
    r"\b(?:no|not|wait|but|so|thus|hence|therefore|then|now|actually|instead|rather|correct(?:ed|ion)?|sorry|mistake|"
    r"gives?|giving|get|obtain|substitut\w{0,8}|follows|implies|finally|final|next|which|because|since|where|answer|"
    r"total|sum|product|difference|equals?)\b|所以|因此|故|不|[.!?。！？](?:\s|$)|\n\s*\n|=>|\\implies|\\Rightarrow",
    re.IGNORECASE,
)
_NAMING = re.compile(r"(?<![A-Za-z\d+*/^)-])\s{0,4}\b[A-Za-z](?:_\{?\w{1,8}\}?)?\s{0,4}=\s{0,4}\$?\s{0,4}$")
_PROSE = re.compile(r"[^\W\d_]{3,}|[^\W\d_\x00-\x7f]{2,}|\b(?:it|is|we|he|so|of|at)\b", re.IGNORECASE)
_TEXT = re.compile(r"\\text\s?\{([^{}]{0,200})\}")


class ReadExpression(NamedTuple):
    """An answer as it goes into a comparison.

    Attributes:
        latex: the answer, or the text to look for it in.
        whole: it is the answer and nothing else.
    """

    latex: str
    whole: bool


def read_answer(text: str) -> ReadExpression:
    """The answer of a text, cleaned."""
    text = spoken(text)
    # The last mark counts: models box intermediate results and correct themselves.
    boxed = boxes(text)
    said = sentences(text)
    places = marked(text)
    if boxed or places:
        last = max(places, key=lambda place: place.start)
        later = [place for place in said if place.marker == "final answer is" and place.start > last.end]
        latex = _from_sentence(later[-1].text) if later else ""
        latex = latex or (_row(text, boxed) if last.marker == "\\boxed{}" else _inner(last.text))
        return ReadExpression(_clean(latex), True)
    for place in reversed(said):
        if latex := _from_sentence(place.text):
            return ReadExpression(_clean(latex), True)
    whole = _formulas(bare(text)) if len(text) <= _LONGEST else ""
    if whole and not _is_prose(whole):
        return ReadExpression(_clean(whole), True)
    return ReadExpression(text[-_TAIL:].strip(), False)


def last_formula(text: str) -> str:
    """The formula or number that comes last in prose, with what it is joined to; empty where there is none."""
    text = text[-_TAIL:]
    formulas = list(_MATH.finditer(text))
    number = last_number(text)
    behind = text[formulas[-1].end() :] if formulas else text
    # A number behind the last formula is the later result, unless it only counts a line or refers to a part.
    if not formulas or (isinstance(number, Number) and isinstance(last_number(behind), Number)):
        return _decimal(number) if isinstance(number, Number) else ""
    return _clean(_joined(text, formulas[-1:]))


def _decimal(number: Number) -> str:
    """A number of a text in digits: its commas have been understood."""
    value = number.value
    digits = str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    places = len(number.text.replace(",", ".").rpartition(".")[2]) if re.search(r"[.,]\d+$", number.text) else 0
    scaled = value * 10**places
    if places and scaled.denominator == 1 and value.denominator != 1:
        whole = str(abs(scaled.numerator)).rjust(places + 1, "0")
        digits = f"{'-' if value < 0 else ''}{whole[:-places]}.{whole[-places:]}"
    return digits


def _row(text: str, boxed: list[Marked]) -> str:
    """The last box, with those before it that only a few words part from it: they are one list."""
    row = [boxed[-1]]
    for place in reversed(boxed[:-1]):
        if not _joins(text[place.end : row[0].start]):
            break
        row.insert(0, place)
    if len({place.text for place in row}) == 1:
        return _inner(row[0].text)
    return ", ".join(place.text for place in row)


def _joins(between: str) -> bool:
    """Whether what stands between two boxes makes them one list: a word that joins, and none that begins anew."""
    if len(between) > _BETWEEN:
        return False
    words = set(_WORD.findall(_COMMAND.sub(" ", between).lower()))
    if words <= _JOINING:
        return True
    between = _NAMING.sub(" ", between)
    return "=" not in between and not _PARTS.search(between) and bool(_JOINS.search(between))


def _from_sentence(said: str) -> str:
    """The mathematics of what stands behind "the answer is": the formulas that it begins with, else a short text."""
    said = said[: 2 * _LONGEST]
    said = said[_last_is(said) :]
    before = said.find(". ")
    formulas = list(_MATH.finditer(said))
    if formulas and (before < 0 or formulas[0].start() < before):
        return _joined(said, formulas)
    said = _SENTENCE.split(said, maxsplit=1)[0].strip()
    prose = _PROSE.findall(_COMMAND.sub(" ", said))
    return bare(said) if said and len(prose) <= 3 and len(said) <= 200 else ""


def _joined(text: str, formulas: list[re.Match[str]]) -> str:
    """The first formula, with those behind it that only a joining word parts from it."""
    row = [formulas[0]]
    for formula in formulas[1:]:
        between = text[row[-1].end() : formula.start()]
        if len(between) > _BETWEEN or not set(_WORD.findall(between.lower())) <= _JOINING or not between.strip():
            break
        row.append(formula)
    return ", ".join(_content(formula) for formula in row)


def _content(formula: re.Match[str]) -> str:
    return next(group for group in formula.groups() if group).strip()


def _last_is(said: str) -> int:
    """Where the value begins in "the number of points of $f$ is 19", 0 in a sentence that has no such "is"."""
    end = said.find(". ")
    at = said.rfind(" is ", 0, end if end >= 0 else len(said))
    return at + 4 if at >= 0 and re.search(r"[\d$\\]", said[at:]) else 0


def _inner(text: str) -> str:
    """The answer within a mark: its formulas, what it says to be the answer, or, in prose, its last formula."""
    text = _formulas(bare(text[:_LONGEST]))
    said = sentences(_TEXT.sub(r" \1 ", text))
    if said and (latex := _from_sentence(said[-1].text)):
        return latex
    return (_is_prose(text) and last_formula(text)) or text


def _formulas(text: str) -> str:
    """The formulas of a text that is little else, as one list; else the text."""
    formulas = list(_MATH.finditer(text))
    if formulas:
        outside = _MATH.sub(" ", text)
        if len(formulas) == 1 and not re.search(r"\d|\bor\b|\band\b|,", outside):
            return _content(formulas[0])
        if set(_WORD.findall(outside.lower())) <= _JOINING:
            return ", ".join(map(_content, formulas))
    return text


def _is_prose(text: str) -> bool:
    """Whether there are words in it beyond units, conditions and the names of commands."""
    # A word alone is an answer: `east`.
    alone = text.isascii() and not any(mark.isspace() for mark in text)
    return not alone and bool(_PROSE.search(_COMMAND.sub(" ", tidy(text))))


def _clean(latex: str) -> str:
    """An answer without the signs that only surround it, in one spelling."""
    return tidy(latex[:_LONGEST])
