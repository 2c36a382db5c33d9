"""The trace of a stepped run: a new file, or one that an interrupted process left.

Invariant: a file is written on only by one process at a time; and what it holds is of a run that began alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from concertino.core.errors import TraceError
from concertino.traces import JournalSink, TraceMemory
from concertino.traces.records import first_record, last_record
from concertino.traces.trace import header

from .setup import ReopenedTrace, is_over, refuse_changes

if TYPE_CHECKING:
    from concertino.core.events import RunStarted


@dataclass(frozen=True)
class StepRecord:
    """What a stepped run is recorded in, and what is known of it.

    Attributes:
        sink: takes the events; None where nothing is recorded, or the run is over and only gone through again.
        memory: what an earlier process did.
        elapsed: seconds that it took.
    """

    sink: JournalSink | None = None
    memory: TraceMemory | None = None
    elapsed: float = 0.0

    @classmethod
    def of_file(cls, path: Path, begun: RunStarted) -> StepRecord:
        """The record of a run in a file, which may be there already.

        Args:
            path: of the file.
            begun: how the run begins now.

        Raises:
            TraceError: the file is in use, or of a run that began otherwise (says what differs).
        """
        if path.exists() and not _begins(path):
            # A process died before its run had begun: there is nothing to keep.
            path.unlink()
        if not path.exists():
            return cls(JournalSink.create(path, header(begun.run_id), "process"))
        last = last_record(path)
        if last is not None and is_over(last):
            known, memory = TraceMemory.of_file(path)
            if known.end is not None:  # else it is damaged before its end
                refuse_changes(known, begun.setup)
                return cls(None, memory, known.facts.seconds)
        from concertino.traces.journal import Journal

        opened = ReopenedTrace(path, {})
        journal = Journal.reopen(path, opened.read, durability="process")
        try:
            refuse_changes(opened.trace, begun.setup)
        except BaseException:
            journal.close()
            raise
        return cls(JournalSink(journal), opened.memory, opened.trace.facts.seconds)


def _begins(path: Path) -> bool:
    try:
        return bool(first_record(path)["t"] == "run")
    except TraceError:
        return False
