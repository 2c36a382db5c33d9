"""Web back-ends against stand-ins that answer as the services' documents say; no real service was ever asked."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from concertino import SpecError
from concertino.testing import run_call
from concertino_search import WebBackend, WebRequest, WebResult, published, web_search_tool
from concertino_search.settings import read_settings
from concertino_search.web import search as module
from concertino_search.web.backends import BACKENDS

KEY = "secret-key-0123456789"
ANSWERS: dict[str, Any] = {
    "tavily": {
        "query": "owl",
        "follow_up_questions": None,
        "answer": None,
        "images": [],
        "response_time": 1.09,
        "results": [
            {"title": "Owl", "url": "https://a.example/owl", "content": "Owls hunt.", "score": 0.98},
            {"title": "Owls", "url": "https://b.example/", "content": "More on owls.", "score": 0.5},
        ],
    },
    "serper": {
        "searchParameters": {"q": "owl", "type": "search", "engine": "google"},
        "organic": [
            {"title": "Owl", "link": "https://a.example/owl", "snippet": "Owls hunt.", "position": 1},
            {"title": "Owls", "link": "https://b.example/", "snippet": "More on owls.", "position": 2},
        ],
        "relatedSearches": [{"query": "owl food"}],
        "credits": 1,
    },
    "brave": {
        "type": "search",
        "query": {"original": "owl", "more_results_available": True},
        "web": {
            "type": "search",
            "results": [
                {"title": "Owl", "url": "https://a.example/owl", "description": "<strong>Owls</strong> hunt."},
                {
                    "title": "Owls",
                    "url": "https://b.example/",
                    "description": "More",
                    "extra_snippets": ["on owls &amp; mice."],
                },
            ],
        },
    },
    "searxng": {
        "query": "owl",
        "number_of_results": 0,
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": [],
        "unresponsive_engines": [["x", "timeout"]],
        "results": [
            {"url": "https://a.example/owl", "title": "Owl", "content": "Owls hunt.", "engine": "x", "score": 4.0},
            {"url": "https://b.example/", "title": "Owls", "content": "More on owls.", "engine": "y", "score": 1.0},
            {"url": "magnet:?xt=1", "title": "no page", "content": "", "engine": "z", "score": 0.5},
        ],
    },
    "duckduckgo": {
        "Heading": "Owl",
        "AbstractText": "Owls hunt.",
        "AbstractURL": "https://a.example/owl",
        "AbstractSource": "Wikipedia",
        "Answer": "",
        "Type": "A",
        "Results": [],
        "RelatedTopics": [
            {"Name": "Birds", "Topics": [{"FirstURL": "https://b.example/", "Text": "Owls - More on owls."}]},
            {"FirstURL": "https://a.example/owl", "Text": "Owl - again"},
        ],
    },
}


class Service:
    """A stand-in for all services: remembers what it was asked, and answers what a test set, then the usual."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.queue: list[web.Response] = []
        self.answer: Any = {}

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(request.query),
                "body": body,
                "headers": dict(request.headers),
            }
        )
        if self.queue:
            return self.queue.pop(0)
        return web.Response(text=json.dumps(self.answer), content_type="application/x-javascript")


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    for name in ("TAVILY_API_KEY", "SERPER_API_KEY", "BRAVE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.6)
    service = Service()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", service.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("SEARXNG_URL", service.url + "/")
    yield service
    await runner.cleanup()


def tool(name: str, service: Service, **options: Any) -> Any:
    service.answer = service.answer or ANSWERS[name]
    return web_search_tool(name, url="" if name == "searxng" else f"{service.url}/endpoint", **options)


@pytest.mark.parametrize("name", BACKENDS)
async def test_every_service_gives_results_of_one_form(name: str, service: Service) -> None:
    seen = await run_call(tool(name, service), {"queries": ["owl"], "top_k": 2})
    assert seen.ok, seen.error
    (result,) = seen.content["results"]
    assert [passage["id"] for passage in result["passages"]] == ["https://a.example/owl", "https://b.example/"]
    assert [passage["title"] for passage in result["passages"]] == ["Owl", "Owls"]
    assert result["passages"][0]["text"] == "Owls hunt."
    assert "on owls" in result["passages"][1]["text"]


@pytest.mark.parametrize(
    ("name", "method", "path", "where", "header"),
    [
        ("tavily", "POST", "/endpoint", {"query": "owl", "max_results": 2}, ("Authorization", f"Bearer {KEY}")),
        ("serper", "POST", "/endpoint", {"q": "owl", "num": 2}, ("X-API-KEY", KEY)),
        ("brave", "GET", "/endpoint", {"q": "owl", "count": "2"}, ("X-Subscription-Token", KEY)),
        ("searxng", "GET", "/search", {"q": "owl", "format": "json"}, None),
        ("duckduckgo", "GET", "/endpoint", {"q": "owl", "format": "json", "no_html": "1"}, None),
    ],
)
async def test_every_service_is_asked_as_its_documents_say(
    name: str, method: str, path: str, where: dict[str, Any], header: tuple[str, str] | None, service: Service
) -> None:
    await run_call(tool(name, service), {"queries": ["owl"], "top_k": 2})
    (asked,) = service.asked
    assert (asked["method"], asked["path"]) == (method, path)
    sent = asked["body"] if method == "POST" else asked["query"]
    assert where.items() <= sent.items()
    if header is not None:
        assert asked["headers"][header[0]] == header[1]
    assert KEY not in json.dumps([asked["path"], asked["query"], asked["body"]])


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, '{"detail": "Invalid key %s"}', "refused the key of TAVILY_API_KEY, status 401"),
        (400, "bad %s", r"answered, status 400: bad \[key\]"),
        (432, "plan limit", "quota used up, status 432"),
        (302, "", "answered, status 302"),
        (200, "<html>%s", "answered with invalid JSON"),
        (200, "[" * 100_000, "answered with invalid JSON"),
        (200, '{"results": [3]}', "in an unknown form"),
        (200, '"text"', "in an unknown form"),
        (200, "x" * 3_000_000, "more than 2,000,000 bytes"),
    ],
)
async def test_a_refusal_says_what_to_do_and_never_the_key(
    status: int, body: str, message: str, service: Service
) -> None:
    service.queue = [web.Response(status=status, text=body.replace("%s", KEY), headers={"Location": "/x"})]
    seen = await run_call(tool("tavily", service), {"queries": ["owl"]})
    assert seen.status == "EXEC_ERR"
    assert seen.error is not None
    assert re.search(message, seen.error.message), seen.error.message
    assert len(service.asked) == 1
    if status != 200:
        assert KEY not in json.dumps(seen.to_json())


