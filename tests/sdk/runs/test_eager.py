"""Eager dispatch: calls start while the model still writes, once each, and the run is the same as without.

Times are those of a virtual clock, so they are exact. The model writes 50 tokens a second, a call takes one second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.core.events import CallEnded, CallStarted
from concertino.strategies.parallel_rounds.format import write_round
from concertino.testing import ScriptedModel

from tests.sdk.executor.virtual_clock import run_virtually

PACE = 50.0
FINAL = write_round("Done.", [("final_answer", {})])
ANSWER = "<answer>done</answer>"


@pytest.fixture
def started() -> Iterator[list[str]]:
    """What the tool `work` was called with, in the order of starting."""
    STARTED.clear()
    yield STARTED
    STARTED.clear()


STARTED: list[str] = []


@ct.tool
async def work(what: str) -> str:
    """Work for a second."""
    STARTED.append(what)
    await asyncio.sleep(1)
    return what


@ct.tool(writes=True)
async def store(what: str) -> str:
    """Write for a second."""
    STARTED.append(what)
    await asyncio.sleep(1)
    return what


POOL = ct.Pool.of(work, store)
WORDS = ("one", "two", "three", "four")


def round_of(*calls: tuple[str, dict[str, Any]]) -> str:
    return write_round("Each is a task of its own, so they can go on side by side. " * 3, calls)


FOUR = round_of(*(("work", {"what": word}) for word in WORDS))


def led(*turns: str, eager: bool = True, pool: ct.Pool = POOL, **options: Any) -> ct.Run:
    """A run on the virtual clock."""
    model = ScriptedModel(*turns, tokens_per_second=PACE)
    orchestrator = ct.Orchestrator(model, eager=eager, **options.pop("own", {}))
    return run_virtually(orchestrator.run("What?", pool=pool, **options))


def writing(text: str) -> float:
    """Seconds that the model needs for a text."""
    return -(-len(text) // 3) / PACE


def test_a_round_ends_a_call_s_time_after_its_last_call_is_written(started: list[str]) -> None:
    run = led(FOUR, FINAL, ANSWER)
    (first, *_) = run.rounds
    assert [seen.content for seen in first.observations] == list(WORDS)
    assert first.ended <= (writing(FOUR) + 1) * 1.05
    assert run.seconds <= led(FOUR, FINAL, ANSWER, eager=False).seconds
    assert started[:4] == list(WORDS)


def test_calls_written_early_are_done_when_the_text_ends(started: list[str]) -> None:
    slow_end = FOUR + " That is all for now." * 40
    run = led(slow_end, FINAL, ANSWER)
    late = led(slow_end, FINAL, ANSWER, eager=False)
    assert late.seconds - run.seconds == pytest.approx(1.0, abs=0.1)
    assert run.rounds[0].ended < writing(slow_end)
    assert run.answer == late.answer == "done"


def test_no_call_starts_twice_and_each_has_one_observation(started: list[str]) -> None:
    run = led(FOUR, FINAL, ANSWER)
    begun = [event.call_id for event in run.events if isinstance(event, CallStarted)]
    ended = [event.observation.call_id for event in run.events if isinstance(event, CallEnded)]
    assert begun == ended == ["1.1", "1.2", "1.3", "1.4"]
    assert sorted(started) == sorted(WORDS)
    assert run.usage.calls == 4


def test_the_run_is_what_it_is_without_but_for_its_times(started: list[str]) -> None:
    texts = [round_of(("work", {"what": "a"}), ("nobody", {}), ("work", {"what": 3}), ("store", {"what": "b"}))]
    runs = [led(*texts, FINAL, ANSWER, eager=eager) for eager in (True, False)]
    shown = [[(s.call_id, s.name, s.status, s.content) for s in run.observations] for run in runs]
    assert shown[0] == shown[1]
    assert runs[0].usage._replace(seconds=0) == runs[1].usage._replace(seconds=0)


def test_a_call_that_writes_waits_for_the_finished_text(started: list[str]) -> None:
    text = round_of(("store", {"what": "w"}), ("work", {"what": "r"})) + " and so on" * 60
    run = led(text, FINAL, ANSWER)
    at = {event.call_id: event.at for event in run.events if isinstance(event, CallStarted)}
    assert at["1.2"] < writing(text) - 1
    assert at["1.1"] == pytest.approx(writing(text), abs=0.1)


def test_calls_beyond_the_limit_and_calls_inside_thoughts_do_not_start(started: list[str]) -> None:
    block = '<tool_call>{"name": "work", "arguments": {"what": "thought"}}</tool_call>'
    text = f"<think>perhaps {block}</think>" + round_of(*(("work", {"what": str(n)}) for n in range(6)))
    run = led(text, FINAL, ANSWER)
    assert started == ["0", "1", "2", "3"]
    assert [seen.status for seen in run.observations] == ["OK"] * 4 + ["PARSE_ERR"] * 2


def test_an_unclosed_block_keeps_its_number(started: list[str]) -> None:
    broken = '<tool_call>{"name": "work", "arguments": {"what": "lost"'
    good = '<tool_call>{"name": "work", "arguments": {"what": "kept"}}</tool_call>'
    run = led(f"{broken}\n{good}" + " etc." * 60, FINAL, ANSWER)
    assert [seen.status for seen in run.observations] == ["PARSE_ERR", "OK"]
    assert [event.call_id for event in run.events if isinstance(event, CallStarted)] == ["1.2"]


class CutOff(ct.Model):
    """Writes a call, and the connection breaks."""

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        for piece in FOUR.partition("</tool_call>")[:2]:
            yield piece
        await asyncio.sleep(0.5)
        raise ct.ProviderError("connection reset", failure=ct.FailureClass.CUT_OFF)


def test_a_text_that_breaks_off_stops_what_it_began(started: list[str]) -> None:
    run = run_virtually(ct.Orchestrator(CutOff(), eager=True).run("What?", pool=POOL))
    assert (run.answer, run.stop) == (None, "model")
    assert started == ["one"]
    ended = {event.observation.call_id: event.observation for event in run.events if isinstance(event, CallEnded)}
    error = ended["1.1"].error
    assert error is not None
    assert error.code == "cancelled"


def test_a_run_cancelled_while_the_model_writes_stops_what_was_begun(started: list[str]) -> None:
    async def main() -> ct.Run:
        model = ScriptedModel(FOUR + " and so on" * 600, tokens_per_second=PACE)
        handle = ct.Orchestrator(model, eager=True).start("What?", pool=POOL)
        await asyncio.sleep(writing(FOUR) + 0.5)
        run = await handle.cancel()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return run

    run = run_virtually(main())
    assert run.stop == "cancelled"
    assert len(started) == 4


def test_a_run_cut_off_while_the_model_wrote_does_not_repeat_what_was_finished(
    started: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "run.trace.jsonl"
    text = FOUR + " and so on" * 200

    async def cut() -> None:
        orchestrator = ct.Orchestrator(ScriptedModel(text, strict=False, tokens_per_second=PACE), eager=True)
        handle = orchestrator.start("What?", pool=POOL, trace=path)
        await asyncio.sleep(writing(FOUR) + 1.5)
        await handle.cancel()

    run_virtually(cut())
    assert sorted(started) == sorted(WORDS)
    model = ScriptedModel(text, FINAL, ANSWER, tokens_per_second=PACE)
    run = run_virtually(ct.Orchestrator(model, eager=True).resume(path, pool=POOL))
    assert run.answer == "done"
    assert sorted(started) == sorted(WORDS)
    assert all(seen.replayed for seen in run.rounds[0].observations)


def test_a_recorded_eager_run_replays_like_any_other(started: list[str], tmp_path: Path) -> None:
    run = led(FOUR, FINAL, ANSWER, trace=tmp_path / "run.trace.jsonl")
    assert run.path is not None
    assert ct.replay(ct.Trace.load(run.path)).answer == "done"
    assert [len(round_.observations) for round_ in run.rounds] == [4]
