"""Reading a journal, whole or while it is still being written.

    file = read_journal("run.trace")
    for record in file.records: ...
    if file.damage: print(file.damage)

Reading takes no lock and changes nothing. Invariant: records come in order and without a gap; at the first
line that does not prove itself reading stops, and `damage` says where and how much is lost. A journal whose
writer is at work may end in a torn line that is whole a moment later. The header is `.header`, never one of
the records; only `tail_journal` yields it, first, because a viewer may be there before the header is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from concertino.core.regular_file import open_regular

from .blobs import BlobStore, unpack
from .journal_errors import Damage, JournalError
from .journal_line import PREFIX_LENGTH, parse_line, require_known
from .sealing import Seal, seal_of

_HEX = frozenset(b"0123456789abcdef")
_MOST = 16 << 20
"""Bytes of a line. Large values are in files of their own."""
_BUFFER = 1 << 18
"""Bytes that are read at once: fewer cost more calls than they spare memory."""


@dataclass(frozen=True, slots=True)
class JournalFile:
    """A journal as it was when it was read. `size` counts the bytes that are intact."""

    path: Path
    header: dict[str, Any]
    records: list[dict[str, Any]]
    damage: Damage | None
    size: int

    @property
    def count(self) -> int:
        """Records, the header included."""
        return len(self.records) + 1

    def unpack(self, value: Any) -> Any:
        """The value behind a blob reference, any other value as it is; BlobError if it is not intact."""
        return unpack(value, BlobStore(self.path))


class JournalCursor:
    """A place in a journal from which reading continues.

    Args:
        parse: makes a record of a line and its number, or raises ValueError.

    Attributes:
        n: the number of the next record.
        begin: where the line of the record that was given last begins.
        offset: where it ends.
        damage: what ended the last reading before the end of the file, None if nothing did.
        seal: what opens its lines, if it is sealed; known once the header was read.
    """

    def __init__(self, path: Path, parse: Callable[[bytes, int], dict[str, Any]] = parse_line) -> None:
        self.path = path
        self._parse = parse
        self.begin = 0
        self.offset = 0
        self.n = 0
        self.damage: Damage | None = None
        self.seal: Seal | None = None

    def records(self) -> Iterator[dict[str, Any]]:
        """Intact records from here on; call it again once the file has grown."""
        self.damage = None
        try:
            file = open_regular(self.path, _BUFFER)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        with file:
            if self.n == 0:
                _require_prefix(self.path, file.read(PREFIX_LENGTH))
            file.seek(self.offset)
            # Bounded, because a file with holes may have a line that is longer than the memory.
            for line in iter(partial(file.readline, _MOST), b""):
                try:
                    if len(line) == _MOST:
                        raise JournalError(f"{self.path}, line {self.n + 1}: longer than any record; not a trace")
                    record = self._parse(line if self.seal is None else self.seal.opened(line, self.n), self.n)
                except JournalError as error:
                    raise _with_place(error, self.path) from None
                except ValueError as reason:
                    dropped = os.fstat(file.fileno()).st_size - self.offset
                    self.damage = Damage(self.offset, dropped, self.n, str(reason), torn=not line.endswith(b"\n"))
                    return
                if self.n == 0:
                    require_known(self.path, record)
                    self.seal = seal_of(self.path, record)
                self.begin = self.offset
                self.offset += len(line)
                self.n += 1
                yield record

    def whole_journal(self) -> Iterator[dict[str, Any]]:
        """The header and all intact records.

        Raises:
            JournalError: there is no header, or a damaged one.
        """
        yield from self.records()
        if not self.n:
            raise _no_header(self)


def read_journal(path: str | os.PathLike[str]) -> JournalFile:
    """Read a whole journal; damage is reported in the result, not raised.

    Raises:
        JournalError: the file is missing, unreadable, empty, or not a journal, or its header is damaged.
        JournalTooNew: it was written in a later format.
    """
    cursor = JournalCursor(Path(path))
    header, *records = cursor.whole_journal()
    return JournalFile(cursor.path, header, records, cursor.damage, cursor.offset)


def tail_journal(
    path: str | os.PathLike[str], poll: float = 0.1, *, until: Callable[[], bool] | None = None
) -> Generator[dict[str, Any], None, None]:
    """Yield the header and every record, then wait for more, looking every `poll` seconds.

    It continues until the consumer closes it, or until `until()` is true and everything written by then was
    yielded. A torn line is waited for: it may be in the course of being written.

    Raises:
        JournalError: the file is missing or not a journal, or a finished line is damaged (nothing can follow
        it).
    """
    cursor = JournalCursor(Path(path))
    suspect: Damage | None = None
    while True:
        # Asked before reading: whatever was written by then is still yielded.
        ending = until is not None and until()
        yield from cursor.records()
        damage = None if cursor.damage is None or cursor.damage.torn else cursor.damage
        if damage is not None and suspect is not None and damage.offset == suspect.offset:
            raise JournalError(f"{cursor.path}: {damage}. Close its writer and resume the run to repair the file.")
        # Looked at twice: a line that its writer takes back after a full disk may be seen half old, half new.
        suspect = damage
        if ending and suspect is None:
            return
        time.sleep(poll)


def _no_header(cursor: JournalCursor) -> JournalError:
    if cursor.damage is None or cursor.damage.torn:
        return JournalError(
            f"{cursor.path}: its writer was stopped before the header was complete, so nothing is "
            "recorded in it. Delete it and start the run again."
        )
    return JournalError(
        f"{cursor.path}: its header is damaged ({cursor.damage.reason}), so its records cannot be "
        "trusted. Restore the file from a copy."
    )


def _require_prefix(path: Path, prefix: bytes) -> None:
    """Refuse other files by their first bytes, before a line of gigabytes is looked for."""
    if not _HEX.issuperset(prefix[:8]) or prefix[8:] not in (b"", b" "):
        raise JournalError(f"{path}: not a trace (it begins with {prefix!r}). Give the path of a concertino trace.")


def _with_place(error: JournalError, path: Path) -> JournalError:
    return error if str(error).startswith(str(path)) else JournalError(f"{path}: {error}")


def _unreadable(path: Path, error: OSError) -> JournalError:
    if isinstance(error, FileNotFoundError):
        return JournalError(f"{path}: file not found. Check the path of the trace.")
    return JournalError(f"{path}: cannot be read ({error.strerror}). Check that it is a file and that you may read it.")
