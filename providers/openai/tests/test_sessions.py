"""Connections: one session per event loop, shared, closed with its last user; no limit of its own."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from concertino import ChatRequest, Message, ProviderError
from concertino_openai.client import Embedder, OpenAIModel, sessions
from waiting import wait_until
from yarl import URL

from .fault_server import FaultServer, fault_server

HI = ChatRequest([Message("user", "hi")])


def open_sessions() -> int:
    return sum(not shared.session.closed for shared in sessions._shared.values())


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as server:
        yield server


async def test_models_share_a_session_that_is_closed_with_its_last_user(server: FaultServer) -> None:
    models = [OpenAIModel(model=name, base_url=server.url("good")) for name in "abc"]
    embedder = Embedder(model="e", base_url=server.url("good"))
    assert open_sessions() == 0
    for each in models:
        await each.chat(HI)
    sessions = {each._client._sessions.get() for each in models} | {embedder._client._sessions.get()}
    assert len(sessions) == 1
    for each in (*models, embedder):
        assert open_sessions() == 1
        await each.close()
    assert open_sessions() == 0
    assert all(session.closed for session in sessions)


async def test_closing_twice_or_unused_is_harmless_and_a_closed_model_opens_again(server: FaultServer) -> None:
    one, other = (OpenAIModel(model="m", base_url=server.url("good")) for _ in range(2))
    await one.close()
    await one.chat(HI)
    await other.chat(HI)
    await one.close()
    await one.close()
    assert open_sessions() == 1
    assert (await one.chat(HI)).text == "Hello"
    await other.close()
    assert (await one.chat(HI)).text == "Hello"
    await one.close()
    assert open_sessions() == 0


def test_one_model_serves_one_event_loop_after_another() -> None:
    one = OpenAIModel(model="m", base_url="http://127.0.0.1:1/v1")

    async def work() -> str:
        async with fault_server() as server:
            one._client.chat_url = URL(server.url("good") + "/chat/completions")
            text = (await one.chat(HI)).text
            await one.close()
            return text

    asyncio.run(one.close())
    with pytest.raises(ProviderError):
        asyncio.run(refused(one))
    assert [asyncio.run(work()) for _ in range(2)] == ["Hello", "Hello"]
    assert open_sessions() == 0


async def refused(model: OpenAIModel) -> None:
    """Ask, which fails, and close."""
    try:
        await model.chat(HI)
    finally:
        await model.close()


def test_a_model_closes_the_session_of_another_loop_that_still_runs() -> None:
    """Asked in two loops at once, of two threads; closed in one of them."""
    urls: list[str] = []
    asked, closed = threading.Event(), threading.Event()
    models: list[OpenAIModel] = []

    async def other_loop() -> None:
        async with fault_server() as server:
            urls.append(server.url("good"))
            models.append(OpenAIModel(model="m", base_url=server.url("good")))
            assert (await models[0].chat(HI)).text == "Hello"
            asked.set()
            await asyncio.to_thread(closed.wait, 10)

    async def this_loop() -> None:
        before = open_sessions()
        assert (await models[0].chat(HI)).text == "Hello"
        assert open_sessions() == before + 1
        await models[0].close()
        assert open_sessions() == before - 1

    thread = threading.Thread(target=lambda: asyncio.run(other_loop()), daemon=True)
    thread.start()
    assert asked.wait(10)
    asyncio.run(this_loop())
    closed.set()
    thread.join(10)
    assert not thread.is_alive()


async def test_many_requests_at_once_do_not_wait_for_each_other(server: FaultServer) -> None:
    one = OpenAIModel(model="m", base_url=server.url("hang"))
    asked = [asyncio.ensure_future(one.chat(HI)) for _ in range(150)]
    await wait_until(lambda: server.seen["hang"] == 150)
    for each in asked:
        each.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await one.close()


async def test_connections_are_used_again(server: FaultServer) -> None:
    one = OpenAIModel(model="m", base_url=server.url("good"))
    for _ in range(5):
        await one.chat(HI)
    connector = one._client._sessions.get().connector
    assert connector is not None
    kept = sum(len(connections) for connections in connector._conns.values())
    assert kept == 1
    await one.close()


async def test_nothing_is_left_open_when_a_model_is_closed(server: FaultServer) -> None:
    one = OpenAIModel(model="m", base_url=server.url("good"))
    await asyncio.gather(*(one.chat(HI) for _ in range(8)))
    await one.close()
    del one
    gc.collect()  # an unclosed session or transport would warn here, and a warning is an error


def test_importing_the_package_imports_no_aiohttp() -> None:
    code = (
        "import sys, concertino_openai as o; o.model('m', server='vllm'); o.concertino_models();"
        "assert 'aiohttp' not in sys.modules, 'aiohttp'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_closing_a_model_lets_the_request_under_way_end() -> None:
    async def late(request: web.Request) -> web.Response:
        await asyncio.sleep(0.5)
        choice = {"index": 0, "message": {"role": "assistant", "content": "late"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", late)
    async with TestServer(app) as server:
        model = OpenAIModel(model="m", base_url=str(server.make_url("/v1")), stream=False)
        running = asyncio.ensure_future(model.chat(HI))
        await asyncio.sleep(0.1)
        await model.close()
        assert open_sessions() == 1
        assert (await asyncio.wait_for(running, 20)).text == "late"
        assert open_sessions() == 0
