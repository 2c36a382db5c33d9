r"""One number, compared as a number and never as a text: 70,000 is 70000 and $37.00 is 37.

A marked number comes first: `####`, a line that begins with `A:`, `\boxed{}`, `<answer>`, "the answer is". Only a text
without any of these is searched for its last number. The invariants: no number is *unparsable*, never wrong; where a
text marks two different numbers the last one counts, and the reason says so; comparison is exact unless a tolerance is
asked for.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import followed, marked, sentences, spoken
from .base import golds, shown

# Longer matches are no answers, and Python refuses integers of more than 4300 digits.
_DIGITS = 300
# Characters that are searched first, and marks that are looked at: the last ones decide.
_WINDOW = 4096
_PLACES = 50
# GSM8K's annotations, `<<48/2=24>>`: what stands in them is working, not an answer.
_CALCULATOR = re.compile(r"<<[^<>\n]{0,300}>>")
_FRACTION = re.compile(r"\\[dtc]?frac\s?\{(-?\d{1,40})\}\s?\{(\d{1,40})\}")
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3}){1,6}(?![\d.,]?\d)")
# GSM8K ends with `#### 7`; few-shot prompts lead models to `A: 7`.
_LINE = re.compile(r"####|^[ \t*]{0,8}A:", re.MULTILINE)
_NUMBER = re.compile(
    r"(?P<sign>(?<![A-Za-z_\d)\]}])-[ ]?)?(?<![A-Za-z_])"
    # One comma and two digits is a European price, 3,50; three digits behind a comma are thousands.
    r"(?:(?P<comma>(?<![\d,])\d{1,12},\d{2}(?![\d,]))"
    r"|(?P<digits>\d{1,3}(?:,\d{3}){1,20}(?!\d)|\d+)(?P<decimals>\.\d+)?"
    r"|(?P<only>\.\d+))"
    r"(?:[eE](?P<exponent>[+-]?\d{1,3})(?!\w)"
    r"|[ ]?(?:\\times|\\cdot|×|\*|x)[ ]?10\^\{?(?P<power>-?\d{1,3})\}?)?"
    r"(?:[ ]?/[ ]?(?P<under>\d{1,40})(?![\d.,]\d))?"
)
# `1.234,56` and `1 000,99` have one meaning each: two signs, of which the last parts the decimals.
_CONTINENTAL = re.compile(r"(?<![\d.,])(\d{1,3}(?:(?:\.\d{3}){1,6}|(?: \d{3}){1,6})),(\d{1,2})(?![\d,.]?\d)")
_OR = re.compile(r"[ ]?(?:or|to|and|–|—|-)[ ]?(?=[-.\d])", re.IGNORECASE)
_EQUATION = re.compile(r"\s{0,8}[A-Za-z]?[^A-Za-z=\n]{0,120}=")


class Number(NamedTuple):
    """A number in a text.

    Attributes:
        value: what it is worth.
        text: how it is written.
        note: what is doubtful about it, empty where nothing is.
    """

    value: Fraction
    text: str
    note: str = ""


class Numeric(TextGrader):
    """Right if the number is equal, or within a tolerance.

    Args:
        absolute: how far the number may be off.
        relative: the same as a share of the expected number: 0.05 lets 42 pass for 40.
    """

    name = "numeric"
    kinds = ("number", "plan")

    def __init__(self, *, absolute: float = 0.0, relative: float = 0.0) -> None:
        if absolute < 0 or relative < 0:
            raise ValueError(f"Numeric(absolute={absolute}, relative={relative}); expected numbers of at least 0")
        self.absolute, self.relative = Fraction(absolute), Fraction(relative)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text."""
        accepted = [_expected(task, gold) for gold in golds(task)]
        found = read_answer(text)
        if not isinstance(found, Number):
            return Grade(Verdict.UNPARSABLE, found, golds(task))
        near = next((each for each in accepted if self._near(found, each)), None)
        verdict = Verdict.WRONG if near is None else Verdict.RIGHT
        return Grade(verdict, _reason(found, accepted, near), golds(task), (found.text,))

    def _near(self, found: Number, expected: Number) -> bool:
        off = abs(found.value - expected.value)
        return off <= max(self.absolute, self.relative * abs(expected.value))


def read_answer(text: str) -> Number | str:
    """The number that a text gives as its answer, or why there is none."""
    text = _clean(spoken(text))
    # A mark that was asked for outranks a sentence, which may stand in the working.
    hard = _hard(text)
    if hard:
        return _last_of(hard)
    soft = [(place.start, place.text) for place in sentences(text)[-_PLACES:]]
    if not soft:
        return last_number(text)
    read = [(start, found) for start, segment in soft if (found := _first(segment))]
    if read and read[-1][0] == soft[-1][0]:
        return _noted([found for _, found in read])
    rest = last_number(text[soft[-1][0] :])
    return rest if isinstance(rest, Number) else f"no number stands behind the last 'answer is': {shown(soft[-1][1])!r}"


def numbers(text: str) -> list[Number]:
    """Every number of a text, in order."""
    return [number for match in _NUMBER.finditer(_clean(text)) if (number := _value(match))]


