"""The scenarios that every peer runs, inside the peer's own environment; `run.py` starts this file there.

    python _scenarios.py PEER SCENARIO...        prints one JSON object

A peer is a module beside this one. Its `build(functions, turns)` makes an agent the documented way, from plain typed
functions, with a scripted model that says the turns and then "done"; it returns a coroutine function that runs the
whole loop once and returns the texts that the tools' answers became for the model. `graph(nodes)`, where the peer runs
graphs, does the same for `(seconds, predecessors)` nodes. A turn is a list of `(tool name, arguments)`.

S0 is a whole run: from the question to the answer, with all that a run costs once; the tools and the agent are built
before. S1 is one turn more: what n more turns cost, divided by n. Both count processor time, since the machine may be
shared, and both are above `asyncio.gather` over the same functions in the same process.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import measure  # only the standard library: no peer has concertino installed

Turn = list[tuple[str, dict[str, Any]]]
Run = Callable[[], Awaitable[list[str]]]
ARGUMENTS = {"text": "hello", "count": 3}
PAUSE = 0.1
entered: list[float] = []
hanging: list[int] = []


async def probe(text: str, count: int) -> str:
    """Give the text back."""
    entered.append(time.perf_counter())
    return text


async def nap(number: int) -> str:
    """Wait."""
    await asyncio.sleep(PAUSE)
    return str(number)


def block(number: int) -> str:
    """Block the thread."""
    time.sleep(PAUSE)
    return str(number)


async def fail(number: int) -> str:
    """Raise."""
    raise ValueError(f"no index for {number}")


async def hang(number: int) -> str:
    """Return after five seconds: for ever, as far as a turn is concerned."""
    hanging.append(number)
    try:
        await asyncio.sleep(5)
    finally:
        hanging.pop()
    return str(number)


def named(number: int) -> list[Callable[..., Any]]:
    """`probe`, and more of it under other names."""

    def another(n: int) -> Callable[..., Any]:
        async def tool(text: str, count: int) -> str:
            """Give the text back."""
            return text

        tool.__name__ = tool.__qualname__ = f"probe{n}"
        return tool

    return [probe, *(another(n) for n in range(1, number))]


def whole_tools(number: int) -> list[Callable[..., Any]]:
    """Tools of four typed arguments, one of them a pydantic model; plain ones where the peer brings no pydantic."""
    try:
        from pydantic import BaseModel
    except ModuleNotFoundError:
        return named(number)

    class Options(BaseModel):
        depth: int = 1
        label: str = ""

    def another(n: int) -> Callable[..., Any]:
        async def tool(text: str, count: int, ratio: float, options: Options) -> str:
            """Give the text back."""
            entered.append(0.0)  # not all peers make the model that the type says
            return text

        tool.__annotations__["options"] = Options  # a peer could not look up the name of a local class
        tool.__name__ = tool.__qualname__ = "probe" if n == 0 else f"probe{n}"
        return tool

    return [another(n) for n in range(number)]


WHOLE = {"text": "hello", "count": 3, "ratio": 0.5, "options": {"depth": 2, "label": "x"}}


async def whole(build: Any, width: int, tools: int) -> float:
    """S0: microseconds of processor time per call of a whole run of one turn, above bare gather."""
    functions = whole_tools(tools)
    typed = len(functions[0].__annotations__) > 3
    run = build(functions, [[("probe", WHOLE if typed else ARGUMENTS)] * width])
    options = functions[0].__annotations__["options"](depth=2) if typed else None
    given = {**WHOLE, "options": options} if typed else ARGUMENTS

    async def bare() -> list[str]:
        return list(await asyncio.gather(*[functions[0](**given) for _ in range(width)]))

    repeat = max(20, 400 // width)
    times: dict[Run, list[float]] = {run: [], bare: []}
    for number in range(repeat + 5):
        for each, taken in times.items():
            entered.clear()
            began = time.process_time()
            await each()
            spent = time.process_time() - began
            if len(entered) != width:
                raise RuntimeError(f"{len(entered)} of {width} calls ran")
            if number >= 5:  # imports and caches belong to the first runs
                taken.append(spent)
    return (statistics.median(times[run]) - statistics.median(times[bare])) / width * 1e6


async def s0(build: Any) -> dict[str, float]:
    """S0 at several widths and numbers of tools."""
    sizes = ((1, 1), (10, 1), (100, 1), (100, 100), (100, 1000))
    return {f"S0 K={width}, {tools} tools us/call": await whole(build, width, tools) for width, tools in sizes}


async def seconds(run: Run) -> float:
    """How long one loop takes."""
    gc.collect()
    began = time.perf_counter()
    await run()
    return time.perf_counter() - began


async def per_call(build: Any, width: int, tools: int) -> float:
    """S1: microseconds of processor time per call of one more turn of `width` calls, above bare gather."""
    further = max(3, 60 // width)
    turn = [("probe", ARGUMENTS)] * width
    one = build(named(tools), [turn])
    more = build(named(tools), [turn] * (1 + further))

    async def bare() -> list[str]:
        for _ in range(further):
            await asyncio.gather(*[probe(**ARGUMENTS) for _ in range(width)])
        return []

    times: dict[str, list[float]] = {"one": [], "more": [], "bare": []}
    for number in range(6):
        for name, run in (("one", one), ("more", more), ("bare", bare)):
            entered.clear()
            began = time.process_time()
            await run()
            taken = time.process_time() - began
            expected = {"one": 1, "more": 1 + further, "bare": further}[name] * width
            if len(entered) != expected:
                raise RuntimeError(f"{len(entered)} of {expected} calls ran")
            if number:
                times[name].append(taken)
    middle = {name: statistics.median(values) for name, values in times.items()}
    return (middle["more"] - middle["one"] - middle["bare"]) / (further * width) * 1e6


async def s1(build: Any) -> dict[str, float]:
    """S1 at several widths, and with 100 tools."""
    found = {f"S1 K={width} us/call": await per_call(build, width, 1) for width in (1, 10, 100)}
    return {**found, "S1 K=100, 100 tools us/call": await per_call(build, 100, 100)}


async def s2(build: Any) -> dict[str, float]:
    """S2: 200 calls of 100 ms in one turn."""
    run = build([nap], [[("nap", {"number": n}) for n in range(200)]])
    return {"S2 200x100ms s": statistics.median([await seconds(run) for _ in range(3)])}


async def s2b(build: Any) -> dict[str, float]:
    """S2B: 64 blocking calls, and the longest time in which the event loop did not answer."""
    run = build([block], [[("block", {"number": n}) for n in range(64)]])
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began - 0.001)

    await seconds(build([probe], [[("probe", ARGUMENTS)]]))  # lazy imports are S6's matter
    heart = asyncio.create_task(beat())
    await asyncio.sleep(0)
    took = await seconds(run)
    await asyncio.sleep(0.005)  # a loop that was blocked to the very end shows only now
    heart.cancel()
    return {"S2B 64 blocking s": took, "S2B stall ms": longest * 1000}


async def s3(build: Any) -> dict[str, float]:
    """S3: 200 rounds of four calls; each round is as long as the time between its first call and the next round's."""
    entered.clear()
    await build([probe], [[("probe", ARGUMENTS)] * 4] * 200)()
    starts = entered[::4]
    laps = [(after - before) * 1000 for before, after in pairwise(starts)]
    first, last = statistics.median(laps[:40]), statistics.median(laps[-40:])
    return {"S3 first fifth ms/round": first, "S3 last fifth ms/round": last, "S3 growth x": last / first}


