"""When two answers mean the same. Nothing is evaluated or run.

`answer_key` maps an answer to a text that equal answers share, so that votes can be counted: numbers exactly as
fractions, choices by their letter, lists item by item, the rest as text. `same_answer` compares two.

Invariant: a key depends on the answer alone, and merges only what one question cannot mean two things by (`0.75`,
`3/4`, `\\frac{3}{4}`): no unit is dropped (`3 am` and `3 pm` differ), and no algebra is done (`x+1` and `1+x` differ).
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

_LONG = 2_000
"""Characters of an answer above which it is compared as text alone."""
_DEPTH = 8
"""How deep lists in lists are read."""
_DIGITS = 200
"""Digits, and the largest exponent, of what is read as a number; anything longer is compared as text."""
# `\\.` takes an escaped brace as one sign, so that `\{` opens nothing.
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)


def same_answer(one: Any, other: Any) -> bool:
    """Whether two answers mean the same. Answers that are not texts are compared as their JSON; none equals nothing.

    Of two roles, one that adds a percent sign may mean another number: `10%` and `10` differ here.
    """
    if one is None or other is None:
        return False
    left, right = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in (one, other))
    key = answer_key(left)
    return key != "" and key == answer_key(right) and ("%" in left) == ("%" in right)


def same_output(printed: str, expected: str) -> bool:
    """Whether a program printed what a test expects; blanks at the ends of lines and of the text do not count."""
    return [line.rstrip() for line in printed.strip().splitlines()] == [
        line.rstrip() for line in expected.strip().splitlines()
    ]


def answer_key(answer: str) -> str:
    """A text that two answers share when they mean the same; empty for an empty answer.

    A number is its fraction, a choice its capital letter, a list its items in brackets, and words stand in quotes.
    """
    return _key(answer, _DEPTH) if answer.strip() else ""


def _key(answer: str, depth: int) -> str:
    if len(answer) > _LONG or not depth:
        return f'"{_folded(answer)}"'
    text = _plain(answer)
    if letter := _choice(text):
        return letter
    value = _number(text)
    if value is not None:
        return str(value)
    items = _items(text)
    if items is not None:
        opening, parts, closing = items
        keys = [_key(part, depth - 1) for part in parts]
        if not opening and any(key.startswith('"') for key in keys):
            return f'"{_folded(text.replace(",", " "))}"'  # words with a comma, as in a date, are not a list
        # Sets have no order; lists, tuples and intervals do.
        return f"{opening}{';'.join(sorted(keys) if opening == '{' else keys)}{closing}"
    return _tight(text) if _is_formula(text) else f'"{_folded(text)}"'


def boxed(text: str) -> list[str]:
    """The contents of every closed `\\boxed{…}` and `\\fbox{…}`, in order; of boxes in a box, the outer one."""
    opened: list[tuple[bool, int]] = []
    closed: list[tuple[int, int]] = []
    for token in _BRACES.finditer(text):
        if token[0][-1] == "{" and len(token[0]) != 2:
            opened.append((len(token[0]) > 1, token.end()))
        elif token[0] == "}" and opened:
            is_box, start = opened.pop()
            if is_box:
                closed.append((start, token.start()))
    outer: list[str] = []
    reached = -1
    for start, end in sorted(closed):
        if start > reached:
            outer.append(text[start:end].strip())
            reached = end
    return outer


# -- notation ----------------------------------------------------------------------------------------------------------

_SPACES = re.compile(r"\\[,;:! ]|\\q?quad\b|\{,\}(?=\d{3})|~")
_WRAPPERS = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname|mbox)\s*\{([^{}]*)\}")
_BOX = re.compile(r"^\\(?:boxed|fbox)\s*\{.*\}$", re.DOTALL)
_SIZES = re.compile(r"\\(?:left|right|displaystyle|bigl?|bigr?|Bigl?|Bigr?)(?![a-zA-Z])")
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)\s*(\d))")
_ASSIGNED = re.compile(r"^[A-Za-z](?:_\{?\w\}?)?\s*=\s*([^=]+)$")
_AMOUNT = re.compile(r"^([+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?)(\s*[A-Za-z][^,]*)$")
_VULGAR = re.compile(r"(?<=\d)(?=[¼½¾⅐-⅞])")
_SIGNS = str.maketrans(
    {
        **{sign: f"^{n}" for n, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        "−": "-",
        "–": "-",
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "×": "*",
        "·": "*",
        "⁄": "/",
    }
)


def _plain(answer: str) -> str:
    """The answer without box, frame and mark-up; the same notation for the same thing."""
    # Before NFKC, which makes 2½ into 21/2 and 10² into 102; and after it, because it writes `⁄` itself.
    text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", answer).translate(_SIGNS)).translate(_SIGNS)
    text = _peel(text)
    if boxed(text) and _BOX.match(text):
        text = _peel(", ".join(boxed(text)))
    # LaTeX's thin spaces between groups of three digits, as in `10\,000`, would be read as blanks below.
    text = re.sub(r"(?<=\d)\\[,;!](?=\d{3}(?!\d))", "", text)
    text = _SIZES.sub("", _SPACES.sub(lambda m: "" if m[0] in ("{,}", "\\!") else " ", text))
    text = _WRAPPERS.sub(r"\1", text)
    text = re.sub(r"\^\s*\{?\\circ\}?|°", "", text)
    text = re.sub(r"\\([%$€£])", r"\1", text)
    text = _FRACTION.sub(lambda m: f"({m[1] or m[3]})/({m[2] or m[4]})", text)
    text = re.sub(r"([\^_])\s*\{(\w)\}", r"\1\2", text)
    text = re.sub(r"\\sqrt\s*(\w)", r"\\sqrt{\1}", text)
    if assigned := _ASSIGNED.match(text):
        text = assigned[1]
    if amount := _AMOUNT.match(text):
        text = amount[1].replace(",", "") + amount[2]
    return _peel(text)


_AROUND = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"), ('"', '"'), ("'", "'"))


def _peel(text: str) -> str:
    """Remove quotes, mark-up and formula marks around a text, and the full stop after it."""
    before = None
    while text != before:
        before, text = text, text.strip()
        for left, right in _AROUND:
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                text = text[len(left) : -len(right)]
        # Two dots at the end are an ellipsis, and belong to the answer.
        if text.endswith((".", ";", ",")) and len(text) > 1 and not text.endswith(".."):
            text = text[:-1]
    return text


# -- kinds -------------------------------------------------------------------------------------------------------------

_CHOICE = re.compile(
    r"^(?:(?:option|choice|answer)\s*:?\s*)?(?:\(([A-Ja-j])\)(?:\s.*)?|([A-J])(?:[):]\s*.*)?|([a-j])[):]?)$",
    re.DOTALL | re.IGNORECASE,
)
_NUMBER = re.compile(r"^([+-]?)\s*(\d[\d,]*(?:\.\d*)?|\.\d+)(?:e([+-]?\d{1,3}))?$", re.IGNORECASE)
_SPACED = re.compile(r"^[+-]?\d{1,3}(?: \d{3}){1,6}$")
_POWER = re.compile(r"^(?:(.+?)\s*(?:\\times|\\cdot|\*|x)\s*)?10\s*\^\s*\{?\s*([+-]?\d{1,3})\s*\}?$")
_RATIO = re.compile(r"^([+-]?)\s*\(?([^()/]+)\)?\s*/\s*\(?([^()/]+)\)?$")
_MIXED = re.compile(r"^([+-]?)\s*(\d+)(?:\s+|\s*(?=\())\(?(\d+)\)?\s*/\s*\(?(\d+)\)?$")


def _choice(text: str) -> str:
    match = _CHOICE.match(text)
    return next(filter(None, match.groups()), "").upper() if match else ""


def _number(text: str) -> Fraction | None:
    """The exact value of a number, a ratio, a mixed number or a power of ten; None for anything else."""
    text = re.sub(r"^([+-]?)\s*[$€£]\s*", r"\1", text)
    text = re.sub(r"\s*[%€]$", "", text).strip()
    if _SPACED.match(text):
        text = text.replace(" ", "")
    if text.startswith("(") and text.endswith(")") and "/" not in text:
        text = text[1:-1].strip()
    plain = _decimal(text)
    if plain is not None:
        return plain
    if match := _MIXED.match(text):
        return _ratio(match[1], match[2], match[3], match[4])
    if match := _RATIO.match(text):
        over, under = _decimal(match[2].strip()), _decimal(match[3].strip())
        if over is not None and under:
            return -over / under if match[1] == "-" else over / under
    if match := _POWER.match(text):
        base, exponent = _decimal((match[1] or "1").strip()), int(match[2])
        if base is not None and abs(exponent) <= _DIGITS:
            return base * _exact(10) ** exponent
    return None


def _exact(value: int | str) -> Fraction:
    # Imported at the first number: with `decimal` it takes longer to import than this whole package.
    from fractions import Fraction

    return Fraction(value)


def _ratio(sign: str, whole: str, over: str, under: str) -> Fraction | None:
    if max(len(whole), len(over), len(under)) > _DIGITS or not int(under):
        return None
    value = int(whole) + _exact(over) / int(under)
    return -value if sign == "-" else value


def _decimal(text: str) -> Fraction | None:
    match = _NUMBER.match(text)
    # `int` takes quadratic time, and Python itself refuses more than 4,300 digits.
    if match is None or len(text) > _DIGITS:
        return None
    digits, exponent = match[2], int(match[3] or 0)
    if "," in digits:
        if not re.match(r"^\d{1,3}(?:,\d{3})+(?:\.\d*)?$", digits):
            return None
        digits = digits.replace(",", "")
    # An exact fraction would hold every digit: 1e999999999 fills the memory.
    if abs(exponent) > _DIGITS:
        return None
    value = _exact(digits.rstrip(".")) * _exact(10) ** exponent
    return -value if match[1] == "-" else value


_BRACKETS = {"(": ")]", "[": "])", "{": "}"}


def _items(text: str) -> tuple[str, list[str], str] | None:
    """The items of a list, tuple, interval or set, with its brackets; None for one thing alone."""
    text = text.replace("\\{", "{").replace("\\}", "}")
    opening = closing = ""
    if len(text) > 2 and text[0] in _BRACKETS and text[-1] in _BRACKETS[text[0]]:
        parts = _split(text[1:-1])
        if parts is not None:
            opening, closing = text[0], text[-1]
            # `(7)` is 7 in brackets, but `{7}` is a set of one.
            return (opening, parts, closing) if len(parts) > 1 or opening == "{" else None
    parts = _split(text)
    return ("", parts, "") if parts is not None and len(parts) > 1 else None


def _split(text: str) -> list[str] | None:
    """The parts between commas outside of brackets; None where brackets do not match or a part is empty."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return None
        if sign == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts = [part.strip() for part in (*parts, text[start:])]
    return parts if depth == 0 and all(parts) else None


def _is_formula(text: str) -> bool:
    """Whether it is mathematics rather than words: signs of it, and no word outside of commands."""
    return bool(re.search(r"[\\^=+*/<>_]|\d\s*[a-z]\b|-\s*\d", text)) and not re.search(
        r"(?<![\\A-Za-z])[A-Za-z]{3,}", text
    )


def _tight(text: str) -> str:
    """Without spaces, but for the one that ends a command before a letter."""
    words = re.sub(r"(\\[A-Za-z]+)\s+(?=[A-Za-z])", "\\1\0", text)
    return re.sub(r"\s+", "", words).replace("\0", " ")


def _folded(text: str) -> str:
    """Words without case, article, punctuation around them and runs of spaces."""
    words = " ".join(text.casefold().split()).strip(" .!?;:,\"'*`")
    # Never empty: an answer of punctuation alone must not equal every other one.
    return re.sub(r"(?<=\d) (?=[a-z])", "", re.sub(r"^(?:the|an?) (?=\S)", "", words)) or text
