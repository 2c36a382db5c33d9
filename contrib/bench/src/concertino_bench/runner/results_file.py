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
from typing import Any, Self

from concertino import UsageError

from concertino_bench.tasks.item import Item, Key

# Of the file's form, so that a later version can tell which one it reads.
VERSION = 1
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class ResultsFile:
    """Writes items, and knows those that are there already.

    Attributes:
        items: what is in the file.
        nonce: names this file's runs apart from those of any other, also of one that was removed; made again when items
            are to be done again.
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
        self.nonce = os.urandom(5).hex()
        self.header = {"t": "bench", "version": VERSION, **header, "nonce": self.nonce}
        self.items: dict[Key, Item] = {}
        self.torn = False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._open()
        try:
            self._begin(redo)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, item: Item, data: Mapping[str, Any] | None = None) -> None:
        """Write an item.

        Args:
            item: the item.
            data: the item as JSON, where that is at hand.

        Raises:
            ValueError: there is one with this key.
        """
        if item.key in self.items:
            raise ValueError(f"{self.path} has an item {item.key} already")
        self._write({"t": "item", **(data or item.to_json())})
        self.items[item.key] = item

    def close(self) -> None:
        """Close the file, which gives up its lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> int:
        """The file, locked; opened again if another process put a new one in its place meanwhile."""
        while True:
            # O_APPEND: each write goes to the end of the file, also after a torn line was cut off.
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                self._lock(file)
                # The lock is on the opened file; `_rewrite` of another process may have put a new one in its place.
                if self.path.exists() and os.path.samestat(os.fstat(file), self.path.stat()):
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _lock(self, file: int) -> None:
        try:
            # `flock` ends with the process, so a crash leaves no stale lock as a lock file would.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process writes to {self.path}; wait for it, or choose another file") from None

    def _begin(self, redo: tuple[str, ...]) -> None:
        data = self.path.read_bytes()
        # What stands behind the last newline is a write that a crash cut off.
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        if lines:
            found = self._parse(lines[0], 1)
            self._check_header(found)
            self.nonce = str(found.get("nonce", ""))
        # 12 bytes are `{"t":"bench"`, with which every header begins: less than a line of it is a header that was torn.
        elif data and not _line(self.header).startswith(data[:12]):
            raise UsageError(f"{self.path} is not a results file: its first line is not a header; choose another file")
        self.torn = len(whole) < len(data)
        if self.torn:
            os.ftruncate(self._file, len(whole))
        if not lines:
            self._write(self.header)
            return
        read = [self._item(self._parse(line, number), number) for number, line in enumerate(lines[1:], 2)]
        self.items = {item.key: item for item in read if not _is_asked_again(item, redo)}
        if len(self.items) < len(read):
            self._rewrite(found)

    def _check_header(self, found: Mapping[str, Any]) -> None:
        if found.get("t") != "bench":
            raise UsageError(f"{self.path} is not a results file: its first line is not a header; choose another file")
        if found.get("fingerprint") != self.header["fingerprint"]:
            compared = {
                "tasks": ("sets", "tasks"),
                "systems": ("systems",),
                "samples": ("samples",),
                "seed": ("seed",),
                "budget": ("budget",),
                "grader": ("grader",),
                "what it is rescored with": ("rescored",),
                "unseen": ("unseen",),
                "pool": ("pool", "pools"),
            }
            # Through JSON, as the other header came: a tuple would differ from the list that was read.
            here = json.loads(_ENCODER.encode(self.header))
            changed = [word for word, keys in compared.items() if any(found.get(k) != here.get(k) for k in keys)]
            raise UsageError(
                f"{self.path} belongs to another evaluation; what differs: {', '.join(changed) or 'the tasks'}; choose "
                "another file, or remove it"
            )

    def _parse(self, line: bytes, number: int) -> Mapping[str, Any]:
        try:
            data = json.loads(line)
            if isinstance(data, dict):
                return data
        except ValueError:
            pass
        if number == 1:
            raise UsageError(f"{self.path} is not a results file: its first line is not a header; choose another file")
        # Only the last line can be torn by a crash; damage inside came from elsewhere, and may hide paid items.
        raise UsageError(f"{self.path}, line {number}: it is damaged; remove the line to have its item done again")

    def _item(self, data: Mapping[str, Any], number: int) -> Item:
        try:
            return Item.from_json(data)
        except ValueError as error:
            raise UsageError(f"{self.path}, line {number}: {error}") from error

    def _rewrite(self, header: Mapping[str, Any]) -> None:
        """Rewrite the kept items, whole or not at all, locked all the while."""
        # Run ids come from the nonce: with the old one, the items to be redone would be recalled from their old traces.
        self.nonce = os.urandom(5).hex()
        # Written next to the file and moved onto it, so a crash leaves the old file or the new one.
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        lines = [{**header, "nonce": self.nonce}, *({"t": "item", **item.to_json()} for item in self.items.values())]
        beside.write_bytes(b"".join(_line(line) for line in lines))
        # Locked before it takes the name: another process never finds the new file unlocked.
        file = os.open(beside, os.O_RDWR | os.O_APPEND)
        self._lock(file)
        beside.replace(self.path)
        os.close(self._file)
        self._file = file

    def _write(self, data: Mapping[str, Any]) -> None:
        # One `write` per line, unbuffered: a crash between two items loses neither.
        line = _line(data)
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line could not be written whole; is the disk full?")


def _is_asked_again(item: Item, redo: tuple[str, ...]) -> bool:
    words = {item.stop, item.verdict.value, "error" if item.error else ""}
    return bool(words & set(redo))


def _line(data: Mapping[str, Any]) -> bytes:
    # A model may write half a surrogate pair, which UTF-8 cannot hold.
    return _ENCODER.encode(data).encode("utf-8", "replace") + b"\n"
