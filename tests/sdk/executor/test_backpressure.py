"""Ten thousand calls at once: few tasks, little memory, in order, fair (bar E9)."""

from __future__ import annotations

import asyncio
from collections import Counter

import concertino as ct
from concertino.executor import Executor, Limits
from concertino.executor.gates import AdaptiveGate
from concertino.testing import ScriptedModel

from .virtual_clock import run_virtually


def test_ten_thousand_calls_make_no_more_tasks_than_may_run_and_start_in_order() -> None:
    started: list[int] = []
    tasks = 0

    @ct.tool(timeout=None)
    async def note(number: int) -> int:
        """Note the order."""
        nonlocal tasks
        started.append(number)
        if number % 50 == 0:
            tasks = max(tasks, len(asyncio.all_tasks()))
        await asyncio.sleep(0.001 * (number % 7))
        return number

    async def run() -> list[ct.Observation]:
        async with Executor(Limits(calls=16, stall=60)) as executor:  # that clock is real
            return await executor.run([ct.Call("note", {"number": n}) for n in range(10_000)], ct.Pool.of(note))

    observations = run_virtually(run())
    assert [o.content for o in observations] == list(range(10_000))
    assert started == list(range(10_000))
    assert tasks <= 16 + 64


def test_calls_of_different_runs_take_turns() -> None:
    @ct.tool(timeout=None)
    async def work(run: str) -> str:
        """Take a second."""
        done[run] += 1
        if sum(done.values()) == 1000:
            halfway.update(done)
        await asyncio.sleep(1)
        return run

    done: Counter[str] = Counter()
    halfway: Counter[str] = Counter()

    async def main() -> None:
        async with Executor(Limits(calls=16, stall=60)) as executor:  # that clock is real
            sizes = {"a": 1000, "b": 500, "c": 500, "d": 500}
            runs = [
                executor.run([ct.Call("work", {"run": name})] * size, ct.Pool.of(work), run_id=name)
                for name, size in sizes.items()
            ]
            await asyncio.gather(*runs)

    run_virtually(main())
    assert sum(done.values()) == 2500
    assert all(200 <= count <= 300 for count in halfway.values()), halfway


def test_a_full_queue_refuses_what_comes_then_and_says_so() -> None:
    @ct.tool(timeout=None)
    async def work() -> str:
        """Take a second."""
        await asyncio.sleep(1)
        return "done"

    async def run() -> list[ct.Observation]:
        async with Executor(Limits(calls=2, queue=3)) as executor:
            return await executor.run([ct.Call("work")] * 8, ct.Pool.of(work))

    observations = run_virtually(run())
    assert [o.status for o in observations] == ["OK"] * 5 + ["EXEC_ERR"] * 3
    refused = observations[-1].error
    assert refused is not None
    assert (refused.code, refused.retryable, observations[-1].attempts) == ("overloaded", True, 0)
    assert "more than 3 calls wait" in refused.message


def busiest(limits: Limits, *tools: ct.ToolSpec, times: int = 20) -> int:
    """The most calls that were under way at once, all tools together."""

    async def run() -> int:
        async with Executor(limits) as executor:
            calls = [ct.Call(tool.name) for tool in tools for _ in range(times)]
            observations = await executor.run(calls, ct.Pool.of(*tools))
            assert all(o.ok for o in observations)
            edges = sorted([(o.started, 1) for o in observations] + [(o.ended, -1) for o in observations])
            now = most = 0
            for _, step in edges:
                now += step
                most = max(most, now)
            return most

    return run_virtually(run())


def worker(name: str, **options: object) -> ct.ToolSpec:
    async def work() -> str:
        """Take a second."""
        await asyncio.sleep(1)
        return "done"

    return ct.tool(name=name, timeout=None, **options)(work)  # type: ignore[call-overload,no-any-return]


def test_each_limit_holds_by_itself() -> None:
    assert busiest(Limits(), worker("free")) == 20
    assert busiest(Limits(calls=7), worker("free")) == 7
    assert busiest(Limits(), worker("own", concurrency=3)) == 3
    assert busiest(Limits(per_provider={"acme": 4}), worker("acme/a"), worker("acme/b")) == 4
    assert busiest(Limits(per_provider={"acme": 4}), worker("acme/a"), worker("other/b")) == 24
    assert busiest(Limits(calls=5, per_provider={"acme": 4}), worker("acme/a", concurrency=2), worker("b")) == 5


