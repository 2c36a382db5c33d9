"""Names that earlier commands have seen: what completion offers without asking any plugin.

To know the members of a pool, plugins are imported, and some start programs or ask servers. A key press may do neither.
So `concertino completion SHELL` makes a small file in the user's cache, and from then on every command writes down what
it has learnt anyway. Without that file nothing is written.

    {"made_by": "concertino 0.1.0, concertino-bench 0.1.0",
     "settings": {"parallel-rounds": ["max_rounds", …]}, "commands": {"bench": …},
     "shared": {"toy": {"members": [["tool", "toy/calculate", "Work out …"], …], "strategies": …}},
     "folders": {"/home/user/shop/concertino.toml": {"mcp": {…}}}}

A provider that is set up by a settings file is kept under that file, as it may be another one elsewhere.
Invariant: a damaged or foreign file counts as empty, and a failure to write is no failure of the command.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.errors import ConcertinoError

if TYPE_CHECKING:
    from concertino.plugins.manager import PluginManager

_FOLDERS = 20
"""Settings files of which names are kept, the newest ones."""
_TEXT = 60
"""Characters of a description."""


@dataclass
class Known:
    """What a provider has.

    Attributes:
        version: of its distribution.
        members: kind, full name and description of each.
        strategies: names of their settings, by full name.
        rankings: full names.
        guards: full name and description of each.
        commands: as `command_tree` describes them, by name.
    """

    version: str = ""
    members: list[tuple[str, str, str]] = field(default_factory=list)
    strategies: dict[str, list[str]] = field(default_factory=dict)
    rankings: list[str] = field(default_factory=list)
    guards: list[tuple[str, str]] = field(default_factory=list)
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)


def seen_file() -> Path:
    """Where the names of this installation are."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    installation = hashlib.sha256(sys.prefix.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Path(cache) / "concertino" / f"names-{installation}.json"


def begin() -> None:
    """Make the file, from now on kept by every command: with built-in strategies, and the commands of our plugins.

    Raises:
        OSError: it cannot be written.
    """
    from .group import OF_PLUGINS, plugin_command

    here = [command.distribution for command in OF_PLUGINS.values() if command.installed()]
    data, made_by = _read(), ", ".join(map(_version, ["concertino", *dict.fromkeys(here)]))
    if data.get("made_by") == made_by:
        return
    from concertino.strategies import BUILT_IN

    from .command_tree import tree_of

    settings = {name: settings_of(cls) for name, cls in BUILT_IN.items()}
    commands: dict[str, Any] = {}
    try:
        found = {name: plugin_command(name) for name, command in OF_PLUGINS.items() if command.installed()}
        commands = {name: tree_of(command) for name, command in found.items() if command is not None}
    except ConcertinoError:
        # The settings of this folder are wrong, which the start of a shell must not tell; another folder's may not be.
        made_by = ""
    _write(seen_file(), {**data, "made_by": made_by, "settings": settings, "commands": commands})


def _version(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:  # its module lies on the path without being installed
        return distribution


def recall(settings_path: Path | None = None) -> dict[str, Known]:
    """What is known by provider; built-in strategies and the commands of our plugins under the name `""`.

    Args:
        settings_path: the settings file in force, None for none.
    """
    data = _read()
    found = {"": Known(strategies=dict(data.get("settings", {})), commands=dict(data.get("commands", {})))}
    folder = data.get("folders", {}).get(str(settings_path.absolute()), {}) if settings_path else {}
    for name, known in {**data.get("shared", {}), **folder}.items():
        with suppress(TypeError, ValueError):
            found[name] = Known(**known)
    return found


def remember() -> None:
    """Write down what this process has learnt of providers, if completion is in use."""
    manager_module = sys.modules.get("concertino.plugins.manager")
    if manager_module is None or not manager_module.default_manager.cache_info().currsize:
        return
    with suppress(Exception):  # of plugins, too, whose commands are looked at; nothing here may fail a command
        data = _read()
        if not data:
            return
        manager: PluginManager = manager_module.default_manager()
        updated = _updated(data, manager)
        if updated != data:
            _write(seen_file(), updated)


def settings_of(strategy: type) -> list[str]:
    """The names of a strategy's settings."""
    return list(getattr(strategy, "__dataclass_fields__", {}))


def _updated(data: Mapping[str, Any], manager: PluginManager) -> dict[str, Any]:
    installed = {row.name: row.version for row in manager.plugins()}
    shared = {name: known for name, known in data.get("shared", {}).items() if name in installed}
    folders = dict(data.get("folders", {}))
    here = str(manager.settings.file.absolute()) if manager.settings.file else ""
    own = {**manager.settings.providers, **{name.partition("/")[0]: None for name in manager.settings.models}}
    local = dict(folders.pop(here, {}))
    for name, given in manager.given().items():
        place = local if name in own else shared
        known = place.get(name, {})
        if "commands" in known and known.get("version") == installed.get(name):
            given.pop("concertino_cli", None)  # described already, which takes long
        place[name] = {**known, "version": installed.get(name, ""), **_plain(name, given)}
    if here and local:
        folders[here] = local  # last, so that the oldest ones come first
    newest = dict(list(folders.items())[-_FOLDERS:])
    # As it will be read, so that it can be compared with what was.
    plain: dict[str, Any] = json.loads(json.dumps({**data, "shared": shared, "folders": newest}))
    return plain


def _plain(provider: str, given: Mapping[str, list[Any]]) -> dict[str, Any]:
    """What a provider gave to hooks, as JSON data; only of hooks that were asked."""
    found: dict[str, Any] = {}
    if "members" in given:
        found["members"] = [[spec.kind, spec.name, _short(spec.description)] for spec in given["members"]]
    if "concertino_strategies" in given:
        classes = given["concertino_strategies"]
        found["strategies"] = {f"{provider}/{cls.name}": settings_of(cls) for cls in classes}
    if "concertino_rankings" in given:
        found["rankings"] = [f"{provider}/{ranking.name}" for ranking in given["concertino_rankings"]]
    if "concertino_guards" in given:
        guards = given["concertino_guards"]
        found["guards"] = [[f"{provider}/{guard.name}", _short(guard.description)] for guard in guards]
    if "concertino_cli" in given:
        from .command_tree import tree_of
        from .group import OF_PLUGINS

        # Ours were written down by `begin`; to look at all of theirs takes long.
        foreign = [command for command in given["concertino_cli"] if command.name not in OF_PLUGINS]
        found["commands"] = {str(command.name): tree_of(command) for command in foreign}
    return found


def _short(text: str) -> str:
    first = text.partition(". ")[0].split("\n", 1)[0].strip()
    return first if len(first) <= _TEXT else f"{first[: _TEXT - 1]}…"


def _read() -> dict[str, Any]:
    try:
        data = json.loads(seen_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    parts = ("settings", "commands", "shared", "folders")
    whole = isinstance(data, dict) and all(isinstance(data.get(part, {}), dict) for part in parts)
    return data if whole else {}


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """Replace the file in one step: another shell may be reading it."""
    from concertino.core.private_files import make_private_folder, write_private

    make_private_folder(path.parent)
    write_private(path, json.dumps(data).encode())
