"""The scorer: for a question, which members of a pool are worth asking, by what their cards say.

    scorer = Scorer.shipped()                                  # or Scorer.load("mine.npz")
    scorer.rank("Which enzyme unwinds DNA?", pool)             the members, best first, with reasons in numbers

In runs, `concertino.Shortlist("scorer/best")` lists the best members for each question. A card is what the orchestrator
reads about a member. Names and places in the order are not read. What earlier calls showed comes in as `evidence`, by
member name: (right answers, wrong ones).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from concertino import Pool, ToolSpec, UsageError

from .beliefs import Belief, cheapest_sufficient
from .features import all_features
from .model_file import ScorerModel
from .network import read_card
from .reading import read_text

Unit = Literal["units", "usd"]
"""What prices are counted in."""

_USUAL_PROMPT, _USUAL_REPLY = 1000, 500
"""Tokens of a request to a model, where prices are compared."""

_PRICE = re.compile(r"\nPrice: \$.* per million tokens .*$")
"""Behind the description of a model that is offered as an agent; its price is known without reading."""

Evidence = Mapping[str, tuple[float, float]]
"""By member name: right answers and wrong ones so far."""


@dataclass(frozen=True)
class RankedMember:
    """A member of a pool, as it is expected to do.

    Attributes:
        name: in the pool.
        belief: how often it is expected to be right.
        price: of a call, in the unit that was asked for.
        value: by which the ranking goes: what is expected less what the price weighs, or the probability of being the
            cheapest that suffices.
    """

    name: str
    belief: Belief
    price: float
    value: float


class Scorer:
    """Reads cards.

    Args:
        model: trained by `concertino train scorer`.
    """

    def __init__(self, model: ScorerModel) -> None:
        self.model = model

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """The scorer of a file.

        Raises:
            UsageError: the file is missing, or not a scorer.
        """
        return cls(ScorerModel.load(Path(path)))

    @classmethod
    def shipped(cls) -> Scorer:
        """The trained scorer that comes with this package; its model card is `MODEL_CARD.md` beside it."""
        return cls.load(Path(__file__).with_name("trained.npz"))

    def beliefs(self, question: str, cards: Sequence[str]) -> list[Belief]:
        """What each card makes believe of its member, for a question."""
        model = self.model
        texts = [read_text(_PRICE.sub("", card), model.vocabulary) for card in cards]
        asked = read_text(question, model.vocabulary).ids
        features = all_features(asked, texts, model.vectors, model.placed)
        return [
            read_card(model.weights, model.vectors[list(text.ids)], model.own_rows[list(text.ids)], each)
            for text, each in zip(texts, features, strict=True)
        ]

    def rank(
        self,
        question: str,
        pool: Pool,
        *,
        evidence: Evidence | None = None,
        price_weight: float = 0.0,
        sufficient: float | None = None,
        unit: Unit = "units",
    ) -> list[RankedMember]:
        """The tools and agents of a pool, best first.

        Args:
            evidence: of earlier calls, by member name.
            price_weight: how much expected share of right answers one unit of price is worth.
            sufficient: the share of right answers that is enough: who most probably is the cheapest member that
                suffices comes first.
            unit: what prices are counted in: cost units, or $.

        Raises:
            UsageError: a number is out of its range, or a price in $ is unknown.
        """
        if price_weight < 0 or not (sufficient is None or 0 <= sufficient <= 1):
            raise UsageError(
                f"price_weight={price_weight!r}, sufficient={sufficient!r}: expected 0 or more, and 0 to 1 or None"
            )
        specs = [spec for _, spec in pool.actions]
        found = self.beliefs(question, [pool.card(spec) for spec in specs])
        ranked = []
        for spec, belief in zip(specs, found, strict=True):
            known = belief.after(*(evidence or {}).get(spec.name, (0.0, 0.0)))
            price = price_of(spec, pool, unit)
            ranked.append(RankedMember(spec.name, known, price, known.expected - price_weight * price))
        if sufficient is not None:
            prices = [each.price for each in ranked]
            chances = cheapest_sufficient([each.belief for each in ranked], prices, sufficient)
            ranked = [replace(each, value=chance) for each, chance in zip(ranked, chances, strict=True)]
        return sorted(ranked, key=lambda each: -each.value)


def price_of(spec: ToolSpec, pool: Pool, unit: Unit = "units") -> float:
    """What a call of a member costs; in $, with a usual request to the most expensive model that it needs.

    Raises:
        UsageError: the price of a model is unknown.
    """
    if unit == "units":
        return spec.cost.units
    asked = [model for name in spec.needs for model in pool.behind(name)]
    if unknown := [model.name for model in asked if model.prices is None]:
        raise UsageError(
            f"the price of {unknown[0]} is unknown; give it with pool.price({{{unknown[0]!r}: Prices(...)}}) or rank "
            'with unit="units"'
        )
    requests = [model.prices.usd(_USUAL_PROMPT, _USUAL_REPLY) for model in asked if model.prices is not None]
    return spec.cost.usd + max(requests, default=0.0)
