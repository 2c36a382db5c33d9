"""A tool as a server lists it, as a spec of the pool.

Invariant: what the model sees is the server's own schema, admitted; a tool that would fail in every call, or could harm
who validates it, is refused here with a reason.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from concertino import SpecError, ToolSpec, without_secrets
from concertino.core.display_text import is_plain_name, one_line
from concertino.schema import SchemaRefused, admit

from concertino_mcp.members.agent import SHOWN
from concertino_mcp.members.tool import McpTool
from concertino_mcp.settings import McpServerSettings

from .names import ToolNames

if TYPE_CHECKING:
    import mcp_types as types


class ToolRefused(Exception):
    """A tool cannot be used; the text says why."""


def to_spec(server: McpServerSettings, tool: types.Tool, names: ToolNames, notes: list[str]) -> ToolSpec:
    """The spec of a tool.

    Args:
        names: gives the tool its name in the pool.
        notes: takes what was changed: an output schema that is not checked, a name with hidden characters.

    Raises:
        ToolRefused: it is left out; says why.
    """
    if tool.execution is not None and tool.execution.task_support == "required":
        raise ToolRefused("it can only be called as a task (taskSupport is 'required'), which is not offered")
    try:
        schema = admit(_without_secrets(tool.input_schema))
    except SchemaRefused as refusal:
        raise ToolRefused(f"its input schema was refused: {refusal}") from None
    if schema.setdefault("type", "object") != "object":
        raise ToolRefused(f"its input schema is of type {schema['type']!r}; expected 'object'")
    prefix = f"{server.name}." if server.prefix is None else server.prefix
    name = names.give(prefix, tool.name)
    if name is None:
        raise ToolRefused("another tool has its name; give the server a `prefix` of its own")
    if not is_plain_name(tool.name):
        notes.append(f"its name holds characters that nobody sees; it is called {name}")
    output = _output(tool, notes)
    writes, repeatable = _effects(server, tool)
    function = McpTool(server, tool.name, name, structured=output is not None, repeatable=repeatable)
    try:
        spec = ToolSpec.from_schema(
            f"mcp/{name}",
            _description(server, tool, renamed=name != f"{prefix}{tool.name}"),
            schema,
            function,
            output_schema=output,
            timeout=server.timeout,
            writes=writes,
            retry_safe=repeatable,
            context="ctx",
            max_chars=SHOWN if server.kind == "agent" else ToolSpec.max_chars,
        )
        spec.admit()
    except SpecError as error:
        raise ToolRefused(str(error)) from None
    return spec


def _output(tool: types.Tool, notes: list[str]) -> dict[str, Any] | None:
    """The output schema, None where there is none that can be checked."""
    if tool.output_schema is None:
        return None
    try:
        return admit(_without_secrets(tool.output_schema))
    except SchemaRefused as refusal:
        notes.append(f"its results are not checked: its output schema was refused: {refusal}")
        return None


def _effects(server: McpServerSettings, tool: types.Tool) -> tuple[bool, bool]:
    """Whether a tool writes, and whether repeating a call does no harm.

    The server's annotations are believed; what was declared overrides them.
    """
    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    idempotent = hints is not None and hints.idempotent_hint is True
    declared = server.says_writes(tool.name)
    writes = not reads if declared is None else declared
    return writes, not writes or idempotent


def _description(server: McpServerSettings, tool: types.Tool, *, renamed: bool) -> str:
    """What the model reads."""
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None) or ""
    text = (tool.description or "").strip() or title.strip()
    if not text:
        text = f"A tool of the MCP server {server.name}, which does not describe it."
    if renamed:
        text = f"{one_line(tool.name, 200)}: {text}"
    return without_secrets(text)


def _without_secrets(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, unless the server put a key into it that it was given."""
    text = json.dumps(schema)
    safe = without_secrets(text)
    found: dict[str, Any] = schema if safe == text else json.loads(safe)
    return found
