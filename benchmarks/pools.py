"""S11: what a pool of 200 tools costs: rendering it for the orchestrator, hashing it, finding a call's member.

Each figure is of a fresh pool over tools that exist already, so no pool remembers the figure before; a tool keeps its
compiled schema and its text for hashing, so the first hash of all is stated apart. The tools
have five described parameters each, one of them an object, as real ones have. The floor of rendering is `json.dumps` of
the same action space, that of finding is a look into a dict.
"""

from __future__ import annotations

import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import concertino as ct
from measure import Row, script

TOOLS = 200
BAR = 5.0


def tools() -> list[ct.ToolSpec]:
    """Tools with schemas of the usual size."""
    return [ct.ToolSpec(f"shop/tool_{n}", f"Look up records of kind {n}. " * 4, schema(n), print) for n in range(TOOLS)]


def schema(number: int) -> dict[str, Any]:
    """A schema with five parameters."""
    text = {"type": "string", "description": "Words that the record must hold, in any order."}
    many = {"type": "array", "items": {"type": "string", "enum": ["open", "closed"]}, "description": "States to keep."}
    count = {"type": "integer", "minimum": 1, "maximum": 100 + number, "description": "How many records at most."}
    span = {
        "type": "object",
        "description": "From when to when.",
        "properties": {"from": {"type": "string", "format": "date"}, "to": {"type": "string", "format": "date"}},
        "additionalProperties": False,
    }
    properties = {"query": text, "kind": text, "states": many, "limit": count, "span": span}
    return {"type": "object", "properties": properties, "required": ["query"], "additionalProperties": False}


def milliseconds(work: Callable[[ct.Pool], object], members: list[ct.ToolSpec], repeat: int) -> float:
    """Median milliseconds of work on a fresh pool."""
    seen = []
    for _ in range(repeat):
        pool = ct.Pool(members)
        began = time.perf_counter()
        work(pool)
        seen.append((time.perf_counter() - began) * 1000)
    return statistics.median(seen)


def first_hash(repeat: int) -> float:
    """Median milliseconds of the hash of a pool whose tools were never hashed."""
    seen = []
    for _ in range(repeat):
        pool = ct.Pool(tools())
        began = time.perf_counter()
        pool.id  # noqa: B018 - made at its first use
        seen.append((time.perf_counter() - began) * 1000)
    return statistics.median(seen)


def rows(quick: bool) -> list[Row]:
    """All figures."""
    repeat = 5 if quick else 50
    members = tools()
    table = {member.short_name: member for member in members}
    measure = functools.partial(milliseconds, members=members, repeat=repeat)
    space = ct.Pool(members).to_openai()
    dumped = measure(lambda pool: json.dumps(space))
    first = measure(lambda pool: pool.find("tool_199"))
    return [
        Row("S11", "render a new pool of 200 tools", measure(lambda p: json.dumps(p.to_openai())), "ms", BAR, dumped),
        Row("S11", "hash a new pool of 200 tools", measure(lambda pool: pool.id), "ms", BAR),
        Row("S11", "hash a pool of 200 new tools", first_hash(repeat), "ms", BAR),
        Row("S11", "find a call's member, first time", first, "ms", BAR, measure(lambda pool: table["tool_199"])),
        Row("S11", "count its tokens", measure(lambda pool: pool.count_context()), "ms"),
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
