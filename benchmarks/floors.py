"""The floors: what the same work costs with asyncio alone, so that an overhead can be read as one.

- *bare*: `asyncio.gather` over the functions, arguments already at hand. Nothing is checked; one fault ends all.
- *schema*: JSON text is read and validated with a compiled schema, then gathered.
- *careful*: about 25 lines that answer every call: unknown name, bad JSON, broken schema, exception, deadline. An
  executor with budget, events, gates, retries and plans on top cannot be cheaper, so this is the honest lower bound.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from concertino.schema import Validator, compile_schema


class Function(NamedTuple):
    """A tool of the floors."""

    run: Callable[..., Any]
    validator: Validator
    timeout: float | None = None


Written = Sequence[tuple[str, str]]
"""Calls as a model writes them: names and argument texts."""


def function(run: Callable[..., Any], schema: dict[str, Any], timeout: float | None = None) -> Function:
    """Compile the schema once, as the floors do at their start."""
    return Function(run, compile_schema(schema), timeout)


async def bare(run: Callable[..., Any], arguments: Mapping[str, Any], count: int) -> list[Any]:
    """Gather, and nothing else."""
    return await asyncio.gather(*[run(**arguments) for _ in range(count)])


async def schema(functions: Mapping[str, Function], calls: Written) -> list[Any]:
    """Read, validate, gather."""
    work = []
    for name, text in calls:
        chosen = functions[name]
        arguments = json.loads(text)
        if not chosen.validator.is_valid(arguments):
            raise ValueError(name)
        work.append(chosen.run(**arguments))
    return await asyncio.gather(*work)


async def careful(functions: Mapping[str, Function], calls: Written) -> list[tuple[str, Any]]:
    """Read, validate, gather with a deadline and a status for each call."""

    async def one(name: str, text: str) -> tuple[str, Any]:
        chosen = functions.get(name)
        if chosen is None:
            return "PARSE_ERR", f"no tool {name}; there are {', '.join(list(functions)[:8])}"
        try:
            arguments = json.loads(text)
        except ValueError as error:
            return "PARSE_ERR", str(error)
        if not chosen.validator.is_valid(arguments):
            return "PARSE_ERR", str(chosen.validator.check(arguments)[0])
        try:
            async with asyncio.timeout(chosen.timeout):
                return "OK", await chosen.run(**arguments)
        except TimeoutError:
            return "TIMEOUT", f"stopped after {chosen.timeout} s"
        except Exception as error:
            return "EXEC_ERR", f"{type(error).__name__}: {error}"

    return await asyncio.gather(*[one(name, text) for name, text in calls])
