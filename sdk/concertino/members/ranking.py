"""Rankings: whom to ask first for a question. Plugins offer them; routers, shortlists and searches name one of them.

A ranking may also make an index, which finds the best few of ten thousand without looking at each of them.

Invariant: a ranking only orders. It sees no more than a `RankingEntry` holds, and cannot leave anyone out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from concertino.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class RankingEntry:
    """What a ranking reads of one model or member.

    Attributes:
        name: in the pool.
        card: its description.
        usd: what this request, or a usual call, is expected to cost, in $; None where the price is unknown.
        units: cost units of a call; 0 for a model.
        arguments: names of its arguments.
        answered: questions of earlier runs in which a call of it succeeded.
    """

    name: str
    card: str
    usd: float | None = None
    units: float = 0.0
    arguments: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


@runtime_checkable
class Ranking(Protocol):
    """Orders models or members by how much it is worth asking them. Called in the event loop, so it must be quick."""

    name: str

    def order(self, question: str, entries: Sequence[RankingEntry]) -> Sequence[str]:
        """Their names, best first; entries that it does not name come after these, in the order given.

        Args:
            question: the text of the last message, or the question of a run or a part of it.
        """
        ...


def check_ranking(owner: str, given: object, example: str, package: str) -> None:
    """Refuse what is neither a ranking nor the name of one.

    Args:
        owner: the class that was given it.
        example: a ranking that would do.
        package: what offers it.

    Raises:
        UsageError: says what was expected.
    """
    if not (isinstance(given, Ranking) or (isinstance(given, str) and "/" in given)):
        raise UsageError(
            f"{owner}(ranking={given!r}): expected a ranking of an installed plugin as 'provider/name', such as "
            f"{example!r} (pip install {package}), or a Ranking"
        )


class RankingIndex(Protocol):
    """Finds the best of the entries that it was made of. Called in the event loop, so it must be quick."""

    def search(self, question: str, most: int) -> Sequence[str]:
        """At most so many names, best first; those that have nothing to do with the question are left out."""
        ...


@runtime_checkable
class IndexedRanking(Ranking, Protocol):
    """A ranking for many entries: what it needs of them is made once."""

    def index(self, entries: Sequence[RankingEntry]) -> RankingIndex:
        """An index of these entries, which do not change."""
        ...


def ordered_by(ranking: Ranking, question: str, entries: Sequence[RankingEntry]) -> list[str]:
    """All names, as the ranking orders them.

    Raises:
        ValueError: it names something that was not among them.
    """
    named = named_by(ranking, question, entries)
    return list(dict.fromkeys([*named, *(entry.name for entry in entries)]))


def named_by(ranking: Ranking, question: str, entries: Sequence[RankingEntry]) -> list[str]:
    """The names that a ranking gives, best first.

    Raises:
        ValueError: it names something that was not among them.
    """
    known = {entry.name for entry in entries}
    named = list(dict.fromkeys(ranking.order(question, entries)))
    if strangers := [name for name in named if name not in known]:
        there = ", ".join(entry.name for entry in entries[:8])
        raise ValueError(f"ranking {ranking.name!r} named {strangers[0]!r}; expected some of {there}")
    return named
