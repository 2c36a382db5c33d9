"""What a server offers, as members of a pool: a spec for each tool that can be used, a reason for each that cannot.

Invariant: a tool that cannot be used costs itself, never its server; a server that cannot be used costs itself, never
the others. Each is a `Refusal`, which `concertino doctor` and `concertino mcp list` show.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from concertino import SpecError, ToolSpec

from .declaration import Declaration
from .failures import ServerFailed
from .naming import Names
from .tools import McpTool

if TYPE_CHECKING:
    import mcp_types as types
    from concertino import AgentSpec

logger = logging.getLogger("concertino.mcp")

MAX_TOOLS = 1000
"""Tools of one server that are taken; `include` says which."""


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
class Catalogue:
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

    declaration: Declaration
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


@dataclass
class _Listing:
    """The answer of a server."""

    title: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: list[types.Tool] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


def catalogues(servers: Sequence[Declaration], seconds: float | None = None) -> list[Catalogue]:
    """What some servers offer; those that are not connected yet are started, all at once. Raises nothing for what a
    server does.

    Args:
        seconds: how long to wait at most; by default as long as the slowest may take. A server that has not answered
            by then is left out, and goes on starting.
    """
    from .loop import Closed, background

    if not servers:
        return []
    began = time.monotonic()
    from . import connection  # noqa: F401 - a second the first time, which is not the servers'

    longest = max(server.start_timeout for server in servers) + 1.5
    patience = longest if seconds is None else min(longest, max(1.0, seconds - (time.monotonic() - began)))
    try:
        listings = background().wait(lambda: _ask_all(servers, patience, longest), patience + 0.7)
    except (TimeoutError, Closed) as error:
        why = str(error) or _too_late(patience, longest)
        listings = [_Listing(error=why) for _ in servers]
    return _built(servers, listings)


async def catalogues_async(servers: Sequence[Declaration]) -> list[Catalogue]:
    """As `catalogues`, from a coroutine."""
    from .loop import background

    if not servers:
        return []
    longest = max(server.start_timeout for server in servers) + 1.5
    return _built(servers, await background().run(lambda: _ask_all(servers, longest, longest)))


async def _ask_all(servers: Sequence[Declaration], seconds: float, longest: float) -> list[_Listing]:
    """On the background loop: every server at once; what has not answered in time does not hold up the others."""
    tasks = [asyncio.ensure_future(_ask(server)) for server in servers]
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    return [_Listing(error=_too_late(seconds, longest)) if task in late else task.result() for task in tasks]


def _too_late(seconds: float, longest: float) -> str:
    if seconds < longest:
        return f"it did not list its tools within {seconds:.1f} s, which is all that a hook may take"
    return f"it did not list its tools within {seconds:.0f} s (start_timeout)"


async def _ask(server: Declaration) -> _Listing:
    """On the background loop."""
    from .loop import background

    began = time.monotonic()
    life = background().life(server)
    listing = _Listing()
    try:
        async with asyncio.timeout(server.start_timeout + 1.0):
            listing.tools, listing.unreadable = await life.tools()
        connection = life.connection
        if connection is not None:
            info = connection.session.server_info
            listing.title = f"{info.name} {info.version}".strip()[:120] if info is not None else ""
            listing.protocol = connection.session.protocol_version or ""
            listing.instructions = (connection.session.instructions or "")[:4000]
    except ServerFailed as failed:
        listing.error = str(failed)
    except TimeoutError:
        listing.error = f"it did not list its tools within {server.start_timeout:g} s (start_timeout)"
    except Exception as error:  # whatever a hostile answer brings about is this server's matter
        listing.error = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    listing.seconds = time.monotonic() - began
    return listing


def _built(servers: Sequence[Declaration], listings: Sequence[_Listing]) -> list[Catalogue]:
    names = Names()
    found = [_build(server, listing, names) for server, listing in zip(servers, listings, strict=True)]
    for catalogue in found:
        name = catalogue.declaration.name
        if catalogue.error:
            logger.warning("the MCP server %r is left out: %s", name, catalogue.error)
        elif catalogue.refused:
            first = catalogue.refused[0]
            logger.warning(
                "%d tools of the MCP server %r are left out; the first: %s: %s",
                len(catalogue.refused), name, first.tool, first.reason,
            )  # fmt: skip
    return found


def _build(server: Declaration, listing: _Listing, names: Names) -> Catalogue:
    """Specs and refusals of one server."""
    refused: list[Refusal] = []
    notes: list[Refusal] = []
    tools: list[ToolSpec] = []
    if listing.error:
        refused.append(Refusal(server.name, "", listing.error))
    refused += [Refusal(server.name, name[:200], why) for name, why in listing.unreadable if server.takes(name)]
    wanted = [tool for tool in listing.tools if server.takes(tool.name)]
    if len(wanted) > MAX_TOOLS:
        reason = f"it lists {len(wanted):,} tools, of which {MAX_TOOLS:,} are taken; name those you want in `include`"
        refused += [Refusal(server.name, tool.name[:200], reason) for tool in wanted[MAX_TOOLS:]]
    seen: set[str] = set()
    for tool in wanted[:MAX_TOOLS]:
        if tool.name in seen:
            refused.append(Refusal(server.name, tool.name[:200], "it is listed twice; the first one is taken"))
            continue
        seen.add(tool.name)
        made = _spec(server, tool, names, notes)
        if isinstance(made, ToolSpec):
            tools.append(made)
        else:
            refused.append(Refusal(server.name, tool.name[:200], made))
    agent = None
    if server.kind == "agent" and not listing.error:
        if tools:
            from .agent import server_agent

            agent = server_agent(server, tools, listing.title, listing.instructions)
        else:
            refused.append(Refusal(server.name, "", "no tool is left that an agent could use"))
    return Catalogue(
        server, listing.title, listing.protocol, listing.instructions, tuple(tools), agent, tuple(refused),
        tuple(notes), listing.error, listing.seconds,
    )  # fmt: skip


def _spec(server: Declaration, tool: types.Tool, names: Names, notes: list[Refusal]) -> ToolSpec | str:
    """The spec of a tool, or why it is left out."""
    from concertino.schema import SchemaRefused, admit

    if tool.execution is not None and tool.execution.task_support == "required":
        return "it can only be called as a task (taskSupport is 'required'), which is not offered"
    try:
        schema = admit(tool.input_schema)
    except SchemaRefused as refusal:
        return f"its input schema was refused: {refusal}"
    if schema.setdefault("type", "object") != "object":
        return f"its input schema is of type {schema['type']!r}; expected 'object'"
    prefix = f"{server.name}." if server.prefix is None else server.prefix
    name = names.give(prefix, tool.name)
    if name is None:
        return "another tool has its name"
    output = _output(server, tool, notes)
    writes, repeatable = _effects(server, tool)
    function = McpTool(server, tool.name, name, structured=output is not None, repeatable=repeatable)
    try:
        spec = ToolSpec.from_schema(
            f"mcp/{name}", _description(server, tool, renamed=name != f"{prefix}{tool.name}"), schema, function,
            output_schema=output, timeout=server.timeout, writes=writes, retry_safe=repeatable,
        )  # fmt: skip
        spec.admit()
    except SpecError as error:
        return str(error)
    return spec


def _output(server: Declaration, tool: types.Tool, notes: list[Refusal]) -> dict[str, Any] | None:
    """The output schema, None where there is none that can be checked."""
    from concertino.schema import SchemaRefused, admit

    if tool.output_schema is None:
        return None
    try:
        return admit(tool.output_schema)
    except SchemaRefused as refusal:
        reason = f"its results are not checked: its output schema was refused: {refusal}"
        notes.append(Refusal(server.name, tool.name[:200], reason))
        return None


def _effects(server: Declaration, tool: types.Tool) -> tuple[bool, bool]:
    """Whether a tool writes, and whether repeating a call does no harm.

    The server's annotations are taken at their word, and what was declared goes before them.
    """
    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    idempotent = hints is not None and hints.idempotent_hint is True
    declared = server.says_writes(tool.name)
    writes = not reads if declared is None else declared
    return writes, not writes or idempotent


def _description(server: Declaration, tool: types.Tool, *, renamed: bool) -> str:
    """What the model reads."""
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None) or ""
    text = (tool.description or "").strip() or title.strip()
    if not text:
        text = f"A tool of the MCP server {server.name}, which does not describe it."
    if renamed:
        text = f"{tool.name[:200]}: {text}"
    return text
