"""The records in a trace file, one after another or by their place, without holding all of them.

    reading = TraceReading(path)
    for record in reading: ...                  # once, from the beginning, large values included
    if reading.damage: ...                      # where and why it stopped
    records = reading.records()                 # by their places, read again when they are asked for

Records of a small trace are held, so that they outlive the file. Of a large one, only the places of its lines are
known: 8 bytes a record. Invariant: whatever is read again proves itself again; a file that has become another one
meanwhile is an error, never another record.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

from concertino.core.late import LateValue
from concertino.core.regular_file import open_regular

from .blobs import BlobStore, unpack
from .journal_errors import Damage, JournalError
from .journal_line import PREFIX_LENGTH, parse_line, skim_line
from .journal_reader import JournalCursor
from .record_shape import checked_record
from .sealing import Seal, seal_of_file

HELD_BYTES = 8 << 20
"""Bytes of lines and side files up to which the records of a trace are held."""

Record = dict[str, Any]


class TraceReading:
    """One reading of a trace file, from its beginning.

    Args:
        without: fields that are not needed, by the kind of record. In a large trace, a side file that was only made for
            these is not read, and each of them is a `LateValue`.
        hold: whether the records of a small trace are held.
        keep: bytes of a long text in a result that are needed, in a large trace; by default all.

    Attributes:
        place: of the record that was given last; `weight`: the bytes of its line.
        whole: whether the records that were given so far are held anyway; a caller who keeps one needs no copy then.
        count: records that are intact, the header included; `size`: their bytes.
        damage: what ended the reading before the end of the file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        without: Mapping[str, Collection[str]] | None = None,
        hold: bool = True,
        keep: int | None = None,
    ) -> None:
        self.path = Path(path)
        self.place = -1
        self._without = without or {}
        self._held: list[Record] | None = [] if hold and _size(self.path) <= HELD_BYTES else None
        skims = keep is not None and self._held is None
        self._cursor = JournalCursor(self.path, partial(skim_line, keep=keep or 0) if skims else parse_line)
        self._blobs = BlobStore(self.path)
        self._places = array("Q")
        self._sum = 0
        self.header: Record = {}

    @property
    def whole(self) -> bool:
        return self._held is not None

    @property
    def weight(self) -> int:
        return self._cursor.offset - self._cursor.begin

    @property
    def count(self) -> int:
        return self._cursor.n

    @property
    def size(self) -> int:
        return self._cursor.offset

    @property
    def damage(self) -> Damage | None:
        return self._cursor.damage

    def __iter__(self) -> Iterator[Record]:
        """The records, without the header.

        Raises:
            JournalError: the file is missing or no journal, its header is damaged, or a side file is.
        """
        cursor, places = self._cursor, self._places
        for record in cursor.whole_journal():
            if cursor.n == 1:
                self.header = record
                continue
            self.place += 1
            places.append(cursor.begin)
            # Most records of a large trace are plain lines, and there are many.
            if self._held is None and "$blob" not in record:
                yield checked_record(record, self.path, cursor.n)
            else:
                yield self._taken(record)
        self._places.append(cursor.offset)

    def records(self) -> Sequence[Record]:
        """All records; only after the reading has come to its end."""
        return StoredRecords(self.path, self._places, self._cursor.seal) if self._held is None else self._held

    def later(self) -> Callable[[], Record]:
        """What reads the record again that was given last."""
        return partial(record_at, self.path, self.place, self._places, self._cursor.seal)

    def _taken(self, record: Record) -> Record:
        if "$blob" in record and self._held is None and (small := outline_of(record, self._without)) is not None:
            later = self.later()
            big = {field: LateValue(partial(_field_of, later, field)) for field in record["big"]}
            return checked_record({**small, **big}, self.path, self._cursor.n, tuple(big))
        found = unpacked(record, self._blobs)
        if self._held is not None:
            size = record.get("bytes", 0)
            self._sum += self.weight + (size if isinstance(size, int) else 0)
            if self._sum <= HELD_BYTES:
                self._held.append(found)
            else:
                self._held = None
        return found


