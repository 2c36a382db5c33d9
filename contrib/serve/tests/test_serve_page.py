"""The chat page: it needs no key, nothing foreign runs in it, and it asks, shows calls, stops and saves."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import concertino as ct
import httpx2
import pytest
from chromium import Browser, headless_chromium
from concertino.core.known_secrets import Secret
from concertino_serve.serve_settings import ClientKey, ServeSettings
from page_attacks import PAGE_ATTACKS

from .serving_here import Counter, Scripted, calls_then, served, settings_of
from .test_serve_client_tools import careful

Serve = Callable[[ServeSettings], str]
KEY = Secret("page-canary-0123456789")


async def test_the_page_is_small_holds_no_secret_and_runs_nothing_but_its_own_script(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("hello")), keys=(ClientKey("ada", KEY),))
    async with served(settings) as here, httpx2.AsyncClient(verify=False) as client:
        pages = [await client.get(f"{here.url}{path}") for path in ("/", "/static/chat.js", "/static/chat.css")]
        other = await client.get(f"{here.url}/static/..%2fgate.py")
    assert [page.status_code for page in pages] == [200, 200, 200]
    assert sum(len(page.content) for page in pages) < 10_000
    assert all("script-src 'self'" in page.headers["content-security-policy"] for page in pages)
    assert all(KEY.encode() not in page.content for page in pages)
    assert "innerHTML" not in pages[1].text
    assert other.status_code == 404


async def test_a_run_is_saved_as_a_page_by_its_owner_alone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, Scripted(calls_then("hello")), keys=(ClientKey("ada", KEY),))
    async with served(settings) as here, here.client(KEY) as client:
        got = await client.responses.create(model="helper", input="What?")
        async with httpx2.AsyncClient(verify=False) as web:
            address = f"{here.url}/v1/responses/{got.id}/trace"
            refused = await web.get(address)
            page = await web.get(address, headers={"authorization": f"Bearer {KEY}"})
    assert refused.status_code == 401
    assert page.headers["content-disposition"] == f'attachment; filename="{got.id}.html"'
    assert "hello" in page.text


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from headless_chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture
def in_thread() -> Iterator[Serve]:
    """Serves some settings on a thread of their own, and gives the address."""
    address: queue.Queue[str] = queue.Queue()
    end = threading.Event()
    threads = []

    def begin(settings: ServeSettings) -> str:
        async def serve() -> None:
            async with served(settings) as here:
                address.put(here.url)
                await asyncio.to_thread(end.wait)

        threads.append(threading.Thread(target=asyncio.run, args=(serve(),)))
        threads[-1].start()
        return address.get(timeout=30)

    yield begin
    end.set()
    for thread in threads:
        thread.join()


def until(browser: Browser, expression: str) -> None:
    ends = time.monotonic() + 30
    while not browser.value(expression):
        assert time.monotonic() < ends, f"{expression} did not become true"
        time.sleep(0.02)


def ask(browser: Browser, text: str) -> None:
    browser.value(f"document.getElementById('question').value = {text!r}; document.getElementById('ask').click()")


@pytest.mark.slow
def test_it_asks_shows_calls_and_answers_and_nothing_comes_alive(
    browser: Browser, in_thread: Serve, tmp_path: Path
) -> None:
    attack = " ".join(PAGE_ATTACKS)
    url = in_thread(settings_of(tmp_path, Scripted(calls_then(attack), piece=400)))
    browser.open(url)
    until(browser, "document.querySelectorAll('#model option').length === 1")
    for turn in (1, 2):
        ask(browser, "<img src=x onerror='window.hit=1'>")
        until(browser, f"document.querySelectorAll('.note button').length === {2 * turn}")
    assert browser.value("document.querySelector('.answer').textContent") == attack
    assert browser.value("document.querySelectorAll('.call.completed').length") == 2
    assert browser.value(
        "[...document.querySelectorAll('#talk *')].map(e => e.tagName).every(t => "
        "['ARTICLE', 'P', 'BUTTON'].includes(t))"
    )
    assert browser.value("window.hit") is None
    assert browser.told("Runtime.exceptionThrown") == []
    assert [event["entry"]["text"] for event in browser.told("Log.entryAdded")] == []


@pytest.mark.slow
@pytest.mark.parametrize(("button", "said", "calls"), [("Approve", "paid", 1), ("Deny", "not paid", 0)])
def test_a_call_that_needs_approval_waits_for_the_reader(
    browser: Browser, in_thread: Serve, tmp_path: Path, button: str, said: str, calls: int
) -> None:
    counter = Counter()
    browser.open(in_thread(careful(tmp_path, counter)))
    until(browser, "document.querySelectorAll('#model option').length === 1")
    ask(browser, "Pay.")
    until(browser, "document.querySelectorAll('.call.waits button').length === 2")
    assert browser.value("document.querySelector('.call.waits').textContent").startswith('pay {"usd":3.0}')
    assert counter.calls == 0
    browser.value(
        f"[...document.querySelectorAll('.call.waits button')].find(b => b.textContent === '{button}').click()"
    )
    until(browser, f"document.querySelector('.answer')?.textContent === '{said}'")
    assert counter.calls == calls
    until(browser, "!document.getElementById('ask').disabled")
    ask(browser, "Again.")
    until(browser, "document.querySelectorAll('.call.waits button').length === 2")
    assert browser.told("Runtime.exceptionThrown") == []


@pytest.mark.slow
def test_it_stops_a_run(browser: Browser, in_thread: Serve, tmp_path: Path) -> None:
    url = in_thread(settings_of(tmp_path, Scripted(calls_then("never")), pause=60))
    browser.open(url)
    until(browser, "document.querySelectorAll('#model option').length === 1")
    ask(browser, "What?")
    until(browser, "!document.getElementById('stop').disabled")
    browser.value("document.getElementById('stop').click()")
    until(browser, "document.querySelector('.note')?.textContent.includes('cancelled')")
    [path] = ct.TraceStore(tmp_path).paths()
    assert (ct.Trace.load(path).end or {}).get("stop") == "cancelled"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_window(browser: Browser, in_thread: Serve, tmp_path: Path, width: int) -> None:
    url = in_thread(settings_of(tmp_path, Scripted(calls_then("long" * 200))))
    browser.show(width=width)
    browser.open(url)
    until(browser, "document.querySelectorAll('#model option').length === 1")
    ask(browser, "What?")
    until(browser, "document.querySelectorAll('.note button').length === 2")
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
    browser.screenshot(tmp_path / f"chat-{width}.png", dark=width == 390, width=width)
    assert (tmp_path / f"chat-{width}.png").stat().st_size > 1000
