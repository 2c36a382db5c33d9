"""The actor that writes the traces of workers which do not see their folder. It runs beside the driver.

A worker begins a lease of an order, gets what is there of its trace, and then sends what it writes. What was taken is
in the file, in the kernel's hands, before the worker is told so.

Invariants: an order has one lease. Whoever begins the next one was told that the last worker is gone; a worker whose
lease is over changes nothing. Leases do not outlive this process, so a keeper that died refuses whoever wrote before. A
piece goes behind what is there: one that would leave a gap ends the lease.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from concertino.core.private_files import make_private_folder, open_private
from concertino.traces.disk import write_all
from concertino.traces.fence import Fence, JournalFenced, enter, fence_of, fenced, take_over
from concertino.traces.journal_errors import JournalError, JournalLocked
from concertino.traces.journal_lock import WriterLock
from concertino.traces.sink import SUFFIX

_PART = ".part"


class Piece(NamedTuple):
    """Some bytes of a file.

    Attributes:
        lease: of whom.
        name: of the file, relative to the folder of the traces.
        offset: where the bytes go; of a journal, what stood behind it is gone.
        data: the bytes.
        kind: `journal`; `part` of a side file, or the `last` part, with which it gets its name.
    """

    lease: str
    name: str
    offset: int
    data: bytes
    kind: str = "journal"


@dataclass
class _Lease:
    """What a worker may write."""

    order: str
    folder: Path
    open: dict[str, tuple[int, Fence]] = field(default_factory=dict)

    def begin(self, again: bool) -> None:
        """Open the trace, if it is there.

        Raises:
            JournalLocked: another process writes it.
            JournalFenced: another one has just taken it over.
        """
        path = self.path(f"{self.order}{SUFFIX}")
        with fenced(again=again):
            if again:
                take_over(path)
            if path.exists():
                enter(path)
                self._open(path.name, path, fence_of(path) or Fence(path), 0)

    def write(self, piece: Piece) -> None:
        """Write a piece.

        Raises:
            JournalError, OSError: it was not written, or does not count.
        """
        path = self.path(piece.name)
        if piece.kind != "journal":
            _write_side(path, piece)
            return
        if piece.name not in self.open:
            self._open(piece.name, path, Fence(path), os.O_CREAT)
        fd, fence = self.open[piece.name]
        size = os.fstat(fd).st_size
        if piece.offset > size:
            raise JournalError(f"{path}: bytes {size} to {piece.offset} did not come")
        if piece.offset < size:
            os.ftruncate(fd, piece.offset)
        write_all(fd, piece.data)
        fence.check(fd)

    def path(self, name: str) -> Path:
        """Where a file is.

        Raises:
            JournalError: it is none of this order's.
        """
        parts = PurePosixPath(name).parts
        if not 1 <= len(parts) <= 2 or ".." in parts or not parts[0].startswith(f"{self.order}."):
            raise JournalError(f"{name!r}: expected a file of the order {self.order}")
        return self.folder.joinpath(*parts)

    def close(self) -> None:
        """Give the files back."""
        for fd, _ in self.open.values():
            os.close(fd)
        self.open.clear()

    def _open(self, name: str, path: Path, fence: Fence, flags: int) -> None:
        make_private_folder(path.parent)
        fd = open_private(path, os.O_RDWR | os.O_APPEND | flags)
        try:
            fence.check(fd)
            WriterLock(path, fd)
        except BaseException:
            os.close(fd)
            raise
        self.open[name] = fd, fence


class JournalKeeper:
    """Files of orders that are carried out elsewhere."""

    def __init__(self) -> None:
        self._leases: dict[str, _Lease] = {}
        # Each order under way has a file open.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def begin(self, order: str, folder: str, again: bool) -> dict[str, Any]:
        """The next lease of an order, and the files that are there, by name and size; empty if it must wait."""
        self.drop(order)
        lease, token = _Lease(order, Path(folder)), secrets.token_hex(8)
        try:
            lease.begin(again)
        except (JournalLocked, JournalFenced):
            return {}  # a driver that was killed has left a keeper, which is about to end
        self._leases[token] = lease
        return {"lease": token, "files": _files(lease)}

    def read(self, token: str, name: str, offset: int, count: int) -> bytes:
        """Bytes of a file of a lease; none where it is over."""
        lease = self._leases.get(token)
        if lease is None:
            return b""
        with lease.path(name).open("rb") as file:
            file.seek(offset)
            return file.read(count)

    def take(self, pieces: Sequence[tuple[Any, ...]]) -> dict[str, str]:
        """Write pieces. Gives the leases that are over, and why."""
        over: dict[str, str] = {}
        for piece in map(Piece._make, pieces):
            lease = self._leases.get(piece.lease)
            if lease is None:
                over.setdefault(piece.lease, "another worker has this run now; what is written here is dropped")
                continue
            try:
                lease.write(piece)
            except (JournalError, OSError) as error:
                over[piece.lease] = f"{error}"
                self.end(piece.lease)
        return over

    def end(self, token: str) -> None:
        """End a lease."""
        if lease := self._leases.pop(token, None):
            lease.close()

    def drop(self, order: str) -> None:
        """End the lease of an order, whoever has it."""
        for token in [token for token, lease in self._leases.items() if lease.order == order]:
            self.end(token)


def begin_keeper() -> Any:
    """A keeper on the driver's node. It ends with the driver; should it die alone, it is begun again."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(JournalKeeper).options(num_cpus=0, max_restarts=-1, scheduling_strategy=here).remote()


def end_keeper(keeper: Any) -> None:
    """End it; leases are over."""
    import ray

    with contextlib.suppress(Exception):  # the cluster itself may be gone
        ray.kill(keeper, no_restart=True)


def _write_side(path: Path, piece: Piece) -> None:
    part = path.with_name(path.name + _PART)
    if not piece.offset:
        make_private_folder(path.parent)
    fd = open_private(part, os.O_WRONLY | os.O_CREAT | (0 if piece.offset else os.O_TRUNC))
    try:
        os.lseek(fd, piece.offset, os.SEEK_SET)
        write_all(fd, piece.data)
    finally:
        os.close(fd)
    if piece.kind == "last":
        part.replace(path)


def _files(lease: _Lease) -> list[tuple[str, int]]:
    trace = lease.path(f"{lease.order}{SUFFIX}")
    side = trace.with_name(f"{trace.name}.blobs")
    found = [trace, *(path for path in side.glob("*") if path.suffix != _PART)]
    return [(str(path.relative_to(lease.folder)), path.stat().st_size) for path in found if path.is_file()]
