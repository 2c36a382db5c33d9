"""Stepped runs: driven by their holder, forked, and recorded like any other run."""

from __future__ import annotations

from pathlib import Path

import pytest
from concertino import (
    Executor,
    ModelSpec,
    Orchestrator,
    Pool,
    Prices,
    Reply,
    Sampling,
    SteppedRun,
    Trace,
    Usage,
    UsageError,
    replay,
    tool,
)
from concertino.strategies import Act, Ask
from concertino.strategies.parallel_rounds import ParallelRounds

CALL = '<reasoning>add</reasoning>\n<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
END = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def nobody() -> None:
    raise AssertionError("the holder answers, so no model is opened")


def begin(executor: Executor) -> SteppedRun:
    leader = ModelSpec("policy", nobody, prices=Prices(1.0, 10.0))  # type: ignore[arg-type]
    strategy = ParallelRounds()
    return Orchestrator(leader, strategy, executor=executor, sampling=Sampling(seed=3)).stepped(
        "1 + 2?", pool=Pool.of(add), run_id="one"
    )


async def test_a_stepped_run_ends_recorded_as_any_other_and_replays(tmp_path: Path) -> None:
    async with Executor() as executor:
        run = begin(executor)
        texts = iter((CALL, END, "3"))
        while not run.done:
            if isinstance(run.step, Ask):
                text = next(texts)
                run.on_reply(Reply(text, usage=Usage(input_tokens=100, output_tokens=10), token_ids=(1, 2)), 0.5)
            else:
                await run.act()
        finished = await run.close()
    assert (finished.answer, finished.stop) == ("3", "answered")
    assert finished.usage.usd == pytest.approx(3 * (100 * 1.0 + 10 * 10.0) / 1e6)
    trace = Trace.load(finished.write_trace(tmp_path / "one.trace.jsonl"))
    assert replay(trace).answer == "3"
    assert [record["t"] for record in trace.records] == [record["t"] for record in finished.trace.records]


async def test_forks_share_their_past_and_nothing_else() -> None:
    async with Executor() as executor:
        run = begin(executor)
        run.on_reply(Reply(CALL, usage=Usage(input_tokens=5)))
        await run.act()
        twin = run.fork("two")
        assert twin.usage == run.usage
        run.on_reply(Reply(END))
        run.on_reply(Reply("3"))
        assert run.done
        assert not twin.done
        twin.on_reply(Reply(CALL))
        await twin.act()
        one, two = await run.close(), await twin.close()
    assert (one.answer, two.answer, two.stop) == ("3", None, "cancelled")
    assert [len(each.observations) for each in (one, two)] == [1, 2]
    assert (one.id, two.id, two.events[0].run_id) == ("one", "two", "two")  # type: ignore[union-attr]


async def test_what_does_not_fit_the_step_is_refused() -> None:
    async with Executor() as executor:
        run = begin(executor)
        with pytest.raises(UsageError, match="wants Ask; act was expected"):
            await run.act()
        run.on_reply(Reply(CALL))
        assert isinstance(run.step, Act)
        with pytest.raises(UsageError, match="wants Act; ask was expected"):
            run.on_reply(Reply(CALL))
        await run.close()
        with pytest.raises(UsageError, match="is closed"):
            run.fork()


async def test_a_run_ended_from_outside_says_why() -> None:
    async with Executor() as executor:
        run = begin(executor)
        run.finish("budget", "256 tokens are over")
        finished = await run.close()
    assert (finished.stop, finished.detail) == ("budget", "256 tokens are over")


def test_stepped_runs_need_an_executor_to_share() -> None:
    with pytest.raises(UsageError, match="executor=Executor"):
        Orchestrator("policy").stepped("1 + 2?", pool=Pool.of(add))
