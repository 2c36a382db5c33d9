"""Discovery: which plugins are installed, read from the metadata of distributions. Nothing is imported.

A *declaration* is one line of the group `concertino` in a distribution's `entry_points.txt`. Only
distributions that name the group have their metadata parsed, and each is read on its own: an unreadable one
becomes a declaration with a fault, and hides no other. Of one distribution found twice on the path, the first
counts, as for an import.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

GROUP = "concertino"


@dataclass(frozen=True)
class Declaration:
    """What metadata says of one plugin.

    Attributes:
        load: imports the target and returns it.
        package: the top-level package of the target, to tell its lines of code from others in a traceback.
        fault: why it cannot be used, known without importing it.
    """

    name: str
    distribution: str
    version: str
    target: str
    load: Callable[[], Any]
    package: str
    fault: str = ""


def discover() -> list[Declaration]:
    """The declarations of all installed distributions, by name, then by distribution."""
    found: list[Declaration] = []
    seen: set[str] = set()
    for distribution in importlib.metadata.distributions():
        try:
            text = distribution.read_text("entry_points.txt") or ""
        except (OSError, UnicodeDecodeError):
            continue  # without metadata, it is unknown whether it is a plugin
        # Parsing the metadata of every installed distribution would take far longer than this look at the text.
        if f"[{GROUP}]" not in text.replace(" ", ""):
            continue
        name, version = _identity(distribution)
        # Names are compared as PEP 503 normalises them.
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key not in seen:
            seen.add(key)
            found += _declarations(distribution, name, version)
    return sorted(found, key=lambda declaration: (declaration.name, declaration.distribution))


def _identity(distribution: importlib.metadata.Distribution) -> tuple[str, str]:
    """Name and version; a distribution without readable metadata is known by its folder."""
    folder = str(getattr(distribution, "_path", "unknown"))
    try:
        metadata = distribution.metadata
        return str(metadata["Name"] or folder), str(metadata["Version"] or "")
    except Exception:
        return folder, ""


def _declarations(distribution: importlib.metadata.Distribution, name: str, version: str) -> Iterator[Declaration]:
    try:
        entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
        for entry in entries:
            package = re.split(r"[.:\s]", entry.value, maxsplit=1)[0]
            yield Declaration(entry.name, name, version, entry.value, entry.load, package)
    except Exception as error:  # importlib.metadata raises any exception on a damaged text
        fault = f"its entry_points.txt cannot be read ({type(error).__name__}: {error}); reinstall it"
        yield Declaration(name, name, version, "", lambda: None, "", fault)
