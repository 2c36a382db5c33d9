"""`concertino mcp`: see what the declared servers offer, and call one tool by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import click
from concertino.cli.output import one_line
from concertino.cli.terminal import say, say_json

if TYPE_CHECKING:
    from .catalogue.catalogue import ServerCatalogue


@click.group("mcp")
def mcp() -> None:
    """The MCP servers of `concertino.toml`: what they offer, and single calls."""


@mcp.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_servers(as_json: bool) -> None:
    """Start all servers; list versions, tools, and what was left out and why.

    JSON: a list of {"server", "transport", "as", "title", "protocol", "seconds", "error", "tools", "refused", "notes"}.
    The exit status is 1 if a server cannot be used.
    """
    from concertino import UsageError

    from .servers import configured
    from .sessions.background import close

    try:
        found = configured(_settings())
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    finally:
        close()
    if as_json:
        say_json([_as_json(one) for one in found], indent=2)
    elif not found:
        say("No MCP server is declared; write a table [providers.mcp.servers.NAME] into concertino.toml.")
    else:
        for one in found:
            _print(one)
    if any(one.error for one in found):
        raise SystemExit(1)


@mcp.command("call")
@click.argument("server")
@click.argument("tool")
@click.argument("arguments", default="{}")
def call_tool(server: str, tool: str, arguments: str) -> None:
    """Call TOOL of SERVER with ARGUMENTS, a JSON object; print the observation as JSON.

    The tool goes by its own name or by that in the pool. The exit status is 1 if the call did not succeed.
    """
    from concertino import Call, Executor, Pool, UsageError
    from concertino.schema import near_names

    from .catalogue.catalogue import catalogues
    from .members.tool import own_name
    from .sessions.background import close
    from .settings import declarations

    try:
        servers = {one.name: one for one in declarations(_settings())}
        if server not in servers:
            raise click.UsageError(_unknown("MCP server", server, servers, near_names(server, servers, limit=1)))
        (found,) = catalogues([servers[server]])
        if found.error:
            raise click.ClickException(f"the MCP server {server!r} cannot be used: {found.error}")
        specs = {key: spec for spec in found.tools for key in (spec.short_name, own_name(spec))}
        if tool not in specs:
            why = next((refusal.reason for refusal in found.refused if refusal.tool == tool), "")
            own = sorted(own_name(spec) for spec in found.tools)
            raise click.UsageError(why or _unknown("tool", tool, own, near_names(tool, own, limit=1)))
        spec = specs[tool]

        async def run() -> Any:
            async with Executor() as executor:
                return (await executor.run([Call(spec.name, arguments)], Pool.of(spec)))[0]

        seen = asyncio.run(run())
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    finally:
        close()
    say_json(seen.to_json(), indent=2)
    if not seen.ok:
        raise SystemExit(1)


def _settings() -> Any:
    """The table `[providers.mcp]` of `concertino.toml`."""
    from concertino.plugins import default_manager

    return default_manager().settings.providers.get("mcp")


def _unknown(kind: str, name: str, known: Collection[str], near: Sequence[str]) -> str:
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
    return f"there is no {kind} {name!r}; {hint}"


def _as_json(one: ServerCatalogue) -> dict[str, Any]:
    from .members.tool import own_name

    return {
        "server": one.declaration.name,
        "transport": one.declaration.transport,
        "as": one.declaration.kind,
        "title": one.title,
        "protocol": one.protocol,
        "seconds": round(one.seconds, 3),
        "error": one.error,
        "tools": [{"name": spec.name, "tool": own_name(spec), "writes": spec.writes} for spec in one.tools],
        "refused": [{"tool": refusal.tool, "reason": refusal.reason} for refusal in one.refused if refusal.tool],
        "notes": [{"tool": note.tool, "reason": note.reason} for note in one.notes],
    }


def _print(one: ServerCatalogue) -> None:
    declaration = one.declaration
    if one.error:
        say(f"{declaration.name}  CANNOT BE USED  {one_line(one.error)}")
        return
    tools = "1 tool" if len(one.tools) == 1 else f"{len(one.tools)} tools"
    about = ", ".join(filter(None, [one_line(one.title), f"MCP {one_line(one.protocol)}", f"{one.seconds:.1f} s"]))
    say(f"{declaration.name}  {declaration.transport}, as {declaration.kind}  {tools}  ({about})")
    for spec in one.tools:
        say(f"  {spec.name}{'  writes' if spec.writes else ''}")
    for refusal in one.refused:
        say(f"  left out: {one_line(refusal.tool)}: {one_line(refusal.reason)}")
    for note in one.notes:
        say(f"  note: {one_line(note.tool)}: {one_line(note.reason)}")
