"""What is true in the practice domain. A fact follows from a hash of its topic and its place, so nothing is stored."""

from __future__ import annotations

from .words import TWIN, draw, every_place

LEAST, MOST = 10, 99
"""Bounds of the numbers: two digits."""


def fact(topic: str, place: str) -> str:
    """What a place has of a topic: a number of two digits, or for `twin` another place."""
    share = draw("fact", topic, place)
    if topic == TWIN:
        others = [other for other in every_place() if other != place]
        return others[int(share * len(others))]
    return str(LEAST + int(share * (MOST - LEAST + 1)))


def rumour(topic: str, place: str) -> str:
    """A wrong fact about it."""
    right = fact(topic, place)
    share = draw("rumour", topic, place)
    if topic == TWIN:
        others = [other for other in every_place() if other not in (place, right)]
        return others[int(share * len(others))]
    others = [str(number) for number in range(LEAST, MOST + 1) if str(number) != right]
    return others[int(share * len(others))]
