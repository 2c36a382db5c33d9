"""Sources of members beside plugins' own: a file, a folder or an object that a provider turns into tools and agents.

Invariant: a member that was made of a file or folder remembers which, so that a pool file can name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concertino.members.specs import ToolSpec

from .guard import PluginFault, show
from .published import check_list, named, refuse_equal_names

_HINTS = {"SKILL.md": "code", "server.json": "mcp"}
"""Files that providers of concertino read, for the message alone."""


def check_made(hook: str, result: object, provider: str, source: Any) -> list[ToolSpec]:
    """The specs that a hook made of a source, under their full names.

    Raises:
        PluginFault: names the item, what it is and what was expected.
    """
    made: list[ToolSpec] = []
    for position, item in enumerate(check_list(hook, result)):
        if not isinstance(item, ToolSpec):
            raise PluginFault(f"{hook}()[{position}] is {show(item)}; expected tools or agents")
        spec = named(item, provider, f"{hook}()[{position}]")
        assert isinstance(spec, ToolSpec)
        made.append(spec.with_(source=str(source.absolute())) if isinstance(source, Path) else spec)
    refuse_equal_names(made)
    return made


def unknown_source(source: Path, broken: Sequence[str]) -> str:
    """Why nothing could be made of a file or folder, and what would help.

    Args:
        broken: providers that were left out.
    """
    if not source.exists():
        return f"{source}: file not found"
    names = {source.name, *(path.name for pattern in ("*", "*/*") for path in source.glob(pattern))}
    packages = [package for name, package in _HINTS.items() if name in names]
    left_out = f"; left out as broken: {', '.join(broken)} (see `concertino doctor`)" if broken else ""
    if packages:
        return f"no installed plugin makes members of {source}; pip install 'concertino[{packages[0]}]'{left_out}"
    return (
        f"no installed plugin makes members of {source}; concertino[code] reads folders of Agent Skills (SKILL.md), "
        f"concertino[mcp] the server.json of an MCP registry{left_out}"
    )


def show_source(source: Any) -> str:
    """A source in a message."""
    return str(source) if isinstance(source, Path) else show(source)
