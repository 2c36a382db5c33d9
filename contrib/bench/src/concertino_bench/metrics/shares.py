"""Which members a system uses: shares of tools and models, how evenly they are spread, and how many differ.

Members at any depth count, those inside agents too. Agents count among the tools: to an orchestrator they are tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from concertino_bench.tasks.item import Item

from .metric import Metric, TermColumns, per_run, tally

if TYPE_CHECKING:
    import numpy as np

TOOLS = ("tool", "agent", "unknown")
MODELS = ("model",)


class Share(NamedTuple):
    """What one member had of all calls.

    Attributes:
        kind: tool, agent, model; "unknown" for a name that the pool does not have.
        calls: how many.
        share: of the calls of all tools, or of all models, 0 to 1.
        usd: what it consumed itself; None where a price is unknown.
    """

    kind: str
    calls: int
    share: float
    usd: float | None


TOOL_SHARE = Metric(
    "tool_share",
    "tool share",
    "share of calls",
    "",
    "0 to 1, the sum is 1",
    "calls of the tool or agent / calls of all tools and agents",
    "ToolOrchestra §5.1 (tool use analysis)",
    "How the calls are spread over tools and agents.",
    "tool_share(items)",
)
MODEL_SHARE = Metric(
    "model_share",
    "model share",
    "share of requests",
    "",
    "0 to 1, the sum is 1",
    "requests to the model / requests to all models, the leader's own included",
    "ToolOrchestra §5.1 (tool use analysis)",
    "How the requests are spread over models.",
    "model_share(items)",
)


def tool_share(items: Iterable[Item]) -> dict[str, Share]:
    """Share of each tool and agent, most used first."""
    return _shares(items, TOOLS)


def model_share(items: Iterable[Item]) -> dict[str, Share]:
    """Share of each model, most used first."""
    return _shares(items, MODELS)


def _shares(items: Iterable[Item], kinds: Sequence[str]) -> dict[str, Share]:
    calls: dict[str, int] = {}
    usd: dict[str, float | None] = {}
    kind: dict[str, str] = {}
    for item in items:
        for name, use in item.members.items():
            if use.kind in kinds:
                kind[name] = use.kind
                calls[name] = calls.get(name, 0) + use.calls
                before = usd.get(name, 0.0)
                # Once unknown, always unknown: a sum that leaves requests out would look cheap.
                usd[name] = None if before is None or use.usage.unpriced else before + use.usage.usd
    total = sum(calls.values())
    order = sorted(calls, key=lambda name: (-calls[name], name))
    return {name: Share(kind[name], calls[name], calls[name] / total if total else 0.0, usd[name]) for name in order}


@dataclass(frozen=True)
class Entropy(Metric):
    """The Shannon entropy of the calls of members; not a ratio, so it adds up one column per member."""

    kinds: tuple[str, ...] = field(default=(), kw_only=True)

    def columns(self, groups: Sequence[Sequence[Item]]) -> TermColumns:
        """Per task the calls of each member."""
        counts = [tally(_calls(item, self.kinds) for item in group) for group in groups]
        names = sorted({name for count in counts for name in count})
        missing = sum(1 for group in groups for item in group if item.error)
        rows = [[count.get(name, 0.0) for name in names] for count in counts]
        return TermColumns(rows, sum(1 for group in groups if any(not item.error for item in group)), missing)

    def one(self, sums: Sequence[float]) -> float | None:
        """Entropy in bits; None without a call."""
        total = sum(sums)
        if not total:
            return None
        from math import log2

        return sum(count / total * log2(total / count) for count in sums if count)

    def many(self, sums: np.ndarray) -> np.ndarray:
        """Entropies of many draws."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            shares = sums / sums.sum(axis=1, keepdims=True)
            # A member without calls adds nothing: 0 log 0 is 0 in the limit, and NaN in numpy.
            parts = np.where(shares > 0, -shares * np.log2(shares), 0.0)
        entropies: np.ndarray = np.where(sums.sum(axis=1) > 0, parts.sum(axis=1), np.nan)
        return entropies


def _calls(item: Item, kinds: Sequence[str]) -> dict[str, float]:
    return {name: use.calls for name, use in item.members.items() if use.kind in kinds}


tool_entropy = Entropy(
    "tool_entropy",
    "tool entropy",
    "bits",
    "",
    "0 to log2(tools and agents)",
    "-Σ p log2 p over the shares p of tools and agents",
    "Shannon 1948; ParaManager Fig. 6b plots tool diversity",
    "How evenly calls are spread over tools and agents: 0 if one has all, 1 bit if two share evenly.",
    'METRICS["tool_entropy"](items)',
    kinds=TOOLS,
)
model_entropy = Entropy(
    "model_entropy",
    "model entropy",
    "bits",
    "",
    "0 to log2(models)",
    "-Σ p log2 p over the shares p of models",
    "Shannon 1948; ToolOrchestra §1 shows leaders that defer to one model",
    "How evenly requests are spread over models.",
    'METRICS["model_entropy"](items)',
    kinds=MODELS,
)


@per_run(
    unit="tools per run",
    better="",
    formula="Σ different tools and agents of a run / runs",
    source="ParaManager §3.3, Eq. 15 (tool diversity)",
)
def unique_tools(item: Item) -> float:
    """How many different tools and agents a run used. A strategy's own commands, such as a final answer, are none."""
    return sum(1 for use in item.members.values() if use.kind in ("tool", "agent") and use.calls)
