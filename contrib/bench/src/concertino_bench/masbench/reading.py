"""A tiny reader: the text of a row in, equations out. It shares no code with the generator, and no catalogue of names.

    The number of each X's Y equals E.       E: 7 · B · 7 more than B · 7 less than B · 7 times as much as B
                                             B: each X's Y · the sum of each …, each … and each … ·
                                                the difference of each … and each …
    … the magic number[s] for W is[:] 1234567.
    How many Y does X have? · What is [the value of] X's Y? · From the passage, identify … .

`[answer2]` is replaced by the name of what problem 2 asks for, so a problem is read after those before it. A sentence
with "verify" is a false note, whatever it says. The invariant: a sentence that holds a digit, an "equals" or a question
mark is read or refused, never skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Name = tuple[str, str]
"""Owner and item of a quantity."""


class QuestionReadingError(ValueError):
    """A text is outside the grammar; says which sentence."""


@dataclass(frozen=True)
class Equation:
    """`plus + times * (first ± …)`; `minus` says that the second term is taken away."""

    terms: tuple[Name, ...] = ()
    plus: int = 0
    times: int = 1
    minus: bool = False


@dataclass
class Section:
    """One problem as read.

    Attributes:
        number: as in "Problem 2:"; 1 without headings.
        equations: what sentences define.
        hidden: magic numbers by word.
        asked: a quantity's name, or the word of a magic number, in order.
        handed: problems whose results the text uses, with the quantity that they asked for.
        notes: how many false notes there are.
        attacked: what the notes are about, with the value they claim; only those that could be read.
    """

    number: int
    equations: dict[Name, Equation] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    asked: list[Name | str] = field(default_factory=list)
    handed: dict[int, Name] = field(default_factory=dict)
    notes: int = 0
    attacked: list[tuple[Name | str, int]] = field(default_factory=list)


_PROBLEM = re.compile(r"Problem (\d+):")
_ENDS = re.compile(r"(?<=[.?!])\s+|\n\n|\n(?=- )|={3,}")
_EQUALS = re.compile(r"The number of each (.+?) equals (.+)\.")
_HIDDEN = re.compile(r".*\bmagic numbers? for (\S+) is:? (\d+)\.")
_CLAIM = re.compile(r"(?:the number of (.+) that (.+) has|magic number for (\S+)) is (\d+)")
_HOW_MANY = re.compile(r"How many (.+) does (.+) have\?")
_WHAT_IS = re.compile(r"What is (?:the value of )?(.+)\?")
_IDENTIFY = re.compile(r"From the passage, identify (?:and return )?(.*)")
_IDENTIFIED = re.compile(r"the number of (.+?) that (.+?) has\b|the magic number for ([\w-]+)")
_SCALED = re.compile(r"(\d+) (more than|less than|times as much as) (.+)")
_HANDED = re.compile(r"\[answer(\d+)\]")
_ASIDE = re.compile(r"\[variable\w+\]|\[answerk\]")


def read_text(text: str) -> list[Section]:
    """Read a text.

    Raises:
        QuestionReadingError: a sentence is outside the grammar, or nothing is asked.
    """
    text = text.replace("’", "'").replace("‘", "'")
    opening, *rest = _PROBLEM.split(text)
    bodies = [(int(number), body) for number, body in zip(rest[::2], rest[1::2], strict=True) if body.strip()]
    sections: list[Section] = []
    for number, body in bodies or [(1, opening)]:
        section = Section(number)
        for sentence in _ENDS.split(_with_names(body, section, sections)):
            _take(" ".join(sentence.split()), section)
        if not section.asked:
            raise QuestionReadingError(f"problem {number} asks nothing")
        sections.append(section)
    return sections


def _with_names(body: str, section: Section, before: list[Section]) -> str:
    """Put names in the place of results that earlier problems hand over."""
    asked = {earlier.number: earlier.asked[0] for earlier in before}

    def name(match: re.Match[str]) -> str:
        number = int(match[1])
        quantity = asked.get(number)
        if not isinstance(quantity, tuple):
            raise QuestionReadingError(f"problem {section.number} uses {match[0]}, which no earlier problem asks for")
        section.handed[number] = quantity
        return "'s ".join(quantity)

    lines = [line for line in re.split(r"(?<=[.?!])\s+|\n", body) if not _ASIDE.search(line)]
    return _HANDED.sub(name, "\n\n".join(lines))


def _take(sentence: str, section: Section) -> None:
    if re.search(r"\bverify\b", sentence, re.I):
        section.notes += 1
        if claim := _CLAIM.search(sentence):
            about = claim[3] or (claim[2], claim[1])
            section.attacked.append((about, int(claim[4])))
    elif match := _EQUALS.fullmatch(sentence):
        name, equation = _name(match[1]), _equation(match[2])
        if section.equations.setdefault(name, equation) != equation:
            raise QuestionReadingError(f"{sentence!r} contradicts an earlier sentence")
    elif match := _HIDDEN.fullmatch(sentence):
        section.hidden[match[1]] = int(match[2])
    elif match := _HOW_MANY.fullmatch(sentence):
        section.asked.append((match[2], match[1]))
    elif match := _WHAT_IS.fullmatch(sentence):
        section.asked.append(_name(match[1]))
    elif match := _IDENTIFY.fullmatch(sentence):
        section.asked += [(owner, item) if owner else word for item, owner, word in _IDENTIFIED.findall(match[1])]
    elif re.search(r"\d|\bequals\b|\?$", sentence):
        raise QuestionReadingError(f"{sentence!r} is outside the grammar")


def _name(text: str) -> Name:
    owner, mark, item = text.removeprefix("each ").rpartition("'s ")
    if not mark:
        raise QuestionReadingError(f"{text!r} is not a quantity; expected X's Y")
    return owner, item


def _equation(text: str) -> Equation:
    if text.isdecimal():
        return Equation(plus=int(text))
    plus, times = 0, 1
    if match := _SCALED.fullmatch(text):
        number, how, text = int(match[1]), match[2], match[3]
        plus, times = (0, number) if how.startswith("times") else (number if how == "more than" else -number, 1)
    for opening, minus in (("the sum of ", False), ("the difference of ", True)):
        if text.startswith(opening):
            names = tuple(_name(part) for part in re.split(r", (?=each )| and (?=each )", text.removeprefix(opening)))
            if minus and len(names) != 2:
                raise QuestionReadingError(f"{text!r}: a difference has two terms")
            return Equation(names, plus, times, minus)
    return Equation((_name(text),), plus, times)
