"""concertino-mcp: MCP servers as members of a pool: each tool of a server a tool, or the whole server one agent.

Servers are declared in `concertino.toml` or in a pool file:

    [providers.mcp.servers.files]
    command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
    include = ["read_*", "list_*"]

or in Python: `Pool.of(*concertino_mcp.server("files", command=[...]))`. All sessions of a process live on one
background thread, are opened at their first use and kept; `close()` ends them, as the end of the interpreter does.
Importing this package does not import the MCP SDK, which takes a second.

    settings    a declared server                      servers     what is published for a table of settings
    catalogue   what servers offer, and what not       members     a tool, and a server as an agent
    sessions    the thread, lives and connections      transport   stdio and HTTP
    errors      why a server cannot be used            cli         `concertino mcp`
    registry    the `server.json` of a registry as a server

`Pool.of(Path("server.json"))` makes members of the server that an MCP registry describes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concertino import AgentSpec, Finding, ProviderSettings, ToolSpec, hookimpl

from .catalogue.catalogue import ServerCatalogue
from .errors import McpServerError
from .servers import (
    configured,
    findings,
    inspect_server,
    members_from,
    published_agents,
    published_tools,
    refused,
    registry_server,
    registry_server_async,
    server,
    server_async,
)
from .sessions.background import close
from .settings import McpServerSettings

__all__ = [
    "McpServerError",
    "McpServerSettings",
    "ServerCatalogue",
    "close",
    "configured",
    "inspect_server",
    "refused",
    "registry_server",
    "registry_server_async",
    "server",
    "server_async",
]


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """The tools of the declared servers; a server that cannot be used is left out, with a warning."""
    return published_tools(settings)


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The servers that are declared as agents."""
    return published_agents(settings)


@hookimpl
def concertino_members_from(source: Any, settings: ProviderSettings) -> list[ToolSpec] | None:
    """The tools of the server that a `server.json` describes."""
    return members_from(source, settings) if isinstance(source, Path) else None


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Which servers cannot be used, which tools were left out, and what is missing."""
    return findings(settings)


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino mcp list`, `concertino mcp call SERVER TOOL JSON`."""
    from .cli import mcp  # imports click, which only the command line needs

    return [mcp]
