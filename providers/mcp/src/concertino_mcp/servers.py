"""What is published for a table of settings, and what may be made in Python: the same catalogues either way.

Invariant: a declared server is asked once for one table, by whichever hook comes first; the answer serves the other
hooks, the doctor and the command line until the server says that its tools changed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino import AgentSpec, Finding, ToolSpec, UsageError

from .catalogue.catalogue import Refusal, ServerCatalogue, catalogues, catalogues_async
from .errors import McpServerError
from .registry.document import read_document
from .registry.server import registered
from .settings import McpServerSettings, declarations, declare

HOOK_SECONDS = 8.5
"""A hook has 10 s, on a busy machine too; a plugin that takes longer is taken for broken."""
SHOWN = 10
"""Refused tools of one server that the doctor names."""
_asking = threading.Lock()


def configured(settings: Mapping[str, Any] | None, seconds: float | None = None) -> list[ServerCatalogue]:
    """The catalogues of the servers of `[providers.mcp]`; a server that cannot be used has an `error`.

    Args:
        seconds: how long to wait at most; by default as long as the slowest may take.

    Raises:
        UsageError: a key or a value cannot be.
    """
    servers = declarations(settings)
    # One at a time: the hook that comes second finds the servers connected and their lists read.
    with _asking:
        return catalogues(servers, seconds)


def published_tools(settings: Mapping[str, Any] | None) -> list[ToolSpec]:
    """The tools of all servers that are declared as tools."""
    return [
        spec
        for found in configured(settings, HOOK_SECONDS)
        if found.declaration.kind == "tools"
        for spec in found.tools
    ]


def published_agents(settings: Mapping[str, Any] | None) -> list[AgentSpec]:
    """One agent for each server that is declared as an agent."""
    return [found.agent for found in configured(settings, HOOK_SECONDS) if found.agent is not None]


def refused(settings: Mapping[str, Any] | None) -> list[Refusal]:
    """What the servers of `[providers.mcp]` offer and the pool does not get, with the reasons.

    Raises:
        UsageError: a key or a value cannot be.
    """
    return [refusal for found in configured(settings) for refusal in found.refused]


def server(name: str, **options: Any) -> list[ToolSpec]:
    """The members that one server gives a pool: `Pool.of(*server("files", command=["files-server", "."]))`.

    Starts the server and waits for its list of tools. Inside a coroutine, use `server_async`.

    Args:
        name: letters, digits, '_' and '-', at most 32.
        options: the keys of a server's table; `as_` stands for `as`.

    Raises:
        UsageError: an option cannot be.
        McpServerError: the server cannot be used; says why.
    """
    return _members(catalogues([_declared(name, options)]))


async def server_async(name: str, **options: Any) -> list[ToolSpec]:
    """As `server`, from a coroutine."""
    return _members(await catalogues_async([_declared(name, options)]))


def inspect_server(name: str, **options: Any) -> ServerCatalogue:
    """As `server`, with everything that is known: versions, refused tools, notes. Raises nothing for a server."""
    return catalogues([_declared(name, options)])[0]


def registry_server(
    path: str | Path,
    *,
    allow: Sequence[str] = (),
    use: str = "",
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[ToolSpec]:
    """The members of the server that the `server.json` of an MCP registry describes. Inside a coroutine, use
    `registry_server_async`.

    Args:
        path: the file.
        allow: commands that may be started, word for word; the error of one that is missing gives its text.
        use: `remote`, `npm`, `pypi` or `oci`; by default the first that the file names and that is offered, an address
            before a package.
        inputs: arguments and variables that the file leaves open, by name. What is secret comes from the environment.
        options: the keys of a server's table, which win over the file; `as_` stands for `as`.

    Raises:
        UsageError: the file cannot be used, something is missing, or its command is not allowed.
        McpServerError: the server cannot be used; says why.
    """
    return _members(catalogues([_registered(Path(path), allow, use=use, inputs=inputs, **options)]))


async def registry_server_async(path: str | Path, **options: Any) -> list[ToolSpec]:
    """As `registry_server`, from a coroutine."""
    return _members(await catalogues_async([_registered(Path(path), **options)]))


def _registered(path: Path, allow: Sequence[str] = (), **options: Any) -> McpServerSettings:
    server = read_document(path)
    if server is None:
        raise UsageError(f"{path} is not the server.json of an MCP registry")
    return registered(server, allow, **_with_as(options))


def members_from(path: Path, settings: Mapping[str, Any]) -> list[ToolSpec] | None:
    """The members of the server in a file; None for a file of something else.

    Args:
        settings: `[providers.mcp]`, whose `allow` holds commands that may be started and whose `registry` the keys of
            single servers, by their names in the files.

    Raises:
        UsageError: as `registry_server`.
    """
    if path.suffix != ".json" or not path.is_file():
        return None
    server = read_document(path)
    if server is None:
        return None
    declarations(settings)  # a wrong key is said here, too
    options = settings.get("registry", {}).get(server.text("name"), {})
    return _members(catalogues([registered(server, settings.get("allow", ()), **options)]))


def _declared(name: str, options: dict[str, Any]) -> McpServerSettings:
    return declare(name, _with_as(options), where="concertino_mcp.server")


def _with_as(options: dict[str, Any]) -> dict[str, Any]:
    """Options with `as`, which is no name in Python."""
    return {"as" if key == "as_" else key: value for key, value in options.items()}


def _members(found: Sequence[ServerCatalogue]) -> list[ToolSpec]:
    (only,) = found
    if only.error:
        raise McpServerError(f"the MCP server {only.declaration.name!r} cannot be used: {only.error}")
    return list(only.members)


def findings(settings: Mapping[str, Any] | None) -> list[Finding]:
    """What a doctor says of the servers: which cannot be used, what was left out, what is missing."""
    found: list[Finding] = []
    for one in configured(settings, HOOK_SECONDS):
        subject = f"MCP server {one.declaration.name}"
        if one.error:
            found.append(Finding("error", subject, one.error, _step(one)))
            continue
        about = ", ".join(filter(None, [one.title, f"MCP {one.protocol}" if one.protocol else ""]))
        what = "1 agent with " if one.agent is not None else ""
        found.append(Finding("ok", subject, f"{what}{len(one.tools)} tools in {one.seconds:.1f} s ({about})"))
        found += [
            Finding("warning", f"{subject}, tool {refusal.tool}", f"left out: {refusal.reason}", "tell its author")
            for refusal in one.refused[:SHOWN]
        ]
        if len(one.refused) > SHOWN:
            more = f"{len(one.refused) - SHOWN} further tools are left out"
            found.append(Finding("warning", subject, more, "`concertino mcp list` shows them all"))
        found += [
            Finding("warning", f"{subject}, tool {n.tool}", n.reason, "tell its author") for n in one.notes[:SHOWN]
        ]
    return found


def _step(one: ServerCatalogue) -> str:
    if "environment variable" in one.error:
        return "set it where concertino runs"
    if "no program" in one.error:
        return "install it, or correct `command`"
    if "that a hook may take" in one.error:
        return "`concertino mcp list` waits longer; in Python, concertino_mcp.server(...) does"
    if "start_timeout" in one.error:
        return "see why, or raise `start_timeout`"
    return "check the address and the network" if one.declaration.url else "start its command by hand to see why"
