"""Questions of the practice domain, written and read: one part in each paragraph.

    facts   1. What is the toll of Belmar?                 parts that do not need each other
            2. The tide of Dunrick?
    chain   1. Which place is the twin of Belmar?          each part needs the one before
            2. What is the toll of that place?
    fork    1. Which place is the twin of Belmar?          the later parts need the first, and not each other
            2. What is the toll of that place?
            3. What is the tide of that place?

Paragraphs are parted by an empty line, so that a strategy with references can hand a part on by its number. What a user
prefers is a paragraph more. The invariant: `read_question` finds in a text exactly the parts that it was written from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from .facts import fact
from .words import ASKS, ASKS_TWIN, THAT_PLACE, TOPICS, TWIN, Split, places, places_in

_WORD = re.compile(rf"\b(?:{'|'.join((*TOPICS, TWIN))})\b")


@dataclass(frozen=True)
class QuestionPart:
    """One part of a question.

    Attributes:
        topic: what is asked; `twin` for another place.
        place: of which place; empty where an earlier part finds it.
        after: index of that part, counted from 0; None for a place that is named.
    """

    topic: str
    place: str = ""
    after: int | None = None


def solve(parts: Sequence[QuestionPart]) -> tuple[str, ...]:
    """What is to be answered: the facts of all parts that no other part needs, in order."""
    found: list[str] = []
    for part in parts:
        found.append(fact(part.topic, part.place if part.after is None else found[part.after]))
    needed = {part.after for part in parts}
    return tuple(text for index, text in enumerate(found) if index not in needed)


def draw_question(
    rng: Random, kind: str, level: int, split: Split, topics: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """A random question and its answers.

    Args:
        rng: all choices come from it.
        kind: "facts", "chain" or "fork".
        level: the number of parts.
        split: whose places are named, and whose templates are used.
        topics: that may be asked; no topic comes twice.
    """
    parts = draw_parts(rng, kind, level, split, topics)
    return write_question(parts, split, rng), solve(parts)


def draw_parts(rng: Random, kind: str, level: int, split: Split, topics: Sequence[str]) -> list[QuestionPart]:
    """The parts of a random question; see `draw_question`."""
    known = places(split)
    if kind == "facts":
        return [QuestionPart(topic, rng.choice(known)) for topic in rng.sample(list(topics), level)]
    first = QuestionPart(TWIN, rng.choice(known))
    if kind == "fork":
        return [first, *(QuestionPart(topic, after=0) for topic in rng.sample(list(topics), level - 1))]
    middle = [QuestionPart(TWIN, after=index) for index in range(level - 2)]
    return [first, *middle, QuestionPart(rng.choice(list(topics)), after=level - 2)]


def write_question(parts: Sequence[QuestionPart], split: Split, rng: Random) -> str:
    """A question in words; its templates are those of the split."""
    texts = []
    for number, part in enumerate(parts, start=1):
        templates = ASKS_TWIN[split] if part.topic == TWIN else ASKS[split]
        asked = rng.choice(templates).format(topic=part.topic, place=part.place or THAT_PLACE)
        texts.append(f"{number}. {asked}")
    return "\n\n".join(texts)


def read_question(text: str) -> list[QuestionPart]:
    """The parts of a question; paragraphs that ask nothing are passed over."""
    parts: list[QuestionPart] = []
    for paragraph in text.split("\n\n"):
        topics, named = _WORD.findall(paragraph), places_in(paragraph)
        if not topics or not (named or THAT_PLACE in paragraph):
            continue
        if named:
            parts.append(QuestionPart(topics[0], named[-1]))
        else:
            twins = [index for index, part in enumerate(parts) if part.topic == TWIN]
            parts.append(QuestionPart(topics[0], after=twins[-1] if twins else None))
    return parts


def about(text: str, topic: str = "") -> tuple[str, str]:
    """What a member is asked: topic and place, each empty if the text does not say it.

    Only what stands behind the last "sub-task:" counts, if it names a topic or a place; else all of the text.

    Args:
        text: as it was handed over; may hold the whole question in front.
        topic: the only one that the member knows; empty for one that knows all.
    """
    # Some strategies put the whole question in front of a sub-task, so the text behind the mark counts first.
    before, _, own = text.rpartition("sub-task:")
    asked = topic or next(iter(_WORD.findall(own)[-1:]), "")
    for told in (own, before):
        fitting = [part.place for part in read_question(told) if asked in ("", part.topic)]
        if fitting:
            return asked or read_question(told)[-1].topic, next((place for place in fitting if place), "")
        if told is own and (named := places_in(own)):
            return asked, named[-1]
    return asked, ""
