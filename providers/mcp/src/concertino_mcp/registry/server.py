"""Which way to a registry's server is taken, and whether its command may be started.

A file names several ways: addresses where the server runs already, and packages to start here. The first that is
offered is taken, an address before a package, since it starts nothing.

Invariant: a command that a file names is started only if the user has allowed that very command, word for word, with
the variables that it gets; another version, argument or variable is another command.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from concertino import UsageError

from concertino_mcp.settings import McpServerSettings, declare

from .document import Entry
from .inputs import Inputs
from .launch import NotOffered, package_table, remote_table

WAYS = ("remote", "npm", "pypi", "oci")
"""What `use` may say."""
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


def registered(
    server: Entry, allow: Collection[str], *, use: str = "", inputs: Mapping[str, Any] | None = None, **options: Any
) -> McpServerSettings:
    """The server of a file, as a declaration.

    Args:
        allow: commands that may be started, as texts.
        use: the way to it; by default the first that is offered.
        inputs: what the file leaves open.
        options: further keys of a server's table, which win over the file.

    Raises:
        UsageError: nothing in it is offered, something is missing, or its command was not allowed; says what to do.
    """
    if use not in ("", *WAYS):
        server.fail(f"use = {use!r}; expected one of {', '.join(WAYS)}")
    if not isinstance(inputs or {}, Mapping):
        server.fail(f"inputs = {inputs!r}; expected a table")
    short = _UNFIT.sub("-", server.text("name").rpartition("/")[2]).strip("-_")[:32] or "server"
    refused: list[str] = []
    for way, entry in _ways(server):
        if use not in ("", way):
            continue
        values = Inputs(short, inputs or {}, server.where)
        try:
            table, command = (remote_table(entry, values), "") if way == "remote" else package_table(entry, values)
        except NotOffered as reason:
            refused.append(f"{entry.where.removeprefix(f'{server.where}.')}: {reason}")
            continue
        values.check()
        found = declare(short, {**table, **options}, where=server.where)
        if command:
            _check_allowed(command, server, allow)
        return found
    wanted = f"no way {use!r}" if use else "nothing that is offered"
    raise UsageError(f"{server.where}: {server.text('name')} has {wanted}{_why(refused)}")


def _ways(server: Entry) -> Iterator[tuple[str, Entry]]:
    for remote in server.parts("remotes"):
        yield "remote", remote
    for package in server.parts("packages"):
        yield package.text("registryType"), package


def _why(refused: list[str]) -> str:
    return f" ({'; '.join(refused)})" if refused else "; it names no package and no remote"


def _check_allowed(command: str, server: Entry, allow: Collection[str]) -> None:
    if isinstance(allow, str) or not isinstance(allow, Collection) or not all(isinstance(each, str) for each in allow):
        raise UsageError(f"{server.where}: allow = {allow!r}; expected a list of commands, each a text")
    if command not in allow:
        raise UsageError(
            f"{server.where}: {server.text('name')} would start a command that you have not allowed: {command}\n"
            f"If you trust it, allow it word for word: allow = [{_quoted(command)}] under [providers.mcp] of the pool "
            f"file or of concertino.toml, or concertino_mcp.registry_server({server.where!r}, allow=[...])"
        )


def _quoted(command: str) -> str:
    escaped = command.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
