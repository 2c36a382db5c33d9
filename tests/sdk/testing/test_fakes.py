"""Fake members: they answer as told, remember their calls, and misbehave on request."""

from __future__ import annotations

import pytest
from concertino import Call, Executor, Limits, Pool, Status
from concertino.testing import (
    ScriptedModel,
    blocking_tool,
    call,
    fake_agent,
    fake_tool,
    hanging_tool,
    make_pool,
    run_call,
    stubborn_tool,
)
from waiting import wait_until

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


def test_a_fake_tool_returns_what_it_was_told_and_remembers_its_arguments() -> None:
    tool = fake_tool("weather", returns={"rain": True})
    assert call(tool, {"city": "Oslo"}).content == {"rain": True}
    assert tool.calls == [{"city": "Oslo"}]


def test_what_it_returns_can_depend_on_the_arguments() -> None:
    async def later(arguments: dict[str, int]) -> int:
        return arguments["n"] + 1

    assert call(fake_tool(returns=lambda arguments: arguments["n"] * 2), {"n": 4}).content == 8
    assert call(fake_tool(returns=later), {"n": 4}).content == 5


def test_a_fake_tool_has_the_schema_it_was_given() -> None:
    tool = fake_tool(schema=SCHEMA)
    assert call(tool, {"n": "four"}).status is Status.PARSE_ERR
    assert tool.calls == []


def test_a_fake_tool_raises_what_it_was_told() -> None:
    seen = call(fake_tool(raises=ValueError("no such city")), {})
    assert seen.status is Status.EXEC_ERR
    assert "no such city" in seen.error.message


def test_a_sequence_gives_results_and_errors_in_turn_and_fails_after_its_end() -> None:
    tool = fake_tool(sequence=[1, ConnectionResetError("lost"), 3])
    seen = [call(tool, {}) for _ in range(4)]
    assert [observation.status for observation in seen] == [
        Status.OK,
        Status.EXEC_ERR,
        Status.OK,
        Status.EXEC_ERR,
    ]
    assert (seen[0].content, seen[2].content) == (1, 3)
    assert "after the end of the sequence" in seen[3].error.message


def test_an_empty_sequence_refuses_every_call() -> None:
    assert "after the end of the sequence" in call(fake_tool(sequence=[]), {}).error.message


def test_a_retry_safe_flaky_tool_is_repeated_by_the_executor() -> None:
    tool = fake_tool(sequence=[ConnectionResetError("lost"), "fine"], retry_safe=True)
    seen = call(tool, {})
    assert (seen.content, seen.attempts) == ("fine", 2)


async def test_most_at_once_shows_whether_calls_ran_side_by_side() -> None:
    free, one_by_one = fake_tool("free", delay=0.02), fake_tool("one", delay=0.02, concurrency=1)
    async with Executor() as executor:
        await executor.run([Call(name) for name in ["free", "one"] * 3], Pool.of(free, one_by_one))
    assert (free.most_at_once, one_by_one.most_at_once) == (3, 1)


def test_a_renamed_copy_shares_the_memory() -> None:
    tool = fake_tool("old")
    call(tool.with_(name="new"), {"n": 1})
    assert tool.calls == [{"n": 1}]


def test_a_fake_agent_can_use_its_context() -> None:
    async def work(arguments, context):
        reply = await context.model("worker").chat(arguments["question"])
        inner = await context.call("double", {"n": int(reply.text)})
        return inner.content

    double = fake_tool("double", returns=lambda arguments: arguments["n"] * 2)
    agent = fake_agent("solver", returns=work, models=("worker",))
    with ScriptedModel("21") as model:
        seen = call(agent, {"question": "half of 42?"}, pool=make_pool(double, worker=model))
    assert seen.content == 42
    assert agent.calls == [{"question": "half of 42?"}]
    assert seen.usage.output_tokens > 0


def test_a_fake_agent_answers_without_using_its_context() -> None:
    assert call(fake_agent(returns="answer"), {}).content == "answer"


async def test_a_hanging_tool_ends_with_its_deadline_and_was_cancelled() -> None:
    tool = hanging_tool(timeout=0.05)
    assert (await run_call(tool, {})).status is Status.TIMEOUT
    assert tool.cancelled == 1


async def test_a_blocking_tool_is_blamed_for_the_stall() -> None:
    tool = blocking_tool(seconds=0.6)
    async with Executor(Limits(stall=0.1)) as executor:
        await executor.run([Call("blocking")], Pool.of(tool))
        await wait_until(lambda: executor.runtime.misbehaviour.stalls)
        assert [stall.name for stall in executor.runtime.misbehaviour.stalls] == ["blocking"]


async def test_a_stubborn_tool_is_closed_and_counted() -> None:
    tool = stubborn_tool(seconds=0.5, timeout=0.05)
    async with Executor(Limits(grace=0.05)) as executor:
        (seen,) = await executor.run([Call("stubborn")], Pool.of(tool))
        assert seen.status is Status.TIMEOUT
        assert (executor.health()["closed_calls"], executor.health()["abandoned_calls"]) == (1, 0)
    assert tool.cancelled >= 2


def test_fakes_take_the_other_options_of_specs() -> None:
    assert fake_tool(writes=True, timeout=3).timeout == 3
    with pytest.raises(TypeError, match="colour"):
        fake_tool(colour="red")
