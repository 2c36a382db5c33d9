"""Grading: whether a reply gives the known answer. Pure functions of the task and the text.

Models are asked to end with `Answer: …`. What stands there is compared; `\\boxed{…}` and `<answer>…</answer>` do as
well, for models that were trained to end so. Without any of them the whole text is looked at, as the grader allows.
"""

from __future__ import annotations

import json
import re
import unicodedata
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from concertino.text.json import ReadingError, read_json

if TYPE_CHECKING:
    from ._tasks import Task

_MARK = re.compile(r"^[\s*_#>-]*(?:the\s+)?(?:final\s+)?answer[\s*_]*(?:[:：]|\bis\b)", re.IGNORECASE | re.MULTILINE)
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_BOX = "\\boxed{"
_NUMBER = re.compile(
    r"(?:(?<![\w.])[-+−])?(?:\d{1,3}(?:[,'\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+\b)?"
)
_FRACTION = re.compile(rf"({_NUMBER.pattern})\s*/\s*(\d+)(?!\s*/)")
_LETTER = re.compile(r"(?<![\w'’])[A-Z](?![\w'’])")
_CLOSE = Fraction(1, 10**9)


class Ending(NamedTuple):
    """The part of a reply in which the answer stands. `marked`: the model said where."""

    text: str
    marked: bool

    @property
    def line(self) -> str:
        """The answer's line: the first one of a marked ending, else the last one of the reply."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return (lines[0] if self.marked else lines[-1]) if lines else ""


def is_correct(task: Task, reply: str) -> bool:
    """Whether a reply gives the known answer of a task."""
    ending = find_ending(reply)
    match task.grader:
        case "number":
            return _same_number(task.answer, ending)
        case "choice":
            return _chosen(ending.line) == task.answer.upper()
        case "contains":
            return holds(plain(ending.text), plain(task.answer))
        case _:
            return _same_text(task.answer, ending)


def find_ending(reply: str) -> Ending:
    """Where the answer stands: the last box, tag or mark, or the whole text; never what was only thought."""
    text = reply.rpartition("</think>")[2]
    box = _last_box(text)
    if box is not None:
        return Ending(box, True)
    tagged = _TAGGED.findall(text)
    if tagged:
        return Ending(tagged[-1], True)
    marks = list(_MARK.finditer(text))
    return Ending(text[marks[-1].end() :], True) if marks else Ending(text, False)


def _last_box(text: str) -> str | None:
    start = text.rfind(_BOX)
    if start < 0:
        return None
    depth = 0
    for place in range(start + len(_BOX), len(text)):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            if depth == 0:
                return text[start + len(_BOX) : place]
            depth -= 1
    return None


# -- texts -------------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A text without case, marks of emphasis and quotation, a full stop at its end, or more than single spaces."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = " ".join(re.sub(r"[*_`\"“”„«»]", "", text).split())
    return text.strip(" .!'’‘").removeprefix("the ").removeprefix("an ").removeprefix("a ")


def holds(text: str, phrase: str) -> bool:
    """Whether a phrase occurs in a text as whole words."""
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _same_text(expected: str, ending: Ending) -> bool:
    value = _structure(expected)
    if value is not None:
        return _canonical(_read_structure(ending.text)) == _canonical(value)
    return plain(expected) in (plain(ending.line), plain(ending.text))


def _structure(text: str) -> Any:
    """An object or array that a text is, else None."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def _read_structure(text: str) -> Any:
    try:
        return read_json(text.strip(), expect="any").value
    except ReadingError:
        pass
    found = re.search(r"\{.*\}|\[.*\]", text, re.DOTALL)
    try:
        return read_json(found.group(), expect="any").value if found else None
    except ReadingError:
        return None


def _canonical(value: Any) -> str:
    """One text for equal JSON values; `1` and `1.0` are equal, `1` and `true` are not."""

    def whole(item: Any) -> Any:
        if isinstance(item, float) and item.is_integer():
            return int(item)
        if isinstance(item, dict):
            return {key: whole(part) for key, part in item.items()}
        return [whole(part) for part in item] if isinstance(item, list) else item

    return json.dumps(whole(value), sort_keys=True)


# -- numbers and letters -----------------------------------------------------------------------------------------------


def numbers_in(text: str) -> list[Fraction]:
    """The numbers of a text in order; `3/4` is one of them, and so is `1,250.5`."""
    found: list[Fraction] = []
    place = 0
    while match := _NUMBER.search(text, place):
        fraction = _FRACTION.match(text, match.start())
        if fraction and int(fraction.group(2)):
            found.append(_value(fraction.group(1)) / int(fraction.group(2)))
            place = fraction.end()
        else:
            found.append(_value(match.group()))
            place = match.end()
    return found


def _value(text: str) -> Fraction:
    digits = re.sub(r"[,'\u00a0\u2009\u202f]", "", text.replace("−", "-"))
    mantissa, _, exponent = digits.lower().partition("e")
    return Fraction(mantissa) * Fraction(10) ** max(-400, min(400, int(exponent or 0)))


def _same_number(expected: str, ending: Ending) -> bool:
    text = ending.line.rpartition("=")[2] if ending.marked else ending.text
    found = numbers_in(text)
    if not found:
        return False
    (wanted,) = numbers_in(expected)
    given = found[0] if ending.marked else found[-1]
    return bool(abs(given - wanted) <= _CLOSE * max(Fraction(1), abs(wanted)))


def _chosen(line: str) -> str:
    """The letter of the option that a line names, empty if it names none or several."""
    opening = re.match(r"[\s*_(\[`\"']*([A-Za-z])(?:[\s*_)\]`\"']*$|[*_`]*[).:\]])", line)
    if opening:
        return opening.group(1).upper()
    letters = set(_LETTER.findall(line))
    return letters.pop() if len(letters) == 1 else ""
