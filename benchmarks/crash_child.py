"""The run that `crash.py` kills: an orchestrator over paid calls, begun on a trace file or resumed from it.

    python benchmarks/crash_child.py TRACE LOG DIE_AT

LOG plays the provider: every paid call appends a line when it starts and when it ends, with its idempotency key.
With DIE_AT > 0 the process kills itself at its DIE_AT-th write, before it if odd, right after it if even.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.core.events import CallEnded
from concertino.strategies.parallel_rounds.format import write_round

ROUNDS = 6
PROVIDER = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


async def bill(kind: str, key: str, call_id: str, seconds: float) -> None:
    """What the provider sees of a paid call."""
    os.write(PROVIDER, f"START {kind} {key} {call_id}\n".encode())
    await asyncio.sleep(seconds)
    os.write(PROVIDER, f"END {kind} {key} {call_id}\n".encode())


@ct.tool(retry_safe=True, cost=ct.Cost(usd=0.01))
async def keyed(n: int, *, ctx: ct.Context) -> int:
    """A paid call that takes an idempotency key."""
    await bill("keyed", ctx.idempotency_key, ctx.call_id, 0.001 + 0.002 * (n % 4))
    return n * n


@ct.tool(cost=ct.Cost(usd=0.01))
async def once(n: int, *, ctx: ct.Context) -> int:
    """A paid call that may not be repeated."""
    await bill("once", ctx.idempotency_key, ctx.call_id, 0.001 + 0.002 * (n % 4))
    return n * n


@ct.agent(retry_safe=True)
async def graph(n: int, *, ctx: ct.Context) -> int:
    """An agent with a graph of calls."""
    plan = ct.Plan.parse(
        [ct.Call("keyed", {"n": n}, "a"), ct.Call("keyed", {"n": n + 1}, "b"), ct.Call("keyed", {"n": "${a}"}, "c")]
    )
    return sum(seen.content for seen in await ctx.run(plan))


@ct.agent(retry_safe=True)
async def thinker(n: int, *, ctx: ct.Context) -> str:
    """An agent that asks a model twice."""
    first = await ctx.model("worker").chat(f"think {n}")
    return (await ctx.model("worker").chat(f"again {first.text}")).text


class Worker(ct.Model):
    """Turns the question around, for money."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await bill("model", request.idempotency_key, request.idempotency_key, 0.002)
        return ct.Reply(request.messages[-1].text[::-1], usage=ct.Usage(input_tokens=3, output_tokens=3))


class Leader(ct.Model):
    """Calls everything in every round, then ends."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        await asyncio.sleep(0.001)
        if turn < ROUNDS:
            calls: list[tuple[str, Any]] = [(name, {"n": turn}) for name in ("keyed", "once", "graph", "thinker")]
            return ct.Reply(write_round(f"round {turn}", calls))
        if turn == ROUNDS:
            return ct.Reply(write_round("end", [("final_answer", {})]))
        return ct.Reply(f"<answer>{ROUNDS}</answer>")


def show(event: object) -> None:
    """Print every observation the moment its caller may see it."""
    if isinstance(event, CallEnded):
        seen = event.observation
        sys.stdout.write(f"{seen.call_id} {seen.status} {json.dumps(seen.content)}\n")
        sys.stdout.flush()


def die_at_write(count: int) -> None:
    """Kill this process at its `count`-th write: before it (odd) or right after it (even)."""
    real, left = os.write, count

    def write(fd: int, data: bytes) -> int:
        nonlocal left
        left -= 1
        if left == 0 and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(fd, data)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    os.write = write


def main(trace: Path, die_at: int) -> None:
    """Begin the run, or go on with it."""
    pool = ct.Pool.of(keyed, once, graph, thinker, ct.ModelSpec("toy/worker", Worker), ct.ModelSpec("toy/lead", Leader))
    pool = pool.bind(worker="toy/worker", orchestrator="toy/lead")
    if die_at:
        die_at_write(die_at)
    resumable = trace.exists() and len(trace.read_bytes().splitlines()) > 1
    if trace.exists() and not resumable:
        trace.unlink()
    orchestrator = ct.Orchestrator()
    known = ct.Trace.load(trace) if resumable else None
    if known is not None and known.finished:  # killed between the last record and the exit
        answer = known.summary().answer
    elif known is not None:
        answer = asyncio.run(orchestrator.resume(trace, pool=pool, on_event=show)).answer
    else:
        answer = asyncio.run(orchestrator.run("q", pool=pool, trace=trace, on_event=show)).answer
    sys.stdout.write(f"ANSWER {answer}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[3]))
