"""The pages of runs under `/view`: who sees which run, what a ticket is good for, and what a browser shows."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from chromium import Browser, headless_chromium
from concertino.core.known_secrets import Secret
from concertino_serve.api_error import ApiError
from concertino_serve.key_ring import KeyRing
from concertino_serve.serve_settings import ClientKey, Limits, ServeSettings
from hostile_traces import write_trace
from made_traces import records_of

from .serving_here import Here, Scripted, calls_then, served, settings_of
from .test_serve_page import in_thread, until

__all__ = ["in_thread"]
ADA, BOB = Secret("view-canary-ada-0123456789"), Secret("view-canary-bob-0123456789")
KEYS = (ClientKey("ada", ADA), ClientKey("bob", BOB))
Serve = Callable[[ServeSettings], str]


@asynccontextmanager
async def web_of(here: Here, key: str = "", ticket: bool = True) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser without scripts, with a ticket if it has a key."""
    async with httpx2.AsyncClient(verify=False, base_url=here.url, timeout=30) as web:
        if key and ticket:
            got = await web.post("/view/key", headers={"authorization": f"Bearer {key}"})
            assert got.status_code == 204
        yield web


async def rows_of(web: httpx2.AsyncClient) -> list[str]:
    got = await web.get("/view/api/runs")
    assert got.status_code == 200, got.text
    return [row["id"] for row in got.json()["runs"]]


async def test_a_server_without_keys_shows_its_runs_a_run_and_two_compared(tmp_path: Path) -> None:
    write_trace(tmp_path / "cli.trace.jsonl", records_of())
    async with served(settings_of(tmp_path, Scripted(calls_then("hello")))) as here, here.client() as client:
        run = (await client.responses.create(model="helper", input="What?")).id
        async with web_of(here) as web:
            assert set(await rows_of(web)) == {run, "cli"}
            data = (await web.get(f"/view/api/runs/{run}/data")).json()
            bodies = (await web.get(f"/view/api/runs/{run}/bodies?from=0&to=1")).json()
            compared = (await web.get(f"/view/api/compare?a={run}&b=cli")).json()
            page = await web.get(f"/view/run/{run}")
            kept = await web.get(f"/view/api/runs/{run}/page")
            replays = (await web.get("/view/api/replay")).json()
    assert (data["head"]["answer"], data["head"]["over"]) == ("hello", True)
    assert len(bodies) == 1
    assert compared["differences"]
    assert '"/view/static/server_main.js"' in page.text
    assert "hello" not in page.text
    assert kept.headers["content-disposition"] == f'attachment; filename="{run}.trace.jsonl.html"'
    assert replays == {"strategies": []}


async def test_a_client_sees_the_runs_of_its_key_alone(tmp_path: Path) -> None:
    write_trace(tmp_path / "cli.trace.jsonl", records_of())
    settings = settings_of(tmp_path, Scripted(calls_then("hello")), keys=KEYS)
    async with served(settings) as here, here.client(ADA) as ada, here.client(BOB) as bob:
        of_ada = (await ada.responses.create(model="helper", input="What?")).id
        of_bob = (await bob.responses.create(model="helper", input="Who?")).id
        async with web_of(here, ADA) as web:
            assert await rows_of(web) == [of_ada]
            for path in ("data", "bodies", "page", "events"):
                assert (await web.get(f"/view/api/runs/{of_bob}/{path}")).status_code == 404
                assert (await web.get(f"/view/api/runs/cli/{path}")).status_code == 404
            assert (await web.get(f"/view/api/compare?a={of_ada}&b={of_bob}")).status_code == 404
            assert (await web.get(f"/view/api/runs/{of_ada}/data")).status_code == 200
        async with web_of(here, BOB) as web:
            assert await rows_of(web) == [of_bob]