async def test_searxng_without_json_says_where_to_allow_it(service: Service) -> None:
    service.queue = [web.Response(status=403, text="Forbidden")]
    seen = await run_call(tool("searxng", service), {"queries": ["owl"]})
    assert "settings.yml" in seen.error.message  # type: ignore[union-attr]


@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {"X-RateLimit-Reset": "0, 1419704"}, {}])
async def test_a_throttled_request_is_repeated_as_asked(headers: dict[str, str], service: Service) -> None:
    service.queue = [web.Response(status=429, headers=headers)]
    seen = await run_call(tool("brave", service), {"queries": ["owl"]})
    assert seen.ok
    assert len(service.asked) == 2


async def test_a_service_that_asks_for_too_long_a_wait_is_given_up_at_once(service: Service) -> None:
    service.queue = [web.Response(status=429, headers={"Retry-After": "3600"}, text="slow down")]
    seen = await run_call(tool("brave", service), {"queries": ["owl"]})
    assert "status 429: slow down; try later" in seen.error.message  # type: ignore[union-attr]
    assert len(service.asked) == 1


async def test_a_service_that_cannot_be_reached_is_said_and_does_not_tell_on_the_provider(service: Service) -> None:
    seen = await run_call(web_search_tool("tavily", url="http://127.0.0.1:9/"), {"queries": ["owl"]})
    assert "tavily cannot be reached" in seen.error.message  # type: ignore[union-attr]
    assert seen.attempts == 1
    assert seen.error.code == "rejected"  # type: ignore[union-attr]


async def test_one_query_that_fails_leaves_the_others(service: Service) -> None:
    service.queue = [web.Response(status=400, text="no")]
    seen = await run_call(tool("brave", service), {"queries": ["bad", "owl", "bad"]})
    assert seen.ok
    bad, owl, again = seen.content["results"]
    assert "status 400" in bad["error"]
    assert bad == again
    assert len(owl["passages"]) == 2
    assert len(service.asked) == 2


