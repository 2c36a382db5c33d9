"""Statuses of calls, recoveries from failed ones, and how often the orchestrator kept to the exact format."""

from __future__ import annotations

from collections.abc import Iterable

from concertino import Status

from concertino_bench.tasks.item import Item

from .metric import Metric, per_run, tally

STATUS_MIX = Metric(
    "status_mix",
    "status mix",
    "share of calls",
    "",
    "0 to 1, the sum is 1",
    "calls with the status / calls, of the orchestrator's calls",
    "ParaManager §3.1 (OK, PARSE_ERR, EXEC_ERR, TIMEOUT)",
    "The share of each status among the orchestrator's calls; all four statuses are there, at 0 if need be.",
    "status_mix(items)",
)


def status_mix(items: Iterable[Item]) -> dict[str, float]:
    """Share of each status, 0 to 1; all are 0 without a call."""
    counts = dict.fromkeys((status.value for status in Status), 0.0) | tally(item.statuses for item in items)
    total = sum(counts.values())
    return {name: count / total if total else 0.0 for name, count in counts.items()}


def _failed(item: Item) -> int:
    return sum(count for status, count in item.statuses.items() if status != Status.OK)


def _texts(item: Item) -> int:
    """Rounds, those without a call included."""
    return max(item.turns, item.rounds, item.flawed)


@per_run(
    title="calls OK",
    unit="share of calls",
    better="higher",
    within="0 to 1",
    formula="calls that ended OK / calls",
    source="ParaManager §3.1 (statuses)",
    over=lambda item: sum(item.statuses.values()),
)
def ok_rate(item: Item) -> float:
    """Calls of the orchestrator that ended OK."""
    return item.statuses.get("OK", 0)


@per_run(
    unit="share of failed calls",
    better="higher",
    within="0 to 1",
    formula="Σ `Item.recovered` / calls that did not end OK",
    source="ParaManager §3.2 (trajectories that recover from a failed call)",
    over=_failed,
)
def recovery_rate(item: Item) -> float:
    """Failed calls whose member was called again, with success, in a later round."""
    return item.recovered


@per_run(
    unit="share of rounds",
    better="higher",
    within="0 to 1",
    formula="rounds without an issue / rounds",
    source="ParaManager §3.3, Eq. 12 (format reward, mean over rounds)",
    over=_texts,
)
def format_rate(item: Item) -> float:
    """Rounds whose text was in the strategy's exact form, without a repair."""
    return _texts(item) - item.flawed
