"""The doctor: looks at the whole installation and says what is wrong, what is slow, and what to do about it.

A *finding* is one line: a level, what it is about, what was seen, and the next step. An *error* keeps
something from working, a *warning* makes it worse than it could be, *ok* says what was looked at. Every
plugin is loaded, and its import is also measured in a fresh process, where nothing else has imported its
dependencies before.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from concertino.core.display_text import counted
from concertino.members.specs import DESCRIPTION_LIMIT, ModelSpec, Spec, ToolSpec
from concertino.plugins.finding import Finding
from concertino.plugins.import_time import HEAVY_IMPORT, IMPORT_LIMIT, import_seconds

from .doctor_leaders import ModelReport, report_models

if TYPE_CHECKING:
    from concertino.plugins.manager import PluginManager
    from concertino.plugins.status import PluginInfo
    from concertino.pool.pool import Pool


def diagnose(manager: PluginManager | None = None) -> list[Finding]:
    """Look at everything, errors first; as `examine`, without the report on models."""
    return examine(manager)[0]


def examine(
    manager: PluginManager | None = None, *, pool_file: Path | None = None, probe: bool = False
) -> tuple[list[Finding], ModelReport]:
    """Look at everything, errors first. Loads every plugin, and takes about 0.1 s for each.

    Args:
        manager: whose plugins; by default the installed ones.
        pool_file: whose models are looked at; by default those of the settings' file, else all installed ones.
        probe: whether to ask model servers if they answer.

    Raises:
        UsageError: without a manager: the settings are wrong.
    """
    from concertino.plugins.manager import default_manager
    from concertino.traces.store import default_folder

    manager = manager or default_manager()
    # Only once all plugins were asked for all that they offer do their rows say what failed.
    specs = manager.specs()
    manager.strategies()
    manager.rankings()
    manager.commands()
    rows = manager.plugins()
    pool, of_file = _pool(manager, pool_file)
    models = ModelReport()
    if pool is not None:
        usable = [row.name for row in rows if row.state == "loaded"]
        models = report_models(pool, usable, probe=probe)
    findings = [
        *models.findings,
        *_environment(),
        *_traces(manager.settings.traces or default_folder()),
        *_settings(manager, rows),
        *of_file,
        *(finding for row in rows for finding in _plugin(row, specs)),
        *(finding for row in rows for finding in manager.findings(row.name)),
        *(finding for spec in specs for finding in _member(spec)),
    ]
    return sorted(findings, key=lambda finding: ("error", "warning", "ok").index(finding.level)), models


def _environment() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok", "python", f"{version} at {sys.executable}")
    if importlib.util.find_spec("jsonschema_rs"):
        yield Finding("ok", "jsonschema_rs", "installed: arguments are validated by compiled code")
    else:
        yield Finding(
            "warning",
            "jsonschema_rs",
            "not installed: arguments are validated by Python code, which is slower",
            "pip install jsonschema-rs",
        )


def _traces(folder: Path) -> Iterator[Finding]:
    """Whether the folder of traces can be written, or made."""
    # The folder may not exist yet; the nearest one that does decides whether it can be made.
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield Finding("ok", "traces", f"{folder} can be written")
        yield from _readable_by_others(folder)
        return
    why = "cannot be written" if existing.is_dir() else "is not a folder"
    step = f"make {existing} writable, or set `traces` in concertino.toml"
    yield Finding("error", "traces", f"runs cannot be recorded in {folder}: {existing} {why}", step)


def _readable_by_others(folder: Path) -> Iterator[Finding]:
    """Traces and sessions that were made with rights for other users, by an earlier version or by hand."""
    from concertino.core.private_files import too_open

    if not folder.is_dir() or not too_open([folder]):
        return  # nobody else comes into a private folder
    if files := too_open(file for file in folder.iterdir() if ".jsonl" in file.name):
        text = f"other users of this machine may read {counted(len(files), 'file')} in {folder}"
        yield Finding("warning", "traces", text, f"chmod -R go-rwx {folder}")


def _settings(manager: PluginManager, rows: tuple[PluginInfo, ...]) -> Iterator[Finding]:
    """Names in the settings that nothing has."""
    from concertino.schema import suggestion

    known, given = [row.name for row in rows], manager.settings
    for name in dict.fromkeys([*given.disable, *(given.only or ()), *given.always]):
        if name not in known:
            step = suggestion(name, known, "remove the name")
            yield Finding("warning", "settings", f"they name the provider {name!r}, which is not installed", step)


def _pool(manager: PluginManager, given: Path | None) -> tuple[Pool | None, list[Finding]]:
    """The pool whose models are looked at, if it can be read, and what there is to say of its file."""
    from concertino.core.errors import ConcertinoError
    from concertino.core.trust import UntrustedFile
    from concertino.pool.pool import Pool

    file = given or manager.settings.pool
    try:
        if file is None:
            return Pool(manager.specs()), []
        pool = Pool.load(file, manager=manager)
        text = f"{file}: {counted(len(pool.members), 'member')}"
    except UntrustedFile:
        raise  # the person is asked
    except ConcertinoError as error:
        step = "correct the file" if given else f"correct the file, or `pool` in {manager.settings.file}"
        return None, [Finding("error", "pool", str(error), step)]
    return pool, [Finding("ok", "pool", text)]


def _plugin(row: PluginInfo, specs: list[Spec]) -> Iterator[Finding]:
    subject = f"plugin {row.name}"
    if row.state == "disabled":
        yield Finding("warning", subject, f"{row.origin} is not used: {row.reason}", "change the setting to use it")
    elif row.state == "clash":
        uninstall = f"pip uninstall {row.distribution.split(', ')[-1]}"
        yield Finding("error", subject, row.reason, f"{uninstall}, or the other one")
    elif row.state == "failed":
        step = f"tell its author, or pip uninstall {row.distribution}" if row.distribution else "correct it"
        # A provider that is written in the settings file has no distribution to uninstall.
        if ": providers." in row.reason:
            step = f"correct {row.reason.partition(': providers.')[0]}"
        yield Finding("error", subject, f"{row.origin} cannot be used: {row.reason}", step)
    else:
        yield from _loaded(subject, row, [spec for spec in specs if spec.provider == row.name])
    if row.distribution and row.state == "loaded":
        yield from _import_weight(subject, row)


def _loaded(subject: str, row: PluginInfo, specs: list[Spec]) -> Iterator[Finding]:
    from concertino.pool.pool import Pool

    if row.reason:
        yield Finding("warning", subject, row.reason, "rename one, or disable one of the plugins")
    tokens = Pool(specs).count_context().total
    yield Finding(
        "ok", subject, f"{row.origin}: {counted(len(specs), 'member')}, {counted(tokens, 'token')} of context"
    )


def _import_weight(subject: str, row: PluginInfo) -> Iterator[Finding]:
    module = row.target.partition(":")[0].strip()
    seconds = import_seconds(module)
    if seconds is None:
        text = f"{module} cannot be imported in a fresh process within {IMPORT_LIMIT:g} s"
        yield Finding("warning", subject, text, f"python -c 'import {module}' shows why")
    elif seconds > HEAVY_IMPORT:
        step = f"import heavy libraries inside functions; python -X importtime -c 'import {module}' shows which"
        yield Finding("warning", subject, f"importing {module} takes {seconds:.1f} s", step)


def _member(spec: Spec) -> Iterator[Finding]:
    subject = f"{spec.kind} {spec.name}"
    if not spec.description:
        step = "describe it in its plugin, or under [descriptions] of a pool file"
        yield Finding("warning", subject, "it has no description; an orchestrator chooses by that", step)
    elif len(spec.description) >= DESCRIPTION_LIMIT:
        text = f"its description reaches the limit of {DESCRIPTION_LIMIT:,} characters; the rest was cut off"
        yield Finding("warning", subject, text, "shorten it")
    if isinstance(spec, ModelSpec) and spec.prices is None:
        step = "give prices in its plugin, or under [prices] of a pool file"
        yield Finding("warning", subject, "its price is unknown; a budget in $ cannot hold it", step)
    if isinstance(spec, ToolSpec) and spec.timeout is None:
        yield Finding("warning", subject, "it has no timeout; only the run's deadline ends a call", "give it one")
