"""Stepped runs with a trace: gone through again after a crash, without a call that was made."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from concertino import (
    Executor,
    ModelSpec,
    Orchestrator,
    Pool,
    Reply,
    SteppedRun,
    Trace,
    TraceError,
    Usage,
    replay,
    tool,
)
from concertino.strategies import Ask
from concertino.strategies.parallel_rounds import ParallelRounds

CALL = '<reasoning>add</reasoning>\n<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
TEXTS = (CALL, '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>', "3")
made: list[int] = []


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    made.append(a)
    return a + b


@tool
def other(a: int) -> int:
    """Give a number back."""
    return a


def nobody() -> NoReturn:
    raise AssertionError("the holder answers, so no model is opened")


def begin(executor: Executor, trace: Path, pool: Pool | None = None) -> SteppedRun:
    leader = Orchestrator(ModelSpec("policy", nobody), ParallelRounds(), executor=executor)
    return leader.stepped("1 + 2?", pool=pool or Pool.of(add), run_id="one", trace=trace)


async def drive(run: SteppedRun, until: int = len(TEXTS)) -> list[bool]:
    """Drive a run until its holder was asked so often; for each question, whether the trace knew the reply."""
    known: list[bool] = []
    while not run.done and len(known) < until:
        if isinstance(run.step, Ask):
            recorded = run.recorded
            text = TEXTS[len(known)]
            known.append(recorded is not None)
            assert recorded is None or (recorded.text, recorded.token_ids) == (text, (1, 2))
            run.on_reply(recorded or Reply(text, usage=Usage(input_tokens=5, output_tokens=2), token_ids=(1, 2)))
        else:
            await run.act()
    return known


async def test_a_run_that_was_left_is_driven_on_without_a_call_or_a_reply_that_it_had(tmp_path: Path) -> None:
    made.clear()
    path = tmp_path / "one.trace.jsonl"
    async with Executor() as executor:
        left = begin(executor, path)
        assert await drive(left, until=2) == [False, False]
        await left.close()
        lines = len(path.read_bytes().splitlines())
        again = begin(executor, path)
        assert await drive(again) == [True, True, False]
        finished = await again.close()
        assert (finished.answer, made) == ("3", [1])
        assert finished.usage.output_tokens == 6
        assert len(path.read_bytes().splitlines()) > lines
    trace = Trace.load(path)
    assert replay(trace).answer == "3"
    assert [record["t"] for record in trace.records].count("reply") == 3


async def test_a_run_that_is_over_is_gone_through_again_and_its_file_stays_as_it_is(tmp_path: Path) -> None:
    made.clear()
    path = tmp_path / "one.trace.jsonl"
    async with Executor() as executor:
        first = begin(executor, path)
        await drive(first)
        await first.close()
        before = path.read_bytes()
        again = begin(executor, path)
        assert again.path is None
        assert await drive(again) == [True, True, True]
        assert (await again.close()).answer == "3"
    assert path.read_bytes() == before
    assert made == [1]


async def test_a_trace_of_another_pool_is_refused_and_one_without_a_beginning_is_begun(tmp_path: Path) -> None:
    path, torn = tmp_path / "one.trace.jsonl", tmp_path / "torn.trace.jsonl"
    async with Executor() as executor:
        await begin(executor, path).close()
        with pytest.raises(TraceError, match="other is new"):
            begin(executor, path, Pool.of(add, other))
        await begin(executor, path).close()  # the refused one holds no lock
        torn.write_bytes(b'{"format')
        run = begin(executor, torn)
        assert await drive(run) == [False, False, False]
        await run.close()
    assert Trace.load(torn).finished
