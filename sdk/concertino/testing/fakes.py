"""Fake tools and agents: real specs, run by the real executor, whose behaviour a test chooses.

A fake answers with `returns` (a value, or a function of the arguments), raises `raises`, or takes the next item of
`sequence`, of which exceptions are raised: a flaky member is a sequence. The three faulty tools do what plugins do
wrong: one never ends, one blocks, one ignores its cancellation; each ends after its own limit, so that a test
which leaves one behind still comes to an end.

Invariant: a fake remembers every call in `calls`, in the order of starting. A copy (`with_`) shares the memory.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from concertino.members.specs import AgentSpec, ToolSpec

_ANYTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": True}
_NOT_GIVEN: Any = object()


class _Behaviour:
    """What a fake does, and what was done with it."""

    def __init__(self, returns: Any, raises: Any, sequence: Iterable[Any], delay: float) -> None:
        self.calls: list[dict[str, Any]] = []
        self.running = self.most_at_once = self.cancelled = 0
        self.returns = returns
        self.raises = raises
        # A copy, so that one list can serve several fakes.
        self.sequence = None if sequence is _NOT_GIVEN else iter(list(sequence))
        self.delay = delay

    async def __call__(self, arguments: Mapping[str, Any], context: Any = None) -> Any:
        self.calls.append(dict(arguments))
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            answer = self._next()
            await self.wait()
            # Functions alone: a result may be a class or another callable that the test wants back.
            if inspect.isroutine(answer):
                answer = answer(arguments) if context is None else answer(arguments, context)
                answer = await answer if inspect.isawaitable(answer) else answer
            return answer
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    async def wait(self) -> None:
        """The time that it takes."""
        await asyncio.sleep(self.delay)

    def _next(self) -> Any:
        """The answer to this call, or an error to raise; chosen before any waiting, so that order is kept."""
        item = self.raises
        if self.sequence is not None:
            item = next(self.sequence, AssertionError(f"call {len(self.calls)} comes after the end of the sequence"))
        if isinstance(item, BaseException) or (isinstance(item, type) and issubclass(item, BaseException)):
            raise item
        return self.returns if self.sequence is None else item


class _Blocking(_Behaviour):
    """Holds the event loop while it waits."""

    async def wait(self) -> None:
        time.sleep(self.delay)  # noqa: ASYNC251 - blocking is the fault that it stands for


class _Stubborn(_Behaviour):
    """Goes on when it is cancelled, to the end of its delay, unless it is closed."""

    async def wait(self) -> None:
        end = time.monotonic() + self.delay
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                self.cancelled += 1


@dataclass(frozen=True, eq=False)
class FakeTool(ToolSpec):
    """A tool that remembers its calls; made by `fake_tool` and the functions of faults."""

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The arguments of every call, in the order of starting."""
        return _memory(self).calls

    @property
    def most_at_once(self) -> int:
        """How many calls of it ran side by side, at most."""
        return _memory(self).most_at_once

    @property
    def cancelled(self) -> int:
        """How often a call of it was cancelled."""
        return _memory(self).cancelled


@dataclass(frozen=True, eq=False)
class FakeAgent(AgentSpec):
    """An agent that remembers its calls; made by `fake_agent`."""

    calls = FakeTool.calls
    most_at_once = FakeTool.most_at_once
    cancelled = FakeTool.cancelled


def _memory(spec: ToolSpec) -> _Behaviour:
    assert isinstance(spec.function, _Behaviour)
    return spec.function


def fake_tool(
    name: str = "fake",
    schema: dict[str, Any] | None = None,
    *,
    returns: Any = None,
    raises: BaseException | type[BaseException] | None = None,
    sequence: Iterable[Any] = _NOT_GIVEN,
    delay: float = 0.0,
    **options: Any,
) -> FakeTool:
    """A tool that answers as told.

    Args:
        schema: its input schema; without one it takes any arguments.
        returns: the result, or a function `(arguments) -> result`, which may be a coroutine function.
        raises: raised instead.
        sequence: results and exceptions, one per call; a call after the last fails.
        delay: seconds that a call takes.
        options: other fields of `ToolSpec`.
    """
    behaviour = _Behaviour(returns, raises, sequence, delay)
    return _tool(name, behaviour, {"input_schema": schema or _ANYTHING, **options})


def fake_agent(
    name: str = "fake_agent",
    schema: dict[str, Any] | None = None,
    *,
    returns: Any = None,
    raises: BaseException | type[BaseException] | None = None,
    sequence: Iterable[Any] = _NOT_GIVEN,
    delay: float = 0.0,
    **options: Any,
) -> FakeAgent:
    """An agent that answers as told.

    Args:
        returns: the result, or a function `(arguments, context) -> result`, which may be a coroutine function and
            use the context to ask models and call members.
        options: other fields of `AgentSpec`; the rest is as for `fake_tool`.
    """
    behaviour = _Behaviour(returns, raises, sequence, delay)
    options = {"description": f"A fake agent called {name}.", "input_schema": schema or _ANYTHING, **options}
    return FakeAgent(name=name, function=behaviour, takes_mapping=True, context="context", **options)


def hanging_tool(name: str = "hanging", *, seconds: float = 3600.0, **options: Any) -> FakeTool:
    """A tool that does not come back for `seconds`, and stops when it is cancelled."""
    return _tool(name, _Behaviour(None, None, _NOT_GIVEN, seconds), options)


def blocking_tool(name: str = "blocking", *, seconds: float = 1.0, **options: Any) -> FakeTool:
    """An async tool that blocks the event loop for `seconds`."""
    return _tool(name, _Blocking(None, None, _NOT_GIVEN, seconds), options)


def stubborn_tool(name: str = "stubborn", *, seconds: float = 2.0, **options: Any) -> FakeTool:
    """A tool that ignores its cancellation; it ends after `seconds`, or when the executor closes its coroutine."""
    return _tool(name, _Stubborn(None, None, _NOT_GIVEN, seconds), options)


def _tool(name: str, behaviour: Callable[..., Any], options: dict[str, Any]) -> FakeTool:
    options = {"description": f"A fake tool called {name}.", "input_schema": _ANYTHING, **options}
    return FakeTool(name=name, function=behaviour, takes_mapping=True, **options)
