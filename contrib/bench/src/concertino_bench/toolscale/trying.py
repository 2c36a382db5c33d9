"""Tools that a model wrote, tried in the sandbox before anything rests on them.

A tool is called with a value made from its schema, and with keys of entries that exist where a parameter is called like
a table's key. It may refuse; it may not raise anything else, run on, or change what it may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino.schema import compile_schema

from .sandboxed import SandboxedToolkit, SandboxRunner, ToolCode
from .schemas import Schema


async def try_tools(
    tools: Sequence[ToolCode], schema: Schema, database: Mapping[str, Any], run: SandboxRunner
) -> dict[str, str]:
    """What is wrong with tools, by name; those that are sound are not in it."""
    found: dict[str, str] = {}
    for tool in tools:
        # Each tool alone, so that what one breaks is not held against another.
        toolkit = SandboxedToolkit(database, [tool], run, schema=schema)
        for arguments in trials(tool, schema, database):
            outcome = await toolkit.fresh().use(tool.name, arguments)
            # A refusal is sound: made-up arguments often cannot be served.
            if outcome.broken:
                found[tool.name] = f"called with {arguments!r}: {outcome.error}"
                break
    return found


def trials(tool: ToolCode, schema: Schema, database: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Arguments to try a tool with: made from the schema, then with keys of existing entries, first and last."""
    example = compile_schema(dict(tool.parameters)).example()
    properties = tool.parameters.get("properties") or {}
    keys = {table.key: list(database[name]) for name, table in schema.tables.items() if database[name]}
    named = {name: keys[name] for name in properties if name in keys}
    validator = compile_schema(dict(tool.parameters))
    found = [example]
    # The schema alone makes keys that do not exist, which a tool refuses before it does anything.
    for place in (0, -1):
        arguments = {**example, **{name: each[place] for name, each in named.items()}}
        if named and arguments not in found and validator.is_valid(arguments):
            found.append(arguments)
    return found
