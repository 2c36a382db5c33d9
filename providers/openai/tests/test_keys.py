"""Keys: named, never given; in their header and nowhere else."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from concertino import Budget, ChatRequest, Message, Orchestrator, Pool, ProviderError, SpecError
from concertino.testing import ScriptedModel, fake_tool
from concertino_openai import model, set_key_source
from concertino_openai.client import Embedder, OpenAIModel, list_models
from concertino_openai.keys import redact

from .fault_server import FaultServer, fault_server, serving

KEY = "sk-test-0123456789abcdefghij"
HI = [Message("user", "hi")]


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TEST_KEY", KEY)
    yield
    set_key_source(None)


def alone(server: FaultServer, fault: str, **options: Any) -> OpenAIModel:
    return OpenAIModel(**{"model": "m", "base_url": server.url(fault), "key_env": "TEST_KEY", **options})


async def failure(model: OpenAIModel) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await model.chat(ChatRequest(HI))
    await model.close()
    return raised.value


async def test_a_key_is_sent_in_its_header(server: FaultServer) -> None:
    for options, header in (({}, "Authorization"), ({"key_header": "api-key"}, "api-key")):
        one = alone(server, "good", **options)
        await one.chat(ChatRequest(HI))
        await one.close()
        assert server.headers[-1][header] == (f"Bearer {KEY}" if header == "Authorization" else KEY)


async def test_a_local_server_is_sent_no_key_unless_one_is_named(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for options in ({}, {"server": "vllm"}, {"key_env": ""}):
        one = OpenAIModel(**{"model": "m", "base_url": server.url("good"), **options})
        await one.chat(ChatRequest(HI))
        await one.close()
        assert "Authorization" not in server.headers[-1]


async def test_a_key_that_is_missing_is_named_and_nothing_is_sent(server: FaultServer) -> None:
    error = await failure(alone(server, "good", key_env="NO_SUCH_KEY"))
    assert error.failure == "caller"
    assert "NO_SUCH_KEY is not set" in str(error)
    assert "set_key_source" in str(error)
    assert not server.headers


@pytest.mark.parametrize("value", ["", "  ", "two\nlines", "schlüssel"])
async def test_a_key_that_no_header_can_carry_is_refused(
    value: str, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", value)
    error = await failure(alone(server, "good"))
    assert error.failure == "caller"
    assert value.strip() == "" or value not in str(error)


async def test_a_function_is_asked_before_the_environment(server: FaultServer) -> None:
    asked: list[str] = []
    set_key_source(lambda name: asked.append(name) or ("from-the-vault" if name == "TEST_KEY" else None))
    one = alone(server, "good")
    await one.chat(ChatRequest(HI))
    await one.chat(ChatRequest(HI))
    await one.close()
    assert asked == ["TEST_KEY"]
    assert server.headers[-1]["Authorization"] == "Bearer from-the-vault"
    set_key_source(lambda name: None)
    other = alone(server, "good")
    await other.chat(ChatRequest(HI))
    await other.close()
    assert server.headers[-1]["Authorization"] == f"Bearer {KEY}"


async def test_a_refused_key_is_looked_up_again(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    one = alone(server, "401")
    for value in ("first-key-of-all", "second-key-of-all"):
        monkeypatch.setenv("TEST_KEY", value)
        with pytest.raises(ProviderError):
            await one.chat(ChatRequest(HI))
        assert server.headers[-1]["Authorization"] == f"Bearer {value}"
    await one.close()


async def echo(request: web.Request) -> web.Response:
    """A server that repeats the key in its error."""
    key = request.headers["Authorization"]
    return web.json_response({"error": {"message": f"Incorrect API key provided: {key}"}}, status=401)


async def test_a_key_that_the_server_repeats_is_in_no_text_log_trace_or_exception(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    routes = [web.post("/v1/chat/completions", echo), web.get("/v1/models", echo), web.post("/v1/embeddings", echo)]
    async with serving(*routes) as address:
        url = f"{address}/v1"
        spec = model("m", base_url=url, key_env="TEST_KEY")
        one = OpenAIModel(model="m", base_url=url, key_env="TEST_KEY")
        embedder = Embedder(model="m", base_url=url, key_env="TEST_KEY")
        shown += [repr(one), str(vars(one)), repr(embedder), repr(spec), str(spec.to_json()), repr(spec.factory)]
        for work in (
            one.chat(ChatRequest(HI)),
            list_models(base_url=url, key_env="TEST_KEY"),
            embedder.embed(["x"]),
        ):
            with pytest.raises(ProviderError) as raised:
                await work
            error: BaseException | None = raised.value
            shown += [*traceback.format_exception(raised.value), repr(raised.value)]
            assert "[key]" in str(raised.value)
            while error is not None:
                shown += [repr(error), str(error), str(vars(error))]
                error = error.__cause__ or error.__context__
        await one.close()
        await embedder.close()
        pool = Pool.of(spec, fake_tool("look"))
        run = await Orchestrator("m").run("hi", pool=pool, budget=Budget(rounds=1), trace=tmp_path)
    assert run.stop == "model"
    shown += [str(run), caplog.text]
    shown += texts_under(tmp_path)
    assert len(shown) > 10
    assert [text for text in shown if KEY in text] == []


def texts_under(folder: Path) -> list[str]:
    """The texts of all files."""
    return [file.read_text(encoding="utf-8", errors="replace") for file in folder.rglob("*") if file.is_file()]


async def test_an_exception_of_the_connection_holds_no_request(server: FaultServer) -> None:
    for fault in ("reset_before_headers", "hang"):
        error = await failure(alone(server, fault, idle_timeout=0.1))
        assert error.__cause__ is None
        assert error.__context__ is None


@pytest.mark.parametrize("name", ["api_key", "key", "token", "API-KEY", "password"])
def test_a_key_is_no_option(name: str) -> None:
    with pytest.raises(SpecError, match="key_env") as raised:
        model("m", **{name: KEY})
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"key_env": KEY},
        {"headers": {"Authorization": f"Bearer {KEY}"}},
        {"headers": {"X-Other": KEY}},
        {"base_url": f"https://user:{KEY}@host/v1"},
        {"base_url": f"https://host/v1?key={KEY}"},
        {"proxy": f"http://user:{KEY}@host"},
    ],
)
def test_a_key_in_another_option_is_refused_and_not_shown(options: dict[str, Any]) -> None:
    with pytest.raises(SpecError) as raised:
        model("m", **options)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"provided: {KEY}.", "provided: [key]."),
        ("provided: sk-proj-abc***********xyz", "provided: [key]"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [key]"),
        ("AIzaSyA0123456789abcdef", "[key]"),
        ("the model sk is small", "the model sk is small"),
        ("risk-taking and task-specific-things", "risk-taking and task-specific-things"),
    ],
)
def test_whatever_looks_like_a_key_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown


async def test_a_key_of_a_key_source_is_hidden_from_logs_and_answers_though_it_looks_like_words(
    server: FaultServer, caplog: pytest.LogCaptureFixture
) -> None:
    vault = "four plain words here"
    set_key_source(lambda name: vault)
    tool = fake_tool("note", returns="noted")
    led = ScriptedModel([("note", {"text": f"use {vault}"})], [("final_answer", {})], f"<answer>{vault}</answer>")
    with caplog.at_level(logging.DEBUG, "concertino"):
        one = alone(server, "good")
        await one.chat(ChatRequest(HI))
        await one.close()
        run = await Orchestrator(led).run(f"Is {vault!r} a key?", pool=Pool.of(tool))
    assert run.answer == "[key]"
    assert len(caplog.records) > 4
    assert vault not in caplog.text
    assert vault not in str([vars(record) for record in caplog.records])


def test_a_declared_model_can_be_sent_to_another_process_without_a_key() -> None:
    spec = model("m", base_url="http://127.0.0.1:1/v1", key_env="TEST_KEY")
    assert KEY.encode() not in pickle.dumps(spec)
    assert asyncio.iscoroutinefunction(list_models)
