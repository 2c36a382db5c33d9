"""Follow one question through the SDK: which files and functions it enters, and how far the model and a tool are.

    python scripts/walk.py [--json]

A scripted model answers after one round with two calls. A *hop* is one function of the SDK on the way from
`Orchestrator.run` to the model's `chat`, or to a tool; the way leads through the tasks that are started on it.
A hop *only passes on* when its body, without the docstring, has no branch and at most two statements, the last of which
is a call.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVarTuple, Unpack
from weakref import WeakKeyDictionary

import concertino as ct
from concertino.testing import ScriptedModel

SDK = Path(str(ct.__file__)).resolve().parent


@dataclass
class Walk:
    """What was seen: calls per function, and the ways to the first request and to the first call of a tool."""

    calls: Counter[CodeType] = field(default_factory=Counter)
    changes_of_file: int = 0
    to_model: list[CodeType] = field(default_factory=list)
    to_tool: list[CodeType] = field(default_factory=list)


@dataclass(frozen=True)
class Figures:
    """The figures of one walk."""

    files: list[str]
    functions: int
    calls: int
    changes_of_file: int
    to_model: list[str]
    to_tool: list[str]

    @property
    def only_passing_on(self) -> list[str]:
        """The hops that do nothing but call the next."""
        return [hop for hop in dict.fromkeys([*self.to_model, *self.to_tool]) if hop.endswith(PASSES_ON)]


PASSES_ON = " (passes on)"


def walk() -> Figures:
    """Ask one question, and say which way it went. Imports and caches are warm: it is asked twice."""
    seen = Walk()
    with asyncio.Runner(loop_factory=_Loop) as runner:
        runner.run(_ask(Walk()))
        runner.run(_ask(seen))
    return Figures(
        sorted({_file(code) for code in seen.calls}),
        len(seen.calls),
        seen.calls.total(),
        seen.changes_of_file,
        [_name(code) for code in seen.to_model],
        [_name(code) for code in seen.to_tool],
    )


Given = TypeVarTuple("Given")


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that knows, of each task and each callback, by which way it was started."""

    def __init__(self) -> None:
        super().__init__()
        self.way: list[CodeType] = []  # of the callback that runs, where no task runs
        self.ways = WeakKeyDictionary[asyncio.Task[Any], list[CodeType]]()

    def call_soon(
        self, callback: Callable[[Unpack[Given]], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Remember the way for what the callback starts. A new task asks for its first step here."""
        way = self.way_to(sys._getframe(1))
        task = getattr(callback, "__self__", None)
        if isinstance(task, asyncio.Task):
            self.ways.setdefault(task, way)

        def run(*given: *Given) -> None:
            self.way = way
            callback(*given)

        return super().call_soon(run, *args, context=context)

    def way_to(self, frame: FrameType | None) -> list[CodeType]:
        """The functions of the SDK that led to a frame, the first one called first."""
        way: list[CodeType] = []
        while frame is not None:
            if _counts(frame.f_code):
                way.append(frame.f_code)
            frame = frame.f_back
        task = asyncio.current_task(self)
        above = self.ways.get(task, []) if task else self.way
        return list(dict.fromkeys([*above, *reversed(way)]))


async def _ask(walk: Walk) -> None:
    running = asyncio.get_running_loop()
    assert isinstance(running, _Loop)
    loop: _Loop = running

    @ct.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        walk.to_tool = walk.to_tool or loop.way_to(sys._getframe())
        return a + b

    class Model(ScriptedModel):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            walk.to_model = walk.to_model or loop.way_to(sys._getframe())
            return await super().chat(request)

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not ended and _counts(frame.f_code):
            walk.calls[frame.f_code] += 1
            walk.changes_of_file += frame.f_code.co_filename != last[0]
            last[0] = frame.f_code.co_filename

    last, ended = [""], False
    script = Model([("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})], "<answer>3 and 7</answer>")
    orchestrator, pool = ct.Orchestrator(script), ct.Pool.of(add)
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run = await orchestrator.run("1 + 2? 3 + 4?", pool=pool)
    finally:
        ended = True  # threads of the SDK that live on keep the profiler that they were started with
        sys.setprofile(None)
        threading.setprofile(None)
    assert run.answer == "3 and 7", run


def _counts(code: CodeType) -> bool:
    """Whether a function is the SDK's; what only stands in for a model, in `testing`, is not on the way."""
    return code.co_filename.startswith(str(SDK)) and not _file(code).startswith("testing/")


def _file(code: CodeType) -> str:
    return Path(code.co_filename).relative_to(SDK).as_posix()


def _name(code: CodeType) -> str:
    passes_on = (code.co_firstlineno, code.co_name) in _passing_on(code.co_filename)
    return f"{_file(code)}:{code.co_firstlineno} {code.co_qualname}{PASSES_ON * passes_on}"


@cache
def _passing_on(file: str) -> set[tuple[int, str]]:
    """First line and name of each function that only passes on; a decorator is its first line, as in a code object."""
    found = set()
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if len(body) <= 2 and body and _is_call(body[-1]) and not isinstance(body[0], _BRANCHES):
                found.add((min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name))
    return found


_BRANCHES = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Match | ast.Try


def _is_call(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Return | ast.Expr) else None
    return isinstance(value.value if isinstance(value, ast.Await) else value, ast.Call)


def main() -> None:
    """Print the walk."""
    figures = walk()
    if "--json" in sys.argv[1:]:
        print(json.dumps({**asdict(figures), "only_passing_on": figures.only_passing_on}))
        return
    print(f"{len(figures.files)} files, {figures.functions} functions, {figures.calls} calls of them,")
    print(f"{figures.changes_of_file} changes of file, {len(figures.only_passing_on)} hops that only pass on")
    for title, way in (("the model", figures.to_model), ("a tool", figures.to_tool)):
        print(f"\nto {title}, {len(way)} hops:", *way, sep="\n  ")
    print("\nfiles:", *figures.files, sep="\n  ")


if __name__ == "__main__":
    main()
