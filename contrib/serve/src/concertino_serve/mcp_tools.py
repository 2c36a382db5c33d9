"""The tools that MCP clients find: `ask`, which asks a preset, and the members of a pool, each with its own schema.

Invariants: the list is the same for everyone and has a fixed order. A member that needs a person's approval is not
offered as a tool, unless the settings approve it. A tool is what it was told to be: names, schemas and descriptions are
those that a leading model reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from concertino import AgentSpec, Pool, ToolSpec
from concertino.core.errors import UsageError

from .serve_settings import McpOffer, Preset, ServeSettings

ASK = "ask"
_PAGE = 200
"""Tools of one page of the list."""
_ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "stop": {"type": "string", "description": "Why it ended."},
        "calls": {"type": "integer", "description": "Calls that were made."},
        "usd": {"type": "number", "description": "What it cost."},
    },
    "required": ["answer", "stop", "calls", "usd"],
}


@dataclass(frozen=True)
class MemberTool:
    """A member as a tool.

    Attributes:
        name: as clients call it.
        card: what is said of it.
    """

    name: str
    card: str
    spec: ToolSpec

    @property
    def is_agent(self) -> bool:
        """Whether it makes calls itself."""
        return isinstance(self.spec, AgentSpec)


class McpTools:
    """The tools of a server.

    Attributes:
        presets: that `ask` may ask, by name.
        preset: whose pool the members are of.

    Raises:
        UsageError: a member has the name of `ask`.
        PoolError: a pattern of the settings matches nothing.
    """

    def __init__(self, settings: ServeSettings) -> None:
        offer = settings.mcp or McpOffer()
        self.presets: Mapping[str, Preset] = settings.presets
        self.preset = settings.presets[offer.preset or next(iter(settings.presets))]
        self.members = {tool.name: tool for tool in _open_members(self.preset.pool, offer)}
        if ASK in self.members:
            raise UsageError(
                f"mcp: the member {self.members[ASK].spec.name!r} has the name of a tool of the server; "
                "give it another one in the pool file: [aliases]"
            )

    def page(self, cursor: str | None, *, modern: bool) -> types.ListToolsResult:
        """A part of the list.

        Args:
            cursor: where it begins; None for the first one.
            modern: the client speaks 2026-07-28 or later, where a schema of results may be of any type.
        """
        begin = int(cursor) if cursor and cursor.isdecimal() and len(cursor) < 9 else 0
        tools = [self._ask(), *(_listed(tool, modern=modern) for tool in self.members.values())]
        more = begin + _PAGE < len(tools)
        return types.ListToolsResult(
            tools=tools[begin : begin + _PAGE], next_cursor=str(begin + _PAGE) if more else None
        )

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments; None if it is not known."""
        if name == ASK:
            return self._ask().input_schema
        tool = self.members.get(name)
        return None if tool is None else _input_schema(tool.spec)

    def _ask(self) -> types.Tool:
        properties: dict[str, Any] = {"question": {"type": "string", "description": "What is to be answered."}}
        if len(self.presets) > 1:
            properties["model"] = {"enum": list(self.presets), "default": next(iter(self.presets))}
        schema = {"type": "object", "properties": properties, "required": ["question"], "additionalProperties": False}
        return types.Tool(
            name=ASK,
            title="Ask the whole pool",
            description="Answers a question. A model leads: it plans, calls members of the pool, reads their results.",
            input_schema=schema,
            output_schema=_ANSWER_SCHEMA,
        )


def _open_members(pool: Pool, offer: McpOffer) -> list[MemberTool]:
    chosen = {spec.name for _, spec in pool.only(*offer.members).actions} if offer.members else set()
    return [
        MemberTool(name, pool.card(spec), spec)
        for name, spec in pool.actions
        if spec.name in chosen and (not spec.approval or offer.approves(spec))
    ]


def _listed(tool: MemberTool, *, modern: bool) -> types.Tool:
    spec = tool.spec
    schema = spec.output_schema
    told = schema if schema is not None and (modern or schema.get("type") == "object") else None
    return types.Tool(
        name=tool.name,
        title=spec.name,
        description=tool.card,
        input_schema=_input_schema(spec),
        output_schema=told,
        annotations=types.ToolAnnotations(read_only_hint=not spec.writes, idempotent_hint=spec.retry_safe),
    )


def _input_schema(spec: ToolSpec) -> dict[str, Any]:
    return {"type": "object", **spec.input_schema}
