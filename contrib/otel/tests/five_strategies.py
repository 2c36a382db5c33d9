"""One small run for each of the five strategies, with four outcomes: two calls, one by an agent that asks a model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.serial_calls import SerialCalls

CANARY = "canary-7f3a"
OUTCOMES = ("ok", "failing", "cancelled", "killed and resumed")
NAMES = ("parallel-rounds", "serial-calls", "dependency-plan", "agent-graph", "role-workflow")


class Texts(ct.Model):
    """Answers with one text after the other, by how often it has answered in this conversation."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = list(turns)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(0)
        text = self.turns.pop(0) if self.turns else f"said {CANARY}"
        return ct.Reply(text, usage=ct.Usage(input_tokens=100, output_tokens=10, cached_tokens=20))


def strategy_of(name: str) -> Strategy:
    finder = Role("finder", "{tools} {question}", reads="calls", tools=("work", "helper"))
    writer = Role("writer", "{finder.result}", reads="answer")
    made: dict[str, Strategy] = {
        "parallel-rounds": ct.ParallelRounds(),
        "serial-calls": SerialCalls(),
        "dependency-plan": DependencyPlan(),
        "agent-graph": AgentGraph(),
        "role-workflow": RoleWorkflow((finder, writer), Agree("writer.value", "writer.value")),
    }
    return made[name]


def turns_of(name: str) -> list[str]:
    """What the orchestrator's model says."""
    strategy: Any = strategy_of(name)
    work = ct.Call("work", {"text": CANARY}, "a")
    helper = ct.Call("helper", {"text": f"{CANARY} more"}, "b", after=("a",))
    match name:
        case "parallel-rounds":
            free = ct.Call("helper", {"text": CANARY}, "b")
            return [strategy.write_turn([work, free], CANARY), *strategy.write_answer(CANARY)]
        case "serial-calls":
            each = [strategy.write_turn([ct.Call(call.name, call.arguments, "")], CANARY) for call in (work, helper)]
            return [*each, *strategy.write_answer(CANARY)]
        case "agent-graph":
            return [strategy.write_turn([work, helper], CANARY)]
        case "dependency-plan":
            return [strategy.write_turn([work, helper], CANARY), *strategy.write_answer(CANARY)]
    from concertino.strategies.serial_calls.format import write_turn

    return [
        write_turn("", "work", {"text": CANARY}) + write_turn("", "helper", {"text": CANARY}),
        f"\\boxed{{{CANARY}}}",
    ]


def pool_of(*, fails: bool = False, hangs: bool = False) -> ct.Pool:
    @ct.tool(cost=ct.Cost(units=1, usd=0.01), retry_safe=True)
    async def work(text: str) -> str:
        """Work on a text."""
        if fails:
            raise ValueError(f"no luck with {CANARY}")
        return f"worked on {text}"

    @ct.agent(cost=ct.Cost(units=2), models=("worker",), retry_safe=True)
    async def helper(text: str, *, ctx: ct.Context) -> str:
        """Ask a model about a text."""
        if hangs:
            await asyncio.sleep(600)
        return (await ctx.model("worker").chat(text)).text

    models = ct.ModelSpec("m/worker", lambda: Texts([]), prices=ct.Prices(1.0, 10.0))
    return ct.Pool.of(work, helper, models).bind(worker="m/worker")


def leader_of(name: str, *, turns: list[str] | None = None) -> ct.Orchestrator:
    said = turns_of(name) if turns is None else turns
    return ct.Orchestrator(ct.ModelSpec("m/lead", lambda: Texts(said), prices=ct.Prices(1.0, 10.0)), strategy_of(name))


async def run_of(name: str, folder: Path, **options: Any) -> Path:
    """Run it, and give the trace."""
    run = await leader_of(name).run(f"question {CANARY}", pool=pool_of(**options), trace=folder)
    assert run.path is not None
    return Path(run.path)


async def trace_of(name: str, outcome: str, folder: Path) -> Path:
    match outcome:
        case "ok" | "failing":
            return await run_of(name, folder, fails=outcome == "failing")
        case "cancelled":
            return await cancelled(name, folder)
    whole = await run_of(name, folder)
    cut = cut_in_a_call(whole)
    replies = len(ct.Trace.load(cut).replies())
    await leader_of(name, turns=turns_of(name)[replies:]).resume(cut, pool=pool_of())
    return cut


async def cancelled(name: str, folder: Path) -> Path:
    begun = asyncio.Event()

    def listen(event: object) -> None:
        if getattr(event, "name", "") == "helper":
            begun.set()

    handle = leader_of(name).start("q", pool=pool_of(hangs=True), trace=folder, on_event=listen)
    await begun.wait()
    run = await handle.cancel()
    assert run.stop == "cancelled"
    return Path(str(run.path))


def cut_in_a_call(path: Path) -> Path:
    """A copy of a trace as a kill leaves it while the agent of the run asks its model."""
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        record = json.loads(line[9:])
        if record["t"] == "intent" and record.get("parent"):
            break
    target = path.with_name("killed.trace.jsonl")
    target.write_bytes(b"".join(kept))
    return target