def plain_number(text: str) -> Fraction | None:
    """What a text is worth that is one number and nothing else but its currency, percent sign or full stop."""
    text = _spaces(_clean(text)).strip(" \t\n%.*")
    match = _NUMBER.fullmatch(text)
    number = _value(match) if match else None
    return number.value if number else None


def continental(text: str) -> str:
    """The text with numbers such as `1.234,56` written `1234.56`."""
    return _CONTINENTAL.sub(lambda match: f"{re.sub('[ .]', '', match[1])}.{match[2]}", text)


def _hard(text: str) -> list[tuple[str, str]]:
    """What is marked by `####`, `A:`, a box or a tag: marker and content, in order."""
    places = [(place.start, place.marker, place.text) for place in marked(text)]
    for match, end in followed(text, _LINE):
        places.append((match.start(), match[0].strip(" \t*"), text[match.end() : end]))
    return [(marker, content) for _, marker, content in sorted(places)]


def _last_of(places: list[tuple[str, str]]) -> Number | str:
    read = [(place, _first(place[1])) for place in places[-_PLACES:]]
    (marker, content), last = read[-1]
    if last is None:
        return f"no number in {marker}: {shown(content)!r}"
    return _noted([found for _, found in read if found])


def _noted(found: list[Number]) -> Number:
    """The last of the marked numbers, with a note where they differ."""
    last = found[-1]
    other = next((number for number in reversed(found) if number.value != last.value), None)
    if other is None:
        return last
    return last._replace(note=f"two marks differ, {other.text} and {last.text}: the last counts")


def _first(segment: str) -> Number | None:
    """The number that a marked text begins with, or comes to: `7`, `5 + 2 = 7 apples`, `x = 7`."""
    segment = segment[:2000]
    # In `5 + 2 = 7` the number behind the last sign is meant.
    while match := _EQUATION.match(segment):
        segment = segment[match.end() :]
    segment = _spaces(segment)
    for match in _NUMBER.finditer(segment):
        number = _value(match)
        if number is None:
            continue
        # A range or an alternative is no decision: the last number counts, and the reason tells.
        either = _OR.match(segment, match.end())
        other = _NUMBER.match(segment, either.end()) if either else None
        second = _value(other) if other else None
        if second and second.value != number.value:
            return second._replace(note=f"{number.text} or {second.text}: the last counts")
        return number
    return None


def last_number(text: str) -> Number | str:
    """The last number of a text, or why there is none."""
    size = _WINDOW
    while True:  # a window that grows from the end, for a long text may be full of numbers
        start = max(0, len(text) - size)
        for match in reversed(list(_NUMBER.finditer(text, start))):
            # A match at the window's edge may be the tail of a longer number.
            if (match.start() > start or not start) and (number := _value(match)):
                return number
        if not start:
            return "there is no number in the text"
        # Growing by a factor keeps all passes together linear in the text.
        size *= 8


def _value(match: re.Match[str]) -> Number | None:
    """What a match is worth; None for one with more digits than any answer has."""
    if match.end() - match.start() > _DIGITS:
        return None
    if match["comma"]:
        digits = match["comma"].replace(",", ".")
    else:
        digits = (match["digits"] or "0").replace(",", "") + (match["decimals"] or match["only"] or "")
    value = Fraction(digits) * Fraction(10) ** int(match["exponent"] or match["power"] or 0)
    if match["under"]:
        # A text may say 3/0.
        if not int(match["under"]):
            return None
        value /= int(match["under"])
    return Number(-value if match["sign"] else value, match[0].strip())


def _clean(text: str) -> str:
    """The text without what stands around or within numbers only to be read."""
    text = _CALCULATOR.sub("", text) if "<<" in text else text
    text = re.sub(r"\\![ ]?", "", text.replace("−", "-")).replace("{,}", ",").replace("\\%", "%")
    text = re.sub(r"(?<=\d)(?:\\,|[\u00a0\u2009\u202f])(?=\d{3})", ",", text)
    text = re.sub(r"-[ ]?\\?[$€£¥]", "-", text)
    text = re.sub(r"\\?[$€£¥]", " ", text)
    text = continental(text)
    return _FRACTION.sub(r"\1/\2", text) if "frac" in text else text


def _spaces(segment: str) -> str:
    """Thousands that are set apart by blanks, `70 000`, as they are without."""
    return _SPACED.sub(lambda match: match[0].replace(" ", ""), segment)


def _expected(task: Task, gold: str) -> Number:
    number = read_answer(gold)
    if not isinstance(number, Number):
        what = "answer" if gold == task.answer else "alias"
        raise ValueError(f"{task.id}: the {what} {gold!r} is not a number; the grader `numeric` needs one")
    return number


def _reason(found: Number, accepted: list[Number], near: Number | None) -> str:
    if near is None:
        text = f"{found.text}, expected {' or '.join(each.text for each in accepted[:3])}"
    elif near.value != found.value:
        text = f"{found.text} is near enough to {near.text}"
    else:
        text = "the answer is right"
    return f"{text}; {found.note}" if found.note else text
