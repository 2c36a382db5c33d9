"""A pool that changes while a service runs: active runs finish with the pool that they began with.

A `Pool` is a value and never changes. A `LivePool` is the one place that says which pool is the current one: every new
run takes it when it starts, and keeps it. So swapping is one assignment, no run ever sees two pools, and the trace of
each run names the pool that it ran on (`setup["pool"]`, the pool's id).

    live = LivePool(Pool.load("pool.toml"))
    run = await orchestrator.run(question, pool=live)         # takes live.current
    live.swap(live.current.replace("openai/old", "openai/new"))
    live.update(lambda pool: pool.price(todays_prices))
    async with live.following("pool.toml"):                   # each save of the file swaps
        ...
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from concertino.core.errors import ConcertinoError, UsageError

from .pool import Pool
from .views import PoolDiff

logger = logging.getLogger("concertino")


class LivePool:
    """Holds the current pool of a service. Safe to use from several threads.

    Args:
        pool: the first one.
    """

    def __init__(self, pool: Pool) -> None:
        self._lock = threading.Lock()
        self._current = _checked(pool)
        self.swaps = 0
        self.fault = ""
        """What is wrong with the followed file, empty when its pool is the current one."""

    @property
    def current(self) -> Pool:
        """The pool that the next run takes."""
        return self._current

    def _repr_html_(self) -> str:
        """For notebooks: the pool that the next run takes."""
        return self._current._repr_html_()

    def swap(self, pool: Pool) -> PoolDiff:
        """Make another pool the current one. Says what differs; an equal one changes nothing.

        Raises:
            UsageError: it is not a pool. The current one stays.
        """
        return self.update(lambda _: pool)

    def update(self, change: Callable[[Pool], Pool]) -> PoolDiff:
        """Make a changed copy of the current pool the current one, with no other swap in between.

        Raises:
            UsageError: the change gives no pool, or raises as changes of pools do. The current one stays.
        """
        with self._lock:
            before = self._current
            after = _checked(change(before))
            difference = before.diff(after)
            if after != before:
                self._current = after
                self.swaps += 1
        return difference

    @contextlib.asynccontextmanager
    async def following(self, path: str | Path, *, seconds: float = 1.0) -> AsyncIterator[LivePool]:
        """While the block lasts, take over the pool file whenever it changes.

        A file that cannot be used is logged and noted in `fault`; the current pool stays.

        Args:
            path: the pool file.
            seconds: between two looks at it.
        """
        # Stamped before it is read, so that a save in between counts as a change.
        seen = _stamp(Path(path))
        self._load(Path(path))
        task = asyncio.create_task(self._follow(Path(path), seen, seconds), name=f"following {path}")
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self, path: Path, seen: tuple[int, int, int] | None, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            now = _stamp(path)
            if now != seen:
                seen = now
                # Loading reads files and imports plugins, which would block the service's event loop.
                await asyncio.to_thread(self._load, path)

    def _load(self, path: Path) -> None:
        try:
            difference = self.swap(Pool.load(path))
        except Exception as error:  # a plugin's, too: the service continues with its present pool
            self.fault = (
                str(error) if isinstance(error, ConcertinoError) else f"{path}: {type(error).__name__}: {error}"
            )
            logger.error("the pool stays as it is: %s", self.fault)
            return
        self.fault = ""
        if difference:
            logger.info("%s: pool %s from now on\n%s", path, self._current.id, difference)


def _checked(pool: object) -> Pool:
    if not isinstance(pool, Pool):
        raise UsageError(f"a LivePool holds a Pool; got {pool!r} ({type(pool).__name__})")
    pool.id  # noqa: B018 - an installed pool is loaded now, not under the first question
    return pool


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    # With the inode, since many editors replace a file, possibly at equal time and size.
    return status.st_mtime_ns, status.st_size, status.st_ino
