"""One writer per journal, and no lock that outlives it.

The lock is `flock` on the open file itself: the kernel frees it when the writer closes the file or dies, by
whatever signal, so there is nothing to clean up and nothing to go stale. Where the platform has no `flock`, a
lock file `<journal>.lock` holding the writer's pid stands in; a killed writer leaves it behind, and the error
says so.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType

from concertino.core.private_files import open_private

from .journal_errors import JournalError, JournalLocked

_PROBE = 0.02
"""Seconds after which nobody is only looking whether a journal is written: that takes a shared lock for an instant."""
_fcntl: ModuleType | None
try:
    import fcntl as _fcntl
except ImportError:
    _fcntl = None


class WriterLock:
    """The right to write one journal, held from construction to `release` or to the end of the process."""

    def __init__(self, path: Path, fd: int) -> None:
        """Take the lock at once or not at all.

        Raises:
            JournalLocked: another writer holds it, in this process or another.
            JournalError: the file system does not offer locks.
        """
        self._fd = fd
        self._lock_file: Path | None = None
        if _fcntl is None:
            self._lock_file = _create_lock_file(path)
            return
        try:
            # Without waiting: a run that would hang until another one ends is better refused at once.
            if not _lock(_fcntl, fd):
                time.sleep(_PROBE)
                if not _lock(_fcntl, fd):
                    raise _locked(path, _flock_holder(fd))
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be locked ({error.strerror}), so two writers could not be distinguished. "
                "Put the trace on a local disk."
            ) from error

    def release(self) -> None:
        """Give the right back; the file is still open.

        Unlocking, and not only closing, because a child that was forked this moment may still hold a copy of
        the descriptor.
        """
        if self._lock_file is not None:
            self._lock_file.unlink(missing_ok=True)
        elif _fcntl is not None:
            _fcntl.flock(self._fd, _fcntl.LOCK_UN)


def is_being_written(path: Path) -> bool:
    """Whether somebody has the right to write a journal now; without the file, nobody."""
    if _fcntl is None:
        return path.with_name(path.name + ".lock").exists()
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe of that name must not make it wait
    except OSError:
        return False
    try:
        _fcntl.flock(fd, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        _fcntl.flock(fd, _fcntl.LOCK_UN)
        return False
    finally:
        os.close(fd)


def _lock(fcntl: ModuleType, fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: Path, pid: int | None, hint: str = "") -> JournalLocked:
    holder = f"process {pid}" if pid else "another writer"
    return JournalLocked(
        f"{path}: already open for writing by {holder}. Wait for it to end, or give this run another path.{hint}",
        pid,
    )


def _flock_holder(fd: int) -> int | None:
    """The pid behind a `flock`, from Linux's table of locks; None where the table does not exist."""
    if sys.platform != "linux":
        return None
    file = os.fstat(fd)
    here = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        table = Path("/proc/locks").read_text()
    except OSError:
        return None
    for row in table.splitlines():
        fields = row.split()
        # "1: FLOCK ADVISORY WRITE <pid> <major:minor:inode> 0 EOF"; a waiting lock has "->" in the second
        # field.
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5] == here:
            return int(fields[4]) if int(fields[4]) > 0 else None
    return None


def _create_lock_file(path: Path) -> Path:
    lock_file = path.with_name(path.name + ".lock")
    try:
        with os.fdopen(open_private(lock_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        # It may still be empty: its writer has made it and not yet written its pid.
        text = lock_file.read_text(encoding="ascii")
        raise _locked(
            path, int(text) if text.isdigit() else None, f" If that process is gone, delete {lock_file}."
        ) from None
    return lock_file
