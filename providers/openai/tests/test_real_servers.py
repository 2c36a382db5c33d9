"""Real servers with the tiny model that knows its script by heart: what each says becomes the same reply.

Each test runs on every server that is there, streamed and plain. What a server does not tell is in `UNTOLD`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import Any

import concertino as ct
import pytest
import script
from concertino.testing import ModelConformance
from concertino_openai import model
from concertino_openai.client import OpenAIModel, list_models
from concertino_openai.probe import Probe
from launch import Server

pytestmark = pytest.mark.server

PRESETS = {"transformers": "transformers", "vllm": "vllm", "llama": "llama-cpp-python"}
GREEDY = ct.Sampling(temperature=0.0, max_tokens=200)
EACH = pytest.mark.parametrize("exchange", script.SCRIPT, ids=lambda exchange: exchange.name)
BOTH_MODES = pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])

UNTOLD = {
    ("transformers", "broken", False): [("?", None)],
    ("transformers", "no-arguments", True): [("?", None)],
    ("transformers", "no-arguments", False): [("?", None)],
}
"""Calls of which a server does not tell what was written: by server, exchange, and whether it streams."""


@pytest.fixture(params=["transformers_server", "llama_server", "vllm_server"])
def server(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


def options(server: Server, **more: Any) -> dict[str, Any]:
    return {"server": PRESETS[server.kind], "model": server.model, "base_url": server.base_url, **more}


def request_of(exchange: script.Exchange) -> ct.ChatRequest:
    messages = [
        ct.Message(
            message["role"],
            message["content"],
            tuple(
                ct.ToolCall(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in message.get("tool_calls", ())
            ),
            message.get("tool_call_id", ""),
        )
        for message in exchange.messages
    ]
    sampling = GREEDY.with_(max_tokens=40) if exchange.endless else GREEDY
    return ct.ChatRequest(messages, exchange.tools, sampling)


async def answer(server: Server, exchange: script.Exchange, **more: Any) -> ct.Reply:
    asked = OpenAIModel(**options(server, **more))
    try:
        return await asked.chat(request_of(exchange))
    finally:
        await asked.close()


# -- what is said ----------------------------------------------------------------------------------------------------

_CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)


def said(exchange: script.Exchange) -> tuple[str, list[tuple[str, Any]], str]:
    """Text, calls and thought of an exchange, read off the script."""
    text = exchange.reply
    calls: list[tuple[str, Any]] = []
    for block in _CALL.findall(text):
        name = re.findall(r'"name": "(\w+)"', block)[0]
        raw = block.partition('"arguments": ')[2].removesuffix("}") if '"arguments"' in block else "{}"
        calls.append((name, readable(raw)))
    thought = "".join(_THOUGHT.findall(text)).strip()
    return _CALL.sub("", _THOUGHT.sub("", text)).strip(), calls, thought


def readable(arguments: Any) -> Any:
    """Arguments as data, or as stripped text where they are none."""
    try:
        return json.loads(str(arguments))
    except ValueError:
        return str(arguments).strip()


@EACH
@BOTH_MODES
async def test_every_exchange_is_the_same_reply_on_every_server(
    server: Server, exchange: script.Exchange, stream: bool
) -> None:
    text, calls, thought = said(exchange)
    reply = await answer(server, exchange, stream=stream)
    calls = UNTOLD.get((server.kind, exchange.name, stream), calls)
    got = [(call.name, readable(call.arguments)) for call in reply.tool_calls]
    if calls and calls[0] == ("?", None):
        assert [name for name, _ in got] == ["?"]
    else:
        assert got == calls
    if exchange.endless:
        assert (script.LOOP * 5).lstrip().startswith(reply.text)
        assert (len(reply.text) > 100, reply.finish_reason) == (True, "length")
        return
    assert (reply.text.rstrip(), reply.reasoning) == (text, thought)
    assert reply.finish_reason in ("stop", "tool_calls")
    assert reply.usage.output_tokens > 0 or reply.usage.estimated


@EACH
async def test_the_pieces_of_a_stream_add_up(server: Server, exchange: script.Exchange) -> None:
    asked = OpenAIModel(**options(server))
    pieces = [piece async for piece in asked.stream(request_of(exchange))]
    await asked.close()
    assert isinstance(pieces[-1], ct.Reply)
    assert "".join(str(piece) for piece in pieces[:-1] if not isinstance(piece, ct.Thought)) == pieces[-1].text
    assert "".join(piece for piece in pieces if isinstance(piece, ct.Thought)).strip() == pieces[-1].reasoning


@BOTH_MODES
async def test_a_broken_call_is_quoted_and_its_repair_runs(server: Server, stream: bool) -> None:
    done = await run(server, "What is 2 plus 3?", stream=stream)
    statuses = [[observation.status.value for observation in each.observations] for each in done.rounds]
    assert statuses == [["PARSE_ERR"], ["OK"]]
    first = done.rounds[0].observations[0]
    assert first.error is not None
    assert first.attempts == 0
    if (server.kind, "broken", stream) not in UNTOLD:
        assert first.error.code == "bad_json"
        assert first.error.got == '{"a": 2, "b":'
    assert done.answer == "2 plus 3 is 5."


@pytest.mark.parametrize(
    ("name", "status", "executed"),
    [("wrong-type", "PARSE_ERR", 0), ("no-object", "PARSE_ERR", 0), ("no-arguments", "OK", 1)],
)
@BOTH_MODES
async def test_wrong_arguments_are_not_run_and_missing_ones_are_an_empty_object(
    server: Server, stream: bool, name: str, status: str, executed: int
) -> None:
    if (server.kind, name, stream) in UNTOLD:
        status, executed = "PARSE_ERR", 0
    ran: list[str] = []
    done = await run(server, script.exchange(name).messages[0]["content"], stream=stream, ran=ran, rounds=1)
    assert [observation.status.value for observation in done.rounds[0].observations] == [status]
    assert len(ran) == executed


async def run(
    server: Server, question: str, *, stream: bool = True, ran: list[str] | None = None, rounds: int = 6
) -> ct.Run:
    """A native run in rounds over two tools that remember that they ran."""
    remembered = ran if ran is not None else []

    @ct.tool
    def add(a: int, b: int) -> int:
        """Add two whole numbers."""
        remembered.append("add")
        return a + b

    @ct.tool
    def now() -> str:
        """Tell the time of day."""
        remembered.append("now")
        return "noon"

    spec = model("m", **options(server, stream=stream), timeout=60)
    strategy = ct.ParallelRounds(native=True, max_rounds=rounds)
    orchestrator = ct.Orchestrator(spec, strategy=strategy, sampling=GREEDY)
    return await orchestrator.run(question, pool=ct.Pool.of(add, now), budget=ct.Budget(seconds=60, calls=10))


@ct.agent(models=("worker",), timeout=None)
async def cartographer(ctx: ct.Context) -> Any:
    """Ask for a city as data."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    question = [ct.Message("user", "Give the city as JSON.")]
    return (await ctx.model("worker").chat(question, sampling=GREEDY, schema=schema)).data


