"""What else a server offers: its listing, and embeddings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from concertino import ChatRequest, Message, ProviderError, SpecError, Usage
from concertino_openai.client import Embedder, OpenAIModel, list_models
from concertino_openai.client.listing import ListedModel

from .fault_server import GOOD, fault_server, serving, stream

LISTINGS: list[tuple[Any, tuple[ListedModel, ...]]] = [
    (
        {"object": "list", "data": [{"id": "a", "owned_by": "vllm", "max_model_len": 4096}, {"id": "lora"}]},
        (ListedModel("a", 4096, "vllm"), ListedModel("lora")),
    ),
    ({"data": [{"id": "a", "context_length": 128_000, "pricing": {}}]}, (ListedModel("a", 128_000),)),
    ({"data": [{"id": "a", "meta": {"n_ctx_train": 32_768}}], "models": []}, (ListedModel("a", 32_768),)),
    ([{"id": "a"}], (ListedModel("a"),)),
    ({"data": []}, ()),
]


def answering(data: Any, status: int = 200) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return web.json_response(data, status=status)

    return handle


@asynccontextmanager
async def listing(data: Any, status: int = 200) -> AsyncIterator[str]:
    """A server that lists so, and chats."""

    async def chat(request: web.Request) -> web.StreamResponse:
        response = await stream(request, GOOD)
        await response.write_eof()
        return response

    routes = web.get("/v1/models", answering(data, status)), web.post("/v1/chat/completions", chat)
    async with serving(*routes) as address:
        yield f"{address}/v1"


@pytest.mark.parametrize(("data", "models"), LISTINGS)
async def test_a_listing_is_read_in_every_form(data: Any, models: tuple[ListedModel, ...]) -> None:
    async with listing(data) as url:
        assert await list_models(base_url=url) == models


@pytest.mark.parametrize(
    ("data", "status", "text"),
    [
        ({"error": {"message": "no key"}}, 401, "no key"),
        ({"error": {"message": "broke", "code": 500}}, 200, "broke"),
        ({"status": "ok"}, 200, "answered with no list"),
        ("hello", 200, "answered with no list"),
    ],
)
async def test_what_is_no_listing_says_so(data: Any, status: int, text: str) -> None:
    async with listing(data, status) as url:
        with pytest.raises(ProviderError, match=text):
            await list_models(base_url=url)


async def test_a_listing_without_a_server_says_so() -> None:
    with pytest.raises(ProviderError, match="no connection"):
        await list_models(base_url="http://127.0.0.1:1/v1")
    with pytest.raises(SpecError, match="list_models: unknown option"):
        await list_models(bas_url="x")


async def test_a_model_can_be_verified_before_its_first_request() -> None:
    async with listing({"data": [{"id": "qwen3-8b"}, {"id": "models/gemini"}]}) as url:
        for name in ("qwen3-8b", "gemini"):
            right = OpenAIModel(model=name, base_url=url, verify_model=True)
            assert (await right.chat(ChatRequest([Message("user", "hi")]))).text == "Hello"
            await right.close()
        wrong = OpenAIModel(model="qwen3-8", base_url=url, verify_model=True)
        for _ in range(2):
            with pytest.raises(ProviderError, match="does not serve 'qwen3-8'; did you mean 'qwen3-8b'") as raised:
                await wrong.chat(ChatRequest([Message("user", "hi")]))
            assert raised.value.failure == "caller"
        await wrong.close()


async def test_a_server_that_lists_nothing_proves_nothing() -> None:
    async with listing({"data": []}) as url:
        model = OpenAIModel(model="m", base_url=url, verify_model=True)
        assert (await model.chat(ChatRequest([Message("user", "hi")]))).text == "Hello"
        await model.close()


# -- embeddings ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def embedding(shape: Callable[[list[Any]], Any]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """A server that embeds a text as its length, and shapes the answer."""
    seen: list[dict[str, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append(body)
        lines = [{"index": n, "embedding": [len(text), 1]} for n, text in enumerate(body["input"])]
        return web.json_response(shape(lines))

    async with serving(web.post("/v1/embeddings", handle)) as address:
        yield f"{address}/v1", seen


async def test_texts_are_embedded_in_their_order_and_in_batches() -> None:
    def shuffled(lines: list[Any]) -> Any:
        return {"data": lines[::-1], "usage": {"prompt_tokens": len(lines), "total_tokens": len(lines)}}

    async with embedding(shuffled) as (url, seen):
        embedder = Embedder(model="e", base_url=url, batch=2, dimensions=2, extra_body={"user": "me"})
        got = await embedder.embed(["a", "bb", "ccc", "", "eeeee"])
        await embedder.close()
    assert [vector[0] for vector in got.vectors] == [1, 2, 3, 0, 5]
    assert got.usage == Usage(input_tokens=5)
    assert [body["input"] for body in seen] == [["a", "bb"], ["ccc", ""], ["eeeee"]]
    assert {name: seen[0][name] for name in ("model", "dimensions", "user", "encoding_format")} == {
        "model": "e",
        "dimensions": 2,
        "user": "me",
        "encoding_format": "float",
    }


async def test_no_texts_are_no_request() -> None:
    async with embedding(lambda lines: {}) as (url, seen):
        embedder = Embedder(model="e", base_url=url)
        assert (await embedder.embed([])).vectors == ()
        await embedder.close()
    assert seen == []


async def test_an_embedding_without_usage_is_estimated() -> None:
    async with embedding(lambda lines: {"data": lines}) as (url, _):
        embedder = Embedder(model="e", base_url=url)
        used = (await embedder.embed(["some text"])).usage
        await embedder.close()
    assert (used.estimated, used.input_tokens > 0) == (1, True)


@pytest.mark.parametrize(
    "shape",
    [
        lambda lines: {"data": lines[:-1]},
        lambda lines: {"data": [*lines[:-1], {"index": len(lines) - 1, "embedding": [1]}]},
        lambda lines: {"data": [{"index": n} for n in range(len(lines))]},
        lambda lines: {"status": "ok"},
        lambda lines: {"error": {"message": "no embeddings here", "code": 400}},
    ],
)
async def test_vectors_that_do_not_fit_the_texts_are_an_error(shape: Callable[[list[Any]], Any]) -> None:
    async with embedding(shape) as (url, _):
        embedder = Embedder(model="e", base_url=url)
        with pytest.raises(ProviderError) as raised:
            await embedder.embed(["a", "b"])
        await embedder.close()
    assert raised.value.failure == "caller"
    assert len(str(raised.value)) < 500


async def test_a_model_that_does_not_embed_says_so() -> None:
    async with fault_server() as server:
        embedder = Embedder(model="m", base_url=server.url("404"))
        with pytest.raises(ProviderError, match="404"):
            await embedder.embed(["a"])
        await embedder.close()
    assert json.dumps(server.seen) == '{"404": 1}'