@pytest.mark.parametrize(
    "path",
    ["/api/runs", "/%61pi/runs", "/api/runs/x/data", "/api/compare?a=x&b=x", "/api/replay", "/other", "//api/runs"],
)
async def test_without_a_key_there_is_nothing_but_empty_pages(tmp_path: Path, path: str) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("hello")), keys=KEYS)
    async with served(settings) as here, web_of(here) as web:
        refused = await web.get(f"/view{path}")
        wrong = await web.get(f"/view{path}", headers={"authorization": "Bearer wrong"})
        ticket = await web.get(f"/view{path}", headers={"cookie": f"{cookie_of(here)}=9999999999.00"})
        shells = [await web.get(f"/view{each}") for each in ("", "/", "/run/x", "/compare", "/static/server_main.js")]
    assert {refused.status_code, wrong.status_code, ticket.status_code} == {401}
    assert tmp_path.name not in refused.text
    assert {each.status_code for each in shells} == {200}


def cookie_of(here: Here) -> str:
    return f"concertino-view-{here.url.rpartition(':')[2]}"


async def test_a_ticket_holds_no_key_and_opens_nothing_but_the_pages(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("hello")), keys=KEYS)
    async with served(settings) as here, web_of(here, ADA, ticket=False) as web:
        given = await web.post("/view/key", headers={"authorization": f"Bearer {ADA}"})
        refused = await web.post("/view/key", headers={"authorization": "Bearer wrong"})
        api = await web.get("/v1/models", headers={"cookie": given.headers["set-cookie"].partition(";")[0]})
    cookie = given.headers["set-cookie"].lower()
    assert str(ADA) not in cookie
    assert all(part in cookie for part in ("httponly", "samesite=strict", "path=/view", "max-age=43200"))
    assert (refused.status_code, api.status_code) == (401, 401)
    assert "set-cookie" not in refused.headers


def test_a_ticket_ends_with_its_time_and_with_its_key() -> None:
    now = 1_000_000.0
    ring = KeyRing(KEYS, Limits(), lambda: now)
    ticket, seconds = ring.ticket("ada")
    assert ring.owner_of_ticket(ticket) == "ada"
    assert KeyRing(KEYS, Limits(), lambda: now).owner_of_ticket(ticket) == "ada"  # of another process
    until, _, signed = ticket.partition(".")
    for wrong in ("", ".", "x", f"{int(until) + 1}.{signed}", f"{until}.{signed[:-1]}", f"{until}.é", f"٣.{signed}"):
        with pytest.raises(ApiError, match="ticket"):
            ring.owner_of_ticket(wrong)
    with pytest.raises(ApiError, match="too old"):
        KeyRing(KEYS, Limits(), lambda: now + seconds + 1).owner_of_ticket(ticket)
    with pytest.raises(ApiError):
        KeyRing(KEYS[1:], Limits(), lambda: now).owner_of_ticket(ticket)


@pytest.mark.parametrize(
    "headers",
    [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}],
    ids=["host", "origin", "site"],
)
async def test_a_foreign_page_gets_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    async with served(settings_of(tmp_path, Scripted(calls_then("hello")))) as here, web_of(here) as web:
        for path in ("/view", "/view/api/runs", "/view/static/page.css"):
            assert (await web.get(path, headers=headers)).status_code in (403, 421)
        assert (await web.post("/view/key", headers=headers)).status_code in (403, 421)


async def test_a_name_never_becomes_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    write_trace(tmp_path / "secret.trace.jsonl", records_of())
    async with served(settings_of(folder, Scripted(calls_then("hello")))) as here, web_of(here) as web:
        for name in ("..%2fsecret", "%2e%2e%2fsecret", "..%5csecret", "secret%00"):
            assert (await web.get(f"/view/api/runs/{name}/data")).status_code == 404
        assert (await web.get("/view/static/..%2fview_pages.py")).status_code == 404


async def test_changes_are_told_until_the_run_is_over(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "live.trace.jsonl", records_of())
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    seen: list[dict[str, Any]] = []
    async with (
        served(settings_of(tmp_path, Scripted(calls_then("hello")))) as here,
        web_of(here) as web,
        web.stream("GET", "/view/api/runs/live/events?from=0") as stream,
    ):
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[6:]))
                if len(seen) == 1:
                    with path.open("ab") as file:
                        file.write(b"".join(lines[6:]))
    assert [patch["version"] for patch in seen] == [5, len(lines) - 1]
    assert seen[-1]["head"]["over"]


