"""Workers that share a folder: what one has begun the others read, join, cancel and continue, within one limit."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import openai
import pytest
from concertino.core.known_secrets import Secret
from concertino_serve import response_routes
from concertino_serve.run_ledger import RunLedger
from concertino_serve.serve_settings import ClientKey, Limits, ServeSettings
from concertino_serve.server_metrics import metrics_text
from concertino_serve.worker_group import ledger_file
from waiting import wait_until

from .serving_here import Counter, Here, Scripted, calls_then, served, settings_of
from .test_serve_client_tools import FLAT, calls_both

ANSWER = "It costs $4, and that is much for a kilo of kiwis."
ASK: Any = [{"role": "user", "content": "What does it cost?"}]
ADA = "ada-canary-0123456789"


@contextlib.asynccontextmanager
async def two_workers(settings: ServeSettings) -> AsyncIterator[tuple[Here, Here]]:
    """Two workers of one server, each with its own address."""
    assert settings.traces is not None
    settings.traces.mkdir(exist_ok=True)
    first, second = (RunLedger(ledger_file(settings.traces), name) for name in ("1", "2"))
    async with served(settings, ledger=first) as one, served(replace(settings), ledger=second) as other:
        yield one, other


async def stream_of(here: Here, run_id: str, after: int = -1) -> bytes:
    address = f"{here.url}/v1/responses/{run_id}?stream=true&starting_after={after}"
    async with httpx2.AsyncClient(verify=False, timeout=30) as web:
        return (await web.get(address)).content


class Halting(Scripted):
    """Says no more after half of its answer until it may."""

    def __init__(self) -> None:
        super().__init__(calls_then(ANSWER))
        self.may = asyncio.Event()

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        said = ""
        async for piece in super().stream(request):
            said += piece if isinstance(piece, str) else ""
            if "and that" in said:
                await self.may.wait()
            yield piece


async def test_a_run_of_one_worker_is_streamed_by_another_while_it_goes_on(tmp_path: Path) -> None:
    model = Halting()
    async with two_workers(settings_of(tmp_path / "runs", model)) as (one, other), one.client() as first:
        stream = await first.responses.create(model="helper", input="?", stream=True)
        begun: Any = await anext(aiter(stream))
        async with other.client() as second:
            kinds = []
            async for event in await second.responses.retrieve(begun.response.id, stream=True):
                kinds.append(event.type)
                if event.type == "response.output_text.delta" and not model.may.is_set():
                    assert (await second.responses.retrieve(begun.response.id)).status == "in_progress"
                    model.may.set()
            done = await second.responses.retrieve(begun.response.id)
        streams = [await stream_of(here, begun.response.id) for here in (one, other)]
        await stream.close()
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") > 2
    assert (done.status, done.output_text) == ("completed", ANSWER)
    assert streams[0] == streams[1]


async def test_a_run_of_one_worker_is_cancelled_by_another(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER)), pause=60.0)
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        begun = await first.responses.create(model="helper", input="?", background=True)
        await wait_until(lambda: one.app.serving.hub.active)
        assert (await second.responses.cancel(begun.id)).status == "cancelled"
        assert not one.app.serving.hub.active
        assert other.app.serving.ring.running == 0
        assert (await first.responses.retrieve(begun.id)).status == "cancelled"
        await second.responses.delete(begun.id)
        with pytest.raises(openai.NotFoundError):
            await first.responses.retrieve(begun.id)


async def test_the_same_key_sent_to_both_workers_at_once_is_one_run(tmp_path: Path) -> None:
    counter = Counter()
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER)), counter=counter, pause=0.05)
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        asked = [
            client.chat.completions.create(model="helper", messages=ASK, extra_headers={"idempotency-key": f"k{key}"})
            for key in range(8)
            for client in (first, second)
        ]
        found = await asyncio.gather(*asked)
        later = await second.chat.completions.create(
            model="helper", messages=ASK, extra_headers={"idempotency-key": "k0"}
        )
    assert [each.id for each in found[::2]] == [each.id for each in found[1::2]]
    assert {each.choices[0].message.content for each in found} == {ANSWER}
    assert later.id == found[0].id
    assert counter.calls == 8


async def test_a_worker_that_is_a_moment_late_joins_the_run_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter, named = Counter(), {"idempotency-key": "k"}
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER)), counter=counter)
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        known = await first.chat.completions.create(model="helper", messages=ASK, extra_headers=named)
        digests = other.app.serving.hub._digests
        find, before = digests.find, [None, None]  # what it sees until it is to begin one
        monkeypatch.setattr(digests, "find", lambda digest: before.pop() if before else find(digest))
        found = await second.chat.completions.create(model="helper", messages=ASK, extra_headers=named)
    assert (found.id, counter.calls, before) == (known.id, 1, [])


async def test_the_limits_of_a_key_hold_for_both_workers_together(tmp_path: Path) -> None:
    key = ClientKey("ada", Secret(ADA), usd_per_day=0.05, per_minute=3)
    budget = {"budget": ct.Budget(usd=0.03)}
    settings = settings_of(
        tmp_path / "runs", Scripted(calls_then(ANSWER)), keys=(key,), preset=budget, limits=Limits(runs=2)
    )
    async with two_workers(settings) as (one, other):
        rings, preset = [here.app.serving.ring for here in (one, other)], settings.presets["helper"]
        held = [ring.admit("ada", preset) for ring in rings]
        assert [each.budget.usd for each in held] == pytest.approx([0.03, 0.02])
        for ring in rings:
            with pytest.raises(Exception, match="the server runs as much as it may"):
                ring.admit("ada", preset)
        rings[0].settle(held[0], 0.01)
        third = rings[1].admit("ada", preset)
        assert third.budget.usd == pytest.approx(0.02)
        rings[1].settle(third, 0.0)
        with pytest.raises(Exception, match="3 runs a minute"):
            rings[0].admit("ada", preset)
        rings[1].settle(held[1], 0.02)
        assert [ring.account("ada") for ring in rings] == [(0, 0.0, pytest.approx(0.03))] * 2


async def test_a_run_that_waits_for_its_client_is_continued_by_another_worker(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "runs", Scripted(calls_both))
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        asked: Any = await first.responses.create(model="helper", input="?", tools=FLAT)
        [call] = [item for item in asked.output if item.type == "function_call"]
        result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        done = await asyncio.gather(
            *(client.responses.create(model="helper", input=result, tools=FLAT) for client in (second, first))
        )
        assert len(one.app.serving.hub.runs.list()) == 1
        assert one.app.serving.ring.running == 0
    assert done[0].id == done[1].id == f"{asked.id}.1"
    assert done[0].status == "completed"


async def test_a_client_of_another_worker_keeps_a_run_whose_first_client_leaves(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER), pause=0.03))
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        stream = await first.responses.create(model="helper", input="?", stream=True)
        begun: Any = await anext(aiter(stream))
        reading = asyncio.create_task(stream_of(other, begun.response.id))
        ledger = one.app.serving.hub.ledger
        await wait_until(lambda: ledger.is_read(begun.response.id))
        await stream.close()
        assert b"response.completed" in await reading
        assert (await second.responses.retrieve(begun.response.id)).status == "completed"
        assert not ledger.is_read(begun.response.id)


async def test_a_conversation_has_one_response_at_a_time_in_all_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both have looked before either had begun one.
    monkeypatch.setattr(response_routes, "blocked", lambda *_: None)
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER)), pause=0.1)
    async with two_workers(settings) as (one, other), one.client(max_retries=0) as first:
        kept = await first.conversations.create()
        async with other.client(max_retries=0) as second:
            asked = [
                client.responses.create(model="helper", input=f"{n}?", conversation=kept.id)
                for n, client in enumerate((first, second))
            ]
            got = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in got if isinstance(each, openai.ConflictError)]
        assert len(refused) == 1, got
        assert len(one.app.serving.hub.runs.list()) == 1


async def test_the_counts_are_those_of_all_workers(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "runs", Scripted(calls_then(ANSWER)))
    async with two_workers(settings) as (one, other), one.client() as first, other.client() as second:
        for client in (first, second, second):
            await client.chat.completions.create(model="helper", messages=ASK)
        await wait_until(lambda: metrics_text(one.app.serving).count('_begun_total{preset="helper"} 3'))


async def test_what_a_dead_worker_held_is_held_until_another_one_adopts_its_run(tmp_path: Path) -> None:
    """The other worker is dead from the start: it has a place, and a run that never began."""
    key = ClientKey("ada", Secret(ADA), usd_per_day=1.0)
    settings = settings_of(
        tmp_path / "runs", Scripted(calls_then(ANSWER)), keys=(key,), preset={"budget": ct.Budget(usd=0.4)}
    )
    async with two_workers(settings) as (one, _):
        dead = RunLedger(ledger_file(tmp_path / "runs"), "3")
        dead.hold("run-3", "ada", 0.4)
        assert dead.take("run-4")
        serving = one.app.serving
        assert await serving.hub.adopt() == 0
        assert serving.ring.account("ada").reserved == 0.4, "a worker that lives keeps what it has"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), serving.hub.locks.alone("run-4"):
                raise AssertionError("two workers change one run")
        dead.abandon("3")
        await wait_until(lambda: serving.ring.account("ada").reserved == 0.0)
        assert serving.ring.account("ada").used == 0.0
        async with serving.hub.locks.alone("run-4"):
            pass
