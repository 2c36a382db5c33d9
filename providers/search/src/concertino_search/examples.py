"""What `concertino check concertino-search` may call: nothing that leaves the machine, and no service that costs money.

What is published depends on the settings, so the examples do too. A corpus speaks for itself: `search` has to find its
first passage by that passage's own words. Agents work in a pool of their own, with two passages and a model that
answers by the schema it is asked for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from concertino import ChatRequest, Model, ModelSpec, Pool, Reply, ToolSpec, Usage

from .published import PROVIDER
from .settings import SearchSettings
from .web.backends import chosen_backend

_WAIT = "wait for half a minute"
_QUOTE = "The kiwi smells worms with its beak."
_PASSAGES = [
    {"id": "kiwi", "title": "Kiwi", "text": _QUOTE},
    {"id": "owl", "title": "Owl", "text": "An owl hunts at night, and hears a mouse under snow."},
]
_LISTS = {"queries": ["what a kiwi smells"], "sources": ["S1"], "read": ["S1"]}
_CITED = {"source": "S1", "quote": _QUOTE}
_ROWS = {
    "findings": [{"claim": "A kiwi smells worms.", **_CITED}],
    "statements": [{"text": "A kiwi smells worms.", "citations": [_CITED]}],
}
_PLAIN = {"answer": "worms", "enough": True}


class SchemaFiller(Model):
    """Fills in what a schema asks for, and waits where the task says so."""

    async def chat(self, request: ChatRequest) -> Reply:
        """One JSON object."""
        if any(_WAIT in message.text for message in request.messages):
            await asyncio.sleep(30)
        wanted = (request.schema or {}).get("properties", {})
        known = {**_LISTS, **_ROWS, **_PLAIN}
        text = json.dumps({name: known[name] for name in wanted})
        return Reply(text, usage=Usage(input_tokens=20, output_tokens=20))


def make_pool() -> Pool:
    """The model, and two passages under all names that the agents may have been given."""
    texts: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
    asked = {"type": "object", "properties": {"queries": texts, "top_k": {"type": "integer"}}, "required": ["queries"]}
    named = {"type": "object", "properties": {"ids": texts}, "required": ["ids"]}
    tools = [
        ToolSpec.from_schema(f"{PROVIDER}/{name}", "Search two passages about birds.", asked, _search, retry_safe=True)
        for name in ("search", "web_search")
    ]
    tools.append(ToolSpec.from_schema(f"{PROVIDER}/read", "Read passages by id.", named, _read, retry_safe=True))
    return Pool([*tools, ModelSpec("answering", SchemaFiller)], roles={"default": "answering", "writer": "answering"})


async def _search(arguments: Mapping[str, Any]) -> dict[str, Any]:
    words = [set(query.lower().split()) for query in arguments["queries"]]
    found = [[p for p in _PASSAGES if asked & set(p["text"].lower().split())] for asked in words]
    rows = zip(arguments["queries"], found, strict=True)
    return {"results": [{"query": query, "passages": passages} for query, passages in rows]}


async def _read(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"passages": [passage for passage in _PASSAGES if passage["id"] in arguments["ids"]]}


def examples_of(settings: SearchSettings) -> dict[str, Any]:
    """The examples of what these settings publish.

    Raises:
        CorpusError: the corpus cannot be read.
    """
    found: dict[str, Any] = {"fetch_page": _FETCH_PAGE}
    web = chosen_backend(settings.web) is not None
    if settings.corpus is not None:
        found |= _of_corpus(settings)
    if web:
        found["web_search"] = _WEB_SEARCH
    if web or settings.corpus is not None:
        found |= {
            name: _agent(key) for name, key in (("knowledge_searcher", "evidence"), ("deep_research", "citations"))
        }
    return found


def _of_corpus(settings: SearchSettings) -> dict[str, Any]:
    from .index.corpus import read_corpus

    assert settings.corpus is not None
    first = next(iter(read_corpus(settings.corpus)))
    return {
        "search": {
            "examples": [({"queries": [first.indexed[:300]], "top_k": 20}, _holds(first.id))],
            "rejected": [{}, {"queries": []}, {"queries": "one"}, {"queries": ["a"], "top_k": 0}],
            "without": {"failing": "a query without a hit is a result, not a failure", "slow": _QUICK},
        },
        "read": {
            "examples": [({"ids": [first.id]}, lambda found: found["passages"][0]["id"] == first.id)],
            "rejected": [{}, {"ids": []}, {"ids": "one"}],
            "failing": [{"ids": ["no passage has this id"]}],
            "without": {"slow": _QUICK},
        },
    }


def _holds(passage_id: str) -> Any:
    return lambda found: passage_id in [passage["id"] for passage in found["results"][0]["passages"]]


def _agent(key: str) -> dict[str, Any]:
    task = {"subtask": "What does a kiwi smell?"}
    return {
        "examples": [(task, lambda found: (found["answer"], len(found[key])) == ("worms", 1))],
        "rejected": [{"subtask": 3}, {**task, "model": 7}],
        "failing": [{}, {**task, "model": "nobody"}],
        "slow": {"subtask": _WAIT},
        "make_pool": make_pool,
    }


_QUICK = "it takes milliseconds on an open index"
_OUTSIDE = "a call leaves this machine, which a check does not"
_FETCH_PAGE = {
    "rejected": [{}, {"url": "ftp://example.org/"}, {"url": "https://example.org/", "start": -1}],
    "failing": [{"url": "http://127.0.0.1/"}, {"url": "http://localhost/"}, {"url": "http://0x7f.1/"}],
    "without": {"examples": _OUTSIDE, "slow": _OUTSIDE},
}
_WEB_SEARCH = {
    "rejected": [{}, {"queries": []}, {"queries": "one"}, {"queries": ["a"], "top_k": 0}],
    "without": dict.fromkeys(("examples", "failing", "slow"), f"{_OUTSIDE}, and may cost money"),
}
