"""The trace of a run, read as far as it goes and further when it has grown.

A long one is read in parts, so that its begin is shown soon. Invariant: what cannot be read, or was not yet, is a note
for the reader of the page, never the end of the page: a torn or damaged line, a side file that is missing. Only a file
that is no trace at all is an error.
"""

from __future__ import annotations

import gc
import math
import threading
import time
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from concertino.core.errors import TraceError
from concertino.traces.blobs import BlobStore
from concertino.traces.journal_reader import JournalCursor
from concertino.traces.records import nothing_yet, record_at, unpacked

from .item_body import body_of
from .run_fold import Item, RunFold
from .shown_texts import fault_of
from .training_record import training_of

_BEHIND = -1
"""Size of what is read where more is there already."""
_BETWEEN = 64
"""Records between two looks at the clock."""
_LONG = 1 << 20
"""Bytes from which on texts of calls are read later than all else."""
_MOST_NOTES = 20
"""Side files that are named as missing; further ones are counted."""


class RunFile:
    """A trace file and its fold; safe to use from several threads.

    Args:
        path: the file.
        seconds: to read at first; by default until its end.

    Raises:
        TraceError: it is no trace, or holds nothing yet; says what to do.
    """

    def __init__(self, path: Path, seconds: float | None = None) -> None:
        self.path = path
        self.fold = RunFold()
        self._cursor = JournalCursor(path)
        self._blobs = BlobStore(path)
        self._places = array("Q")
        self._teller = JournalCursor(path)
        self._brief_until = 0
        self._unread = 0
        self._lock = threading.Lock()
        self._size = _BEHIND
        self._inode = path.stat().st_ino if path.exists() else 0
        self._last: tuple[int, Mapping[str, Any]] = (-1, {})
        self.refresh(seconds)
        if not self.fold.count:
            raise nothing_yet(path)

    def refresh(self, seconds: float | None = None) -> bool:
        """Read what was written since, and end early after so many seconds; whether there was anything."""
        with self._lock:
            try:
                size = self.path.stat().st_size
            except OSError:
                return False  # what was read stays on the page
            if size == self._size and not self._untold:
                return False
            self.fold.brief = size - self._cursor.offset > _LONG
            self._size = size
            before = self.fold.version
            until = math.inf if seconds is None else time.monotonic() + seconds
            with _kept() if self.fold.brief else nullcontext():
                if not self._read(until):
                    self._size = _BEHIND
                elif self._untold:
                    self._tell(until)
            return self.fold.version > before

    @property
    def _untold(self) -> bool:
        """Whether texts of calls are left out."""
        return self._teller.n < self._brief_until

    def _read(self, until: float) -> bool:
        """Take further records; whether all were taken."""
        for number, record in enumerate(self._cursor.records(), 1):
            self._take(record)
            if number % _BETWEEN == 0 and time.monotonic() > until:
                break
        else:
            return True
        return False

    def _tell(self, until: float) -> None:
        """Read records again for the texts that were left out."""
        for number, record in enumerate(self._teller.records(), 1):
            with suppress(TraceError, KeyError, TypeError, AttributeError):
                if record["n"]:
                    self.fold.tell(unpacked(record, self._blobs))
            if not self._untold or (number % _BETWEEN == 0 and time.monotonic() > until):
                return
        self._brief_until = 0  # the file has become shorter

    def replaced(self) -> bool:
        """Whether another file has its name now, or it has become shorter than what was read."""
        try:
            stat = self.path.stat()
        except OSError:
            return False
        return stat.st_ino != self._inode or stat.st_size < self._cursor.offset

    def patch(self, since: int = 0) -> dict[str, Any]:
        """What changed after a version. `behind`: records are not read yet; `more`: they, or texts of calls."""
        with self._lock:
            patch = self.fold.patch(since)
            behind = self._size == _BEHIND
            patch |= {"behind": behind, "more": behind or self._untold}
        damage = self._cursor.damage
        if behind:
            share = self._cursor.offset / max(1, self.path.stat().st_size)
            patch["head"]["notes"].append(f"{share:.0%} of the file is read so far; the rest follows.")
        if damage is not None and damage.torn and not patch["head"]["over"]:
            patch["head"]["notes"].append(f"The file ends inside record {damage.record}, which may still be written.")
        elif damage is not None:
            patch["head"]["notes"].append(f"The file is damaged: {damage}. What follows is missing here.")
        if self._unread > _MOST_NOTES:
            patch["head"]["notes"].append(f"{self._unread - _MOST_NOTES} more records have lost their side files.")
        # A training writes it when the step is over, which is later than the run.
        patch["head"]["training"] = training_of(self.path, self.fold.texts) if patch["head"]["over"] else None
        return patch

    def bodies(self, begin: int, end: int) -> list[list[Any]]:
        """What items hold: sections of texts, as `item_body` makes them."""
        with self._lock:
            chosen = [(item.id, _places_of(item)) for item in self.fold.items[max(0, begin) : max(0, end)]]
        return [body_of(map(self._record, places), self.fold.texts, call_id) for call_id, places in chosen]

    def records(self, item: Item) -> list[Mapping[str, Any]]:
        """The records of an item."""
        return [self._record(place) for place in _places_of(item)]

    def _record(self, place: int) -> Mapping[str, Any]:
        # Calls that never began have one plan in common.
        if place != self._last[0]:
            try:
                found: Mapping[str, Any] = record_at(self.path, place, self._places, self._cursor.seal)
            except TraceError as error:
                found = {"t": "missing", "why": fault_of(error, self.path)}
            self._last = (place, found)
        return self._last[1]

    def _take(self, record: dict[str, Any]) -> None:
        if not record["n"]:
            return  # the header
        self._places.append(self._cursor.begin)
        if self.fold.brief:
            self._brief_until = self._cursor.n
        try:
            whole = unpacked(record, self._blobs)
        except TraceError as error:
            self._unread += 1
            if self._unread <= _MOST_NOTES:
                self.fold.notes.append(fault_of(error, self.path))
            whole = _outline(record)
        try:
            self.fold.apply(whole)
        except (KeyError, TypeError, AttributeError):
            # An outline of a lost record may lack what the fold needs; its place still counts.
            self.fold.count = len(self._places)


@contextmanager
def _kept() -> Iterator[None]:
    """Nobody looks for garbage in what is read: none of it is, and to look takes long for a long trace."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _outline(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a record says of itself when its side file is lost."""
    small, big = record.get("small"), record.get("big")
    if isinstance(small, dict) and isinstance(big, list):
        return {**dict.fromkeys(map(str, big)), **small}
    return {"t": "missing"}


def _places_of(item: Item) -> list[int]:
    return [item.planned, *item.places] if item.planned >= 0 else list(item.places)
