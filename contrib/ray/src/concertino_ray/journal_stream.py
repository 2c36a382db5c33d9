"""The way of a worker's traces to their folder on another machine, through the keeper there.

All runs of a worker share one stream: what they wrote since the last message goes in the next one, and one message is
under way at a time. So a hundred runs that wait for their calls to be taken cost few messages.

Invariant: `settle` returns when the keeper has taken all that was written before. A lease that is over stays so: its
run begins no further call, and its result is not used.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import Any

from concertino.core.private_files import write_private
from concertino.traces.fence import JournalFenced
from concertino.traces.store import TraceStore

from .journal_keeper import Piece

_MESSAGE = 4 << 20
"""Bytes of a message, about."""
_POLL = 0.2
"""Seconds between looks at a trace that another process has."""
_PREFIX = "ct-journals-"


class LeaseOver(JournalFenced):
    """What this worker writes of a run does not count any more."""


class JournalStream:
    """The stream of a worker process.

    Args:
        keeper: the actor.
    """

    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._mutex = threading.Lock()
        self._pending: deque[Piece] = deque()
        self._given = self._taken = 0
        self._work = asyncio.Event()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._leases: dict[str, Lease] = {}
        self._sending = asyncio.ensure_future(self._send())
        self.folder, self._lock = _own_folder()

    async def begin(self, order: str, folder: Path, again: bool) -> Lease:
        """The lease of an order, with what is there of its trace in `self.folder`.

        Raises:
            LeaseOver: the keeper is gone.
        """
        from ray.exceptions import RayError

        self.clear(order)
        try:
            while not (told := await self._keeper.begin.remote(order, str(folder), again)):  # noqa: ASYNC110 (elsewhere)
                await asyncio.sleep(_POLL)
            lease = self._leases[told["lease"]] = Lease(self, told["lease"], order)
            for name, size in told["files"]:
                await self._fetch(lease, name, size)
        except RayError as error:
            raise LeaseOver(f"{order}: nobody keeps its trace: {type(error).__name__}") from error
        return lease

    async def end(self, lease: Lease) -> None:
        """End a lease, when everything is taken.

        Raises:
            LeaseOver: something was not.
        """
        try:
            await lease.settle()
        finally:
            self._leases.pop(lease.token, None)
            self._keeper.end.remote(lease.token)
            if all(each.order != lease.order for each in self._leases.values()):  # it may be here again
                self.clear(lease.order)

    def clear(self, order: str) -> None:
        """Remove the copy of an order's trace here."""
        TraceStore(self.folder).delete(order)

    def give(self, piece: Piece) -> None:
        """Send a piece; from any thread."""
        with self._mutex:
            self._pending.append(piece)
            self._given += 1
        self._loop.call_soon_threadsafe(self._work.set)

    async def taken(self) -> None:
        """Return when the keeper has answered to all that was given before."""
        if self._taken < self._given:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((self._given, waiter))
            await waiter

    async def close(self) -> None:
        """End it; leases are over."""
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)
        os.close(self._lock)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _fetch(self, lease: Lease, name: str, size: int) -> None:
        path, offset = self.folder / name, 0
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, b"")
        with path.open("ab") as file:
            while offset < size:
                data = await self._keeper.read.remote(lease.token, name, offset, _MESSAGE)
                if not data:
                    raise LeaseOver(f"{lease.order}: another worker has its trace now")
                file.write(data)
                offset += len(data)

    async def _send(self) -> None:
        from ray.exceptions import RayError

        while True:
            await self._work.wait()
            self._work.clear()
            while batch := self._batch():
                try:
                    over = await self._keeper.take.remote([tuple(piece) for piece in batch])
                except RayError as error:
                    over = dict.fromkeys(self._leases, f"nobody keeps its trace: {type(error).__name__}")
                for token, why in over.items():
                    if token in self._leases:
                        self._leases[token].over = why
                self._taken += len(batch)
                while self._waiting and self._waiting[0][0] <= self._taken:
                    waiter = self._waiting.popleft()[1]
                    if not waiter.done():
                        waiter.set_result(None)

    def _batch(self) -> list[Piece]:
        batch, size = [], 0
        with self._mutex:
            while self._pending and size < _MESSAGE:
                batch.append(self._pending.popleft())
                size += len(batch[-1].data)
        return batch


class Lease:
    """The right to write the trace of an order; a mirror of its journals.

    Attributes:
        token: its name at the keeper.
        order: the id of the order.
        over: why it is over; empty while it is not.
    """

    def __init__(self, stream: JournalStream, token: str, order: str) -> None:
        self._stream = stream
        self.token, self.order, self.over = token, order, ""

    def write(self, path: Path, offset: int, data: bytes) -> None:
        """As `Mirror.write`. Files elsewhere are nobody's but this machine's."""
        self._check()
        if path.parent == self._stream.folder:
            self._stream.give(Piece(self.token, path.name, offset, data))

    def keep(self, path: Path, data: bytes) -> None:
        """As `Mirror.keep`."""
        self._check()
        if path.parent.parent == self._stream.folder:
            for offset in range(0, max(len(data), 1), _MESSAGE):
                part = data[offset : offset + _MESSAGE]
                kind = "last" if offset + _MESSAGE >= len(data) else "part"
                self._stream.give(Piece(self.token, f"{path.parent.name}/{path.name}", offset, part, kind))

    async def settle(self) -> None:
        """As `Mirror.settle`."""
        await self._stream.taken()
        self._check()

    def _check(self) -> None:
        if self.over:
            raise LeaseOver(f"{self.order}: {self.over}")


def _own_folder() -> tuple[Path, int]:
    """A folder for copies of traces, and the lock that says that its process lives. Those of the dead are removed."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for other in folder.parent.glob(f"{_PREFIX}*"):
        try:
            fd = os.open(other, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(other, ignore_errors=True)
        except BlockingIOError:
            pass  # its process lives
        finally:
            os.close(fd)
    return folder, lock
