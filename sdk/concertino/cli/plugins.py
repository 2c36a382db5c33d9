"""`concertino plugins` and `concertino doctor`: what is installed, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concertino.core.errors import UsageError

from . import complete
from .failures import Failed
from .options import common_options
from .output import counted, one_line, write_json, write_table
from .terminal import Painted, say

if TYPE_CHECKING:
    from concertino.plugins.status import PluginInfo

_STATES = {"loaded": "green", "failed": "red", "clash": "red", "disabled": "yellow"}
_LEVELS = {"ok": "green", "low": "cyan", "warning": "yellow", "medium": "yellow", "error": "red", "high": "red"}


@click.command("plugins")
@click.option("--load", is_flag=True, help="Import every plugin: hooks, members, guards, import times, faults.")
@common_options
def plugins(load: bool, as_json: bool) -> None:
    """List the installed plugins. Imports nothing, unless asked to.

    JSON: a list of {"name", "distribution", "version", "target", "state", "reason", "hooks", "members", "guards",
    "commands", "import_ms"}; the last five are null before a plugin is loaded. States: installed, loaded, failed,
    disabled, clash.
    """
    from concertino.plugins import default_manager

    manager = default_manager()
    commands: dict[str, str] = {}
    guards: dict[str, str] = {}
    if load:
        for row in manager.plugins():
            manager.load(row.name)
        commands = manager.providers_of_commands()
        guards = {name: name.partition("/")[0] for name in manager.guards()}
    rows = manager.plugins()
    if as_json:
        write_json([_as_json(row, commands, guards) for row in rows])
        return
    if not rows:
        say("No plugin is installed; `concertino new plugin NAME` writes one.")
        return
    more = ("MS", "MEMBERS", "GUARDS", "COMMANDS") if load else ()
    titles = ("NAME", "DISTRIBUTION", "VERSION", "STATE", *more, "REASON")
    write_table(titles, [_cells(row, commands, guards, load) for row in rows], _STATES)


def _as_json(row: PluginInfo, commands: dict[str, str], guards: dict[str, str]) -> dict[str, Any]:
    seen = row.import_seconds is not None
    return {
        "name": row.name,
        "distribution": row.distribution,
        "version": row.version,
        "target": row.target,
        "state": row.state,
        "reason": row.reason,
        "hooks": list(row.hooks) if seen else None,
        "members": list(row.members) if seen else None,
        "guards": _of(row, guards) if seen else None,
        "commands": _of(row, commands) if seen else None,
        "import_ms": round(row.import_seconds * 1000, 1) if row.import_seconds is not None else None,
    }


def _cells(row: PluginInfo, commands: dict[str, str], guards: dict[str, str], load: bool) -> tuple[object, ...]:
    ms = f"{row.import_seconds * 1000:.0f}" if row.import_seconds is not None else "-"
    named = (",".join(_of(row, guards)) or "-", ",".join(_of(row, commands)) or "-")
    extra = (ms, len(row.members), *named) if load else ()
    return (row.name, row.distribution or "-", row.version or "-", row.state, *extra, row.reason or "-")


def _of(row: PluginInfo, named: dict[str, str]) -> list[str]:
    return [name for name, provider in named.items() if provider == row.name]


@click.command("doctor")
@click.option(
    "--pool",
    "pool_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Look at the models of this pool file; by default at that of the settings, else at all installed ones.",
    shell_complete=complete.pool_files,
)
@click.option("--probe", is_flag=True, help="Ask model servers whether they answer; services on the web are not asked.")
@click.option("--security", is_flag=True, help="Look at what this installation leaves open to others instead.")
@common_options
def doctor(pool_file: Path | None, probe: bool, security: bool, as_json: bool) -> None:
    """Look for what is wrong with this installation: Python, plugins, members, settings, traces, and who can lead.

    Loads every plugin. With --security it loads the sandbox alone, starts no server and makes no member: it looks at
    isolation levels, at traces, sessions and keys that others can read, at addresses of servers, and at where plugins
    come from.

    Exit code: 0, or 1 if there is an error; with --security, 1 if a finding is high.

    JSON: {"ok", "findings": [{"level": "ok"|"warning"|"error", "subject", "text", "step"}], "leader",
    "models": [{"name", "can_lead", "why", "step"}]}; the leader is null where no model is chosen. With --security:
    {"ok", "findings": [{"severity": "high"|"medium"|"low"|"ok", "subject", "text", "step"}]}
    """
    if security:
        if pool_file is not None or probe:
            raise UsageError("--security goes with neither --pool nor --probe; it looks at files alone")
        _doctor_of_security(as_json)
        return
    from .doctor import examine

    findings, models = examine(pool_file=pool_file, probe=probe)
    errors = sum(finding.level == "error" for finding in findings)
    if as_json:
        listed = [{"name": m.name, "can_lead": not m.why, "why": m.why, "step": m.step} for m in models.models]
        found = [finding._asdict() for finding in findings]
        write_json({"ok": not errors, "findings": found, "leader": models.leader, "models": listed})
    else:
        _write_findings(findings)
    if errors:
        raise Failed("" if as_json else counted(errors, "error"))


def _doctor_of_security(as_json: bool) -> None:
    from concertino.plugins import default_manager

    from .doctor_security import inspect_security

    findings = inspect_security(default_manager())
    high = sum(finding.severity == "high" for finding in findings)
    if as_json:
        write_json({"ok": not high, "findings": [finding._asdict() for finding in findings]})
    else:
        _write_findings(findings)
    if high:
        raise Failed("" if as_json else counted(high, "finding") + " of high severity")


def _write_findings(findings: Sequence[tuple[str, str, str, str]]) -> None:
    for level, subject, text, step in findings:
        told = f"\n         -> {step}" if step else ""
        say(Painted(f"{level:<7}", _LEVELS[level]), f"  {one_line(subject)}: {text}{told}")
