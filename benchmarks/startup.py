"""S6: what a fresh process pays before its first call: imports, a pool of 100 tools, the first turn, the command.

    python benchmarks/startup.py [--json] [--quick]

Every figure comes from processes of their own, with bytecode cached in a temporary folder; a first process fills it
and does not count. Imports are lazy, so `import concertino` alone would flatter: "all of a run" also imports pool,
executor and orchestrator. Building tools includes reading signatures and docstrings, and compiling schemas.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from measure import Row, script

MEMORY = """
import os, time, json
def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
before, began = memory(), time.perf_counter()
{work}
print(json.dumps([(time.perf_counter() - began) * 1000, memory() - before]))
"""
ALL = "from concertino import Budget, Call, Executor, Orchestrator, ParallelRounds, Plan, Pool, tool"
TOOLS = """
import asyncio, gc, json, time
from typing import Literal, TypedDict
import pydantic
from concertino import Call, Executor, Pool, tool
import concertino.schema
def make(number):
    async def search(query: str, count: int = 5, units: Literal["metric", "imperial"] = "metric",
                     tags: list[str] | None = None) -> str:
        '''Search the index.

        Args:
            query: what to look for.
            count: how many results.
        '''
        return query
    return tool(name=f"search{number}")(search)
PYDANTIC = '''
class Place(pydantic.BaseModel):
    city: str = pydantic.Field(min_length=1)
    position: tuple[float, float]
def make(number):
    async def search(place: Place, count: int = pydantic.Field(5, ge=1)) -> str:
        "Search the index."
        return place.city
    return tool(name=f"search{number}")(search)
'''
arguments = '{"query": "rain"}'
if %r:
    exec(PYDANTIC)
    arguments = '{"place": {"city": "Oslo", "position": [1, 2]}}'
began = time.perf_counter()
pool = Pool([make(number) for number in range(100)])
pool.to_openai(), [spec.validator for _, spec in pool.actions]
built = time.perf_counter()
async def first():
    async with Executor() as executor:
        gc.collect()  # else it falls into this turn or not, by the number of objects that building has left
        began = time.perf_counter()
        seen = await executor.run([Call("search7", arguments)], pool)
        assert seen[0].ok, seen
        return time.perf_counter() - began
print(json.dumps([(built - began) * 1000, asyncio.run(first()) * 1000]))
"""


def median_of(program: str, repeat: int) -> list[float]:
    """Medians, position by position, of the list that a program prints."""
    printed = [json.loads(_run([sys.executable, "-c", program])) for _ in range(repeat + 1)]
    return [statistics.median(column) for column in zip(*printed[1:], strict=True)]


def _run(command: list[str], **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**inherited, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:80]} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def wall(commands: list[list[str]], repeat: int, **environment: str) -> list[float]:
    """Median milliseconds of whole processes, run in turn."""
    times: list[list[float]] = [[] for _ in commands]
    for number in range(repeat + 1):
        for seen, command in zip(times, commands, strict=True):
            began = time.perf_counter()
            _run(command, **environment)
            if number:
                seen.append((time.perf_counter() - began) * 1000)
    return [statistics.median(seen) for seen in times]


def imports(repeat: int) -> list[Row]:
    """`import concertino`, and everything that a run needs."""
    light = median_of(MEMORY.format(work="import concertino"), repeat)
    whole = median_of(MEMORY.format(work=ALL), repeat)
    bare = median_of(MEMORY.format(work="import asyncio"), repeat)
    return [
        Row("S6", "import concertino", light[0], "ms", 80.0),
        Row("S6", "import all of a run", whole[0], "ms", 80.0, bare[0], note="floor: import asyncio"),
        Row("S6", "import all of a run, memory", whole[1], "MB", 20.0, bare[1]),
    ]


def pools(repeat: int) -> list[Row]:
    """100 tools and the first turn; tools whose annotations need pydantic are stated apart."""
    plain = median_of(TOOLS % False, repeat)
    models = median_of(TOOLS % True, repeat)
    return [
        Row("S6", "build 100 tools, schemas compiled", plain[0], "ms", 20.0),
        Row("S6", "first turn, all lazy imports included", plain[1], "ms", 2.0),
        Row("S6", "build 100 tools of pydantic models", models[0], "ms"),
        Row("S6", "first turn of a tool of pydantic models", models[1], "ms"),
    ]


def make_dummies(folder: Path, number: int) -> None:
    """Distributions that publish one entry point each."""
    for n in range(number):
        info = folder / f"dummy_{n}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: dummy-{n}\nVersion: 1.0\n"
        (info / "METADATA").write_text(head, encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[concertino]\ndummy{n} = dummy_{n}\n", encoding="utf-8")


def command_line(repeat: int) -> list[Row]:
    """`concertino --help`, and the list of plugins with 200 more of them installed."""
    command = shutil.which("concertino", path=sysconfig.get_path("scripts"))
    if command is None:
        return [Row("S6", "concertino --help", None, "ms", note="the command is not installed")]
    bare, helped, listed = wall([[sys.executable, "-c", ""], [command, "--help"], [command, "plugins"]], repeat)
    with tempfile.TemporaryDirectory() as name:
        make_dummies(Path(name), 200)
        more = wall([[command, "plugins"]], repeat, PYTHONPATH=name)[0]
    return [
        Row("S6", "concertino --help, above bare", helped - bare, "ms", floor=bare, note="floor: bare python"),
        Row("S6", "concertino plugins, above bare", listed - bare, "ms", floor=bare),
        Row("S6", "concertino plugins: 200 dummies more add", more - listed, "ms"),
    ]


def rows(quick: bool) -> list[Row]:
    """All figures."""
    repeat = 2 if quick else 9
    with tempfile.TemporaryDirectory() as name:
        os.environ["PYTHONPYCACHEPREFIX"] = name
        return [*imports(repeat), *pools(repeat), *command_line(max(2, repeat // 2))]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