def test_agents_of_every_depth_have_places_of_their_own() -> None:
    @ct.agent(timeout=None)
    async def nest(ctx: ct.Context, depth: int) -> int:
        """Call itself, or a tool at the bottom."""
        name, arguments = ("free", {}) if depth == 0 else ("nest", {"depth": depth - 1})
        observations = await ctx.run([ct.Call(name, arguments), ct.Call(name, arguments)])
        return sum(o.content if isinstance(o.content, int) else 1 for o in observations)

    async def run() -> list[ct.Observation]:
        async with Executor(Limits(calls=1, per_provider={"": 1})) as executor:
            return await executor.run([ct.Call("nest", {"depth": 4})] * 2, ct.Pool.of(nest, worker("free")))

    assert [o.content for o in run_virtually(run())] == [32, 32]


def test_agents_nested_deeper_than_the_limit_are_refused() -> None:
    @ct.agent(timeout=None)
    async def nest(ctx: ct.Context) -> int:
        """Call itself for ever."""
        seen = await ctx.call("nest")
        return 1 + (seen.content if seen.ok else 0)

    async def run() -> ct.Observation:
        async with Executor(Limits(depth=5)) as executor:
            return (await executor.run([ct.Call("nest")], ct.Pool.of(nest)))[0]

    assert run_virtually(run()).content == 5


def test_a_provider_that_throttles_gets_half_of_what_was_under_way_and_then_one_more_at_a_time() -> None:
    gate = AdaptiveGate(100)
    for _ in range(20):
        gate.began()
    gate.throttled(begun=1.0, now=2.0)
    assert gate.capacity == 10
    for _ in range(10):
        gate.succeeded()
    assert gate.capacity == 11
    for _ in range(10_000):
        gate.succeeded()
    assert gate.capacity == 100


def test_of_many_throttled_at_once_as_many_go_out_again_as_the_provider_had_taken() -> None:
    gate = AdaptiveGate(100)
    for _ in range(64):
        gate.began()
    for _ in range(56):
        gate.throttled(begun=1.0, now=2.0)
        gate.ended()
    assert (gate.active, gate.capacity) == (8, 8)


async def test_as_many_turns_are_given_as_there_is_room_and_a_cancelled_one_is_passed_on() -> None:
    gate = AdaptiveGate(100)
    gate.began()
    gate.throttled(begun=1.0, now=2.0)
    assert gate.capacity == 1

    async def go() -> None:
        await gate.turn()
        gate.began()

    waiting = [asyncio.ensure_future(go()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.ended()
    waiting[0].cancel()  # after it was given its turn
    await asyncio.wait_for(waiting[1], 60)
    await asyncio.sleep(0)
    assert not waiting[2].done()
    gate.ended()
    await asyncio.wait_for(waiting[2], 60)


def test_an_agent_does_not_stand_in_the_way_of_its_own_throttled_model() -> None:
    asked = []

    async def busy(request: ct.ChatRequest) -> ct.Reply:
        asked.append(request)
        if len(asked) == 1:
            raise ct.ProviderError("slower", failure=ct.FailureClass.THROTTLED, retry_after=0.01)
        return ct.Reply("done")

    model = ScriptedModel(busy, strict=False)
    pool = ct.Pool.of(ct.ModelSpec("acme/big", lambda: model)).offering("acme/big")

    async def run() -> ct.Observation:
        async with Executor() as executor:
            call = ct.Call("ask_big", {"task": "?"})
            return (await executor.run([call], pool, budget=ct.Budget(seconds=3)))[0]

    assert run_virtually(run()).status == "OK"


def test_throttled_calls_slow_their_provider_down_though_it_has_no_limit() -> None:
    @ct.tool(name="acme/ask", timeout=None)
    async def ask(throttled: bool) -> str:
        """Take a second, or be told to slow down."""
        await asyncio.sleep(1)
        if throttled:
            raise ct.ProviderError.from_http(429)
        return "done"

    async def run() -> int:
        async with Executor() as executor:
            calls = [ct.Call("ask", {"throttled": number == 0}) for number in range(20)]
            await executor.run(calls, ct.Pool.of(ask))
            return executor.bindings.provider("acme").gate.capacity

    assert 10 <= run_virtually(run()) <= 12
