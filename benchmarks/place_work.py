"""The work of `places.py`, which worker processes import: nothing at all, and runs whose tools compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import concertino as ct
from concertino.rollouts import OrderedRuns, RunOrder, RunResult, Work
from concertino.strategies.parallel_rounds.format import write_round

STEPS = 60_000
"""Of the loop that a call computes, some milliseconds."""


class Nothing(Work):
    """Gives a result at once."""

    async def perform(self, order: RunOrder) -> RunResult:
        return RunResult(order.id)

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls()


@ct.tool
async def compute(number: int) -> int:
    """Compute for a while."""
    for step in range(STEPS):
        number = (number * 31 + step) % 1_000_003
    return number


class Leader(ct.Model):
    """Calls the tool twice, then ends."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        calls: list[tuple[str, Any]] = [("compute", {"number": turn}), ("compute", {"number": turn + 1})]
        return ct.Reply(write_round("Go.", calls) if not turn else "<answer>done</answer>")


class Computing(OrderedRuns):
    """Runs over the tool."""

    def __init__(self) -> None:
        super().__init__(ct.Pool.of(compute, ct.ModelSpec("own/leader", Leader), orchestrator="own/leader"))

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls()
