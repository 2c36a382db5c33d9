"""Who gets in, with how much, and what nobody can do to the server."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import openai
import pytest
from concertino.core.known_secrets import Secret, keep_secret
from concertino_serve.api_error import ApiError
from concertino_serve.key_ring import KeyRing
from concertino_serve.serve_settings import ClientKey, Limits, Preset
from waiting import wait_until

from .serving_here import Counter, Here, Scripted, calls_then, pool_of, served, settings_of

ANSWER = "It costs $4."
ASK: Any = [{"role": "user", "content": "What does it cost?"}]
BODY = json.dumps({"model": "helper", "messages": ASK}).encode()
ADA, BOB = Secret("ada-canary-0123456789"), Secret("bob-canary-0123456789")


async def sent(here: Here, text: bytes, seconds: float = 20.0) -> bytes:
    """What comes back on a bare connection."""
    port = int(here.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    try:
        return await asyncio.wait_for(reader.read(), seconds)
    finally:
        writer.close()


def request(here: Here, path: str = "/v1/models", method: str = "GET", body: bytes = b"", **headers: str) -> bytes:
    given = {"host": here.url[7:], "connection": "close"}
    if body:
        given |= {"content-type": "application/json", "content-length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- names, pages, paths -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "",
    ],
)
async def test_a_request_for_a_foreign_name_is_refused(host: str, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        assert status(await sent(here, request(here, host=host))) in (400, 421)
        assert status(await sent(here, request(here))) == 200


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"}],
)
async def test_the_page_of_another_site_is_refused_before_anything_runs(headers: Any, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        asked = request(here, "/v1/chat/completions", "POST", BODY, **headers)
        assert status(await sent(here, asked)) == 403
        assert not here.app.serving.hub.runs.list()


async def test_a_page_that_the_settings_name_may_ask(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), origins=("https://chat.example",))
    async with served(settings) as here:
        answer = await sent(here, request(here, origin="https://chat.example", sec_fetch_site="cross-site"))
    assert status(answer) == 200


async def test_a_form_of_a_foreign_page_is_no_request(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        asked = request(here, "/v1/chat/completions", "POST", BODY, content_type="text/plain")
        assert status(await sent(here, asked)) == 415


# -- bodies ------------------------------------------------------------------------------------------------------------


async def test_a_body_that_is_too_long_is_refused_while_it_comes(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), limits=Limits(body_bytes=2000))
    async with served(settings) as here:
        asked = request(here, "/v1/chat/completions", "POST", b" " * 5000)
        assert status(await sent(here, asked)) == 413


async def test_a_body_that_never_ends_is_given_up(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), limits=Limits(body_seconds=0.2))
    async with served(settings) as here:
        asked = request(here, "/v1/chat/completions", "POST", b"{", content_length="500")
        assert status(await sent(here, asked)) == 408


@pytest.mark.parametrize("body", [b"{", b"[]", b"null", b"[" * 100_000, b"\xff\xfe", b'"text"'])
async def test_a_body_that_is_no_object_is_refused(body: bytes, tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        answer = await sent(here, request(here, "/v1/chat/completions", "POST", body))
    assert status(answer) == 400
    assert b"Traceback" not in answer


async def test_two_lengths_are_no_way_to_smuggle_a_request(tmp_path: Path) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)))) as here:
        hidden = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
        asked = request(here, "/v1/chat/completions", "POST", hidden, transfer_encoding="chunked")
        answer = await sent(here, asked)
    assert status(answer) == 400
    assert answer.count(b"HTTP/1.1") == 1


# -- keys --------------------------------------------------------------------------------------------------------------


async def test_without_a_right_key_nothing_is_served_but_health(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=(ClientKey("ada", ADA),))
    async with served(settings) as here:
        for path in ("/v1/models", "/v1/models/helper", "/metrics"):
            for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {ADA}"}):
                answer = await sent(here, request(here, path, **given))
                assert status(answer) == 401
                assert ADA.encode() not in answer
        assert status(await sent(here, request(here, "/health"))) == 200
        assert status(await sent(here, request(here, authorization=f"Bearer {ADA}"))) == 200
        async with here.client("wrong", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="helper", messages=ASK)
        assert not here.app.serving.hub.runs.list()


async def test_a_key_sees_cancels_and_follows_no_run_of_another_key(tmp_path: Path) -> None:
    keys = (ClientKey("ada", ADA), ClientKey("bob", BOB))
    async with served(settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=keys)) as here:
        async with here.client(ADA) as ada:
            got = await ada.responses.create(model="helper", input="What?")
        async with here.client(BOB, max_retries=0) as bob:
            for attempt in (
                bob.responses.retrieve(got.id),
                bob.responses.cancel(got.id),
                bob.responses.delete(got.id),
                bob.responses.create(model="helper", input="And?", previous_response_id=got.id),
            ):
                with pytest.raises(openai.NotFoundError):
                    await attempt
        hub = here.app.serving.hub
        assert hub.get(got.id, "ada").id == got.id
        with pytest.raises(ApiError):
            hub.get(f"../{tmp_path.name}/{got.id}", "ada")


async def test_a_key_joins_no_run_of_another_key(tmp_path: Path) -> None:
    counter = Counter()
    keys = (ClientKey("ada", ADA), ClientKey("bob", BOB))
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=keys, counter=counter)
    async with served(settings) as here:
        ids = set()
        for key in (ADA, BOB, ADA):
            async with here.client(key, default_headers={"idempotency-key": "the same"}) as client:
                ids.add((await client.chat.completions.create(model="helper", messages=ASK)).id)
    assert len(ids) == 2
    assert counter.calls == 2


def kept_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_no_key_is_in_a_log_a_trace_or_the_metrics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keep_secret(ADA)
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=(ClientKey("ada", ADA),))
    with caplog.at_level(logging.DEBUG):
        async with served(settings) as here, here.client(ADA) as client:
            said: Any = [{"role": "user", "content": f"My key is {ADA}."}]
            await client.chat.completions.create(model="helper", messages=said)
            await client.responses.create(model="helper", input=said, instructions=f"Use {ADA}.")
            shown = await sent(here, request(here, "/metrics", authorization=f"Bearer {ADA}"))
    kept = kept_in(tmp_path)
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("concertino"))
    assert ADA.encode() not in kept + shown + ours.encode()
    assert b'concertino_runs_ended_total{stop="answered"} 2' in shown


# -- budgets and rates -------------------------------------------------------------------------------------------------


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def ring(clock: Clock, limits: Limits | None = None, **of_key: Any) -> KeyRing:
    return KeyRing([ClientKey("ada", ADA, **of_key)], limits or Limits(), clock)


def preset(**budget: Any) -> Preset:
    return Preset("helper", pool_of(Scripted(calls_then(ANSWER))), budget=ct.Budget(**budget))


def test_what_is_reserved_and_used_never_passes_the_limit_of_a_day() -> None:
    clock = Clock()
    made = ring(clock, usd_per_day=1.0)
    held = [made.admit("ada", preset(usd=0.4)) for _ in range(3)]
    assert [each.budget.usd for each in held] == pytest.approx([0.4, 0.4, 0.2])
    with pytest.raises(ApiError) as refused:
        made.admit("ada", preset(usd=0.4))
    assert (refused.value.status, refused.value.code) == (429, "insufficient_quota")
    made.settle(held[0], 0.1)
    made.settle(held[0], 0.1)
    assert made.admit("ada", preset(usd=0.4)).budget.usd == pytest.approx(0.3)


def test_a_new_day_brings_new_money_and_says_when() -> None:
    clock = Clock()
    made = ring(clock, usd_per_day=1.0)
    made.settle(made.admit("ada", preset(usd=1.0)), 1.0)
    with pytest.raises(ApiError) as refused:
        made.admit("ada", preset(usd=1.0))
    assert refused.value.retry_after is not None
    clock.now += refused.value.retry_after + 1
    assert made.admit("ada", preset(usd=1.0)).budget.usd == 1.0


def test_a_rate_is_one_of_the_last_minute() -> None:
    clock = Clock()
    made = ring(clock, per_minute=2)
    for _ in range(2):
        made.settle(made.admit("ada", preset()), 0.0)
    with pytest.raises(ApiError) as refused:
        made.admit("ada", preset())
    assert refused.value.retry_after == pytest.approx(60)
    clock.now += 61
    made.admit("ada", preset())


def test_runs_at_once_are_limited_for_a_key_and_for_the_server() -> None:
    made = ring(Clock(), runs=1)
    held = made.admit("ada", preset())
    with pytest.raises(ApiError, match="this key"):
        made.admit("ada", preset())
    made.settle(held, 0.0)
    made.admit("ada", preset())
    full = KeyRing([], Limits(runs=1))
    full.admit("", preset())
    with pytest.raises(ApiError, match="the server") as refused:
        full.admit("", preset())
    assert int(refused.value.headers["retry-after"]) >= 1


async def test_the_client_waits_as_it_is_told_and_then_gets_its_answer(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=(ClientKey("ada", ADA, runs=1),), pause=0.3)
    async with served(settings) as here, here.client(ADA, max_retries=0) as client:
        first = asyncio.create_task(client.chat.completions.create(model="helper", messages=ASK))
        await wait_until(lambda: here.app.serving.hub.active)
        with pytest.raises(openai.RateLimitError) as refused:
            await client.chat.completions.create(model="helper", messages=ASK)
        assert (await first).choices[0].message.content == ANSWER
    assert refused.value.response.headers["retry-after"] == "2"


async def test_used_money_is_remembered_over_a_restart(tmp_path: Path) -> None:
    key = ClientKey("ada", ADA, usd_per_day=0.5)
    settings = settings_of(tmp_path, Scripted(calls_then(ANSWER)), keys=(key,), preset={"budget": ct.Budget(usd=0.4)})
    async with served(settings) as here, here.client(ADA) as client:
        await client.chat.completions.create(model="helper", messages=ASK)
    async with served(replace(settings)) as here:
        held = here.app.serving.ring.admit("ada", settings.presets["helper"])
        again = here.app.serving.ring.admit("ada", settings.presets["helper"])
    assert held.budget.usd == pytest.approx(0.4)
    assert again.budget.usd == pytest.approx(0.5 - 0.4 - 0.0104)
