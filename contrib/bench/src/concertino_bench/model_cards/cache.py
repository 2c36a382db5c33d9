"""The cache: what was paid for, on disk under keys of its content; answers of models, and texts of writers.

    FOLDER/answers/3f/3f9a….json        FOLDER/texts/81/81c0….json

Each entry is a file of its own, replaced in one step, so a crash leaves the old one or the new one. An entry carries a
checksum; one that is damaged is named in `problems` and counts as missing. Several processes may share a folder.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concertino import RunError, UsageError

from .answers import digest

_FORM = 1
"""Version of the entries."""
_numbers = itertools.count(1)


class Cache:
    """A folder of entries.

    Attributes:
        problems: entries that were found damaged.

    Raises:
        UsageError: the folder cannot be made.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.problems: list[str] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError(f"{folder}: answers cannot be kept there ({reason}); name another folder") from error

    def read(self, kind: str, key: str) -> dict[str, Any] | None:
        """An entry, None if there is none that can be used."""
        path = self._path(kind, key)
        try:
            return _open_entry(path.read_text(encoding="utf-8"), key)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.damaged(kind, key, str(error))
            return None

    def write(self, kind: str, key: str, body: Mapping[str, Any]) -> None:
        """Keep an entry; when this returns it outlives the process.

        Raises:
            RunError: the file cannot be written.
        """
        path = self._path(kind, key)
        entry = {"form": _FORM, "body": body, "checksum": digest([key, body])}
        # A name of its own per process and write: two writers of one key must not share an unfinished file.
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(entry, ensure_ascii=True), encoding="ascii")
            unfinished.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            reason = error.strerror or str(error)
            raise RunError(
                f"{path}: cannot be written ({reason}), so what models answer would be lost; make room, or name "
                "another folder; what is kept already is used again"
            ) from error

    def forget(self, kind: str, key: str) -> None:
        """Remove an entry, if it is there."""
        with contextlib.suppress(OSError):
            self._path(kind, key).unlink(missing_ok=True)

    def damaged(self, kind: str, key: str, why: str) -> None:
        """Note that an entry cannot be used."""
        self.problems.append(f"{self._path(kind, key)}: {why}; it is made again")

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / f"{key}.json"


def _open_entry(text: str, key: str) -> dict[str, Any]:
    """The body of an entry.

    Raises:
        ValueError: it is damaged, or of another form; says which.
    """
    try:
        entry = json.loads(text)
        form, body, checksum = entry["form"], entry["body"], entry["checksum"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("it is not an entry of this cache") from None
    if form != _FORM:
        raise ValueError(f"it has form {form!r}, and this version reads form {_FORM}")
    if not isinstance(body, dict) or checksum != digest([key, body]):
        raise ValueError("its checksum is wrong")
    return body