class StoredRecords(Sequence[Record]):
    """The records of a large trace, read from its file whenever they are asked for."""

    def __init__(self, path: Path, places: array[int], seal: Seal | None) -> None:
        self.path = path
        self._places = places
        self._seal = seal

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"{self.path}: there is no record {place}; there are {len(self)}")
        return record_at(self.path, place % len(self), self._places, self._seal)

    def __iter__(self) -> Iterator[Record]:
        blobs = _blobs(self.path, self._seal)
        with _open(self.path) as file:
            file.seek(self._places[0])
            for place in range(len(self)):
                line = file.readline(self._places[place + 1] - self._places[place])
                yield unpacked(_proven(self.path, line, place, self._seal), blobs)


def record_at(path: Path, place: int, places: Sequence[int], seal: Seal | None) -> Record:
    """One record of a trace, read again.

    Raises:
        JournalError: the file is gone, or is not the one that was read.
    """
    begin = places[place]
    with _open(path) as file:
        file.seek(begin)
        # Its end is not known while the file is still read for the first time.
        line = file.readline(places[place + 1] - begin if place + 1 < len(places) else -1)
    return unpacked(_proven(path, line, place, seal), _blobs(path, seal))


def _blobs(path: Path, seal: Seal | None) -> BlobStore:
    blobs = BlobStore(path)
    blobs.seal = seal
    return blobs


def unpacked(record: Record, blobs: BlobStore) -> Record:
    """A record with what its side file holds.

    Raises:
        JournalError: its side file is missing or damaged, or it has not the shape of a record.
    """
    return checked_record(unpack(record, blobs), blobs.journal, record["n"] + 1)


def outline_of(record: Mapping[str, Any], without: Mapping[str, Collection[str]]) -> Record | None:
    """A record of a side file without fields that are not needed; None if more is missing, or it is an old one."""
    small, big = record.get("small"), record.get("big")
    if not isinstance(small, dict) or not isinstance(big, list):
        return None
    spared = without.get(str(small.get("t")), ())
    # A list, since a name that is no text may have no hash.
    return small if all(field in list(spared) for field in big) else None


def _field_of(later: Callable[[], Record], field: str) -> Any:
    return later().get(field)


def first_record(path: str | Path) -> Record:
    """How a run began, without reading the rest of its trace.

    Raises:
        TraceError: as `Trace.load`.
    """
    from .trace import Trace

    for record in TraceReading(path, hold=False):
        return Trace([record], Path(path)).records[0]
    raise nothing_yet(path)


def last_record(path: Path) -> Record | None:
    """The last line of a trace, if it is intact; whether everything before is, it does not tell."""
    try:
        file = open_regular(path)
    except OSError:
        return None
    with file:
        size = file.seek(0, os.SEEK_END)
        block = 1 << 16
        while True:
            begin = max(0, size - block)
            file.seek(begin)
            lines = file.read(size - begin).splitlines(keepends=True)
            if len(lines) > 1 or not begin or block > HELD_BYTES:
                break
            block *= 4
    if not lines:
        return None
    last, seal = lines[-1], None
    try:
        if b'"n":' not in last:  # sealed, or nothing of ours
            seal = seal_of_file(path)
            last = last if seal is None else seal.opened(last, int(last[PREFIX_LENGTH:].partition(b" ")[0]))
        number = last.rpartition(b'"n":')[2].rstrip(b"}\n")
        return unpacked(parse_line(last, int(number)), _blobs(path, seal))
    except ValueError:
        return None


def nothing_yet(path: str | Path) -> JournalError:
    """The error of a trace without any record."""
    return JournalError(f"{path}: the trace holds no records yet; nothing had begun when it was interrupted")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # the reading will say what is wrong


def _proven(path: Path, line: bytes, place: int, seal: Seal | None) -> Record:
    try:
        if seal is not None:
            line = seal.opened(line, place + 1)
        return parse_line(line, place + 1)  # the header has number 0
    except ValueError as reason:
        raise JournalError(
            f"{path}: record {place + 1} is not what it was when the trace was loaded ({reason}). Load it again."
        ) from None


def _open(path: Path) -> Any:
    try:
        return open_regular(path)
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be read any more ({error.strerror}). A large trace is read when its records are asked "
            "for; keep the file as long as it is in use."
        ) from error
