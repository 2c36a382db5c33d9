"""Mirrors: what a journal writes goes to another machine, too, and counts when it is there.

    with mirrored(mirror):
        ...                        # journals that are opened here have the mirror

A worker whose disk nobody else sees writes its traces so. Its own file is then only what it reads from. Invariant: a
call of a mirrored run begins when the mirror has what was written before it, and ends when the mirror has its result.
What a mirror refuses is not begun.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol


class Mirror(Protocol):
    """The way to the other machine. `write` and `keep` are called from any thread, and do not wait.

    All three raise JournalError where the other side refuses.
    """

    def write(self, path: Path, offset: int, data: bytes) -> None:
        """Bytes that a journal wrote at an offset; what stood behind it is gone."""

    def keep(self, path: Path, data: bytes) -> None:
        """A side file, whole; a record that names it comes later."""

    async def settle(self) -> None:
        """Return when the other side has everything."""


_mirror: ContextVar[Mirror | None] = ContextVar("mirror", default=None)


@contextmanager
def mirrored(mirror: Mirror) -> Iterator[None]:
    """Journals that are opened inside have this mirror."""
    token = _mirror.set(mirror)
    try:
        yield
    finally:
        _mirror.reset(token)


def current_mirror() -> Mirror | None:
    """The mirror of a journal that is about to be opened."""
    return _mirror.get()
