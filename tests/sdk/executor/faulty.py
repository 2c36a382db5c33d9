"""Tools that misbehave, each in one way, with what must come of it; and good ones that share a round with them.

`FAULTS` is the matrix: a tool under the isolation that the documentation recommends for its kind of fault, and the
status and code of its one observation. Functions stand at module level so that a worker process can import them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import locale
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.members.specs import Isolation


@dataclass(frozen=True)
class Fault:
    """One row: the tool, and its observation."""

    tool: ct.ToolSpec
    status: str
    code: str
    said: str = ""

    @property
    def name(self) -> str:
        return self.tool.name


FAULTS: list[Fault] = []


def fault(
    status: str, code: str, said: str = "", isolation: Isolation = "loop", **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the matrix."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        options.setdefault("timeout", 20 if isolation == "process" else 0.3)
        spec = ct.tool(isolation=isolation, description="Misbehave.", **options)(function)
        FAULTS.append(Fault(spec, status, code, said))
        return function

    return add


# -- does not stop ---------------------------------------------------------------------------------------------------


@fault("TIMEOUT", "deadline")
async def swallows_cancellation() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


@fault("TIMEOUT", "deadline")
async def cleans_up_for_long() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        await asyncio.sleep(3600)


@fault("TIMEOUT", "deadline", isolation="thread")
async def blocks_its_loop() -> None:
    time.sleep(2)  # noqa: ASYNC251 - the fault itself


@fault("TIMEOUT", "deadline", isolation="thread")
async def swallows_cancellation_on_its_own_loop() -> None:
    ends = time.monotonic() + 2
    while time.monotonic() < ends:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)


@fault("TIMEOUT", "deadline")
def sleeps_in_a_thread() -> None:
    time.sleep(2)


@fault("TIMEOUT", "deadline", isolation="process", timeout=1.5)
def computes_for_ever() -> None:
    while True:
        pass


@fault("OK", "")
async def leaves_a_task() -> str:
    leftover = asyncio.get_running_loop().create_task(asyncio.sleep(3600), name="leftover")
    return f"left {leftover.get_name()}"


@fault("OK", "", isolation="thread")
async def leaves_a_task_on_its_own_loop() -> str:
    leftover = asyncio.get_running_loop().create_task(asyncio.sleep(3600), name="leftover")
    return f"left {leftover.get_name()}"


@fault("OK", "", isolation="process")
def leaves_a_thread() -> str:
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return "left"


# -- raises ----------------------------------------------------------------------------------------------------------


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


def _raises(error: Callable[[], BaseException], name: str, said: str) -> None:
    """Three rows: raised on the caller's loop, on a loop of its own, and in a thread."""

    async def on_loop() -> None:
        raise error()

    def in_thread() -> None:
        raise error()

    said = said or name
    fault("EXEC_ERR", "raised", said, name=f"raises_{name}")(on_loop)
    fault("EXEC_ERR", "raised", said, name=f"raises_{name}_on_its_own_loop", isolation="thread")(on_loop)
    fault("EXEC_ERR", "raised", said, name=f"raises_{name}_in_a_thread")(in_thread)


for _error, _name, _said in (
    (lambda: TimeoutError("inner"), "TimeoutError", "TimeoutError: inner"),
    (KeyboardInterrupt, "KeyboardInterrupt", ""),
    (lambda: SystemExit(3), "SystemExit", "SystemExit: 3"),
    (GeneratorExit, "GeneratorExit", ""),
    (lambda: ExceptionGroup("two", [ValueError(1), OSError(2)]), "ExceptionGroup", "two (2 sub-exceptions)"),
    (lambda: StopIteration(5), "StopIteration", "StopIteration"),
    (asyncio.CancelledError, "CancelledError", ""),
    (_Unprintable, "Unprintable", "its text cannot be read"),
):
    _raises(_error, _name, _said)


@fault("EXEC_ERR", "raised", "RecursionError")
async def recurses() -> None:
    def deeper() -> None:
        deeper()

    deeper()


@fault("EXEC_ERR", "raised", "KeyboardInterrupt", isolation="process")
def raises_in_a_process() -> None:
    raise KeyboardInterrupt


@fault("OK", "")
async def leaves_a_task_that_exits() -> str:
    async def leave() -> None:
        sys.exit(3)

    leftover = asyncio.get_running_loop().create_task(leave())
    with contextlib.suppress(BaseException):
        await leftover
    return "still here"


