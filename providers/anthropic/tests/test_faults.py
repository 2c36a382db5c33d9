"""Faults through the real executor and the real SDK: each ends in time, with its own status, and after as many requests
as the retry table allows, counted by the server.

The README shows the table.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anthropic
import httpx2
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
from concertino_anthropic import model, set_key_source
from concertino_anthropic.client import AnthropicModel
from concertino_anthropic.failures import STATUS, retry_after

from .fault_server import DOCUMENTED, FAULTS, FaultServer, fault_server
from .stand_in import KEY, serving

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
    Row("one_message", "OK", "", 1),
    Row("event_of_600_kb", "OK", "", 1),
    Row("hang_after_the_end", "OK", "", 1, seconds=2.0),
    Row("reset_after_the_stop_reason", "OK", "", 1),
    Row("overloaded_twice", "OK", "", 3),
    # refusals, of the documented types first
    Row("invalid_request_error", "EXEC_ERR", "rejected", 1),
    Row("authentication_error", "EXEC_ERR", "rejected", 1),
    Row("billing_error", "EXEC_ERR", "rejected", 1),
    Row("permission_error", "EXEC_ERR", "rejected", 1),
    Row("not_found_error", "EXEC_ERR", "rejected", 1),
    Row("request_too_large", "EXEC_ERR", "rejected", 1),
    Row("rate_limit_error", "EXEC_ERR", "unavailable", 5),
    Row("api_error", "EXEC_ERR", "unavailable", 3),
    Row("timeout_error", "EXEC_ERR", "unavailable", 3),
    Row("overloaded_error", "EXEC_ERR", "unavailable", 5),
    Row("slow_down_until", "EXEC_ERR", "unavailable", 5),
    Row("slow_down_for_an_hour", "TIMEOUT", "deadline", 1, timeout=T),
    Row("no_credit", "EXEC_ERR", "rejected", 1),
    Row("spend_limit", "EXEC_ERR", "rejected", 1),
    Row("prompt_too_long", "EXEC_ERR", "rejected", 1),
    Row("conflict", "EXEC_ERR", "unavailable", 3),
    Row("unavailable", "EXEC_ERR", "unavailable", 3),
    Row("unavailable_for_now", "EXEC_ERR", "unavailable", 5),
    Row("html_502", "EXEC_ERR", "unavailable", 3),
    Row("html", "EXEC_ERR", "rejected", 1),
    Row("redirect", "EXEC_ERR", "rejected", 1),
    Row("other_json", "EXEC_ERR", "rejected", 1),
    # silence
    Row("hang", "TIMEOUT", "deadline", 1, timeout=T),
    Row("hang_midway", "TIMEOUT", "deadline", 1, timeout=T),
    Row("pings_for_ever", "TIMEOUT", "deadline", 1, timeout=T),
    Row("drip", "TIMEOUT", "deadline", 1, timeout=T),
    Row("hang", "TIMEOUT", "deadline", 1, timeout=T, plain=True),
    # breaks
    Row("reset_before_headers", "EXEC_ERR", "unavailable", 3),
    Row("reset_before_the_first_token", "EXEC_ERR", "unavailable", 3),
    Row("closed_without_a_word", "EXEC_ERR", "unavailable", 3),
    Row("empty", "EXEC_ERR", "unavailable", 3, plain=True),
    Row("reset_midway", "EXEC_ERR", "truncated", 1),
    Row("closed_without_a_stop_reason", "EXEC_ERR", "truncated", 1),
    Row("half_a_message", "EXEC_ERR", "truncated", 1, plain=True),
    # errors after a 200, and rubbish
    Row("overloaded_event", "EXEC_ERR", "unavailable", 5),
    Row("refused_event", "EXEC_ERR", "rejected", 1),
    Row("error_event", "EXEC_ERR", "unavailable", 3),
    Row("overloaded_event_midway", "EXEC_ERR", "truncated", 1),
    Row("no_json_event", "EXEC_ERR", "unavailable", 3),
    Row("no_json_event_midway", "EXEC_ERR", "truncated", 1),
    Row("odd_event_midway", "EXEC_ERR", "truncated", 1),
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

    @property
    def message(self) -> str:
        return "" if self.observation is None or self.observation.error is None else self.observation.error.message


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


def spec_of(fault: str, server: FaultServer, timeout: float = 20.0, stream: bool = True) -> ModelSpec:
    return model(
        "m",
        model="claude-opus-5-5",
        base_url=server.url(fault),
        key_env="ANTHROPIC_API_KEY",
        timeout=timeout,
        stream=stream,
    )


def alone(fault: str, server: FaultServer, **options: object) -> AnthropicModel:
    return AnthropicModel(model="claude-opus-5-5", base_url=server.url(fault), key_env="ANTHROPIC_API_KEY", **options)


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_a_fault_ends_as_the_table_says(row: Row, server: FaultServer) -> None:
    outcome = await ask(spec_of(row.fault, server, row.timeout or 20.0, not row.plain))
    assert (outcome.status, outcome.code) == (row.status, row.code), outcome.message
    assert server.seen[row.fault] == row.attempts, outcome.message
    assert outcome.seconds < (row.timeout or 0) + row.seconds
    if outcome.observation is not None:
        assert outcome.observation.attempts == row.attempts
        assert outcome.message


def test_the_table_has_every_fault_of_the_server() -> None:
    assert {row.fault for row in TABLE} == {*FAULTS, *DOCUMENTED}
    assert STATUS == DOCUMENTED


def test_the_readme_shows_the_table() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert [line for line in map(as_line, TABLE) if line not in readme] == []


def as_line(row: Row) -> str:
    """A row of the table as the README shows it."""
    mode = ", plain" if row.plain else ""
    ends = f" within {row.timeout:g} s" if row.timeout else ""
    return f"| {row.fault.replace('_', ' ')}{mode} | {row.status} {row.code}".rstrip() + f"{ends} | {row.attempts} |"


# -- what a failure says -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "failure", "said"),
    [
        ("invalid_request_error", "caller", "answered 400 invalid_request_error"),
        ("invalid_request_error", "caller", "request req_011CSHoEeqs5C35K2UUqR7Fy"),
        ("authentication_error", "auth", "This is a authentication_error"),
        ("overloaded_error", "throttled", "answered 529 overloaded_error"),
        ("overloaded_event", "throttled", "answered 529 overloaded_error"),
        ("no_credit", "auth", "credit balance"),
        ("spend_limit", "auth", "usage limits"),
        ("html", "caller", "a web page ('Welcome'), not with JSON; is base_url right, without /v1?"),
        ("redirect", "caller", "set base_url to the final address"),
        ("other_json", "caller", "does it speak Anthropic's Messages API?"),
        ("overloaded_event_midway", "cut_off", "(in the middle of the reply)"),
        ("closed_without_a_stop_reason", "cut_off", "without a stop reason"),
        ("odd_event_midway", "cut_off", "unexpected form (KeyError"),
    ],
)
async def test_a_failure_has_its_class_and_says_what_happened(
    fault: str, failure: str, said: str, server: FaultServer
) -> None:
    asked = alone(fault, server)
    with pytest.raises(ProviderError) as raised:
        await asked.chat(ChatRequest(HI))
    await asked.close()
    assert raised.value.failure == failure
    assert said in str(raised.value)
    assert KEY not in repr(raised.value)
    # An exception of the SDK holds the request, and with it the key.
    assert not isinstance(raised.value.__context__, (anthropic.AnthropicError, httpx2.HTTPError))


async def test_a_redirect_is_not_followed(server: FaultServer) -> None:
    await ask(spec_of("redirect", server))
    assert server.seen["stolen"] == 0


async def test_the_time_to_wait_is_told(server: FaultServer) -> None:
    asked = alone("slow_down_for_an_hour", server)
    with pytest.raises(ProviderError) as raised:
        await asked.chat(ChatRequest(HI))
    await asked.close()
    assert (raised.value.status, raised.value.retry_after) == (429, 3600.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
    ],
)
def test_every_form_of_a_time_to_wait_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


async def test_a_refused_connection_is_tried_again_and_named() -> None:
    async with serving() as gone:
        pass
    outcome = await ask(model("m", base_url=gone, key_env="ANTHROPIC_API_KEY"))
    assert outcome.observation is not None
    assert (outcome.code, outcome.observation.attempts) == ("unavailable", 3)
    assert "is base_url right?" in outcome.message


async def test_tls_to_a_port_without_it_never_arrived(server: FaultServer) -> None:
    asked = AnthropicModel(model="m", base_url=server.url("good").replace("http:", "https:"), key_env="")
    with pytest.raises(ProviderError) as raised:
        await asked.chat(ChatRequest(HI))
    await asked.close()
    assert raised.value.failure == "not_executed"


async def test_silence_is_bounded_by_the_idle_timeout_too(server: FaultServer) -> None:
    for fault, failure in (("hang", "maybe_executed"), ("hang_midway", "cut_off")):
        asked = alone(fault, server, idle_timeout=0.1)
        with pytest.raises(ProviderError, match="idle_timeout") as raised:
            await asked.chat(ChatRequest(HI))
        await asked.close()
        assert raised.value.failure == failure


# -- one layer of retries ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["api_error", "rate_limit_error", "overloaded_error", "reset_before_headers"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_used_alone_asks_once(fault: str, stream: bool, server: FaultServer) -> None:
    asked = alone(fault, server, stream=stream)
    with pytest.raises(ProviderError):
        await asked.chat(ChatRequest(HI))
    await asked.close()
    assert server.seen[fault] == 1


async def test_the_same_key_goes_with_every_attempt(server: FaultServer) -> None:
    await ask(spec_of("api_error", server))
    assert len(server.headers) == 3
    assert len({headers["Idempotency-Key"] for headers in server.headers}) == 1


async def test_a_key_that_no_header_can_carry_is_quoted(server: FaultServer) -> None:
    asked = alone("good", server)
    await asked.chat(ChatRequest(HI, idempotency_key="run 1\r\nX-Evil: yes"))
    await asked.close()
    assert server.headers[-1]["Idempotency-Key"] == "run%201%0D%0AX-Evil%3A%20yes"


async def test_a_key_that_was_refused_is_looked_up_again(server: FaultServer) -> None:
    keys = ["old-key-of-someone", "new-key-of-someone"]
    set_key_source(lambda name: keys.pop(0))
    asked = alone("authentication_error", server)
    for _ in range(2):
        with pytest.raises(ProviderError):
            await asked.chat(ChatRequest(HI))
    await asked.close()
    assert [headers["Authorization"] for headers in server.headers] == [
        "Bearer old-key-of-someone",
        "Bearer new-key-of-someone",
    ]


async def test_what_flowed_before_a_break_is_charged(server: FaultServer) -> None:
    outcome = await ask(spec_of("reset_midway", server))
    assert outcome.observation is not None
    assert outcome.observation.usage.input_tokens == 9
    assert outcome.observation.usage.output_tokens == len(b"Hello") // 2 + 1
    assert outcome.observation.usage.estimated == 1


# -- cancellation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fault", "stream"), [("hang", True), ("hang_midway", True), ("drip", True), ("hang", False)])
async def test_a_cancelled_request_closes_its_socket(fault: str, stream: bool, server: FaultServer) -> None:
    asked = alone(fault, server, stream=stream)
    running = asyncio.ensure_future(asked.chat(ChatRequest(HI)))
    await asyncio.wait_for(server.asked.wait(), 5)
    await asyncio.sleep(0.05)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asyncio.wait_for(server.cancelled.wait(), 2)
    await asked.close()


async def test_a_stream_that_is_left_closes_its_socket(server: FaultServer) -> None:
    asked = alone("drip", server)
    pieces = asked.stream(ChatRequest(HI))
    assert await anext(pieces) == "x"
    await pieces.aclose()
    await asyncio.wait_for(server.cancelled.wait(), 2)
    await asked.close()


async def test_a_model_stays_usable_after_faults(server: FaultServer) -> None:
    for fault in ("reset_midway", "api_error", "html", "closed_without_a_stop_reason"):
        asked = alone("good", server)
        transport = await asked._opened()
        client = await transport._client()
        client.base_url = server.url(fault)
        with pytest.raises(ProviderError):
            await asked.chat(ChatRequest(HI))
        client.base_url = server.url("good")
        assert (await asked.chat(ChatRequest(HI))).text == "Hello"
        await asked.close()
