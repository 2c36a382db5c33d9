"""What a server offers, as members of a pool: a spec for each tool that can be used, a reason for each that cannot.

Invariant: a tool that cannot be used costs itself, never its server; a server that cannot be used costs itself, never
the others. Each is a `Refusal`, which `concertino doctor` and `concertino mcp list` show.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from concertino import AgentSpec, ToolSpec
from concertino.core.display_text import one_line
from concertino.core.logs import logger_of

from concertino_mcp.members.agent import server_agent
from concertino_mcp.settings import McpServerSettings

from .listing import Listing, ask_all, too_late
from .names import ToolNames
from .specs import ToolRefused, to_spec

if TYPE_CHECKING:
    import mcp_types as types

logger = logger_of("mcp")

MAX_TOOLS = 1000
"""Tools of one server that are taken; `include` says which."""
_CHOOSE = "name those you want in `include`"


@dataclass(frozen=True)
class Refusal:
    """Something that was left out.

    Attributes:
        server: the server's name.
        tool: the tool's own name; empty for the whole server.
        reason: why.
    """

    server: str
    tool: str
    reason: str


@dataclass(frozen=True)
class ServerCatalogue:
    """What one server offers.

    Attributes:
        declaration: the server.
        title: what it calls itself, with its version; empty if it did not say.
        protocol: the version of MCP that was agreed on.
        instructions: what the server says about its use.
        tools: its tools as specs, for an agent's server too.
        agent: the server as one agent, where it was declared so.
        refused: what was left out.
        notes: what was taken with a change: an output schema that is not checked, a shortened description.
        error: why the server cannot be used; empty if it can.
        seconds: from the question to the answer.
    """

    declaration: McpServerSettings
    title: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    agent: AgentSpec | None = None
    refused: tuple[Refusal, ...] = ()
    notes: tuple[Refusal, ...] = ()
    error: str = ""
    seconds: float = 0.0

    @property
    def members(self) -> tuple[ToolSpec, ...]:
        """What a pool gets."""
        if self.declaration.kind == "agent":
            return (self.agent,) if self.agent is not None else ()
        return self.tools


def catalogues(servers: Sequence[McpServerSettings], seconds: float | None = None) -> list[ServerCatalogue]:
    """What some servers offer; those that are not connected yet are started, all at once. Raises nothing for what a
    server does.

    Args:
        seconds: how long to wait at most; by default as long as the slowest may take. A server that has not answered
            by then is left out, and its start continues.
    """
    from concertino_mcp.sessions.background import Closed, background

    if not servers:
        return []
    began = time.monotonic()
    from concertino_mcp.sessions import connection  # noqa: F401 - takes a second the first time; not the servers' fault

    longest = max(server.start_timeout for server in servers) + 1.5
    patience = longest if seconds is None else min(longest, max(1.0, seconds - (time.monotonic() - began)))
    try:
        listings = background().wait(lambda: ask_all(servers, patience, longest), patience + 0.7)
    except (TimeoutError, Closed) as error:
        why = str(error) or too_late(patience, longest)
        listings = [Listing(error=why) for _ in servers]
    return _built(servers, listings)


async def catalogues_async(servers: Sequence[McpServerSettings]) -> list[ServerCatalogue]:
    """As `catalogues`, from a coroutine."""
    from concertino_mcp.sessions.background import background

    if not servers:
        return []
    longest = max(server.start_timeout for server in servers) + 1.5
    return _built(servers, await background().run(lambda: ask_all(servers, longest, longest)))


def _built(servers: Sequence[McpServerSettings], listings: Sequence[Listing]) -> list[ServerCatalogue]:
    names = ToolNames()
    found = [_build(server, listing, names) for server, listing in zip(servers, listings, strict=True)]
    for catalogue in found:
        name = catalogue.declaration.name
        if catalogue.error:
            logger.warning("the MCP server %r is left out: %s", name, catalogue.error)
        elif catalogue.refused:
            first = catalogue.refused[0]
            logger.warning(
                "%d tools of the MCP server %r are left out; the first: %s: %s",
                len(catalogue.refused),
                name,
                first.tool,
                first.reason,
            )
    return found


def _build(server: McpServerSettings, listing: Listing, names: ToolNames) -> ServerCatalogue:
    """Specs and refusals of one server."""
    refused = [("", listing.error)] if listing.error else []
    refused += [(name, why) for name, why in listing.unreadable if server.takes(name)]
    wanted = [tool for tool in listing.tools if server.takes(tool.name)]
    too_many = f"it lists {len(wanted):,} tools, of which {MAX_TOOLS:,} are taken; {_CHOOSE}"
    refused += [(tool.name, too_many) for tool in wanted[MAX_TOOLS:]]
    notes: list[tuple[str, str]] = []
    tools = _specs(server, wanted[:MAX_TOOLS], names, refused, notes)
    agent = None
    if server.kind == "agent" and tools:
        agent = server_agent(server, tools, listing.title, listing.instructions)
    elif server.kind == "agent" and not listing.error:
        refused.append(("", "no tool is left that an agent could use"))
    return ServerCatalogue(
        server,
        listing.title,
        listing.protocol,
        listing.instructions,
        tools,
        agent,
        tuple(_told(server, tool, reason) for tool, reason in refused),
        tuple(_told(server, tool, note) for tool, note in notes),
        listing.error,
        listing.seconds,
    )


def _told(server: McpServerSettings, tool: str, text: str) -> Refusal:
    """What is said of a tool; a server wrote its name, and parts of the text."""
    return Refusal(server.name, one_line(tool, 200), one_line(text))


def _specs(
    server: McpServerSettings,
    tools: Sequence[types.Tool],
    names: ToolNames,
    refused: list[tuple[str, str]],
    notes: list[tuple[str, str]],
) -> tuple[ToolSpec, ...]:
    """The specs of those tools that can be used; why others cannot, and what was changed, is added to the lists."""
    seen: set[str] = set()
    specs: list[ToolSpec] = []
    for tool in tools:
        if tool.name in seen:
            refused.append((tool.name, "it is listed twice; the first one is taken"))
            continue
        seen.add(tool.name)
        own: list[str] = []
        try:
            specs.append(to_spec(server, tool, names, own))
        except ToolRefused as refusal:
            refused.append((tool.name, str(refusal)))
        notes += [(tool.name, note) for note in own]
    return tuple(specs)