@BOTH_MODES
async def test_a_schema_is_sent_without_tools_and_calls_are_not_lost(server: Server, stream: bool) -> None:
    with pytest.raises(ct.UsageError):
        ct.ChatRequest([ct.Message("user", "x")], script.TOOLS, schema={"type": "object"})
    called = await answer(server, script.exchange("call"), stream=stream)
    assert [call.name for call in called.tool_calls] == ["add"]
    spec = model("m", **options(server, stream=stream))
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("cartographer", {})], ct.Pool.of(cartographer, spec, worker="m"))
    assert seen.content == {"city": "Oslo", "people": 700000}, seen.error


# -- stopping --------------------------------------------------------------------------------------------------------


LONG = 3500
"""Tokens of a reply that takes a server seconds."""


async def ask_at_length(server: Server, tokens: int, leave_after: float | None = None, **more: Any) -> None:
    """Ask for many tokens; leave after so many seconds, or wait for them all."""
    asked = OpenAIModel(**options(server, **more))
    request = ct.ChatRequest(request_of(script.exchange("count")).messages, sampling=GREEDY.with_(max_tokens=tokens))
    running = asyncio.ensure_future(asked.chat(request))
    if leave_after is not None:
        await asyncio.sleep(leave_after)
        running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await asked.close()


async def work_of(server: Server, tokens: int, leave_after: float | None = None) -> float:
    """Processor seconds that a request costs a server, until it rests again."""
    before = server.cpu_seconds()
    await ask_at_length(server, tokens, leave_after)
    seen = server.cpu_seconds()
    for _ in range(60):
        await asyncio.sleep(0.5)
        if (now := server.cpu_seconds()) - seen < 0.05:
            return now - before
        seen = now
    raise AssertionError("30 s later the server still works")


def metric(server: Server, name: str) -> float:
    text = server.ask("/metrics")[1].decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE))


