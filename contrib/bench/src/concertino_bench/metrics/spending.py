"""What runs consumed: calls, rounds, tokens, cost units, money; and what a right answer costs.

The invariant: an unknown price is unknown. One unpriced request makes the money of its run unknown, and one such run
makes the system's money unknown (None, with the number of runs in `Value.unknown`); it is never taken for 0. Runs that
could not begin consumed nothing that says anything, so they are missing here and count as not right in accuracies.
"""

from __future__ import annotations

from concertino_bench.tasks.item import Item

from .metric import per_run


def known_usd(item: Item) -> float | None:
    """The money of a run, None where a price is unknown."""
    return None if item.usage.unpriced else item.usage.usd


@per_run(
    unit="calls per run",
    better="lower",
    formula="Σ `Item.calls` / runs",
    source="ParaManager §3.3, Eq. 14 (calls of the rounds)",
)
def calls(item: Item) -> float:
    """Calls that the orchestrator planned; calls inside agents do not count."""
    return item.calls


@per_run(
    unit="rounds per run",
    better="lower",
    formula="Σ `Item.rounds` / runs",
    source="ToolOrchestra §2 (steps of a rollout); GAP §5.2 (turns)",
)
def rounds(item: Item) -> float:
    """Rounds, or turns, that planned something."""
    return item.rounds


@per_run(
    title="tokens in",
    unit="tokens per run",
    better="lower",
    formula="Σ input tokens / runs",
    source="ParaManager Table 2 (tokens)",
)
def input_tokens(item: Item) -> float:
    """Tokens that were sent to models, at any depth, cached ones included."""
    return item.usage.input_tokens


@per_run(
    title="tokens out",
    unit="tokens per run",
    better="lower",
    formula="Σ output tokens / runs",
    source="ParaManager Table 2 (tokens)",
)
def output_tokens(item: Item) -> float:
    """Tokens that models wrote, at any depth, reasoning included."""
    return item.usage.output_tokens


@per_run(
    title="cached share",
    unit="share of tokens in",
    better="higher",
    within="0 to 1",
    formula="Σ cached input tokens / Σ input tokens",
    source="here; cached tokens have a price of their own",
    over=lambda item: item.usage.input_tokens,
)
def cached_tokens(item: Item) -> float:
    """How much of what was sent the servers had cached."""
    return item.usage.cached_tokens


@per_run(
    title="cost units",
    unit="units per run",
    better="lower",
    formula="Σ cost units / runs",
    source="ParaManager §3.3, Eq. 17 (abstract cost of tools)",
)
def units(item: Item) -> float:
    """Cost units, which the spec of a member fixes per call."""
    return item.usage.units


@per_run(
    title="$",
    unit="$ per run",
    better="lower",
    strict=True,
    formula="Σ $ / runs",
    source="ToolOrchestra §3.2 (monetary cost $(τ) of a trajectory)",
)
def usd(item: Item) -> float | None:
    """Money for models and tools, grading not included. Unknown if the price of one request is unknown."""
    return known_usd(item)


@per_run(
    title="$ of grading",
    unit="$ per run",
    better="lower",
    strict=True,
    formula="Σ $ of grading / runs",
    source="here; a judge is paid too, and apart from the solver",
)
def grading_usd(item: Item) -> float | None:
    """Money that graders spent."""
    return None if item.graded.unpriced else item.graded.usd


@per_run(
    unit="$ per right answer",
    better="lower",
    within="0 or more; inf if none is right",
    strict=True,
    formula="Σ $ / right answers",
    source="Erol et al. 2025, Cost-of-Pass (arXiv 2504.13359); GAP §5.1, with money in place of its token counts",
    over=lambda item: item.right,
)
def cost_of_pass(item: Item) -> float | None:
    """What one right answer costs on average, wrong attempts included."""
    return known_usd(item)
