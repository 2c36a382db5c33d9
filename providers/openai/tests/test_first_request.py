"""The first request of a process: what the client needs is imported beside the event loop, not on it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from concertino import ChatRequest, Message, Reply
from concertino_openai import model
from concertino_openai.late import LateModel

from .fault_server import fault_server

HI = ChatRequest([Message("user", "hi")])

FIRST = """
import asyncio, sys, threading
import concertino as ct

importers = {}

class Watch:
    def find_spec(self, name, path=None, target=None):
        importers.setdefault(name, threading.current_thread())

sys.meta_path.insert(0, Watch())
run = asyncio.run(ct.Orchestrator("openai/gpt-5.4-mini").run("hi"))
print(run.answer, importers["aiohttp.connector"] is threading.main_thread())
print([event.where for event in run.events if type(event).__name__ == "Stalled"])
"""


async def test_the_first_request_of_a_process_imports_the_http_client_in_a_thread_and_blocks_no_loop() -> None:
    async with fault_server() as server:
        variables = {"OPENAI_API_KEY": "key-of-the-test", "OPENAI_BASE_URL": server.url("good")}
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", FIRST],
            env={**variables, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (done.stdout.splitlines(), done.stderr) == (["Hello False", "[]"], "")


async def test_requests_that_come_first_at_once_share_one_client() -> None:
    async with fault_server() as server:
        late = model("m", base_url=server.url("good"), key_env="").factory()
        assert isinstance(late, LateModel)
        assert late.model is None
        replies = await asyncio.gather(late.chat(HI), late.chat(HI), _streamed(late))
        made = late.model
        assert [reply.text for reply in replies] == ["Hello"] * 3
        assert (await late.chat(HI)).text == "Hello"
        assert late.model is made
        await late.close()


async def _streamed(late: LateModel) -> Reply:
    parts = [part async for part in late.stream(HI)]
    assert "".join(part for part in parts if isinstance(part, str)) == "Hello"
    assert isinstance(parts[-1], Reply)
    return parts[-1]


async def test_a_model_that_was_never_asked_is_closed_without_a_client() -> None:
    late = LateModel({"model": "m", "base_url": "http://127.0.0.1:9/v1"})
    await late.close()
    assert late.model is None
    assert repr(late) == "OpenAIModel('m' at http://127.0.0.1:9/v1)"
