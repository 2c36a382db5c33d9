"""Where runs happen, in one word: `local` for this process, `local:4` for four worker processes, or a plugin's.

A distribution adds places with an entry point, whose name is how their words begin, up to a colon:

    [project.entry-points."concertino.places"]
    ray = "concertino_ray.words:ray_place"

It leads to a function that is given the word, refuses it with a UsageError, and returns what opens the place: a
function with the arguments of `open_rollouts` after the word. Checking a word imports the plugin and opens nothing.

Invariant: a word that is not known is refused before anything has run, with those that are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Protocol

from concertino.core.errors import UsageError

from .dispatch import Rollouts
from .in_process_runs import InProcess
from .ordered_work import Work
from .worker_pool import Processes

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")
_GROUP = "concertino.places"
"""The group of entry points whose names begin words of places."""
_OURS = {"ray": "pip install 'concertino[ray]'"}
"""How to get the places of our own distributions."""


class OpensPlace(Protocol):
    """Opens the place of one word."""

    def __call__(self, work: Work, *, slots: int, env_from: Sequence[str]) -> Rollouts: ...


def check_place(word: str) -> bool:
    """Whether the runs of a place happen in other processes than this one.

    Raises:
        UsageError: the word names no place.
    """
    return _opener(word) is not _open_here


def open_rollouts(word: str, work: Work, *, slots: int = 16, env_from: Sequence[str] = ()) -> Rollouts:
    """The place that a word names. Close it, or use it as `async with`.

    Args:
        work: what orders are carried out with; closed with the place.
        slots: runs at once.
        env_from: environment variables that worker processes are given beside harmless ones, such as OPENAI_API_KEY.

    Raises:
        UsageError: the word names no place, or the work holds what cannot be sent to another process.
        RolloutsError: the place cannot be reached.
    """
    return _opener(word)(work, slots=slots, env_from=env_from)


def _opener(word: str) -> OpensPlace:
    found = _LOCAL.fullmatch(word or "local")
    if found is not None:
        return _processes(int(found[1])) if found[1] else _open_here
    kind = word.partition(":")[0]
    for entry in entry_points(group=_GROUP, name=kind):
        opener: OpensPlace = entry.load()(word)
        return opener
    if kind in _OURS:
        raise UsageError(f"on={word!r}: this place comes with another distribution: {_OURS[kind]}")
    added = "".join(f", {name}" for name in sorted(entry.name for entry in entry_points(group=_GROUP)))
    raise UsageError(
        f"on={word!r}: expected where runs happen: local (in this process), or local:4 (four worker processes){added}"
    )


def _open_here(work: Work, *, slots: int, env_from: Sequence[str]) -> Rollouts:
    return InProcess(work, slots=slots)


def _processes(count: int) -> OpensPlace:
    def opened(work: Work, *, slots: int, env_from: Sequence[str]) -> Rollouts:
        return Processes(work, count, slots=slots, env_from=env_from)

    return opened
