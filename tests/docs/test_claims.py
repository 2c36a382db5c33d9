"""What the pages say in tables and sentences, held against the package: one test per claim that no example shows."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.executor import BreakerPolicy, Limits, RetryPolicy
from concertino.testing import ScriptedModel, call, fake_tool, hanging_tool, make_pool, run_call
from concertino.traces.blobs import BLOB_LIMIT
from waiting import wait_until


@ct.tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def test_numbers_that_pages_state() -> None:
    assert ct.ToolSpec.timeout == 30
    assert ct.AgentSpec.timeout == 120
    assert (Limits().stall, Limits().margin, Limits().abandoned) == (0.25, 0.05, 3)
    assert (RetryPolicy().base, RetryPolicy().longest) == (0.5, 20)
    assert BLOB_LIMIT == 64 * 1024
    assert BreakerPolicy().consecutive == 5


# -- how-to/choose-isolation.md --------------------------------------------------------------------------------


def test_a_function_for_a_process_that_cannot_be_imported_is_refused_before_anything_runs() -> None:
    spec = double.with_(function=lambda number: number, isolation="process")
    with pytest.raises(ct.SpecError, match="importable module"):
        ct.Pool.of(spec)


def test_a_plain_function_runs_beside_the_event_loop() -> None:
    released = threading.Event()

    @ct.tool(timeout=None)
    def block() -> bool:
        """Block the thread until the event loop releases it."""
        return released.wait(60)

    async def call_and_release() -> object:
        work = asyncio.ensure_future(run_call(block, {}))
        await asyncio.sleep(0.1)
        released.set()
        return (await work).content

    assert asyncio.run(call_and_release()) is True


# -- how-to/write-hooks.md, reference/hooks.md -----------------------------------------------------------------


def test_a_hook_never_sees_a_call_that_was_not_understood() -> None:
    seen: list[str] = []

    def note(**given: Any) -> None:
        seen.append(given["spec"].name)

    assert call(double, {"number": "two"}, before=[note], after=[note]).status == "PARSE_ERR"
    assert seen == []


def test_an_answer_of_a_hook_before_is_not_shown_to_hooks_after() -> None:
    told: list[ct.Observation] = []
    answered = call(
        double,
        {"number": 2},
        before=[lambda **_: ct.Observation("", "double", ct.Status.OK, 5)],
        after=[lambda spec, observation: told.append(observation)],
    )
    assert (answered.content, answered.replayed, told) == (5, True, [])


def test_a_hook_before_that_fails_keeps_the_call_from_running() -> None:
    def fails(**_: Any) -> None:
        raise KeyError("lost")

    tool = fake_tool("tool", returns=1)
    assert call(tool, {}, before=[fails]).status == "EXEC_ERR"
    assert tool.calls == []


def test_a_hook_after_that_fails_changes_nothing_but_the_note() -> None:
    def fails(**_: Any) -> None:
        raise KeyError("lost")

    seen = call(double, {"number": 2}, after=[fails])
    assert (seen.status, seen.content) == ("OK", 4)
    assert "lost" in seen.note


def test_an_orchestrator_s_hooks_may_take_all_arguments_by_name() -> None:
    given: dict[str, Any] = {}
    call(double, {"number": 2}, before=[lambda **arguments: given.update(arguments)])
    assert set(given) == {"spec", "arguments", "call_id"}


# -- how-to/write-an-agent.md --------------------------------------------------------------------------------


@ct.agent(timeout=20)
async def look(ctx: ct.Context) -> list[float]:
    """Say when the time is over, for itself and for a call below."""
    below = await ctx.call("end")
    return [time.monotonic() + ctx.remaining_seconds(), below.content]


@ct.tool(timeout=None)
async def end(ctx: ct.Context) -> float:
    """Say when the time is over."""
    return time.monotonic() + ctx.remaining_seconds()


def test_a_sub_call_ends_a_moment_before_its_caller() -> None:
    own, below = call(look, {}, pool=ct.Pool.of(look, end)).content
    assert 0.03 <= own - below <= 0.07


def test_an_agent_that_lets_a_failed_model_pass_ends_with_its_code() -> None:
    @ct.agent
    async def ask(ctx: ct.Context) -> str:
        """Ask."""
        return (await ctx.model("worker").chat("?")).text

    class NoKey(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            raise ct.ProviderError.from_http(401)

    seen = call(ask, {}, pool=make_pool(ask, worker=NoKey()))
    assert seen.error is not None
    assert seen.error.code == "rejected"


def test_an_unbound_role_falls_back_to_default_then_to_the_only_model() -> None:
    one = ct.ModelSpec("a/one", ct.Model)
    two = ct.ModelSpec("a/two", ct.Model)
    assert ct.Pool.of(one).model("worker") is one
    assert ct.Pool.of(one, two, default="a/two").model("worker") is two
    with pytest.raises(ct.PoolError):
        ct.Pool.of(one, two).model("worker")


# -- how-to/costs-and-prices.md --------------------------------------------------------------------------------


def test_a_model_of_unknown_price_is_counted_and_never_free() -> None:
    class Free(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            return ct.Reply("yes", usage=ct.Usage(input_tokens=5, output_tokens=1))

    @ct.agent
    async def ask(ctx: ct.Context) -> str:
        """Ask."""
        return (await ctx.model("worker").chat("?")).text

    pool = make_pool(ask, worker=Free())
    seen = call(ask, {}, pool=pool)
    assert (seen.usage.usd, seen.usage.unpriced) == (0, 1)
    with pytest.raises(ct.BudgetError, match="unknown"):
        ct.Orchestrator("worker").run_sync("?", pool=pool, budget=ct.Budget(usd=1))


# -- how-to/resume-and-replay.md -------------------------------------------------------------------------------


def test_a_cancelled_run_can_be_resumed_and_an_answered_one_cannot(tmp_path: Path) -> None:
    path = tmp_path / "it.trace.jsonl"
    both = [("quick", {}), ("slow", {})]

    async def cancel() -> None:
        pool = ct.Pool.of(fake_tool("quick", returns=1), hanging_tool("slow", retry_safe=True))
        ended: list[ct.events.CallEnded] = []

        def watch(event: ct.events.Event) -> None:
            if isinstance(event, ct.events.CallEnded):
                ended.append(event)

        handle = ct.Orchestrator(ScriptedModel(both)).start("?", pool=pool, trace=path, on_event=watch)
        await wait_until(lambda: ended, "the quick call has ended")
        assert (await handle.cancel()).stop == "cancelled"

    asyncio.run(cancel())
    quick = fake_tool("quick", returns=1)
    pool = ct.Pool.of(quick, hanging_tool("slow", seconds=0.01, retry_safe=True))
    model = ScriptedModel([("final_answer", {})], "<answer>3</answer>")
    run = asyncio.run(ct.Orchestrator(model).resume(path, pool=pool))
    assert (run.answer, [seen.status for seen in run.observations], quick.calls) == ("3", ["OK", "OK"], [])
    with pytest.raises(ct.TraceError, match="finished"):
        asyncio.run(ct.Orchestrator(model).resume(path, pool=pool))
