"""Fences: a writer that was thought dead, and lives, changes no trace and begins no call.

    with fenced(again=True):       # the order is issued once more: its last writer is thought dead
        take_over(path)            # from here on that writer is refused
        ...                        # journals that are opened here have fences

A lock does not help there: it may be held for ever by a process that nobody can reach, and over a network it may be
lost. So a trace has epochs. Whoever takes it over makes the file `<trace>.epoch-1`, or the next number, and puts a
copy of the trace in its place. A fenced writer looks after each record whether its epoch is over.

Invariant: what a writer was allowed to write is in the copy. It looks after it has written, and who takes over
copies after the epoch has begun: so either the copy has the record, or the writer is refused. A call whose beginning
was refused is not made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

from concertino.core.private_files import open_private

from .journal_errors import JournalError

_fenced: ContextVar[Literal["", "first", "again"]] = ContextVar("fenced", default="")


class JournalFenced(JournalError):
    """This writer was thought dead, and another one has the trace now."""


@contextmanager
def fenced(*, again: bool) -> Iterator[None]:
    """Journals that are opened inside look after each record whether they still have the trace.

    Args:
        again: whoever wrote the trace before is thought dead, and `run_once` takes the trace over.
    """
    token = _fenced.set("again" if again else "first")
    try:
        yield
    finally:
        _fenced.reset(token)


def is_again() -> bool:
    """Whether the last writer of what is opened here is thought dead."""
    return _fenced.get() == "again"


class Fence:
    """The epoch in which a writer opened its trace."""

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))  # noqa: PTH100 (a change of folder must not fence a writer)
        self._next = _epoch_file(self._path, epoch_of(self._path) + 1)

    def check(self, fd: int) -> None:
        """Raise JournalFenced if the epoch is over, or the path leads to another file than `fd`."""
        with suppress(FileNotFoundError):
            here, mine = self._path.stat(), os.fstat(fd)
            if (here.st_dev, here.st_ino) == (mine.st_dev, mine.st_ino) and not self._next.exists():
                return
        raise JournalFenced(
            f"{self._path}: this writer was thought dead, and another one has taken the trace over. What it writes now "
            "is dropped. Read how the run ended from the trace."
        )


def fence_of(path: Path) -> Fence | None:
    """The fence for a journal that is about to be opened; None outside of `fenced`."""
    return Fence(path) if _fenced.get() else None


def epoch_of(path: Path) -> int:
    """How often a trace was taken over."""
    epoch = 0
    while _epoch_file(path, epoch + 1).exists():
        epoch += 1
    return epoch


def take_over(path: Path) -> None:
    """Begin the next epoch of a trace. Does nothing where there is no trace.

    Raises:
        JournalError: the folder cannot be written.
    """
    if not path.exists():
        return
    try:
        epoch = _begin_epoch(path)
        copy = path.with_name(f"{path.name}.epoch-{epoch}.copy")
        data = path.read_bytes()
        with os.fdopen(open_private(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if _epoch_file(path, epoch + 1).exists():
            copy.unlink()  # somebody has taken over from this one already
        else:
            copy.replace(path)
    except FileNotFoundError:
        return  # it was removed meanwhile
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be taken over ({error.strerror}). Check the permissions of its folder."
        ) from (error)


def _begin_epoch(path: Path) -> int:
    while True:
        epoch = epoch_of(path) + 1
        with suppress(FileExistsError):
            os.close(open_private(_epoch_file(path, epoch), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            return epoch


def _epoch_file(path: Path, epoch: int) -> Path:
    return path.with_name(f"{path.name}.epoch-{epoch}")
