"""Tools that a client supplies: the client makes their calls, and its next request brings the results.

A run that calls one is suspended, as for a person's decision. The request with the results resumes it, in any process.

    pool = pool_with(preset.pool, request.tools, given)     # the pool of the run, from its beginning to its end
    key = call_key(run_id, "1.a")                           # the id of a call, as a client reads it
    run_id, call_id = split_key(key)

Invariant: the members that are made of some tools are the same each time, so a run can be resumed on them. None of them
has the name of a member of the pool, so a call of the pool is never one for the client to make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concertino import Context, Pool, ToolSpec
from concertino.core.errors import ConcertinoError

from .api_error import ApiError

_OWNER = "client"
_MOST_TOOLS = 128
_NAME = 64
Tool = Mapping[str, Any]
"""A tool as it is kept: name, description, parameters."""


def read_tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The functions among the tools of a body, in the form of either API.

    Raises:
        ApiError: one is something else; says which.
    """
    given = body.get("tools") or []
    if not isinstance(given, list) or len(given) > _MOST_TOOLS:
        raise _wrong("tools", f"expected a list of at most {_MOST_TOOLS} functions")
    tools = [_tool(tool, f"tools[{place}]") for place, tool in enumerate(given)]
    names = [tool["name"] for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _wrong("tools", f"the name {twice[0]!r} stands twice; give each tool a name of its own")
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none"):
        raise _wrong("tool_choice", "the model that leads decides what is called; expected auto or none")
    return [] if choice == "none" else tools


def _tool(tool: Any, where: str) -> dict[str, Any]:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or tool.get("type") != "function":
        kind = tool.get("type") if isinstance(tool, Mapping) else tool
        raise _wrong(where, f"{str(kind)[:40]!r}; expected a tool of the type function")
    name, schema = function.get("name"), function.get("parameters") or {"type": "object", "properties": {}}
    if not isinstance(name, str) or not 0 < len(name) <= _NAME or not name.replace("-", "_").isidentifier():
        raise _wrong(f"{where}.name", f"expected letters, digits, '_' or '-', at most {_NAME} of them")
    if not isinstance(schema, Mapping):
        raise _wrong(f"{where}.parameters", "expected a JSON schema")
    told = function.get("description")
    return {"name": name, "description": str(told or f"{name}, a tool of the client"), "parameters": dict(schema)}


def pool_with(pool: Pool, tools: Sequence[Tool], given: Mapping[str, str]) -> Pool:
    """A pool, and behind its members the tools of a client.

    Args:
        given: what the client's calls returned so far, by the id of the call.

    Raises:
        ApiError: a tool cannot be a member.
    """
    if not tools:
        return pool
    taken = {visible for visible, _ in pool.actions}
    if both := [tool["name"] for tool in tools if tool["name"] in taken]:
        raise _wrong("tools", f"{both[0]!r} is the name of a tool of this server; give yours another name")
    try:
        return pool.adding(*(_member(tool, given) for tool in tools))
    except ConcertinoError as error:
        raise _wrong("tools", str(error)) from error


def _member(tool: Tool, given: Mapping[str, str]) -> ToolSpec:
    async def returned(arguments: dict[str, Any], context: Context) -> str:
        # It is called when the run continues, which is when the client has brought the result.
        return given[context.call_id]

    return ToolSpec.from_schema(
        f"{_OWNER}/{tool['name']}",
        tool["description"],
        dict(tool["parameters"]),
        returned,
        context="context",
        approval=True,
        retry_safe=True,
        timeout=None,
    )


def names_of(tools: Sequence[Tool]) -> frozenset[str]:
    """The names of the members that are made of some tools, as a trace has them."""
    return frozenset(name for tool in tools for name in (tool["name"], f"{_OWNER}/{tool['name']}"))


def plain_name(name: str) -> str:
    """The name of a member as its client gave it."""
    return name.removeprefix(f"{_OWNER}/")


def call_key(run_id: str, call_id: str) -> str:
    """The id of a call for a client: it names the run, so that its result finds it."""
    return f"{run_id}_{call_id}"


def split_key(key: str) -> tuple[str, str]:
    """The ids of the run and of the call. Both are empty for the id of another server's call."""
    run_id, mark, call_id = key.partition("_")
    return (run_id, call_id) if mark else ("", "")


def _wrong(name: str, why: str) -> ApiError:
    return ApiError(400, f"{name}: {why}", param=name, code="invalid_value")
