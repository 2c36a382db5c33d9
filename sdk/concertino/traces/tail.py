"""The tail of a trace: its records as they are written, for whoever follows many traces without waiting for one.

    tail = TraceTail(path)
    going = tail.is_written()          # asked before reading: what was written by then is still given
    for record in tail.news(): ...     # what is new since the last look; call it again once the file has grown

Invariant: each record is given once, in order, whole, with its number `n`; the header is none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .blobs import BlobStore
from .journal_errors import Damage
from .journal_lock import is_being_written
from .journal_reader import JournalCursor
from .records import unpacked


class TraceTail:
    """A place in a trace from which reading goes on. It takes no lock and changes nothing.

    Args:
        path: of the trace; it need not be there yet.
        after: give only records behind this number.
    """

    def __init__(self, path: Path, after: int = 0) -> None:
        self.path = path
        self._after = max(after, 0)  # the header has number 0
        self._cursor = JournalCursor(path)
        self._blobs = BlobStore(path)

    @property
    def damage(self) -> Damage | None:
        """What ended the last look before the end of the file, None if nothing did."""
        return self._cursor.damage

    def is_written(self) -> bool:
        """Whether a run writes the trace now, in this process or another."""
        return is_being_written(self.path)

    def news(self) -> Iterator[dict[str, Any]]:
        """The records since the last look.

        Raises:
            TraceError: the file is missing, no trace, or a side file of it is damaged.
        """
        for record in self._cursor.records():
            if record["n"] > self._after:
                yield {**unpacked(record, self._blobs), "n": record["n"]}
