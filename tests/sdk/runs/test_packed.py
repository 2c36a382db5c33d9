"""A finished run is small until somebody looks at it, and can be dropped to its summary."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino import events
from concertino.core.format_issue import FormatIssue
from concertino.executor import Scope
from concertino.runs.loop import RunLoop
from concertino.runs.packed import PackedEvents
from concertino.testing import ScriptedModel, fake_tool
from hypothesis import given
from hypothesis import strategies as st

from .conftest import FINAL, round_of

Led = Callable[..., ct.Orchestrator]
ROUNDS = [round_of(*[("add", {"a": number, "b": 1})] * 4) for number in range(10)]

texts = st.text(max_size=20) | st.sampled_from(["x" * 600, "\ud800", ""])
names = st.sampled_from(["", "1.1", "look", "é"])
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
usages = st.builds(ct.Usage, units=st.floats(0, 9), usd=st.floats(0, 1), seconds=st.floats(0, 9))
errors = st.builds(ct.ErrorInfo, st.just("raised"), texts, near=st.just(("a", "b")), retryable=st.booleans())
observations = st.builds(
    ct.Observation,
    names,
    names,
    st.sampled_from(ct.Status),
    data,
    st.none() | errors,
    usages,
    st.integers(0, 3),
    st.floats(0, 9),
    st.floats(0, 9),
    st.just(("trailing_comma",)) | st.just(()),
    st.integers(0, 9),
    st.booleans(),
    texts,
)
tool_calls = st.builds(ct.ToolCall, texts, texts | st.dictionaries(texts, data, max_size=2), texts)
messages = st.builds(
    ct.Message, st.sampled_from(["user", "assistant"]), texts, st.lists(tool_calls, max_size=2).map(tuple), texts, texts
)
replies = st.builds(
    ct.Reply,
    texts,
    st.lists(tool_calls, max_size=2).map(tuple),
    usages,
    texts,
    texts,
    st.none() | st.just((1, 2)),
    data=data,
    extra=st.just({}) | st.just({"id": "7"}),
)
calls = st.builds(
    ct.Call, texts, texts | st.dictionaries(texts, data, max_size=2), st.just(""), error=st.none() | st.just(("a", "b"))
)
plans = st.lists(calls, max_size=3).map(ct.Plan) | st.just(ct.Plan([ct.Call("a"), ct.Call("b", after=("1",))]))
issues = st.just(()) | st.just((FormatIssue("no_call", "m", 0, 1),))
happened = st.lists(
    st.builds(events.CallStarted, names, names, names, names, names, data, st.floats(0, 9))
    | st.builds(events.CallEnded, observations, texts, st.none() | data)
    | st.builds(events.Asked, texts, texts, texts, st.lists(messages, max_size=3), st.floats(0, 9))
    | st.builds(events.Replied, texts, texts, replies, observations)
    | st.builds(events.Planned, st.integers(1, 9), plans, st.floats(0, 9), issues)
    | st.builds(events.Retried, texts, texts, st.integers(1, 3), texts, texts, st.floats(0, 9)),
    min_size=1,
    max_size=12,
)


def seen(event: Any) -> Any:
    """All of an event: plans are compared by their calls."""
    if isinstance(event, events.Planned):
        return event.round, event.plan.calls, event.plan.edges, event.at, event.issues
    return event


@given(happened)
def test_what_is_unpacked_equals_what_was_packed(given_events: list[Any]) -> None:
    again = PackedEvents(given_events).unpacked()
    assert [seen(event) for event in again] == [seen(event) for event in given_events]
    assert [event.to_json() for event in again] == [event.to_json() for event in given_events]


def test_what_is_no_plain_data_is_kept_as_it_is() -> None:
    class Odd(str):
        pass

    odd = events.CallStarted("r", "1.1", "", "look", "tool", {"at": Odd("here")}, 0.0)
    plain = events.CallStarted("r", "1.2", "", "look", "tool", {"at": "there"}, 0.0)
    again = PackedEvents([odd, plain]).unpacked()
    assert again[0] is odd
    assert again[1] == plain
    assert again[1] is not plain


async def test_a_run_that_nobody_has_looked_at_is_a_few_objects(led_by: Led, pool: ct.Pool) -> None:
    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    async def one() -> ct.Run:
        return await led_by(*ROUNDS, FINAL, "<answer>done</answer>").run("What?", pool=pool)

    await one()
    before = objects()
    kept = [await one() for _ in range(20)]
    assert (objects() - before) / 20 < 40
    assert all(run.answer == "done" for run in kept)
    assert kept[0].setup["strategy"]["name"] == "parallel-rounds"
    assert (objects() - before) / 20 < 40
    assert [len(round_.observations) for round_ in kept[0].rounds] == [4] * 10
    assert kept[0].rounds is kept[0].rounds
    assert kept[0].events is kept[0].events
    assert kept[0].rounds[0].observations[0] in [
        event.observation for event in kept[0].events if isinstance(event, events.CallEnded)
    ]


async def test_a_run_leaves_nothing_that_only_the_garbage_collector_could_free(led_by: Led, pool: ct.Pool) -> None:
    leader = led_by(*ROUNDS, FINAL, "<answer>done</answer>")
    await led_by(*ROUNDS, FINAL, "<answer>done</answer>").run("What?", pool=pool)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await leader.run("What?", pool=pool)
        await asyncio.sleep(0)
        gc.collect()
        left = [type(thing).__name__ for thing in gc.garbage if type(thing).__module__.startswith("concertino")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []


async def test_long_texts_are_shared_by_the_runs_of_a_pool(led_by: Led, pool: ct.Pool) -> None:
    async def prompt() -> str:
        run = await led_by(*ROUNDS, FINAL, "<answer>done</answer>").run("What?", pool=pool)
        asked = next(event for event in run.events if isinstance(event, events.Asked))
        return asked.messages[0].text

    assert await prompt() is await prompt()


async def test_a_packed_run_can_do_all_that_a_run_can(led_by: Led, pool: ct.Pool, tmp_path: Path) -> None:
    told: list[Any] = []
    leader = led_by(*ROUNDS, round_of(("nobody", {})), FINAL, "<answer>done</answer>", strategy=ct.ParallelRounds())
    run = await leader.run("What?", pool=pool, on_event=told.append)
    assert len(told) > 100
    assert [event.to_json() for event in run.events] == [event.to_json() for event in told]
    assert run.statuses()[ct.Status.OK] == 40
    assert len(run.trace.records) == len(told)
    written = ct.Trace.load(run.write_trace(tmp_path / "a.trace.jsonl"))
    assert [record["t"] for record in written.records[-len(told) :]] == [event.to_json()["t"] for event in told]
    assert run.to_json()["rounds"][10]["observations"][0]["status"] == "PARSE_ERR"


async def test_a_run_can_be_dropped_to_its_summary(led_by: Led, pool: ct.Pool, tmp_path: Path) -> None:
    run = await led_by(*ROUNDS, FINAL, "<answer>done</answer>").run("What?", pool=pool, trace=tmp_path)
    summary, gone = run.summary(), weakref.ref(run)
    assert run._packed is not None, "a summary does not unpack the run"
    whole = run.to_json()
    del run
    await asyncio.sleep(0)  # the loop holds what woke this test
    assert gone() is None
    assert (summary.answer, summary.output, summary.stop, summary.ok) == ("done", "done", "answered", True)
    assert (summary.rounds, summary.statuses) == (10, {ct.Status.OK: 40})
    assert summary.usage.calls == 40
    assert summary.path is not None
    assert ct.Trace.load(summary.path).run_id == summary.id
    shown = summary.to_json()
    assert (shown.pop("rounds"), shown.pop("statuses")) == (10, {"OK": 40})
    assert shown == {name: value for name, value in whole.items() if name in shown}


async def test_a_short_run_and_one_without_an_answer_have_a_summary_too(led_by: Led, pool: ct.Pool) -> None:
    run = await led_by("nonsense", "nonsense", "nonsense").run("What?", pool=pool)
    summary = run.summary()
    assert (summary.ok, summary.stop, summary.rounds, summary.statuses) == (False, "format", 0, {})
    assert summary.detail == run.detail


async def test_a_handle_that_is_kept_holds_the_run_and_nothing_of_its_work(led_by: Led, pool: ct.Pool) -> None:
    def at_work() -> list[Any]:
        gc.collect()
        return [thing for thing in gc.get_objects() if type(thing) in (RunLoop, Scope)]

    # Kept during the run: what other tests of this process have left, such as a failure that is reported later.
    before = at_work()
    handle = led_by(*ROUNDS, FINAL, "<answer>done</answer>").start("What?", pool=pool)
    run = await handle
    assert await handle.cancel() is run
    known = {id(thing) for thing in before}
    assert not [thing for thing in at_work() if id(thing) not in known]


async def test_what_was_done_before_a_cancellation_is_in_the_run_of_the_handle(led_by: Led, pool: ct.Pool) -> None:
    waiting = asyncio.Event()

    @ct.tool
    async def wait() -> str:
        """Wait."""
        waiting.set()
        await asyncio.sleep(100)
        return "never"

    handle = led_by(*ROUNDS, round_of(("wait", {}))).start("What?", pool=pool.adding(wait))
    await waiting.wait()
    run = await handle.cancel()
    assert run.stop == "cancelled"
    assert [len(round_.observations) for round_ in run.rounds] == [4] * 10 + [1]
    assert run is await handle.cancel()


async def test_a_crash_that_nobody_waits_for_is_logged(
    led_by: Led, pool: ct.Pool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(self: RunLoop) -> None:
        raise RuntimeError("a fault of concertino")

    monkeypatch.setattr(RunLoop, "_drive", crash)
    handle = led_by(FINAL).start("What?", pool=pool)
    await asyncio.wait({handle.task})
    assert (await handle.cancel()).stop == "crashed"
    del handle
    gc.collect()
    await asyncio.sleep(0)
    assert "exception was never retrieved" in caplog.text


@pytest.mark.parametrize("native", [False, True])
async def test_a_run_with_native_calls_is_packed_too(native: bool) -> None:
    look = fake_tool("look", returns="here", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    if native:
        asks = [ct.Reply("", (ct.ToolCall("look", f'{{"n": {n}}}', f"c{n}"),)) for n in range(12)]
        model = ScriptedModel(*asks, ct.Reply("done"))
    else:
        model = ScriptedModel(*[round_of(("look", {"n": n})) for n in range(12)], "<answer>done</answer>")
    leader = ct.Orchestrator(model, ct.ParallelRounds(native=native, max_rounds=20))
    run = await leader.run("What?", pool=ct.Pool.of(look))
    assert run._packed is not None
    assert len(run._packed.kept) < 6
    assert [call.data for round_ in run.rounds for call in round_.plan.calls] == [{"n": n} for n in range(12)]
