"""The probe: it believes what it sees, and what it finds is what a model is declared with."""

from __future__ import annotations

import asyncio
import json
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner, Result
from concertino import ProviderError
from concertino.cli import command_line
from concertino_openai import concertino_declare_model
from concertino_openai.probe import Probe, ProbeReport

from . import echo_server as echo
from .echo_server import echo_server
from .fault_server import fault_server, serving


@asynccontextmanager
async def changed(change: Callable[[dict[str, Any]], web.Response | None]) -> AsyncIterator[str]:
    """The echo server, with some requests answered otherwise."""

    async def chat(request: web.Request) -> web.StreamResponse:
        answer = change(await request.json())
        return answer if answer is not None else await echo.chat(request)

    async with serving(web.post("/v1/chat/completions", chat), web.get("/v1/models", echo.models)) as address:
        yield f"{address}/v1"


def verdicts(probed: ProbeReport) -> dict[str, str]:
    return {finding.feature: finding.verdict for finding in probed.findings}


async def test_a_probe_tells_what_is_there_from_what_is_passed_over() -> None:
    async with echo_server() as url:
        probed = await Probe(base_url=url).run()
    assert probed.model == "echo"
    assert verdicts(probed) == {
        "models listed": "yes",
        "plain answer": "yes",
        "temperature": "yes",
        "usage": "yes",
        "reasoning": "unsure",
        "stream": "yes",
        "usage in the stream": "yes",
        "[DONE]": "yes",
        "bound on tokens": "yes",
        "stop": "yes",
        "tools": "yes",
        "parallel calls": "unsure",
        "results of calls": "yes",
        "schema for the reply": "no",
        "logprobs": "yes",
        "token ids": "ignored",
        "seed": "yes",
        "unknown parameter": "ignored",
        "unknown model": "ignored",
        "error": "unsure",
    }
    assert probed.options == {
        "model": "echo",
        "base_url": url,
        "max_tokens_field": "max_tokens",
        "schema_style": "instruction",
    }


async def test_what_a_server_refuses_is_left_out_of_the_options() -> None:
    def strict(body: dict[str, Any]) -> web.Response | None:
        refused = {"max_tokens", "temperature", "stream_options", "seed", "no_such_parameter", "logprobs"} & set(body)
        if refused or body["model"] != "echo":
            return web.json_response({"detail": f"unexpected: {sorted(refused)}"}, status=422)
        return None

    async with changed(strict) as url:
        probed = await Probe(base_url=url, server="vllm").run()
    found = verdicts(probed)
    refused = ("temperature", "seed", "logprobs", "unknown parameter", "unknown model")
    assert {found[name] for name in refused} == {"refused"}
    assert probed.options["max_tokens_field"] == "max_completion_tokens"
    assert [probed.options[name] for name in ("stream_usage", "logprobs", "seed")] == [False, False, False]
    assert next(finding.detail for finding in probed.findings if finding.feature == "error") == "detail"


async def test_a_schema_counts_only_where_the_reply_keeps_it() -> None:
    def enforced(body: dict[str, Any]) -> web.Response | None:
        if "structured_outputs" not in body:
            return None
        message = {"role": "assistant", "content": '{"word": "xyzzy"}'}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async with changed(enforced) as url:
        probed = await Probe(base_url=url).run()
    assert verdicts(probed)["schema for the reply"] == "yes"
    assert probed.options["schema_style"] == "structured_outputs"


async def test_one_request_that_breaks_the_server_does_not_end_the_probe() -> None:
    def crash(body: dict[str, Any]) -> web.Response | None:
        return web.Response(body=b"x" * 2**21) if "tools" in body else None

    async with changed(crash) as url:
        probed = await Probe(base_url=url, max_reply_bytes=2**20).run()
    assert verdicts(probed)["calling"] == "refused"
    assert verdicts(probed)["seed"] == "yes"


async def test_what_was_found_declares_a_model() -> None:
    async with echo_server() as url:
        probed = await Probe(base_url=url, server="vllm").run()
    table = tomllib.loads(probed.to_toml("mine"))["models"]["openai/mine"]
    assert table == probed.options
    assert dict(concertino_declare_model("mine", table).options) == probed.options


@pytest.mark.parametrize(("fault", "text"), [("500", "status 500"), ("html", "is base_url right")])
async def test_a_server_that_answers_nothing_is_an_error(fault: str, text: str) -> None:
    async with fault_server() as server:
        with pytest.raises(ProviderError, match=text):
            await Probe(base_url=server.url(fault), model="m").run()
        with pytest.raises(ProviderError, match=f"{text}.*name a model with --model"):
            await Probe(base_url=server.url(fault)).run()


# -- the command -----------------------------------------------------------------------------------------------------


async def command(*arguments: str) -> Result:
    """Run the command in a thread, since it makes an event loop of its own."""
    return await asyncio.to_thread(CliRunner().invoke, command_line, ["probe", *arguments])


async def test_the_command_prints_a_table_json_or_toml() -> None:
    async with echo_server() as url:
        table = await command(url)
        data = await command(url, "--json", "--server", "vllm")
        toml = await command(url, "--toml", "mine", "--model", "echo")
    assert table.exit_code == data.exit_code == toml.exit_code == 0, table.output
    assert table.output.startswith(f"echo at {url}\n")
    assert "schema for the reply  no" in table.output
    assert '[models."openai/NAME"]' in table.output
    assert set(json.loads(data.output)) == {"base_url", "model", "findings", "options"}
    assert tomllib.loads(toml.output)["models"]["openai/mine"]["base_url"] == url


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["http://127.0.0.1:1/v1"], 1, "no connection (Connection refused); is the server running?"),
        (["localhost:8000"], 2, "expected an address"),
        (["http://127.0.0.1:1/v1", "--server", "vlm"], 2, "did you mean 'vllm'"),
        (["http://127.0.0.1:1/v1", "--key-env", "NO_SUCH_KEY"], 1, "NO_SUCH_KEY is not set"),
        ([], 2, "URL"),
    ],
)
async def test_what_cannot_be_is_one_message_and_an_exit_code(arguments: list[str], code: int, text: str) -> None:
    result = await command(*arguments)
    assert result.exit_code == code
    assert text in result.output
    assert "Traceback" not in result.output
