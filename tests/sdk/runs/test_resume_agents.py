"""Resuming inside agents: what they did is recognised by what it says, whatever the order in which they do it again."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import concertino as ct
import pytest

from .conftest import FINAL, Texts, round_of

ANSWER = "<answer>done</answer>"


class World:
    """What was really executed, over all processes of a run."""

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()

    def pool(self, fast: str) -> ct.Pool:
        """A pool whose agent runs two chains side by side; the one called `fast` is quicker."""

        @ct.tool(cost=ct.Cost(units=1))
        async def pay(what: str) -> str:
            """Pay for something, once."""
            self.paid[what] += 1
            return f"paid {what}"

        world = self

        class Echo(ct.Model):
            async def chat(self, request: ct.ChatRequest) -> ct.Reply:
                world.asked[request.messages[-1].text] += 1
                return ct.Reply(request.messages[-1].text, usage=ct.Usage(input_tokens=1, output_tokens=1))

        @ct.agent
        async def both(*, ctx: ct.Context) -> list[Any]:
            """Two chains."""

            async def chain(name: str) -> list[Any]:
                if name != fast:
                    await asyncio.sleep(0.05)
                first = await ctx.call("pay", {"what": f"{name}1"})
                reply = await ctx.model("worker").chat(f"{name}?")
                second = await ctx.call("pay", {"what": f"{name}2"})
                return [first.content, reply.text, second.content]

            return await ctx.gather(chain("a"), chain("b"))

        return ct.Pool.of(pay, both, ct.ModelSpec("m/echo", Echo)).bind(worker="m/echo")


def cut_after(path: Path, kind: str, count: int) -> Path:
    """A copy of the trace that ends after its `count`-th record of a kind."""
    kept, left = [], count
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        left -= json.loads(line[9:])["t"] == kind
        if left == 0:
            break
    target = path.with_name(f"cut{count}.trace.jsonl")
    target.write_bytes(b"".join(kept))
    return target


@pytest.mark.parametrize("results", range(1, 7))
async def test_an_agent_that_does_things_in_another_order_repeats_nothing(results: int, tmp_path: Path) -> None:
    world = World()
    turns = round_of(("both", {})), FINAL, ANSWER
    lead = Texts(*turns)
    run = await ct.Orchestrator(ct.ModelSpec("m/lead", lambda: lead)).run(
        "q", pool=world.pool(fast="b"), trace=tmp_path, run_id="r", budget=ct.Budget(units=10)
    )
    path = cut_after(Path(str(run.path)), "result", results)
    done = {seen.call_id for seen in ct.Trace.load(path).observations()}
    paid, asked = world.paid.copy(), world.asked.copy()
    lead = Texts(*turns[1:])
    resumed = await ct.Orchestrator(ct.ModelSpec("m/lead", lambda: lead)).resume(path, pool=world.pool(fast="a"))
    assert resumed.answer == "done"
    assert resumed.observations[0].content == run.observations[0].content
    again = sum((world.paid - paid).values()) + sum((world.asked - asked).values())
    assert again == 6 - results, done
    assert resumed.usage.units == run.usage.units
    trace = ct.Trace.load(path)
    ids = [record["id"] for record in trace.of_kind("result")]
    assert len(ids) == len(set(ids))


async def test_a_call_made_again_has_its_own_key_and_no_other_call_gets_it(tmp_path: Path) -> None:
    world = World()
    turns = round_of(("both", {})), FINAL, ANSWER
    lead = Texts(*turns)
    run = await ct.Orchestrator(ct.ModelSpec("m/lead", lambda: lead)).run(
        "q", pool=world.pool(fast="b"), trace=tmp_path, run_id="r"
    )
    path = cut_after(Path(str(run.path)), "result", 1)
    lead = Texts(*turns[1:])
    await ct.Orchestrator(ct.ModelSpec("m/lead", lambda: lead)).resume(path, pool=world.pool(fast="a"))
    by_key: dict[str, set[str]] = {}
    for record in ct.Trace.load(path).of_kind("intent"):
        by_key.setdefault(record["key"], set()).add(json.dumps([record["name"], record["arguments"]]))
    assert {len(calls) for calls in by_key.values()} == {1}


async def test_a_cancelled_call_counts_against_the_budget_of_the_resumed_run(tmp_path: Path) -> None:
    @ct.tool(cost=ct.Cost(units=1), retry_safe=True, timeout=None)
    async def nap(seconds: float) -> str:
        """Sleep."""
        await asyncio.sleep(seconds)
        return "slept"

    begun = asyncio.Event()
    lead = Texts(round_of(("nap", {"seconds": 30})), FINAL, ANSWER)
    orchestrator = ct.Orchestrator(ct.ModelSpec("m/lead", lambda: lead))
    handle = orchestrator.start(
        "q",
        pool=ct.Pool.of(nap),
        trace=tmp_path,
        budget=ct.Budget(units=1),
        on_event=lambda event: begun.set() if event.to_json()["t"] == "intent" else None,
    )
    await begun.wait()
    run = await handle.cancel()
    resumed = await orchestrator.resume(str(run.path), pool=ct.Pool.of(nap))
    assert resumed.observations[0].error is not None
    assert resumed.observations[0].error.code == "budget_exhausted"
