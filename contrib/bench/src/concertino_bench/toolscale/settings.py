"""What is asked for of a synthesis, how far it is, and the result: plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from concertino import Usage
from concertino.strategies import DEFAULT_STRATEGY

SECONDS = 5.0
"""What one call in the sandbox may take."""


@dataclass(frozen=True)
class SynthesisSettings:
    """What is asked for.

    Attributes:
        domain: in a few words, "a town library".
        subjects: how many subjects the entries are about.
        entries: entries of each table for each subject.
        tools: about how many.
        intents: how many; each becomes a task.
        evolve: how often each task is made harder.
        attempts: of the solver, until one is right; 0 leaves the second filter out.
        repairs: how often a model is told what is wrong with a reply.
        review: have the writer look for contradictions in the entries.
        seconds: for one call in the sandbox.
        strategy: of the solver.
    """

    domain: str
    subjects: int = 3
    entries: int = 6
    tools: int = 10
    intents: int = 10
    evolve: int = 1
    attempts: int = 8
    repairs: int = 2
    review: bool = True
    seconds: float = SECONDS
    strategy: str = DEFAULT_STRATEGY

    @property
    def name(self) -> str:
        """The domain as a part of ids: "a-town-library"."""
        kept = "".join(letter if letter.isalnum() else "-" for letter in self.domain.lower())
        return "-".join(filter(None, kept.split("-")))[:40] or "domain"


@dataclass(frozen=True)
class SynthesisProgress:
    """How far it is: the step that ended last, requests so far, artefacts that were known, what was rejected."""

    step: str
    asked: int
    known: int
    rejected: int


@dataclass(frozen=True)
class SynthesisReport:
    """The result of a synthesis.

    Attributes:
        folder: where everything is.
        tables, entries, tools, intents: how many there are.
        tasks: how many were kept, by how often they were made harder.
        reasons: how much was rejected, by reason; see `REASONS`.
        rejected: each with id, reason and detail.
        asked, known: requests in this process; artefacts that were there before.
        usage: what this process consumed.
        seconds: wall time of this process.
    """

    folder: str
    tables: int
    entries: int
    tools: int
    intents: int
    tasks: Mapping[int, int]
    reasons: Mapping[str, int]
    rejected: Sequence[Mapping[str, str]]
    asked: int
    known: int
    usage: Usage
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {**asdict(self), "usage": self.usage.to_json(), "seconds": round(self.seconds, 3)}
        return {**data, "tasks": {str(level): count for level, count in sorted(self.tasks.items())}}
