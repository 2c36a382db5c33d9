"""What the plugin publishes: two rankings, `scorer/best` and `scorer/sufficient`, which a router names as its policy.

    [routers.clever]
    models = ["a/large", "b/small", "c/coder"]
    policy = "scorer/sufficient"

Settings (`[providers.scorer]`): `file`, a scorer of your own training; `sufficient`, the share of right answers that is
enough. numpy and the weights are loaded at the first request.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import ProviderSettings, Ranking, RankingEntry, UsageError, hookimpl

if TYPE_CHECKING:
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
    """Models by how often their descriptions make a scorer expect right answers.

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
        """Their names, best first. An unknown price is taken for a high one."""
        found = _scorer(self.file).beliefs(question, [entry.card for entry in entries])
        value = [belief.expected for belief in found]
        if self.sufficient is not None:
            from .beliefs import cheapest_sufficient

            prices = [inf if entry.usd is None else entry.usd for entry in entries]
            value = cheapest_sufficient(found, prices, self.sufficient)
        ranked = sorted(zip(value, entries, strict=True), key=lambda pair: -pair[0])
        return [entry.name for _, entry in ranked]


@cache
def _scorer(file: Path | None) -> Scorer:
    from .scorer import Scorer

    return Scorer.shipped() if file is None else Scorer.load(file)