@fault("OK", "", isolation="thread")
async def leaves_a_task_that_exits_on_its_own_loop() -> str:
    async def leave() -> None:
        sys.exit(3)

    leftover = asyncio.get_running_loop().create_task(leave())
    with contextlib.suppress(BaseException):
        await leftover
    return "still here"


# -- returns what cannot be used --------------------------------------------------------------------------------------


def _numbers() -> Iterator[int]:
    while True:
        yield 1


async def _async_numbers() -> AsyncIterator[int]:
    while True:
        yield 1


@fault("EXEC_ERR", "bad_result", "generator")
async def returns_a_generator() -> Any:
    return _numbers()


@fault("EXEC_ERR", "bad_result", "async_generator")
async def returns_an_async_generator() -> Any:
    return _async_numbers()


@fault("EXEC_ERR", "bad_result", "not JSON data")
async def returns_objects() -> Any:
    return {"x": object(), "y": {1, 2}}


@fault("EXEC_ERR", "bad_result", "contains itself")
async def returns_a_cycle() -> Any:
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle
    return cycle


@fault("EXEC_ERR", "bad_result", "not JSON data")
async def returns_infinity() -> Any:
    return {"x": float("1e999")}


@fault("EXEC_ERR", "bad_result", "bytes")
async def returns_a_giant_text() -> Any:
    return "x" * 300_000_000


@fault("EXEC_ERR", "bad_result", "bytes")
async def returns_a_giant_list() -> Any:
    return ["x" * 1_000_000] * 300


@fault("EXEC_ERR", "bad_result", "nested too deeply")
async def returns_something_bottomless() -> Any:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@fault("EXEC_ERR", "bad_result", "output schema", output_schema={"type": "integer"})
async def breaks_its_own_schema() -> Any:
    return "not a number"


# -- touches the process ----------------------------------------------------------------------------------------------


@fault("OK", "", "the parent", isolation="process")
def forks() -> str:
    return "the parent" if os.fork() else "the child"


@fault("OK", "", isolation="process")
def forks_a_child_that_stays() -> int:
    child = os.fork()
    if child == 0:
        time.sleep(3600)
    return child  # the test looks for it afterwards


@fault("EXEC_ERR", "raised", "process died", isolation="process")
def closes_all_files() -> str:
    os.closerange(0, 1024)
    return "closed"


@fault("OK", "", isolation="process")
def changes_folder_and_environment() -> str:
    os.chdir("/")
    os.environ.clear()
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")
    return "changed"


@fault("OK", "", isolation="process")
def changes_signal_handlers() -> str:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(0)
    return "changed"


@fault("OK", "", isolation="process")
def replaces_json() -> str:
    json.dumps = json.loads = lambda *_, **__: "mine"  # type: ignore[assignment]
    return "replaced"


@fault("OK", "", isolation="process")
def prints_a_lot() -> str:
    for stream in (sys.stdout, sys.stderr):
        for _ in range(300):
            print("x" * 1000, file=stream)
    os.write(1, b"raw\n" * 1000)
    return "printed"


@fault("EXEC_ERR", "raised", "process died (exit code 7)", isolation="process")
def leaves_the_process() -> None:
    os._exit(7)


@fault("EXEC_ERR", "raised", "process died (signal 11)", isolation="process")
def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@fault("EXEC_ERR", "raised", "", isolation="process")
def returns_a_set_from_a_process() -> Any:
    return {1, 2}


# -- good neighbours --------------------------------------------------------------------------------------------------


@ct.tool(timeout=20)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0.02)
    return a + b


@ct.tool(timeout=20)
def count(text: str, letter: str) -> int:
    """Count a letter."""
    time.sleep(0.02)
    return text.count(letter)


@ct.tool(timeout=20)
async def encode(value: Any) -> dict[str, Any]:
    """Give data back with its own JSON, and the folder and language of the process."""
    return {
        "json": json.dumps(value),
        "folder": str(Path.cwd()),
        "path": os.environ.get("PATH"),
        "dir": locale.setlocale(0),
    }


NEIGHBOURS: list[ct.Call] = [
    ct.Call("add", {"a": 1, "b": 2}),
    ct.Call("count", {"text": "banana", "letter": "a"}),
    ct.Call("encode", {"value": [1, {"x": None}]}),
    ct.Call("add", {"a": 3, "b": "many"}),
    ct.Call("count", {"text": "mississippi", "letter": "s"}),
    ct.Call("addd", {}),
    ct.Call("add", '{"a": 5, "b": 6,}'),
    ct.Call("encode", {"value": "text"}),
    ct.Call("count", {"text": "", "letter": "x"}),
]
POOL = ct.Pool.of(add, count, encode, *(row.tool for row in FAULTS))
