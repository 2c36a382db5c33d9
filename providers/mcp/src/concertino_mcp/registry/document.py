"""A `server.json` as it was written: one server, the packages that hold it, the addresses where it runs already.

The format is the registry's of 2025-09-16 and later (camelCase). Answers of the registry's API, which hold the same
below `server`, are read too.

Invariant: a value of a wrong form is an error that names the file and the place; nothing is guessed. No text of a file
holds a character that could hide a part of it from who reads it in a terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from concertino import UsageError

_MOST_BYTES = 1 << 20
"""Bytes of a file that are read."""
_OLD = ("registry_type", "registry_name", "runtime_hint", "environment_variables")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, ends of lines, and marks that turn the direction of text."""
FILE_NAME = "server.json"


@dataclass(frozen=True)
class Entry:
    """An object of the file, with its place.

    Attributes:
        data: as it stands there.
        where: file and path, for messages.
    """

    data: Mapping[str, Any]
    where: str

    def fail(self, text: str) -> NoReturn:
        """Raise a `UsageError` about this object."""
        raise UsageError(f"{self.where}: {text}")

    def text(self, key: str, default: str = "") -> str:
        """A text of one line; `default` where there is none."""
        value = self.data.get(key, default)
        if not isinstance(value, str) or _HIDDEN.search(value):
            self.fail(f"{key} = {value!r}; expected a text of one line")
        return value

    @property
    def description(self) -> str:
        """What the file says it is for, on one line."""
        value = self.data.get("description", "")
        return _HIDDEN.sub("", " ".join(value.split()))[:200] if isinstance(value, str) else ""

    def flag(self, key: str) -> bool:
        """True or false; false where nothing is said."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.fail(f"{key} = {value!r}; expected true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self.data.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(f"{key} = {value!r}; expected a list of texts")
        return tuple(value)

    def part(self, key: str) -> Entry:
        """An object in it; an empty one where there is none."""
        value = self.data.get(key) or {}
        if not isinstance(value, Mapping):
            self.fail(f"{key} = {value!r}; expected an object")
        return Entry(value, f"{self.where}.{key}")

    def parts(self, key: str) -> Iterator[Entry]:
        """The objects of a list in it."""
        value = self.data.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            self.fail(f"{key} = {str(value)[:80]}; expected a list of objects")
        for number, item in enumerate(value):
            yield Entry(item, f"{self.where}.{key}[{number}]")

    def named_parts(self, key: str) -> dict[str, Entry]:
        """The objects in an object of it, by name."""
        part = self.part(key)
        if not all(isinstance(value, Mapping) for value in part.data.values()):
            self.fail(f"{key}: expected an object for each name")
        return {name: Entry(value, f"{part.where}.{name}") for name, value in part.data.items()}


def read_document(path: Path) -> Entry | None:
    """The server of a file; None where it is a file of something else.

    Raises:
        UsageError: it is called `server.json` and cannot be read, or is of a format that is too old.
    """
    try:
        data = _loaded(path)
    except (OSError, ValueError, RecursionError) as error:
        if path.name != FILE_NAME:
            return None
        raise UsageError(f"{path}: cannot be read as JSON: {' '.join(str(error).split())[:200]}") from error
    if isinstance(data, dict) and isinstance(data.get("server"), dict):
        data = data["server"]
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not {"packages", "remotes"} & data.keys():
        if path.name != FILE_NAME:
            return None
        raise UsageError(f"{path}: expected a registry's server.json: an object with name, and packages or remotes")
    server = Entry(data, str(path))
    for package in server.parts("packages"):
        if old := [key for key in _OLD if key in package.data]:
            package.fail(f"{old[0]} is of a format before 2025-09-16; ask the registry for a newer file")
    return server


def _loaded(path: Path) -> Any:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has {path.stat().st_size:,} bytes; at most {_MOST_BYTES:,}")
    return json.loads(path.read_text(encoding="utf-8-sig"))
