"""Fences: a writer that was thought dead, and lives, changes no trace and begins no call.

    with fenced(again=True):       # the order is issued once more: its last writer is thought dead
        take_over(path)            # from here on that writer is refused
        ...                        # journals that are opened here have fences

A lock does not help there: it may be held for ever by a process that nobody can reach, and over a network it may be
lost. So a trace has epochs. Whoever takes it over makes the file `<trace>.epoch-1`, or the next number, and puts a
copy of the trace in its place. A fenced writer looks after each record whether its epoch is over.

Invariant: what a writer was allowed to write is in the copy. It looks after it has written, and who takes over
copies after the epoch has begun: so either the copy has the record, or the writer is refused. A call whose beginning
was refused is not made. Of several that take over, the last epoch wins: it removes the copies of the others before it
reads the trace, so that none of them can be put in its place any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from concertino.core.private_files import open_private

from .journal_errors import JournalError


@dataclass
class _Claim:
    """What is known of the writers of one order.

    Attributes:
        again: whether the last one is thought dead.
        taken: the epochs that were begun here, by trace.
    """

    again: bool
    taken: dict[str, int] = field(default_factory=dict)


_claim: ContextVar[_Claim | None] = ContextVar("claim", default=None)


class JournalFenced(JournalError):
    """This writer was thought dead, and another one has the trace now."""


@contextmanager
def fenced(*, again: bool) -> Iterator[None]:
    """Journals that are opened inside look after each record whether they still have the trace.

    Args:
        again: whoever wrote the trace before is thought dead, and `run_once` takes the trace over.
    """
    token = _claim.set(_Claim(again))
    try:
        yield
    finally:
        _claim.reset(token)


def is_again() -> bool:
    """Whether the last writer of what is opened here is thought dead."""
    claim = _claim.get()
    return claim is not None and claim.again


def enter(path: Path) -> None:
    """Fix the epoch in which a fenced writer opens a trace that nobody has open.

    A trace that was taken over before is taken over once more, for whoever did so may be about to put a copy in its
    place.

    Raises:
        JournalFenced, JournalError: as `take_over`.
    """
    claim = _claim.get()
    if claim is None or claim.taken.get(_known(path)):
        return
    if epoch_of(path):
        take_over(path)
    else:
        claim.taken[_known(path)] = 0


class Fence:
    """The epoch in which a writer has its trace: the one that it began, else the one in which it opened it."""

    def __init__(self, path: Path, taken: int | None = None) -> None:
        self._path = Path(_known(path))
        self._next = _epoch_file(self._path, (epoch_of(self._path) if taken is None else taken) + 1)

    def check(self, fd: int) -> None:
        """Raise JournalFenced if the epoch is over, or the path leads to another file than `fd`."""
        with suppress(FileNotFoundError):
            here, mine = self._path.stat(), os.fstat(fd)
            if (here.st_dev, here.st_ino) == (mine.st_dev, mine.st_ino) and not self._next.exists():
                return
        raise _refusal(self._path)


def fence_of(path: Path) -> Fence | None:
    """The fence for a journal that is about to be opened; None outside of `fenced`."""
    claim = _claim.get()
    return None if claim is None else Fence(path, claim.taken.get(_known(path)))


def epoch_of(path: Path) -> int:
    """How often a trace was taken over."""
    return next(epoch for epoch in count() if not _epoch_file(path, epoch + 1).exists())


def take_over(path: Path) -> None:
    """Begin the next epoch of a trace. Does nothing where there is no trace.

    Raises:
        JournalFenced: another one has taken it over since.
        JournalError: the folder cannot be written.
    """
    if not path.exists():
        return
    try:
        epoch = _begin_epoch(path)
        for earlier in range(1, epoch):
            _copy_file(path, earlier).unlink(missing_ok=True)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return  # it was removed meanwhile
        _put(data, path, epoch)
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be taken over ({error.strerror}). Check the permissions of its folder."
        ) from (error)
    if (claim := _claim.get()) is not None:
        claim.taken[_known(path)] = epoch


def forget_epochs(path: Path) -> None:
    """Remove what taking over left beside a trace that was deleted."""
    for epoch in range(epoch_of(path), 0, -1):
        _copy_file(path, epoch).unlink(missing_ok=True)
        _epoch_file(path, epoch).unlink(missing_ok=True)


def _put(data: bytes, path: Path, epoch: int) -> None:
    """Put a copy in the place of the trace, unless the next epoch has begun."""
    copy = _copy_file(path, epoch)
    with os.fdopen(open_private(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if _epoch_file(path, epoch + 1).exists():
        copy.unlink(missing_ok=True)
        raise _refusal(path)
    try:
        copy.replace(path)
    except FileNotFoundError:
        raise _refusal(path) from None  # the next one has removed the copy


def _begin_epoch(path: Path) -> int:
    while True:
        epoch = epoch_of(path) + 1
        with suppress(FileExistsError):
            os.close(open_private(_epoch_file(path, epoch), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            return epoch


def _refusal(path: Path) -> JournalFenced:
    return JournalFenced(
        f"{path}: this writer was thought dead, and another one has taken the trace over. What it writes now is "
        "dropped. Read how the run ended from the trace."
    )


def _known(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 (a change of folder must not fence a writer)


def _epoch_file(path: Path, epoch: int) -> Path:
    return path.with_name(f"{path.name}.epoch-{epoch}")


def _copy_file(path: Path, epoch: int) -> Path:
    return path.with_name(f"{path.name}.epoch-{epoch}.copy")
