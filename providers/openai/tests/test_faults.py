"""Faults of the transport, through the real executor: each ends in time, with its own status, and after as many
requests as the retry table allows, counted by the server.

`T` in the table is the time limit of the call where the fault is that nothing ends by itself. The README shows the
table.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from concertino import (
    Budget,
    Call,
    CallFailed,
    ChatRequest,
    Context,
    Message,
    ModelSpec,
    Observation,
    Pool,
    ProviderError,
    Reply,
    agent,
)
from concertino.executor import Executor, RetryPolicy
from concertino_openai import model
from concertino_openai.client import OpenAIModel

from .fault_server import FAULTS, FaultServer, fault_server, raw_server
from .streams import TOOL

HI = [Message("user", "hi")]
T = 0.4


@dataclass(frozen=True)
class Row:
    """One line of the table: the fault, what comes of it, and how often the server was asked."""

    fault: str
    status: str
    code: str
    attempts: int
    seconds: float = 30.0
    timeout: float | None = None
    plain: bool = False

    @property
    def name(self) -> str:
        return self.fault + ("/plain" if self.plain else "")


TABLE = (
    # what works in spite of everything
    Row("good", "OK", "", 1),
    Row("plain_answer", "OK", "", 1),
    Row("compressed", "OK", "", 1),
    Row("event_of_600_kb", "OK", "", 1),
    Row("no_content_type", "OK", "", 1),
    Row("hang_after_done", "OK", "", 1),
    Row("reset_after_finish", "OK", "", 1),
    Row("busy_twice", "OK", "", 3),
    # refusals
    Row("slow_down", "EXEC_ERR", "unavailable", 5),
    Row("slow_down_until", "EXEC_ERR", "unavailable", 5),
    Row("slow_down_for_an_hour", "TIMEOUT", "deadline", 1, timeout=T),
    Row("429", "EXEC_ERR", "unavailable", 5),
    Row("503", "EXEC_ERR", "unavailable", 5),
    Row("500", "EXEC_ERR", "unavailable", 3),
    Row("502", "EXEC_ERR", "unavailable", 3),
    Row("504", "EXEC_ERR", "unavailable", 3),
    Row("408", "EXEC_ERR", "unavailable", 3),
    Row("html_502", "EXEC_ERR", "unavailable", 3),
    Row("400", "EXEC_ERR", "rejected", 1),
    Row("401", "EXEC_ERR", "rejected", 1),
    Row("402", "EXEC_ERR", "rejected", 1),
    Row("404", "EXEC_ERR", "rejected", 1),
    Row("no_credit", "EXEC_ERR", "rejected", 1),
    Row("too_long", "EXEC_ERR", "rejected", 1),
    Row("validation_500", "EXEC_ERR", "rejected", 1),
    Row("error_in_200", "EXEC_ERR", "rejected", 1),
    Row("list_in_400", "EXEC_ERR", "rejected", 1),
    Row("redirect", "EXEC_ERR", "rejected", 1),
    Row("html", "EXEC_ERR", "rejected", 1),
    Row("other_json", "EXEC_ERR", "rejected", 1),
    Row("error_body_hangs", "EXEC_ERR", "rejected", 1),
    Row("endless_error", "EXEC_ERR", "rejected", 1),
    # silence
    Row("hang", "TIMEOUT", "deadline", 1, timeout=T),
    Row("hang_midway", "TIMEOUT", "deadline", 1, timeout=T),
    Row("drip", "TIMEOUT", "deadline", 1, timeout=T),
    Row("comments_for_ever", "TIMEOUT", "deadline", 1, timeout=T),
    Row("hang", "TIMEOUT", "deadline", 1, timeout=T, plain=True),
    # breaks
    Row("reset_before_headers", "EXEC_ERR", "unavailable", 3),
    Row("reset_before_the_first_token", "EXEC_ERR", "unavailable", 3),
    Row("closed_without_a_word", "EXEC_ERR", "unavailable", 3),
    Row("empty", "EXEC_ERR", "unavailable", 3, plain=True),
    Row("reset_midway", "EXEC_ERR", "truncated", 1),
    Row("closed_without_finish", "EXEC_ERR", "truncated", 1),
    Row("half_a_plain_answer", "EXEC_ERR", "truncated", 1, plain=True),
    # rubbish
    Row("no_json", "EXEC_ERR", "truncated", 1, plain=True),
    Row("no_json_event", "EXEC_ERR", "unavailable", 3),
    Row("no_json_event_midway", "EXEC_ERR", "truncated", 1),
    Row("error_event", "EXEC_ERR", "unavailable", 5),
    Row("error_event_midway", "EXEC_ERR", "truncated", 1),
    Row("line_of_10_mb", "EXEC_ERR", "truncated", 1),
    Row("gzip_bomb", "EXEC_ERR", "truncated", 1, plain=True),
    Row("gzip_bomb_of_events", "EXEC_ERR", "truncated", 1),
    Row("broken_gzip", "EXEC_ERR", "unavailable", 3),
)


@dataclass
class Outcome:
    """What an agent got that asked once."""

    reply: Reply | None
    observation: Observation | None
    seconds: float

    @property
    def status(self) -> str:
        return "OK" if self.observation is None else self.observation.status.value

    @property
    def code(self) -> str:
        return "" if self.observation is None or self.observation.error is None else self.observation.error.code


async def ask(spec: ModelSpec) -> Outcome:
    """Ask a model through an executor that waits hardly at all between attempts."""
    outcomes: list[Outcome] = []

    @agent(models=("worker",), timeout=None)
    async def asker(ctx: Context) -> str:
        """Ask the model once."""
        started = time.monotonic()
        reply, observation = None, None
        try:
            reply = await ctx.model("worker").chat(HI)
        except CallFailed as failed:
            observation = failed.observation
        outcomes.append(Outcome(reply, observation, time.monotonic() - started))
        return "asked"

    pool = Pool.of(asker, spec, worker=spec.name)
    async with Executor(retries=RetryPolicy(base=0.001, longest=0.002)) as executor:
        await executor.run([Call("asker", {})], pool, budget=Budget())
    return outcomes[0]


def spec_of(row: Row, server: FaultServer) -> ModelSpec:
    return model(
        "m",
        base_url=server.url(row.fault),
        timeout=row.timeout or 20.0,
        max_reply_bytes=20 * 2**20,
        stream=None if not row.plain else False,
    )


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_a_fault_ends_as_the_table_says(row: Row, server: FaultServer) -> None:
    outcome = await ask(spec_of(row, server))
    text = outcome.observation and outcome.observation.error and outcome.observation.error.message
    assert (outcome.status, outcome.code) == (row.status, row.code), text
    assert server.seen[row.fault] == row.attempts, text
    assert outcome.seconds < (row.timeout or 0) + row.seconds
    if outcome.observation is not None:
        assert outcome.observation.attempts == row.attempts
        assert text


def test_the_table_has_every_fault_of_the_server() -> None:
    assert {row.fault for row in TABLE if not row.fault.isdigit()} == set(FAULTS)


def test_the_readme_shows_the_table() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    missing = [line for line in map(as_line, TABLE) if line not in readme]
    assert missing == []


def as_line(row: Row) -> str:
    """A row of the table as the README shows it."""
    mode = ", plain" if row.plain else ""
    ends = f" within {row.timeout:g} s" if row.timeout else ""
    return f"| {row.fault.replace('_', ' ')}{mode} | {row.status} {row.code}".rstrip() + f"{ends} | {row.attempts} |"


# -- nobody there ----------------------------------------------------------------------------------------------------


async def port_of_nobody() -> int:
    async with raw_server(lambda reader, writer: asyncio.sleep(0)) as port:
        return port


async def test_a_refused_connection_is_tried_again_and_named() -> None:
    outcome = await ask(model("m", base_url=f"http://127.0.0.1:{await port_of_nobody()}/v1"))
    assert outcome.observation is not None
    assert (outcome.code, outcome.observation.attempts) == ("unavailable", 3)
    assert outcome.observation.error is not None
    assert "is the server running?" in outcome.observation.error.message


async def test_a_name_that_nobody_has_is_tried_again_and_named() -> None:
    outcome = await ask(model("m", base_url="http://nobody.invalid/v1"))
    assert outcome.observation is not None
    assert (outcome.code, outcome.observation.attempts) == ("unavailable", 3)
    assert outcome.observation.error is not None
    assert "cannot be resolved" in outcome.observation.error.message


async def test_tls_to_a_port_without_it_never_arrived(server: FaultServer) -> None:
    outcome = await ask(model("m", base_url=server.url("good").replace("http:", "https:")))
    assert outcome.observation is not None
    assert (outcome.code, outcome.observation.attempts) == ("unavailable", 3)
    assert outcome.observation.error is not None
    assert "TLS" in outcome.observation.error.message


async def test_a_server_that_does_not_speak_http_is_not_asked_again() -> None:
    seen = 0

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen += 1
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    async with raw_server(greet) as port:
        outcome = await ask(model("m", base_url=f"http://127.0.0.1:{port}/v1"))
    assert (outcome.code, seen) == ("rejected", 1)


async def test_silence_is_bounded_by_the_idle_timeout_too(server: FaultServer) -> None:
    for fault, failure in (("hang", "maybe_executed"), ("hang_midway", "cut_off")):
        alone = OpenAIModel(model="m", base_url=server.url(fault), idle_timeout=0.1)
        with pytest.raises(ProviderError, match="idle_timeout") as raised:
            await alone.chat(ChatRequest(HI))
        await alone.close()
        assert raised.value.failure == failure


# -- one layer of retries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["500", "429", "503", "reset_before_headers", "closed_without_a_word"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_used_alone_asks_once(fault: str, stream: bool, server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url(fault), stream=stream)
    with pytest.raises(ProviderError):
        await alone.chat(ChatRequest(HI))
    await alone.close()
    assert server.seen[fault] == 1


async def test_a_kept_connection_that_died_is_not_a_hidden_repeat(server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url("good"))
    await alone.chat(ChatRequest(HI))
    alone._client.chat_url = alone._client.chat_url.with_path("/reset_before_headers/v1/chat/completions")
    with pytest.raises(ProviderError):
        await alone.chat(ChatRequest(HI))
    await alone.close()
    assert server.seen["reset_before_headers"] == 1


async def test_the_same_key_goes_with_every_attempt(server: FaultServer) -> None:
    await ask(model("m", base_url=server.url("500")))
    keys = {(headers["Idempotency-Key"], headers["X-Request-Id"]) for headers in server.headers}
    assert len(server.headers) == 3
    assert len(keys) == 1


async def test_a_key_that_no_header_can_carry_is_quoted(server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url("good"))
    await alone.chat(ChatRequest(HI, idempotency_key="run 1\r\nX-Evil: yes"))
    await alone.close()
    assert server.headers[-1]["Idempotency-Key"] == "run%201%0D%0AX-Evil%3A%20yes"
    assert "X-Evil" not in server.headers[-1]


async def test_a_call_that_the_server_cannot_read_is_a_broken_call_and_no_crash(server: FaultServer) -> None:
    alone = OpenAIModel(server="transformers", model="m", base_url=server.url("500"), stream=False)
    reply = await alone.chat(ChatRequest(HI, tools=[TOOL]))
    assert [call.name for call in reply.tool_calls] == ["?"]
    assert "status 500" in str(reply.tool_calls[0].arguments)
    with pytest.raises(ProviderError, match="500"):
        await alone.chat(ChatRequest(HI))
    await alone.close()


async def test_what_flowed_before_a_break_is_charged(server: FaultServer) -> None:
    outcome = await ask(model("m", base_url=server.url("reset_midway")))
    assert outcome.observation is not None
    assert outcome.observation.usage.output_tokens > 0
    assert outcome.observation.usage.estimated == 1


# -- cancellation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "stream"), [("hang", True), ("hang_midway", True), ("drip", True), ("hang", False)])
async def test_a_cancelled_request_closes_its_socket(fault: str, stream: bool, server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url(fault), stream=stream)
    running = asyncio.ensure_future(alone.chat(ChatRequest(HI)))
    await asyncio.wait_for(server.asked.wait(), 5)
    await asyncio.sleep(0.05)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asyncio.wait_for(server.cancelled.wait(), 2)
    await alone.close()


async def test_a_stream_that_is_left_closes_its_socket(server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url("drip"))
    pieces = alone.stream(ChatRequest(HI))
    assert await anext(pieces) == "x"
    await pieces.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(server.cancelled.wait(), 2)
    await alone.close()


async def test_a_model_stays_usable_after_faults(server: FaultServer) -> None:
    alone = OpenAIModel(model="m", base_url=server.url("good"))
    await alone.chat(ChatRequest(HI))
    good = alone._client.chat_url
    for fault in ("reset_midway", "line_of_10_mb", "500", "html", "closed_without_finish"):
        alone._client.chat_url = good.with_path(f"/{fault}/v1/chat/completions")
        with pytest.raises(ProviderError):
            await alone.chat(ChatRequest(HI))
        alone._client.chat_url = good
        assert (await alone.chat(ChatRequest(HI))).text == "Hello"
    await alone.close()