async def s4(build: Any, label: str = "S4") -> dict[str, Any]:
    """S4: 60 good, 10 invalid, 10 unknown, 10 raising, 10 hanging calls in one turn, in the peer's default state.

    S4T is the same with a time limit of half a second for the tool that hangs, where a peer has one (`build_limited`).
    """
    kinds = ["good"] * 60 + ["invalid", "unknown", "raising", "hanging"] * 10
    random.Random(4).shuffle(kinds)
    calls = {
        "good": ("probe", ARGUMENTS),
        "invalid": ("probe", {"text": "hello", "count": "many"}),
        "unknown": ("prob", ARGUMENTS),
        "raising": ("fail", {"number": 7}),
        "hanging": ("hang", {"number": 7}),
    }
    words = ("count", "probe", "no index for 7", "imed out", "no result after")
    run = build([probe, fail, hang], [[calls[kind] for kind in kinds]])
    began = time.perf_counter()
    try:
        answers = await run()
    except Exception as error:
        return {f"{label} dies of": f"{type(error).__name__}: {error}"[:100], f"{label} left running": len(hanging)}
    return {
        f"{label} s": time.perf_counter() - began,
        f"{label} answers of 100": len(answers),
        f"{label} good of 60": sum(answer.strip('"') == "hello" for answer in answers),
        f"{label} explained of 40": sum(any(word in a for word in words) for a in answers if a.strip('"') != "hello"),
        f"{label} longest answer": max(map(len, answers), default=0),
        f"{label} left running": len(hanging),
    }


