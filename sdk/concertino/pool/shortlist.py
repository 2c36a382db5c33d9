"""A shortlist: the members of a pool that a ranking puts first for a question, for `Orchestrator(arrange=...)`.

    Orchestrator("openai/gpt-5.4-mini", arrange=Shortlist("scorer/best", most=6))

Invariant: what is listed depends on the question, on cards and on prices, never on names or on the order of the pool,
as far as the ranking reads neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.documents import check_keys
from concertino.core.errors import UsageError
from concertino.core.references import paragraphs
from concertino.members.ranking import Ranking, RankingEntry, check_ranking, ordered_by

if TYPE_CHECKING:
    from concertino.members.specs import ToolSpec

    from .pool import Pool

_USUAL_PROMPT, _USUAL_REPLY = 1000, 500
"""Tokens of a request to a model, where prices of members are compared before anything is known of the request."""


@dataclass(frozen=True)
class Shortlist:
    """The members that a ranking puts first. A value, so that settings and results can name it.

    Args:
        ranking: an installed one as `provider/name`, such as `scorer/best` of concertino-scorer; or an object.
        most: members that are listed at most; with `parts`, for each part.
        best: `first` or `last`: where the best one stands. Some small models prefer what is listed last.
        parts: rank for each paragraph of the question separately, and list those of the first paragraph first. A member
            is listed once: paragraphs choose in turn.
        handles: show members by what they are listed for instead of their names: `a1` is the best one for the first
            part, `b2` the second best for the second. A policy that reads handles need not read names.

    Raises:
        UsageError: a value is out of range; says which and what was expected.
    """

    ranking: str | Ranking
    most: int = 6
    best: Literal["first", "last"] = "first"
    parts: bool = False
    handles: bool = False

    def __post_init__(self) -> None:
        check_ranking("Shortlist", self.ranking, "scorer/best", "concertino-scorer")
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise UsageError(f"Shortlist(most={self.most!r}): expected 1 or more members")
        if self.best not in ("first", "last"):
            raise UsageError(f"Shortlist(best={self.best!r}): expected 'first' or 'last'")
        for name in ("parts", "handles"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"Shortlist({name}={getattr(self, name)!r}): expected true or false")

    @classmethod
    def parse(cls, given: str | Mapping[str, Any]) -> Shortlist:
        """Read `scorer/best` or `scorer/best,most=2,parts=true`, as the command line gives it; or a table of a file.

        Raises:
            UsageError: a key is unknown, or a value is out of range; says what was expected.
        """
        if isinstance(given, str):
            ranking, *parts = (part.strip() for part in given.split(","))
            pairs = [part.partition("=") for part in parts]
            given = {"ranking": ranking, **{key.strip(): _value(text.strip()) for key, _, text in pairs}}
        check_keys("shortlist", given, [field.name for field in fields(cls)], UsageError)
        if "ranking" not in given:
            raise UsageError("shortlist: no ranking; give the name of an installed one, such as 'scorer/best'")
        return cls(**given)

    def __call__(self, question: str, pool: Pool) -> Pool:
        """The pool of a run.

        Raises:
            PoolError: the ranking is not installed; names those that are.
        """
        ranking = pool.ranking(self.ranking) if isinstance(self.ranking, str) else self.ranking
        entries = [entry_of(spec, pool) for _, spec in pool.actions]
        parts = paragraphs(question) if self.parts else [question]
        ranked = [ordered_by(ranking, part, entries) for part in parts]
        picked: list[list[str]] = [[] for _ in parts]
        taken: set[str] = set()
        for _ in range(self.most):
            # In turn, so that a member which is first for one part is not listed as the third for another.
            for own, names in zip(picked, ranked, strict=True):
                fresh = next((name for name in names if name not in taken), None)
                if fresh is not None:
                    own.append(fresh)
                    taken.add(fresh)
        listed = [name for own in picked for name in own]
        arranged = pool.arranged(listed if self.best == "first" else listed[::-1])
        return arranged.alias(_handles(picked)) if self.handles else arranged

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; a ranking that is an object is named."""
        ranking = self.ranking if isinstance(self.ranking, str) else self.ranking.name
        return {
            "ranking": ranking,
            "most": self.most,
            "best": self.best,
            "parts": self.parts,
            "handles": self.handles,
        }


def _handles(picked: Sequence[Sequence[str]]) -> dict[str, str]:
    """By member: the letter of its part and its rank there. Parts behind the 26th share its letter and count on."""
    found: dict[str, str] = {}
    counts = dict.fromkeys(ascii_lowercase, 0)
    for place, names in enumerate(picked):
        letter = ascii_lowercase[min(place, len(ascii_lowercase) - 1)]
        for name in names:
            counts[letter] += 1
            found[name] = f"{letter}{counts[letter]}"
    return found


def _value(text: str) -> Any:
    """A value of the command line: a number, true or false, or a text."""
    return int(text) if text.isdecimal() else {"true": True, "false": False}.get(text, text)


def entry_of(spec: ToolSpec, pool: Pool) -> RankingEntry:
    """What a ranking reads of a member."""
    return RankingEntry(spec.name, pool.card(spec), _usual_usd(spec, pool), spec.cost.units)


def _usual_usd(spec: ToolSpec, pool: Pool) -> float | None:
    """What a call costs in $, with a usual request to its most expensive model; None if a price is unknown."""
    prices = [model.prices for name in spec.needs for model in pool.behind(name)]
    requests: Sequence[float] = [each.usd(_USUAL_PROMPT, _USUAL_REPLY) for each in prices if each is not None]
    return None if None in prices else spec.cost.usd + max(requests, default=0.0)
