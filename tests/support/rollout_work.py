"""Work for tests of rollouts, which worker processes import: whatever an order says, and runs that are paid for."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import concertino as ct
from concertino.rollouts import OrderedRuns, RunOrder, RunResult, Work
from concertino.strategies.parallel_rounds.format import write_round

ROUNDS = 3


class Odd(Work):
    """Does what the task of an order says: `env`, `print`, `die`, `sleep`, `raise`; gives back what `give` holds."""

    async def perform(self, order: RunOrder) -> RunResult:
        task = order.task
        if "print" in task:
            os.write(1, b"{printed by a member\n")
        if "die" in task:
            os.kill(os.getpid(), signal.SIGKILL)
        if "raise" in task:
            raise RuntimeError(task["raise"])
        await asyncio.sleep(task.get("sleep", 0))
        data = {"env": dict(os.environ)} if "env" in task else {"give": task.get("give"), "pid": os.getpid()}
        return RunResult(order.id, data=data)

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls()


class Doomed(Odd):
    """Ends every process that makes it."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        os.write(2, b"out of everything\n")
        os._exit(3)


class PaidRuns(OrderedRuns):
    """Runs over members that note every call, begun and ended, in a file: what a provider would bill."""

    def __init__(self, log: Path, seconds: float = 0.01) -> None:
        self.log, self.seconds = log, seconds
        provider = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        async def bill(kind: str, key: str) -> None:
            os.write(provider, f"START {kind} {key}\n".encode())
            await asyncio.sleep(seconds)
            os.write(provider, f"END {kind} {key}\n".encode())

        @ct.tool(retry_safe=True, cost=ct.Cost(usd=0.01))
        async def keyed(n: int, *, ctx: ct.Context) -> int:
            """A paid call that may be repeated under its key."""
            await bill("keyed", ctx.idempotency_key)
            return n * n

        @ct.tool(cost=ct.Cost(usd=0.01))
        async def once(n: int, *, ctx: ct.Context) -> int:
            """A paid call that may not be repeated."""
            await bill("once", ctx.idempotency_key)
            return n + 1

        super().__init__(ct.Pool.of(keyed, once, ct.ModelSpec("paid/leader", Leader), orchestrator="paid/leader"))

    def to_json(self) -> dict[str, Any]:
        return {"log": str(self.log), "seconds": self.seconds}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(Path(data["log"]), data["seconds"])


class Leader(ct.Model):
    """Calls both tools in every round, then ends."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        calls: list[tuple[str, Any]] = [("keyed", {"n": turn}), ("once", {"n": turn})]
        if turn >= ROUNDS:
            calls = [("final_answer", {"answer": "done"})]
        return ct.Reply(write_round(f"round {turn}", calls), usage=ct.Usage(input_tokens=10, output_tokens=5))


def billed(log: Path) -> dict[str, list[str]]:
    """By kind and key of a call, what the provider saw of it."""
    seen: dict[str, list[str]] = {}
    for line in log.read_text().splitlines():
        word, kind, key = line.split()
        seen.setdefault(f"{kind} {key}", []).append(word)
    return seen
