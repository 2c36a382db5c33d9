"""Bytes that must reach the disk: writing all of them, and knowing when they are there.

Two promises, which must not be confused. After `write(2)` the bytes belong to the kernel: they survive the
death of the process, by any signal. After `fdatasync(2)` they belong to the disk: they survive a power cut,
and it costs milliseconds. A `GroupSync` makes that affordable: one sync on its own thread serves everyone who
is waiting.

Invariant: a sync that failed is never tried again. The kernel may drop the pages it could not write and
report the next sync as a success, so from then on no promise can be made for this file.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .journal_errors import JournalError, JournalWriteError

if TYPE_CHECKING:
    from concurrent.futures import Future

# `fdatasync` spares the write of the modification time; macOS and Windows lack it.
_sync = getattr(os, "fdatasync", os.fsync)


def write_all(fd: int, data: bytes) -> None:
    """Write `data` with one system call, or more if the system takes only a part; OSError says why.

    A short write does not tell its cause. Writing the rest either completes the data or raises with the
    cause.
    """
    written = os.write(fd, data)
    while written < len(data):
        step = os.write(fd, data[written:])
        if step == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += step


def sync_file(fd: int) -> None:
    """Return when the bytes and the size of the file are on disk."""
    _sync(fd)


def sync_folder(path: Path) -> None:
    """Return when the names in a folder are on disk; without it a power cut may lose a new file."""
    if os.name == "nt":
        return  # a folder cannot be opened there, and NTFS journals its names
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class GroupSync:
    """Syncs one file on a daemon thread, once for all who wait at the same time.

    `end` tells how many bytes of the file are complete. The thread starts with the first request.
    """

    def __init__(self, path: Path, fd: int, end: Callable[[], int]) -> None:
        self._path = path
        self._fd = fd
        self._end = end
        self._synced = 0
        self._failure: JournalWriteError | None = None
        self._waiters: list[Future[None]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def request(self) -> Future[None]:
        """Done when every byte complete by now is on disk; fails with JournalWriteError.

        A closed journal raises JournalError.
        """
        # Imported here: the module is slow to import, and only `power` needs it.
        from concurrent.futures import Future

        future: Future[None] = Future()
        with self._changed:
            if self._failure is not None:
                future.set_exception(self._failure)
            elif self._synced >= self._end():
                future.set_result(None)
            elif self._stopped:
                raise JournalError(f"{self._path}: the trace is closed, so it cannot be flushed.")
            else:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=f"sync {self._path.name}", daemon=True)
                    self._thread.start()
                self._waiters.append(future)
                self._changed.notify()
        return future

    def close(self) -> None:
        """Sync what is left, serve all who wait, end the thread; JournalWriteError if a sync failed."""
        # Asked for before `_stopped` is set, after which every request is refused.
        last = self.request()
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        last.result()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiters and not self._stopped:
                    self._changed.wait()
                waiters, self._waiters = self._waiters, []
            if not waiters:
                return
            self._serve(waiters)

    def _serve(self, waiters: list[Future[None]]) -> None:
        # Taken before the sync: only what was complete by then is certainly on disk after it.
        goal = self._end()
        failure = self._failure
        if failure is None:
            try:
                sync_file(self._fd)
            except OSError as error:
                failure = JournalWriteError.of(self._path, "earlier records may not survive a power cut", error)
        with self._changed:
            self._failure = failure
            self._synced = goal if failure is None else self._synced
        for waiter in waiters:
            # A waiter that was cancelled meanwhile refuses a result with an exception, which would kill this thread.
            if not waiter.set_running_or_notify_cancel():
                continue
            if failure is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failure)
