"""What servers answer when they are asked for their tools: all at once, each within its time.

Invariant: whatever a server does or sends is an answer with an `error`, of this server alone. Everything here runs on
the background loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from concertino.core.display_text import one_line

from concertino_mcp.errors import ServerFailed
from concertino_mcp.settings import McpServerSettings

if TYPE_CHECKING:
    import mcp_types as types


@dataclass
class Listing:
    """The answer of a server.

    Attributes:
        title: what it calls itself, with its version; empty if it did not say.
        protocol: the version of MCP that was agreed on.
        instructions: what it says about its use.
        tools: as it lists them.
        unreadable: names of tools that break the protocol, and how.
        error: why there is no answer; empty if there is one.
        seconds: from the question to the answer.
    """

    title: str = ""
    protocol: str = ""
    instructions: str = ""
    tools: list[types.Tool] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0


async def ask_all(servers: Sequence[McpServerSettings], seconds: float, longest: float) -> list[Listing]:
    """Every server at once; what has not answered in time does not hold up the others."""
    tasks = [asyncio.ensure_future(_ask(server)) for server in servers]
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    return [Listing(error=too_late(seconds, longest)) if task in late else task.result() for task in tasks]


def too_late(seconds: float, longest: float) -> str:
    """Why a server is left out that did not answer in time."""
    if seconds < longest:
        return f"it did not list its tools within {seconds:.1f} s, which is all that a hook may take"
    return f"it did not list its tools within {seconds:.0f} s (start_timeout)"


async def _ask(server: McpServerSettings) -> Listing:
    """One server; started if it is not connected."""
    from concertino_mcp.sessions.background import background

    began = time.monotonic()
    life = background().life(server)
    listing = Listing()
    try:
        # A second more than the start may take, whose own error knows the reason.
        async with asyncio.timeout(server.start_timeout + 1.0):
            listing.tools, listing.unreadable = await life.tools()
        connection = life.connection
        if connection is not None:
            info = connection.session.server_info
            listing.title = one_line(f"{info.name} {info.version}", 120) if info is not None else ""
            listing.protocol = one_line(connection.session.protocol_version or "")
            listing.instructions = (connection.session.instructions or "")[:4000]
    except ServerFailed as failed:
        listing.error = one_line(failed)
    except TimeoutError:
        listing.error = f"it did not list its tools within {server.start_timeout:g} s (start_timeout)"
    except Exception as error:  # whatever a hostile answer causes must not affect other servers
        listing.error = f"{type(error).__name__}: {one_line(error, 300)}"
    listing.seconds = time.monotonic() - began
    return listing
