"""What an agent can do through its context, on the caller's loop, on a loop thread and in a thread."""

import asyncio
from typing import Any, Literal

import concertino as ct
import pytest


@ct.tool
async def double(n: int) -> int:
    """Twice a number."""
    if n < 0:
        raise ValueError("negative")
    return 2 * n


class Echo(ct.Model):
    """Says what it is asked."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        if request.messages[-1].text == "hang":
            await asyncio.sleep(60)
        if request.messages[-1].text == "refuse":
            raise ct.ProviderError("bad request", failure=ct.FailureClass.CALLER)
        return ct.Reply(request.messages[-1].text, usage=ct.Usage(input_tokens=2, output_tokens=1))


ECHO = ct.ModelSpec("m/echo", Echo)


async def run(agent: ct.AgentSpec, *members: Any, **options: Any) -> ct.Observation:
    async with ct.Executor() as executor:
        [seen] = await executor.run([ct.Call(agent.name, {})], ct.Pool.of(agent, double, ECHO, *members), **options)
        assert executor.health()["abandoned_calls"] == 0
    return seen


@pytest.mark.parametrize("isolation", ["loop", "thread"])
async def test_an_agent_calls_models_members_and_plans(isolation: Literal["loop", "thread"]) -> None:
    @ct.agent(isolation=isolation)
    async def work(*, ctx: ct.Context) -> list[Any]:
        """Work."""
        reply = await ctx.model().chat("hello")
        one = await ctx.call("double", {"n": 4})
        plan = ct.Plan.parse([ct.Call("double", {"n": 1}, "a"), ct.Call("double", {"n": "${a}"}, "b")])
        return [reply.text, one.content, [seen.content for seen in await ctx.run(plan)]]

    seen = await run(work)
    assert seen.content == ["hello", 8, [2, 4]]
    assert (seen.usage.calls, seen.usage.tokens) == (4, 3)


async def test_a_synchronous_agent_waits_for_its_calls_in_its_own_thread() -> None:
    @ct.agent
    def work(*, ctx: ct.Context) -> int:
        """Work."""
        return int(ctx.wait(ctx.call("double", {"n": 21})).content)

    assert (await run(work)).content == 42


async def test_gather_runs_side_by_side_and_keeps_the_order() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> list[str]:
        """Work."""
        replies = await ctx.gather(ctx.model().chat(text) for text in ("a", "b", "c"))
        return [reply.text for reply in replies]

    assert (await run(work)).content == ["a", "b", "c"]


async def test_gather_cancels_the_rest_when_one_fails() -> None:
    @ct.agent(timeout=5)
    async def work(*, ctx: ct.Context) -> str:
        """Work."""
        await ctx.gather(ctx.model().chat("hang"), ctx.model().chat("refuse"))
        return "unreachable"

    seen = await run(work)
    assert seen.error is not None
    assert seen.error.code == "rejected"  # who waits for the one that hangs ends at the deadline


async def test_a_failed_sub_call_is_an_observation_and_a_failed_model_an_exception() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> list[str]:
        """Work."""
        failed = await ctx.call("double", {"n": -1})
        try:
            await ctx.model().chat("refuse")
        except ct.CallFailed as error:
            return [str(failed.status), str(error.observation.status)]
        return []

    assert (await run(work)).content == ["EXEC_ERR", "EXEC_ERR"]


async def test_a_sub_call_ends_before_its_caller() -> None:
    left: list[float] = []

    @ct.tool(timeout=None)
    async def look(*, ctx: ct.Context) -> float:
        """How long it has."""
        return ctx.remaining_seconds()

    @ct.agent(timeout=1)
    async def work(*, ctx: ct.Context) -> float:
        """Work."""
        left.append(ctx.remaining_seconds())
        return float((await ctx.call("look")).content)

    seen = await run(work, look)
    assert 0 < seen.content <= left[0] - 0.04


async def test_an_agent_spends_from_its_callers_budget() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> list[str]:
        """Work."""
        seen = await ctx.run([ct.Call("double", {"n": n}) for n in range(5)])
        return [str(one.error.code) if one.error else "OK" for one in seen]

    seen = await run(work, budget=ct.Budget(calls=4))
    assert sorted(seen.content) == ["OK", "OK", "OK", "budget_exhausted", "budget_exhausted"]


async def test_what_the_context_knows() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> list[Any]:
        """Work."""
        return [ctx.question, ctx.run_id, ctx.call_id, len(ctx.idempotency_key), ctx.remaining.calls]

    seen = await run(work, question="why?", run_id="r1", budget=ct.Budget(calls=10))
    assert seen.content == ["why?", "r1", "1", 32, 9.0]


async def test_a_tool_may_not_call_others() -> None:
    @ct.tool
    async def sneaky(*, ctx: ct.Context) -> str:
        """Sneaky."""
        await ctx.call("double", {"n": 1})
        return ""

    async with ct.Executor() as executor:
        [seen] = await executor.run([ct.Call("sneaky", {})], ct.Pool.of(sneaky, double))
    assert seen.error is not None
    assert "'sneaky' is a tool; ctx.run is for agents" in seen.error.message


async def test_agents_cannot_nest_without_end() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> int:
        """Work."""
        seen = await ctx.call("work")
        return 1 + int(seen.content) if seen.ok else 1

    async with ct.Executor(ct.Limits(depth=3)) as executor:
        [seen] = await executor.run([ct.Call("work", {})], ct.Pool.of(work))
    assert seen.content == 3


async def test_many_agents_that_wait_for_tools_do_not_block_each_other() -> None:
    @ct.agent
    async def work(*, ctx: ct.Context) -> int:
        """Work."""
        return int((await ctx.call("double", {"n": 1})).content)

    async with ct.Executor(ct.Limits(calls=2)) as executor:
        seen = await executor.run([ct.Call("work", {}) for _ in range(20)], ct.Pool.of(work, double))
    assert [one.content for one in seen] == [2] * 20


async def test_an_agent_can_look_up_every_name_of_a_model_that_its_caller_may_mean() -> None:
    @ct.agent
    async def names(*, ctx: ct.Context) -> dict[str, str]:
        """The models."""
        assert all(ctx.model(name).name == full for name, full in ctx.models.items())
        return ctx.models

    models = [ct.ModelSpec(name, Echo) for name in ("a/x", "b/x", "b/y")]
    async with ct.Executor() as executor:
        [seen] = await executor.run([ct.Call("names", {})], ct.Pool.of(names, *models, default="b/x"))
    assert seen.content == {"y": "b/y", "a/x": "a/x", "b/x": "b/x", "b/y": "b/y", "default": "b/x"}


@ct.tool
def twice(n: int) -> int:
    """Double a number."""
    return 2 * n


@ct.tool(name="add", description="Add in its own way.")
def own_add(a: int, b: int) -> int:
    return 100 * a + b


@ct.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def with_toolbox(does: Any) -> ct.AgentSpec:
    schema = {"type": "object", "properties": {}}
    return ct.AgentSpec.from_schema("worker", "Works.", schema, does, context="context", toolbox=(twice, own_add))


async def test_an_agent_s_own_tools_are_found_by_it_alone_and_before_those_of_the_pool() -> None:
    seen_tools: list[Any] = []

    async def work(arguments: dict[str, Any], context: ct.Context) -> list[Any]:
        seen_tools.extend(tool["function"]["name"] for tool in context.toolbox)
        seen = await context.run([ct.Call("twice", {"n": 2}), ct.Call("add", {"a": 1, "b": 2}), ct.Call("twcie", {})])
        return [one.content for one in seen[:2]] + [seen[2].error.message if seen[2].error else ""]

    worker = with_toolbox(work)
    async with ct.Executor() as executor:
        inside, outside, added = await executor.run(
            [ct.Call("worker"), ct.Call("twice", {"n": 2}), ct.Call("add", {"a": 1, "b": 2})], ct.Pool.of(worker, add)
        )
    assert inside.content[:2] == [4, 102]
    assert "twice" in inside.content[2]
    assert seen_tools == ["twice", "add"]
    assert outside.error is not None
    assert outside.error.code == "unknown_name"
    assert added.content == 3


async def test_calls_of_a_toolbox_are_billed_checked_and_recorded_like_any_other() -> None:
    async def work(arguments: dict[str, Any], context: ct.Context) -> list[str]:
        return [(await context.call("twice", {"n": n})).status.value for n in (1, "x", 3)]

    events: list[Any] = []
    async with ct.Executor() as executor:
        (seen,) = await executor.run(
            [ct.Call("worker")], ct.Pool.of(with_toolbox(work)), budget=ct.Budget(calls=2), listeners=[events.append]
        )
    assert seen.content == ["OK", "PARSE_ERR", "EXEC_ERR"]
    assert seen.usage.calls == 2
    assert [event.call_id for event in events if type(event).__name__ == "CallStarted"] == ["1", "1/1.1"]


def test_a_toolbox_is_part_of_what_an_agent_is_and_holds_each_name_once() -> None:
    plain, rich = (ct.Pool.of(with_toolbox(len).with_(toolbox=box)) for box in ((), (twice,)))
    assert plain.id != rich.id
    assert [member.visible_name for member in rich.actions] == ["worker"]
    with pytest.raises(ct.SpecError, match="two tools of its toolbox have one name"):
        ct.Pool.of(with_toolbox(len).with_(toolbox=(add, own_add)))


@pytest.mark.parametrize("isolation", ["loop", "thread"])
async def test_progress_is_told_to_listeners_at_most_ten_times_a_second_and_kept_nowhere(isolation: Any) -> None:
    @ct.tool(isolation=isolation)
    def count(ctx: ct.Context) -> int:
        """Count."""
        for n in range(1, 1_001):
            ctx.progress(n, 1_000, f"number {n}")
        return n

    events: list[Any] = []
    async with ct.Executor() as executor:
        pool = ct.Pool.of(count)
        scope = executor.open(pool, listeners=[events.append])
        await executor.run_plan(ct.Plan([ct.Call("count")]), scope)
        await asyncio.sleep(0)
    told = [event for event in events if type(event).__name__ == "Progressed"]
    assert (told[0].done, told[0].total, told[0].message, told[0].name) == (1, 1_000, "number 1", "count")
    assert told[-1].done == 1_000
    assert 2 <= len(told) < 20
    assert not any(type(event).__name__ == "Progressed" for event in scope.events)
