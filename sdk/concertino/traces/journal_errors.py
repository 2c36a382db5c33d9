"""What can be wrong with a journal, and what to do about each.

A journal is damaged in exactly one place at most, as seen from its start: the first line that does not prove
itself. That place is a `Damage` value, reported and never raised, because everything before it is still good.
An exception means that work cannot continue: no file, no header, a second writer, a disk that takes
no more.

    TraceError
    └── JournalError            the file is missing, empty, no journal, or closed
        ├── JournalExists       `create` on a path that is taken
        ├── JournalLocked       another writer has it open
        ├── JournalFenced       another writer has taken the trace over (fence.py)
        ├── JournalForked       a forked child tried to write into its parent's journal
        ├── JournalTooNew       written by a later version
        ├── JournalEncodeError  a record holds something that JSON has no form for; nothing was written
        ├── JournalWriteError   the disk refused; `errno` says why; the file is as it was before
        └── BlobError           a side file is missing or damaged
"""

from __future__ import annotations

import errno as codes
import os
from dataclasses import dataclass
from pathlib import Path

from concertino.core.errors import TraceError

_NEXT_STEP = {
    codes.ENOSPC: "Free space on that disk, then continue: later records can still be written.",
    codes.EDQUOT: "The disk quota is used up: free space or raise it, then continue.",
    codes.EFBIG: "The file-size limit is reached: raise it (`ulimit -f`) or start a new trace.",
    codes.EIO: "The disk reports a fault: copy the file to another disk and resume there.",
    codes.EROFS: "The file system has become read-only: check the disk, then resume.",
}


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a journal stops being readable.

    `offset` is the byte at which the first bad line begins, `record` the number that it should have carried,
    `dropped` the bytes from there to the end of the file. `torn` says that the file merely ends inside a
    line, which is what a killed writer leaves: that record was never confirmed to anyone. `saved` names the
    copy that `Journal.resume` keeps of the dropped bytes when they are more than a torn line.
    """

    offset: int
    dropped: int
    record: int
    reason: str
    torn: bool = False
    saved: Path | None = None

    def __str__(self) -> str:
        kept = f"; the dropped bytes are kept in {self.saved}" if self.saved else ""
        what = f"record {self.record}" if self.torn else f"record {self.record} and all after it"
        return f"{what} lost at byte {self.offset} ({self.dropped} bytes dropped): {self.reason}{kept}"


class JournalError(TraceError):
    """A journal cannot be opened, read or written."""


class JournalExists(JournalError):
    """`Journal.create` was given a path that is already taken."""


class JournalLocked(JournalError):
    """Another writer has the journal open; `pid` is its process, where the system tells."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid = pid


class JournalForked(JournalError):
    """A forked child used the journal of its parent."""


class JournalTooNew(JournalError):
    """The journal was written by a version whose records this one does not know."""


class JournalEncodeError(JournalError):
    """A record or value has no JSON form; nothing was written."""


class JournalWriteError(JournalError):
    """The operating system refused a write or a sync; `errno` is its code."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno

    @classmethod
    def of(cls, path: Path, what: str, error: OSError) -> JournalWriteError:
        """The error for `what` ("record 7 was not written") with the step that fits its cause."""
        code = error.errno or 0
        step = _NEXT_STEP.get(code, "Check the disk and the permissions of the file.")
        return cls(f"{path}: {what}: {os.strerror(code)}. {step}", code)


class BlobError(JournalError):
    """A side file that a record names is missing, or is not what was written."""
