"""The result of describing: a description of each model, a pool with the texts; and the progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from concertino import Usage

from .profile import Profile

if TYPE_CHECKING:
    from concertino import Pool


@dataclass(frozen=True, slots=True)
class Description:
    """The description of a model, and its evidence.

    Attributes:
        model: its name.
        text: at most 2,048 characters: the writer's sentences, if there are any, then the figures in words.
        profile: the figures.
        written_by: the writer model's name; empty where the text is the figures alone.
        at: when the text was written, or the last answer came; seconds since 1970.
        notes: why sentences of the writer, or all of them, are not in the text.
    """

    model: str
    text: str
    profile: Profile
    written_by: str
    at: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "model": self.model,
            "text": self.text,
            "written_by": self.written_by,
            "at": self.at,
            "evidence": self.profile.evidence,
            "notes": list(self.notes),
            "profile": self.profile.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Described:
    """A pool whose models are described.

    Attributes:
        pool: the pool with the new texts.
        descriptions: one for each model that was described, in the pool's order.
        unfinished: why a model was not described, by name; it keeps its text.
        asked: requests that were made now, by model; the writer's under its own name.
        known: answers that were known already, by model.
        problems: damaged entries of the cache, which were made again.
        usage: what was used now.
    """

    pool: Pool
    descriptions: tuple[Description, ...]
    unfinished: dict[str, str]
    asked: dict[str, int]
    known: dict[str, int]
    problems: tuple[str, ...]
    usage: Usage

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; the pool by its id."""
        return {
            "pool": self.pool.id,
            "descriptions": [description.to_json() for description in self.descriptions],
            "unfinished": self.unfinished,
            "asked": self.asked,
            "known": self.known,
            "problems": list(self.problems),
            "usage": self.usage.to_json(),
        }


class DescriptionProgress(NamedTuple):
    """How far it is.

    Attributes:
        model: of the answer that has just come.
        done: answers that are there, of `total`.
        known: how many of them were there before.
        seconds: since the first request.
    """

    model: str
    done: int
    total: int
    known: int
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """About how long the rest of the answers will take; None before the first one."""
        # Known answers took no time, so they say nothing about the pace.
        fresh = self.done - self.known
        return (self.total - self.done) * self.seconds / fresh if fresh else None
