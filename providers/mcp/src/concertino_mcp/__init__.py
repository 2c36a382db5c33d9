"""concertino-mcp: MCP servers as members of a pool: each tool of a server a tool, or the whole server one agent.

Servers are declared in `concertino.toml` or in a pool file:

    [providers.mcp.servers.files]
    command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]
    include = ["read_*", "list_*"]

or in Python: `Pool.of(*concertino_mcp.server("files", command=[...]))`. All sessions of a process live on one
background thread, are opened at their first use and kept; `close()` ends them, as the end of the interpreter does.
Importing this module imports neither the MCP SDK nor any other module of this distribution.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import AgentSpec, Finding, ProviderSettings, ToolSpec

    from .catalogue import Catalogue, Refusal
    from .declaration import Declaration
    from .failures import ServerError
    from .loop import close
    from .published import configured, inspect_server, refused, server, server_async

_HOMES = {
    "catalogue": ["Catalogue", "Refusal"],
    "declaration": ["Declaration"],
    "failures": ["ServerError"],
    "loop": ["close"],
    "published": ["configured", "inspect_server", "refused", "server", "server_async"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Catalogue",
    "Declaration",
    "Refusal",
    "ServerError",
    "close",
    "concertino_agents",
    "concertino_cli",
    "concertino_doctor",
    "concertino_tools",
    "configured",
    "inspect_server",
    "refused",
    "server",
    "server_async",
]


@hookimpl
def concertino_tools(settings: ProviderSettings) -> list[ToolSpec]:
    """The tools of the declared servers; a server that cannot be used is left out, with a warning."""
    from .published import published_tools

    return published_tools(settings)


@hookimpl
def concertino_agents(settings: ProviderSettings) -> list[AgentSpec]:
    """The servers that are declared as agents."""
    from .published import published_agents

    return published_agents(settings)


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """Which servers cannot be used, which tools were left out, and what is missing."""
    from .published import findings

    return findings(settings)


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino mcp list`, `concertino mcp call SERVER TOOL JSON`."""
    from .cli import mcp

    return [mcp]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
