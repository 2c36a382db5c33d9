"""How long runs take, and how much of the possible parallelism they use."""

from __future__ import annotations

from concertino_bench.tasks.item import Item

from .metric import per_run


@per_run(
    title="wall time",
    unit="s per run",
    better="lower",
    formula="Σ `Item.seconds` / runs",
    source="ToolOrchestra §3.2 (Clock(τ) of a trajectory)",
)
def seconds(item: Item) -> float:
    """Wall time of a run, grading not included."""
    return item.seconds


@per_run(
    unit="s per run",
    better="lower",
    formula="Σ `Item.critical_path` / runs",
    source="span of a computation: Blumofe and Leiserson 1999",
)
def critical_path(item: Item) -> float:
    """What a run would take if everything independent ran at once: model turns and longest chains of calls."""
    return item.critical_path


@per_run(
    unit="times",
    better="higher",
    within="0 or more; 1: one thing after another",
    formula="Σ seconds of model replies and tool calls / Σ wall time",
    source="work over time: Blumofe and Leiserson 1999, Scheduling Multithreaded Computations by Work Stealing",
    over=lambda item: item.seconds,
)
def speedup(item: Item) -> float:
    """How much runs gained by doing several things at once. An agent counts by the replies and calls inside it, so the
    work of an agent that shows none of its own is not seen. Two systems are compared by the ratio of their wall times.
    """
    return sum(sum(use.seconds) for use in item.members.values() if use.kind != "agent")


@per_run(
    unit="share of wall time",
    better="higher",
    within="0 to 1",
    formula="Σ critical path / Σ wall time",
    source="here; 1 means that no call waited that could have run",
    over=lambda item: item.seconds,
)
def path_share(item: Item) -> float:
    """How close runs come to their critical path."""
    return item.critical_path
