"""The words of the practice domain: topics, made-up places, templates of questions, names of members.

Invariants: every word is short, so that a small vocabulary holds it whole; a place is one head and one tail, so names
that training never showed are still made of parts that it did show; no place is in both splits, and no template.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Literal

Split = Literal["train", "test"]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


TOPICS = ("toll", "tide", "crop", "bell", "fair", "mill", "dock", "herd")
"""What is asked of places; each has a number."""
TWIN = "twin"
"""The relation that leads from a place to another one."""

_HEADS = words_of("""Bel Dun Fal Gor Hal Kes Lam Mor Nar Pel Rav Sel Tam Ull Ver Wes Yar Zel Cor Jas""")
_TAILS = words_of(
    """mar rick den wick ford holm gate moor stead ton well bury leigh garth more dale field ness port worth"""
)
_PLACE = re.compile(rf"\b(?:{'|'.join(_HEADS)})(?:{'|'.join(_TAILS)})\b")
_TRAIN_SHARE = 0.8

ASKS: dict[Split, tuple[str, ...]] = {
    "train": (
        "What is the {topic} of {place}?",
        "Give the {topic} of {place}.",
        "The {topic} of {place}?",
        "For {place}, look up the {topic}.",
        "Tell me the {topic} of {place}.",
        "Which {topic} has {place}?",
        "Find the {topic} that {place} has.",
        "How much is the {topic} of {place}?",
        "{place}: which {topic}?",
        "Say what the {topic} of {place} is.",
        "What is known of {place}, as to its {topic}?",
        "I need the {topic} that belongs to {place}.",
        "Look at {place} and name its {topic}.",
        "Has {place} a {topic}, and how much?",
        "What would {place} say is its {topic}?",
        "Tell me about the {topic}: what has {place}?",
    ),
    "test": ("What {topic} has {place}?", "Look up the {topic} of {place}.", "Tell me which {topic} {place} has."),
}
"""How a number is asked for."""
ASKS_TWIN: dict[Split, tuple[str, ...]] = {
    "train": (
        "Which place is the twin of {place}?",
        "Give the twin of {place}.",
        "The twin of {place}?",
        "For {place}, look up the twin.",
        "Tell me the twin of {place}.",
        "Find the twin that {place} has.",
        "{place}: which twin?",
        "Say what the twin of {place} is.",
        "I need the twin that belongs to {place}.",
        "Look at {place} and name its twin.",
    ),
    "test": ("What is the twin of {place}?", "Look up the twin of {place}."),
}
"""How the twin of a place is asked for."""
WISHES = {"none": "", "cheap": "Keep it cheap.", "fast": "Make it quick.", "sure": "Be sure."}
"""What a user may prefer, in words; they follow the question."""
THAT_PLACE = "that place"
"""What stands for a place that an earlier part finds."""

NAMES = words_of(
    """ash birch cedar elm fir gorse hazel ivy juniper larch maple oak pine rowan sorrel thorn vine willow yew alder
    amber basalt chalk flint garnet jade marble onyx opal quartz ruby slate topaz zinc copper iron nickel silver tin
    heron kite lark martin owl plover raven stork swift teal wren"""
)
"""What members may be called; a pool's seed says which member has which name."""


@cache
def places(split: Split) -> tuple[str, ...]:
    """The places that questions of a split name."""
    return tuple(place for head in _HEADS for tail in _TAILS if split_of(place := head + tail) == split)


def split_of(place: str) -> Split:
    """Which split a place is for."""
    return "train" if draw("split", place) < _TRAIN_SHARE else "test"


def every_place() -> tuple[str, ...]:
    """All places."""
    return tuple(head + tail for head in _HEADS for tail in _TAILS)


def places_in(text: str) -> list[str]:
    """The places that a text names, in order."""
    return _PLACE.findall(text)


def draw(*key: object) -> float:
    """A number from 0 to 1 that follows from a key, the same in every process."""
    # Python's own hash of a text differs from process to process.
    digest = hashlib.blake2b("\0".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