async def test_without_its_key_a_service_is_not_asked(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, what in (("", "is not set"), ("bad\nkey", "no header can carry"), ("schlüssel", "no header can carry")):
        monkeypatch.setenv("TAVILY_API_KEY", value)
        seen = await run_call(tool("tavily", service), {"queries": ["owl"]})
        assert f"TAVILY_API_KEY, which {'holds characters that ' if value else ''}{what}" in seen.error.message  # type: ignore[union-attr]
    assert service.asked == []


async def test_a_large_result_stays_in_bounds(service: Service) -> None:
    rows = [
        {"title": "T" * 500, "url": f"https://a.example/{n}?{'x' * 900}", "content": 'w"\\ ' * 2000} for n in range(20)
    ]
    service.answer = {"results": rows}
    queries = [f"owl {n}" for n in range(8)]
    seen = await run_call(tool("tavily", service), {"queries": queries, "top_k": 20})
    assert seen.truncated == 0
    assert len(json.dumps(seen.content, ensure_ascii=False)) <= 16_256
    assert len(seen.content["results"]) == 8


async def test_a_back_end_of_ones_own_is_a_request_and_a_reading(service: Service) -> None:
    own = WebBackend(
        "own",
        f"{service.url}/mine",
        "",
        lambda url, query, k, key: WebRequest("GET", url, {"ask": query}),
        lambda data: [WebResult(f"https://own.example/{n}", f"n {n}", "text") for n in data],
    )
    service.answer = [1, 2]
    seen = await run_call(web_search_tool(own), {"queries": ["owl"]})
    assert [passage["id"] for passage in seen.content["results"][0]["passages"]] == [
        "https://own.example/1",
        "https://own.example/2",
    ]


def test_an_unknown_back_end_is_a_mistake_of_the_declaration() -> None:
    with pytest.raises(SpecError, match="'bing': expected one of tavily, serper, brave, searxng, duckduckgo"):
        web_search_tool("bing")


# -- what is published -------------------------------------------------------------------------------------------------

VARIABLES = (
    "CONCERTINO_SEARCH_CORPUS",
    "CONCERTINO_SEARCH_WEB",
    "CONCERTINO_SEARCH_ANALYSER",
    "CONCERTINO_SEARCH_ABOUT",
    "CONCERTINO_SEARCH_CACHE",
    "TAVILY_API_KEY",
    "SERPER_API_KEY",
    "BRAVE_API_KEY",
    "SEARXNG_URL",
)
CORPUS = {"CONCERTINO_SEARCH_CORPUS": "birds.jsonl", "CONCERTINO_SEARCH_ABOUT": "facts about birds"}


@pytest.mark.parametrize(
    ("environment", "tools", "agents"),
    [
        ({}, ["fetch_page"], 0),
        (CORPUS, ["fetch_page", "search", "read"], 2),
        ({"CONCERTINO_SEARCH_WEB": "duckduckgo"}, ["fetch_page", "web_search"], 2),
        ({"SERPER_API_KEY": "x"}, ["fetch_page", "web_search"], 2),
        ({"SEARXNG_URL": "http://127.0.0.1:8888", **CORPUS}, ["fetch_page", "search", "read", "web_search"], 2),
    ],
)
def test_only_what_is_configured_is_published(
    environment: dict[str, str], tools: list[str], agents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = published.published_tools(read_settings())
    assert [spec.name for spec in found] == tools
    found_agents = published.published_agents(read_settings())
    assert len(found_agents) == agents
    for agent in found_agents:
        names = agent.function._names  # type: ignore[attr-defined]
        assert set(names.search) == {f"search/{name}" for name in ("search", "web_search") if name in tools}
        assert names.read == ("search/read" if "read" in tools else "")
    if "search" in tools:
        assert "facts about birds" in found[1].description


def test_an_index_is_built_beforehand_by_the_command_line(birds: Path, cache: Path) -> None:
    from click.testing import CliRunner
    from concertino_search import concertino_cli

    (command,) = concertino_cli()
    done = CliRunner().invoke(command, [str(birds), "--cache", str(cache)])
    assert done.exit_code == 0, done.output
    assert "4 passages in" in done.output
    lost = CliRunner().invoke(command, [str(birds) + "x", "--cache", str(cache)])
    assert lost.exit_code == 1
    assert "file or folder not found" in lost.output
