"""The shape of plans: how wide and how deep the graphs of calls are."""

from __future__ import annotations

from concertino_bench.tasks.item import Item

from .metric import per_run


@per_run(
    unit="calls per round",
    better="",
    within="1 or more",
    formula="Σ `Item.widths` / rounds",
    source="ParaManager §3.3, Eq. 14 (calls in a round)",
    over=lambda item: len(item.widths),
)
def width(item: Item) -> float:
    """Calls in one plan, that is in one round."""
    return sum(item.widths)


@per_run(
    unit="levels per round",
    better="",
    within="1 or more",
    formula="Σ `Item.depths` / rounds",
    source="GAP §3.2 (levels of a plan); MAS-Orchestra §3 (agent graphs)",
    over=lambda item: len(item.depths),
)
def depth(item: Item) -> float:
    """The longest chain of dependent calls in one plan; 1 where its calls are independent."""
    return sum(item.depths)


@per_run(
    unit="share of rounds",
    better="",
    within="0 to 1",
    formula="rounds whose plan has more calls than levels / rounds",
    source="ParaManager §3.3, Eq. 14 (parallelism); GAP §3.2 (levels)",
    over=lambda item: len(item.widths),
)
def parallel_rounds(item: Item) -> float:
    """Rounds in which at least two calls could run at once: more calls than levels."""
    return sum(wide > deep for wide, deep in zip(item.widths, item.depths, strict=False))
