"""One large round with everything in it, at the default settings (bar S4)."""

from __future__ import annotations

import asyncio
import threading

import concertino as ct
import pytest
from concertino.executor import Executor


@ct.tool
async def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    await asyncio.sleep(0.01)
    return f"{city}: sun for {days}"


@ct.tool
async def broken(city: str) -> str:
    """Raise."""
    raise RuntimeError("the station does not answer " + "x" * 1000)


@ct.tool(timeout=0.3)
async def hanging(city: str) -> str:
    """Hang."""
    await asyncio.sleep(3600)
    return city


POOL = ct.Pool.of(weather, broken, hanging)
WRONG = [
    ({"city": "Oslo", "days": "many"}, "/days", "integer"),
    ({"days": 2}, "", "city"),
    ({"city": "Oslo", "dayz": 2}, "", "days"),
    ({"city": None}, "/city", "string"),
    ('{"city": "Oslo"', "", ""),
]


async def test_a_round_of_a_hundred_calls_gives_a_hundred_observations_in_order_and_leaves_nothing() -> None:
    calls = []
    for number in range(10):
        calls += [ct.Call("weather", {"city": f"city {number}", "days": 1 + n}) for n in range(6)]
        calls += [
            ct.Call("weather", WRONG[number % len(WRONG)][0]),
            ct.Call("wether", {"city": "x"}),
            ct.Call("broken", {"city": "x"}),
            ct.Call("hanging", {"city": "x"}),
        ]
    async with Executor() as executor:
        observations = await asyncio.wait_for(executor.run(calls, POOL), 60)
    statuses = ["OK"] * 6 + ["PARSE_ERR", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"]
    assert [o.status for o in observations] == statuses * 10
    assert [o.call_id for o in observations] == [str(n) for n in range(1, 101)]
    codes = {o.error.code for o in observations if o.error}
    assert codes == {"invalid_arguments", "bad_json", "unknown_name", "raised", "deadline"}
    assert all(len(o.error.message) <= 200 and "\n" not in o.error.message for o in observations if o.error)
    assert all(o.attempts == (o.status != "PARSE_ERR") for o in observations)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert [thread for thread in threading.enumerate() if thread.name.startswith("concertino:loop")] == []


@pytest.mark.parametrize(("arguments", "path", "said"), WRONG[:4], ids=lambda value: str(value)[:30])
async def test_a_wrong_argument_is_named_with_what_was_expected(
    arguments: dict[str, object], path: str, said: str
) -> None:
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("weather", arguments)], POOL)
    error = seen.error
    assert error is not None
    assert (error.code, error.path) == ("invalid_arguments", path)
    assert said in error.message
    assert error.expected
    assert error.got or "dayz" in error.message or path == ""


async def test_an_unknown_name_is_answered_with_names_that_are_near() -> None:
    async with Executor() as executor:
        near, far = await executor.run([ct.Call("wether", {}), ct.Call("qqqqqqqq", {})], POOL)
    assert near.error is not None
    assert far.error is not None
    assert near.error.near == ("weather",)
    assert near.error.message == "no tool or agent is called 'wether'; did you mean weather?"
    assert "there are weather, broken, hanging" in far.error.message


async def test_arguments_that_are_no_object_are_observed_not_raised() -> None:
    async with Executor() as executor:
        calls = [ct.Call("weather", arguments) for arguments in ("[1]", "3", "", [1], None)]  # type: ignore[arg-type]
        observations = await executor.run(calls, POOL)
    assert [o.status for o in observations] == ["PARSE_ERR"] * 5


async def test_repeated_calls_run_again_or_are_reused_or_refused_as_asked() -> None:
    calls = [ct.Call("weather", {"city": "Oslo"}), ct.Call("weather", '{"city": "Oslo"}', after=("1",))]
    results = {}
    for duplicates in ("run", "reuse", "refuse"):
        async with Executor() as executor:
            observations = await executor.run(calls, POOL, duplicates=duplicates)
            results[duplicates] = [(o.status, o.attempts, o.replayed, o.error and o.error.code) for o in observations]
    ran = ("OK", 1, False, None)
    assert results == {
        "run": [ran, ran],
        "reuse": [ran, ("OK", 0, True, None)],
        "refuse": [ran, ("EXEC_ERR", 0, False, "duplicate")],
    }


@pytest.mark.parametrize("isolation", ["loop", "thread"])
async def test_a_member_may_end_its_own_call_with_a_code_and_what_there_is_to_show(isolation: str) -> None:
    @ct.tool(isolation=isolation)  # type: ignore[arg-type]
    def compile_it() -> str:
        """Compile."""
        raise ct.CallFailed.because("line 3: ';' expected", code="compile_error", content={"log": "x" * 20_000})

    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("compile_it")], ct.Pool.of(compile_it))
    assert seen.status is ct.Status.EXEC_ERR
    assert seen.error is not None
    assert (seen.error.code, seen.error.message, seen.error.retryable) == (
        "compile_error",
        "line 3: ';' expected",
        False,
    )
    assert "xxx" in seen.content
    assert seen.truncated > 3_000


async def test_a_failure_that_an_agent_lets_pass_keeps_its_code_and_names_the_member() -> None:
    @ct.tool
    def compile_it() -> str:
        """Compile."""
        raise ct.CallFailed.because("no compiler", code="no_compiler", retryable=True)

    @ct.agent
    async def builder(ctx: ct.Context) -> str:
        """Build."""
        seen = await ctx.call("compile_it", {})
        if not seen.ok:
            raise ct.CallFailed(seen)
        return "built"

    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("builder")], ct.Pool.of(builder, compile_it))
    assert seen.error is not None
    assert (seen.error.code, seen.error.message) == ("no_compiler", "compile_it: no compiler")
    assert seen.error.retryable


@pytest.mark.parametrize("given", [{"n": 3.0, "x": 3.0, "many": [1.0, 2]}, '{"n": 3.0, "x": 3.0, "many": [1.0, 2]}'])
async def test_a_whole_number_written_with_a_fraction_is_an_int_where_an_integer_is_asked_for(given: object) -> None:
    @ct.tool
    def kinds(n: int, x: float, many: list[int]) -> list[str]:
        """Name the types."""
        return [type(value).__name__ for value in (n, x, *many)]

    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("kinds", given)], ct.Pool.of(kinds))  # type: ignore[arg-type]
    assert seen.content == ["int", "float", "int", "int"]
    assert seen.repairs == ()


async def test_two_plans_of_one_program_have_idempotency_keys_of_their_own() -> None:
    @ct.tool
    def key(*, ctx: ct.Context) -> str:
        """The idempotency key."""
        return ctx.idempotency_key

    pool, plan = ct.Pool.of(key), ct.Plan.parallel([ct.Call("key", {}, "1")])
    async with ct.Executor() as executor:
        ((first,), (second,)) = [await executor.run(plan, pool) for _ in range(2)]
        ((named,), (again,)) = [await executor.run(plan, pool, run_id="monday") for _ in range(2)]
    assert first.content != second.content
    assert named.content == again.content
