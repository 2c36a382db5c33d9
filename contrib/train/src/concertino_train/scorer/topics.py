"""Topics: what questions are about, what descriptions call it, and questions of each."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal
from zlib import crc32

Part = Literal["training", "development", "test"]
"""What training reads; topics that it does not read, by which settings may be chosen; and, for the last figures alone,
new questions of ordinary topics, most of which training knows by some name."""

_TEST_FILE = "test.jsonl"
_ONE_OF = 5
"""One topic of so many is of the development part."""


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
def _all_topics(*, test: bool) -> tuple[Topic, ...]:
    found: dict[str, Topic] = {}
    called: dict[str, str] = {}
    asked: set[str] = set()
    folder = resources.files(__package__).joinpath("topics")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if (file.name == _TEST_FILE) is not test:
            continue
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


def load_topics(part: Part = "training") -> list[Topic]:
    """The topics of a part; no question is in two parts."""
    others = _all_topics(test=False)
    if part == "test":
        asked = {question for topic in others for question in topic.questions}
        return [
            replace(topic, questions=tuple(question for question in topic.questions if question not in asked))
            for topic in _all_topics(test=True)
        ]
    # By the name, so that a topic stays in its part when others are added.
    held_out = {topic.name for topic in others if crc32(topic.name.encode()) % _ONE_OF == 0}
    return [topic for topic in others if (topic.name in held_out) is (part == "development")]
