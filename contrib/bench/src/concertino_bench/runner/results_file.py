"""A results file: one header line, then one line per finished item, in the order of finishing.

The invariants: a line is written whole in one call, so a crash leaves at most one torn line, at the end; no two lines
have the same key; and only one process writes at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from concertino import UsageError

from concertino_bench.items import Item, Key

VERSION = 1
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class ResultsFile:
    """Writes items, and knows those that are there already.

    Attributes:
        items: what is in the file.
        redone: keys of items that were taken out of it, to be done again.
        torn: whether its last line was torn, and cut off.

    Args:
        path: the file; it is made, or continued where it belongs to the same evaluation.
        header: what its first line says; `fingerprint` decides whether a file may be continued.
        redo: stop reasons whose items are done again.

    Raises:
        UsageError: the file belongs to another evaluation, is damaged, or another process writes to it.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any], redo: tuple[str, ...] = ()) -> None:
        self.path = Path(path)
        self.header = {"t": "bench", "version": VERSION, **header}
        self.items: dict[Key, Item] = {}
        self.redone: set[Key] = set()
        self.torn = False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self._lock()
            self._begin(redo)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, item: Item) -> None:
        """Write an item.

        Raises:
            ValueError: there is one with this key.
        """
        if item.key in self.items:
            raise ValueError(f"{self.path} has an item {item.key} already")
        self._write({"t": "item", **item.to_json()})
        self.items[item.key] = item

    def close(self) -> None:
        """Let others write."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes to {self.path}; wait for it, or choose another file") from None

    def _begin(self, redo: tuple[str, ...]) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        self.torn = len(whole) < len(data)
        if self.torn:
            os.ftruncate(self._file, len(whole))
        lines = whole.splitlines()
        if not lines:
            self._write(self.header)
            return
        self._check_header(self._parse(lines[0], 1))
        for number, line in enumerate(lines[1:], 2):
            item = self._item(self._parse(line, number), number)
            if item.stop in redo or (item.error and "error" in redo):
                self.redone.add(item.key)
            else:
                self.items[item.key] = item
        if self.redone:
            self._rewrite()

    def _check_header(self, found: Mapping[str, Any]) -> None:
        if found.get("t") != "bench":
            raise UsageError(f"{self.path} is no results file: its first line is no header; choose another file")
        if found.get("fingerprint") != self.header["fingerprint"]:
            changed = [key for key in ("sets", "systems", "samples", "seed", "budget", "grader", "pool", "pools")
                       if found.get(key) != json.loads(json.dumps(self.header.get(key), default=str))]  # fmt: skip
            others = ", another ".join(changed) or "plan"
            raise UsageError(
                f"{self.path} belongs to another evaluation, with another {others}; choose another file, or remove it"
            )

    def _parse(self, line: bytes, number: int) -> Mapping[str, Any]:
        try:
            data = json.loads(line)
            if isinstance(data, dict):
                return data
        except ValueError:
            pass
        raise UsageError(f"{self.path}, line {number}: it is damaged; remove the line to have its item done again")

    def _item(self, data: Mapping[str, Any], number: int) -> Item:
        try:
            return Item.from_json(data)
        except ValueError as error:
            raise UsageError(f"{self.path}, line {number}: {error}") from error

    def _rewrite(self) -> None:
        """Write the kept items anew, whole or not at all."""
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        lines = [self.header, *({"t": "item", **item.to_json()} for item in self.items.values())]
        beside.write_bytes(b"".join(_line(line) for line in lines))
        beside.replace(self.path)
        os.close(self._file)
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._lock()

    def _write(self, data: Mapping[str, Any]) -> None:
        line = _line(data)
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line could not be written whole; is the disk full?")


def _line(data: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(data).encode("utf-8", "replace") + b"\n"