async def test_a_stop_waits_for_no_page_that_follows(tmp_path: Path) -> None:
    write_trace(tmp_path / "dead.trace.jsonl", records_of()[:-1])
    async with httpx2.AsyncClient(verify=False) as web:
        async with served(settings_of(tmp_path, Scripted(calls_then("hello"))), drain=60.0) as here:
            request = web.build_request("GET", f"{here.url}/view/api/runs/dead/events")
            follows = await web.send(request, stream=True)
            assert follows.status_code == 200
            began = time.monotonic()
        assert time.monotonic() - began < 30  # the drain is 60 s
        await follows.aclose()


async def test_who_leaves_gives_the_place_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concertino_view.view_pages._MOST_FOLLOWED", 1)
    write_trace(tmp_path / "dead.trace.jsonl", records_of()[:-1])
    async with served(settings_of(tmp_path, Scripted(calls_then("hello")))) as here, web_of(here) as web:
        for _ in range(3):
            async with web.stream("GET", "/view/api/runs/dead/events") as stream:
                assert stream.status_code == 200
                assert (await web.get("/view/api/runs/dead/events")).status_code == 503
            for _ in range(200):
                async with web.stream("GET", "/view/api/runs/dead/events") as again:
                    status = again.status_code
                if status == 200:
                    break
                await asyncio.sleep(0.05)
            assert status == 200
            await asyncio.sleep(0.3)


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from headless_chromium(tmp_path_factory.mktemp("profile"))


@pytest.mark.slow
def test_the_page_asks_for_the_key_once_and_shows_the_runs(browser: Browser, in_thread: Serve, tmp_path: Path) -> None:
    url = in_thread(settings_of(tmp_path, Scripted(calls_then("hello")), keys=KEYS))
    done = threading.Event()

    def ask() -> None:
        headers = {"authorization": f"Bearer {ADA}"}
        httpx2.post(f"{url}/v1/responses", json={"model": "helper", "input": "What?"}, headers=headers, verify=False)
        done.set()

    threading.Thread(target=ask).start()
    assert done.wait(30)
    browser.open(f"{url}/view")
    until(browser, "document.querySelector('input[type=password]') !== null")
    browser.value("document.querySelector('input[type=password]').value = 'wrong'")
    browser.value("document.querySelector('.bar button').click()")
    until(browser, "document.querySelector('.error').textContent.includes('does not know')")
    browser.value(f"document.querySelector('input[type=password]').value = {str(ADA)!r}")
    browser.value("document.querySelector('.bar button').click()")
    until(browser, "document.querySelectorAll('tbody tr').length === 1")
    assert browser.value("document.cookie") == ""
    browser.value("document.querySelector('tbody a').click()")
    until(browser, "document.querySelector('.stop')?.textContent === 'answered'")
    until(browser, "document.querySelectorAll('.row.item').length > 1")
    assert browser.value("document.querySelector('nav a').getAttribute('href')") == "/view/"
    assert browser.told("Runtime.exceptionThrown") == []


@pytest.mark.slow
def test_a_run_is_opened_from_the_chat_page(browser: Browser, in_thread: Serve, tmp_path: Path) -> None:
    browser.open(in_thread(settings_of(tmp_path, Scripted(calls_then("hello")))))
    until(browser, "document.querySelectorAll('#model option').length === 1")
    browser.value("window.open = (address) => { location.href = address; }")
    browser.value("document.getElementById('question').value = 'What?'; document.getElementById('ask').click()")
    until(browser, "document.querySelectorAll('.note button').length === 2")
    browser.value("document.querySelector('.note button').click()")
    until(browser, "document.querySelector('pre.answer')?.textContent === 'hello'")
    assert browser.value("location.pathname.startsWith('/view/run/')")