@BOTH_MODES
async def test_vllm_stops_when_a_request_is_cancelled(vllm_server: Server, stream: bool) -> None:
    written: list[float] = []
    while not written or (min(written) >= LONG and len(written) < 6):  # a busy machine may hear of it too late
        before = metric(vllm_server, "vllm:generation_tokens_total")
        await ask_at_length(vllm_server, LONG, leave_after=0.25, stream=stream)
        async with asyncio.timeout(20):
            while metric(vllm_server, "vllm:num_requests_running"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        written.append(metric(vllm_server, "vllm:generation_tokens_total") - before)
    assert min(written) < LONG


@pytest.mark.parametrize("server", ["transformers_server", "llama_server"], indirect=True)
async def test_a_server_stops_when_a_request_is_cancelled(server: Server) -> None:
    seen: list[tuple[float, float]] = []
    while not seen or (min(cancelled / whole for cancelled, whole in seen) >= 0.7 and len(seen) < 4):
        whole = await work_of(server, 1500)
        seen.append((await work_of(server, 1500, leave_after=0.2), whole))  # a busy machine may hear of it late, once
    assert min(cancelled / whole for cancelled, whole in seen) < 0.7, f"processor seconds: (cancelled, whole) {seen}"


# -- tokens, lists and conformance -----------------------------------------------------------------------------------


@BOTH_MODES
async def test_vllm_gives_the_tokens_it_sampled(vllm_server: Server, stream: bool) -> None:
    asked = OpenAIModel(**options(vllm_server, stream=stream))
    for name in ("prose", "think", "two-calls", "text-and-call", "broken", "no-arguments"):
        request = request_of(script.exchange(name))
        request = ct.ChatRequest(request.messages, request.tools, GREEDY.with_(logprobs=True))
        reply = await asked.chat(request)
        assert reply.token_ids is not None, name
        assert reply.logprobs is not None, name
        assert reply.prompt_token_ids is not None, name
        assert len(reply.token_ids) == len(reply.logprobs) == reply.usage.output_tokens, name
        assert len(reply.prompt_token_ids) == reply.usage.input_tokens, name
        assert max(reply.logprobs) <= 1e-6
    await asked.close()


async def test_a_server_lists_its_model_or_nothing(server: Server) -> None:
    chosen = options(server)
    listed = await list_models(server=chosen["server"], base_url=chosen["base_url"])
    assert server.model in [each.id for each in listed] or server.kind == "transformers"
    verified = OpenAIModel(**options(server, verify_model=True))
    assert (await verified.chat(request_of(script.exchange("answer")))).text == "pong"
    await verified.close()
    if listed:
        wrong = OpenAIModel(**{**options(server, verify_model=True), "model": "tinny"})
        with pytest.raises(ct.ProviderError, match="did you mean 'tiny'"):
            await wrong.chat(request_of(script.exchange("answer")))
        await wrong.close()


async def test_a_probe_finds_what_the_preset_says(server: Server) -> None:
    probed = await Probe(**options(server)).run()
    assert set(probed.options) == {"server", "model", "base_url"}, probed.options
    assert len(probed.findings) >= 18


@pytest.mark.parametrize("server", ["llama_server", "vllm_server"], indirect=True)  # the third answers any length
async def test_a_prompt_that_is_too_long_is_never_repeated(server: Server) -> None:
    asked = OpenAIModel(**options(server))
    with pytest.raises(ct.ProviderError) as raised:
        await asked.chat(ct.ChatRequest([ct.Message("user", "All work and no play. " * 2000)], sampling=GREEDY))
    await asked.close()
    assert raised.value.failure == "caller"


class OnServer(ModelConformance):
    """The standard checks, on a real server."""

    prompt = "Count without end."
    honours_max_tokens = honours_stop = True
    server: Server

    def make_model(self) -> ct.Model:
        return OpenAIModel(**options(self.server))


class TestOnTransformers(OnServer):
    @pytest.fixture(autouse=True)
    def _server(self, transformers_server: Server) -> None:
        type(self).server = transformers_server


class TestOnLlama(OnServer):
    at_once = 1  # a second request ends the first one's stream

    @pytest.fixture(autouse=True)
    def _server(self, llama_server: Server) -> None:
        type(self).server = llama_server


class TestOnVllm(OnServer):
    logprobs = True

    @pytest.fixture(autouse=True)
    def _server(self, vllm_server: Server) -> None:
        type(self).server = vllm_server


del OnServer
