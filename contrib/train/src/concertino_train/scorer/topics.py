"""Topics: what questions are about, what descriptions call it, and questions of each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from random import Random

_HELD_OUT_SHARE = 0.2


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes:
        name: unique.
        field: a wider area, such as "mathematics".
        names: noun phrases by which a description may call it.
        questions: that belong to it and to no other.
    """

    name: str
    field: str
    names: tuple[str, ...]
    questions: tuple[str, ...]


@cache
def _all_topics() -> tuple[Topic, ...]:
    found: dict[str, Topic] = {}
    called: dict[str, str] = {}
    asked: set[str] = set()
    folder = resources.files(__package__).joinpath("topics")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        for row in map(json.loads, filter(str.strip, file.read_text(encoding="utf-8").splitlines())):
            # A question that two topics share would tell neither.
            questions = tuple(question for question in dict.fromkeys(row["questions"]) if question not in asked)
            asked.update(questions)
            topic = Topic(row["topic"], row["field"], tuple(row["names"]), questions)
            # Two writers may have had the same topic: their cards could not be told apart.
            words = [name.lower() for name in (topic.name, *topic.names)]
            same = next((called[word] for word in words if word in called), topic.name)
            found[same] = _joined(found[same], topic) if same in found else topic
            called.update(dict.fromkeys(words, same))
    return tuple(found.values())


def _joined(one: Topic, other: Topic) -> Topic:
    names, questions = (
        tuple(dict.fromkeys(a + b)) for a, b in ((one.names, other.names), (one.questions, other.questions))
    )
    return Topic(one.name, one.field, names, questions)


def load_topics(*, held_out: bool = False) -> list[Topic]:
    """The topics that training reads, or those that are held out: a fifth of all, always the same."""
    topics = sorted(_all_topics(), key=lambda topic: topic.name)
    Random(0).shuffle(topics)
    cut = round(len(topics) * _HELD_OUT_SHARE)
    return topics[:cut] if held_out else topics[cut:]