async def s5(graph: Any) -> dict[str, float]:
    """S5: makespan of a graph of 40 nodes over its critical path; the same graphs as `graphs.py`."""
    found = []
    for seed in (7, 8, 9, 100, 101):
        nodes = make_graph(seed)
        ends: list[float] = []
        for wait, before in nodes:
            ends.append(wait + max((ends[other] for other in before), default=0.0))
        run = graph(nodes)
        began = time.perf_counter()
        await run()
        found.append((time.perf_counter() - began) / max(ends))
    return {"S5 median x path": statistics.median(found), "S5 worst x path": max(found)}


def make_graph(seed: int) -> list[tuple[float, tuple[int, ...]]]:
    """As `graphs.graph`: call n depends on up to three of the eight before it."""
    rng = random.Random(seed)
    nodes = []
    for number in range(40):
        near = range(max(0, number - 8), number)
        before = tuple(sorted(rng.sample(near, min(len(near), rng.choice((0, 1, 1, 2, 2, 3))))))
        nodes.append((rng.uniform(0.02, 0.2), before))
    return nodes


async def s7(build: Any) -> dict[str, float]:
    """S7: cancel a turn of 50 calls that hang; how long until it is over, and what still runs then."""
    await build([probe], [[("probe", ARGUMENTS)]])()
    task = asyncio.ensure_future(build([hang], [[("hang", {"number": n}) for n in range(50)]])())
    for _ in range(300):  # a peer with few threads never starts all of them
        if len(hanging) == 50:
            break
        await asyncio.sleep(0.01)
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait({task}, timeout=2)
    return {"S7 ms": (time.perf_counter() - began) * 1000, "S7 left running": len(hanging)}


async def s8(build: Any) -> dict[str, float]:
    """S8: 1,000 rounds of one call."""
    await build([probe], [[("probe", ARGUMENTS)]])()
    run = build([probe], [[("probe", ARGUMENTS)]] * 1000)
    before = measure.memory_mb()
    took = await seconds(run)
    return {"S8 s": took, "S8 MB": measure.memory_mb() - before}


def s6(name: str) -> dict[str, float]:
    """S6: import the peer, build an agent with 100 tools of typed arguments, run its first turn; processor time."""
    before = measure.memory_mb()
    began = time.process_time()
    peer = importlib.import_module(name)
    imported = time.process_time()
    functions = whole_tools(100)
    typed = len(functions[0].__annotations__) > 3
    run = peer.build(functions, [[("probe", WHOLE if typed else ARGUMENTS)]])
    built = time.process_time()
    asyncio.run(run())
    first = time.process_time()
    return {
        "S6 import ms": (imported - began) * 1000,
        "S6 build 100 tools ms": (built - imported) * 1000,
        "S6 first turn ms": (first - built) * 1000,
        "S6 all three ms": (first - began) * 1000,
        "S6 MB": measure.memory_mb() - before,
    }


SCENARIOS = {"S0": s0, "S1": s1, "S2": s2, "S2B": s2b, "S3": s3, "S4": s4, "S7": s7, "S8": s8}


def main(name: str, scenario: str) -> int:
    """Measure one scenario and print it."""
    found: dict[str, Any]
    if scenario == "S6":
        found = s6(name)
    else:
        peer = importlib.import_module(name)
        if scenario == "S4T":
            limited = getattr(peer, "build_limited", None)
            found = asyncio.run(s4(limited, "S4T")) if limited else {"S4T": "no time limit for a tool here"}
        elif scenario == "S5":
            found = asyncio.run(s5(peer.graph)) if hasattr(peer, "graph") else {"S5": "no graph of calls"}
        else:
            found = asyncio.run(SCENARIOS[scenario](peer.build))
    print(json.dumps({"version": peer_version(name), **found}), flush=True)
    if threading.active_count() > 1:
        import os

        os._exit(0)  # a peer's own threads must not keep the figures waiting
    return 0


def peer_version(name: str) -> str:
    """The version of the distribution that was measured."""
    from importlib import metadata

    return metadata.version(importlib.import_module(name).DISTRIBUTION)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
