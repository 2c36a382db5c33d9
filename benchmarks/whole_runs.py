"""S0: whole runs: from a question to its answer, with all that a run costs once.

    python benchmarks/whole_runs.py [--json] [--quick]

A run has one turn of K calls and an answer, over a pool of T tools with four typed arguments, one of them a pydantic
model. The model is scripted and answers at once; the tools give a text back. All is in it: the orchestrator, its
executor, the prompt, both requests, reading the text, validation, conversion, the calls, the observations, the record
in memory. The pool is built before, and lists all of its tools. Figures are processor time per call above
`asyncio.gather` over the same functions; the floor is the careful one (`floors.py`), which reads, validates, and gives
each call a deadline and a status.

Growth: a run of one call over pools of JSON schemas, in milliseconds for the whole run; what is searched has
concertino-search installed, and a question that was searched before. The first question costs more (`tool_search.py`).

`python benchmarks/peers/run.py --only S0` measures other frameworks alike.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

if sys.argv[1:] == ["--one", "hidden"]:
    cast("Any", sys.modules)["jsonschema_rs"] = None

import concertino as ct
import floors
from measure import Row, memory_mb, script

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import _scenarios as scenarios
import concertino_rounds

SIZES = ((1, 1), (10, 1), (100, 1), (1000, 1), (100, 100), (100, 1000))
FORMS: dict[str, Callable[..., Any]] = {
    "text": concertino_rounds.build,
    "native": partial(concertino_rounds.build, native=True),
    "text, trace": partial(concertino_rounds.build, trace=True),
}


async def floor_of(width: int, tools: int) -> float:
    """Microseconds per call of the careful floor, above bare gather."""
    whole = scenarios.whole_tools(tools)
    spec = ct.tool(whole[0])
    options = whole[0].__annotations__["options"]

    async def run_typed(text: str, count: int, ratio: float, options: Any) -> str:
        return str(await whole[0](text=text, count=count, ratio=ratio, options=convert(options)))

    convert = options.model_validate
    functions = {"probe": floors.function(run_typed, spec.input_schema, 30.0)}
    calls = [("probe", json.dumps(scenarios.WHOLE))] * width

    def build(_: Any, __: Any) -> Callable[[], Awaitable[Any]]:
        return partial(floors.careful, functions, calls)

    above: float = await scenarios.whole(build, width, tools)
    return above


async def sized(quick: bool) -> list[Row]:
    """What a call costs in a whole run."""
    rows = []
    for width, tools in SIZES[:3] if quick else SIZES:
        floor = await floor_of(width, tools)
        for form, build in FORMS.items():
            value = await scenarios.whole(build, width, tools)
            rows.append(Row("S0", f"K={width}, {tools} tools, {form}", value, "us/call", None, floor))
    return rows


def schema_of(number: int) -> dict[str, Any]:
    """A schema like those that servers publish."""
    filters = {"since": {"type": "string", "format": "date"}, "kind": {"enum": ["a", "b", "c"]}}
    return {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": f"What to look for in place {number}."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "filters": {"type": "object", "properties": filters, "additionalProperties": False},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def look(arguments: dict[str, Any]) -> str:
    """Look for things."""
    return "nothing"


async def one_run(pool: ct.Pool, model: ct.Model) -> float:
    """Milliseconds of processor time of a run of one call."""
    began = time.process_time()
    run = await ct.Orchestrator(model).run("What is in place 7?", pool=pool)
    spent = time.process_time() - began
    if run.answer != "done" or not run.rounds[0].observations[0].ok:
        raise SystemExit(f"a run failed: {run.detail}")
    return spent * 1e3


def growth(quick: bool) -> list[Row]:
    """What a run costs over ever more tools."""
    rows: list[Row] = []
    seen: dict[str, float] = {}
    text = '<tool_call>{"name": "look_7", "arguments": {"query": "x"}}</tool_call>'
    usage = ct.Usage(input_tokens=10, output_tokens=10)
    for tools in (10, 1000) if quick else (10, 100, 1000, 10_000):
        schemas = [schema_of(number) for number in range(tools)]
        before, began = memory_mb(), time.process_time()
        pool = ct.Pool.of(
            *(
                ct.ToolSpec(f"p{n % 300}/look_{n}", f"Looks in place {n}.", schema, look, takes_mapping=True)
                for n, schema in enumerate(schemas)
            )
        )
        built, grown = time.process_time() - began, memory_mb() - before
        if tools == 10_000:
            rows.append(Row("S0", "build 10,000 tools from JSON schemas", built, "s", 3.0))
            rows.append(Row("S0", "build 10,000 tools from JSON schemas, memory", grown, "MB", 60.0))
        for way in ("never", "auto"):
            model = concertino_rounds.Scripted(
                [ct.Reply(text, usage=usage), ct.Reply("<answer>done</answer>", usage=usage)]
            )
            asked = pool.with_search(way)
            asyncio.run(one_run(asked, model))
            value = statistics.median([asyncio.run(one_run(asked, model)) for _ in range(10 if quick else 60)])
            shown = "listed" if way == "never" else "searched if large"
            seen[f"{shown} {tools}"] = value
            rows.append(Row("S0", f"a run of one call over {tools:,} tools, {shown}", value, "ms"))
            if tools == 10_000:
                share = value / seen[f"{shown} 10"]
                rows.append(Row("S0", f"the same: 10,000 tools / 10 tools, {shown}", share, "x", 1.2))
    return rows


def without_rust() -> list[Row]:
    """A turn of 100 with the schemas of `jsonschema` in place of those of jsonschema-rs, over the same with it."""
    found = []
    for hidden in ("", "hidden"):
        command = [sys.executable, str(Path(__file__).resolve()), "--one", hidden]
        found.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    return [Row("S0", "K=100, 1 tools, text: without jsonschema-rs / with it", found[1] / found[0], "x", 3.0)]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return [*asyncio.run(sized(quick)), *without_rust(), *growth(quick)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(asyncio.run(scenarios.whole(FORMS["text"], 100, 1)))
    else:
        sys.exit(script(rows, __doc__))
