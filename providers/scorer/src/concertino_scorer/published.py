"""What the plugin publishes: two rankings, `scorer/best` and `scorer/sufficient`, for routers and shortlists.

    [routers.clever]
    models = ["a/large", "b/small", "c/coder"]
    policy = "scorer/sufficient"                          # Shortlist("scorer/sufficient") ranks tools and agents

Settings (`[providers.scorer]`): `file`, a scorer of your own training; `sufficient`, the share of right answers that is
enough. numpy and the weights are loaded at the first request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import ProviderSettings, Ranking, RankingEntry, UsageError, hookimpl

if TYPE_CHECKING:
    from .beliefs import Belief
    from .scorer import Scorer

_SUFFICIENT = 0.75


@hookimpl
def concertino_rankings(settings: ProviderSettings) -> list[Ranking]:
    """The rankings, by the scorer that the settings name."""
    settings.check(["file", "sufficient"])
    enough = settings.get("sufficient", _SUFFICIENT)
    if isinstance(enough, bool) or not isinstance(enough, (int, float)) or not 0 <= enough <= 1:
        raise UsageError(f"{settings.where}: sufficient = {enough!r}; expected a share of right answers, 0 to 1")
    file = settings.path("file")
    return [ScorerRanking("best", file), ScorerRanking("sufficient", file, enough)]


class ScorerRanking:
    """Models or members by how often their descriptions make a scorer expect right answers.

    Args:
        name: of the ranking.
        file: of the scorer; None for the one that is shipped.
        sufficient: the share of right answers that is enough: who most probably is the cheapest that suffices comes
            first.
    """

    def __init__(self, name: str, file: Path | None = None, sufficient: float | None = None) -> None:
        self.name = name
        self.file = file
        self.sufficient = sufficient

    def order(self, question: str, entries: Sequence[RankingEntry]) -> list[str]:
        """Their names, best first. An unknown price is taken for a high one.

        Prices are in $, or in cost units where no entry costs any $.
        """
        found = _beliefs(self.file, question, tuple(entry.card for entry in entries))
        value = [belief.expected for belief in found]
        if self.sufficient is not None:
            from .beliefs import cheapest_sufficient

            in_usd = any(entry.usd != 0 for entry in entries)
            prices = [(inf if entry.usd is None else entry.usd) if in_usd else entry.units for entry in entries]
            value = cheapest_sufficient(found, prices, self.sufficient)
        ranked = sorted(zip(value, entries, strict=True), key=lambda pair: -pair[0])
        return [entry.name for _, entry in ranked]


@lru_cache(maxsize=2048)
def _beliefs(file: Path | None, question: str, cards: tuple[str, ...]) -> list[Belief]:
    """Kept, because a training asks the same question over the same pool many times."""
    return _scorer(file).beliefs(question, cards)


@cache
def _scorer(file: Path | None) -> Scorer:
    from .scorer import Scorer

    return Scorer.shipped() if file is None else Scorer.load(file)
