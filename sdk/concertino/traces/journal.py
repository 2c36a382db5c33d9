"""The writer of a journal: an append-only file that is whole after a crash at any point.

    with Journal.create("run.trace", {"t": "header", "v": 1}) as journal:
        n = journal.append({"t": "intent", "call": "c1"})       # in the kernel's hands when this returns
        await journal.flush()                                   # on disk, with durability="power"

Each record is one `write(2)` on a file opened for appending, nothing is held back in Python: what `append`
returned for survives `kill -9`. Invariants: one writer at a time; the file is a sequence of whole lines but
for, at most, the last; a number is given to exactly one record; an append that raised `JournalWriteError` has
left the file as it was.

A journal belongs to the process that opened it. A forked child loses it at once, so that no child holds
the lock of a dead parent. Methods may be called from any thread, but not from a
signal handler.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from concertino.core.errors import UsageError
from concertino.core.private_files import open_private

from .blobs import BlobStore, small_parts
from .disk import GroupSync, sync_file, sync_folder, write_all
from .fence import JournalFenced, fence_of
from .journal_errors import Damage, JournalEncodeError, JournalError, JournalExists, JournalForked, JournalWriteError
from .journal_line import checked_header, encode_json, encode_json_in_steps, frame
from .journal_lock import WriterLock
from .journal_reader import JournalFile, read_journal
from .mirror import current_mirror
from .sealing import Seal, new_seal, seal_of

Durability = Literal["process", "power"]


class Intact(Protocol):
    """What a reading of a journal found intact: `count` records, its header included, in `size` bytes."""

    @property
    def header(self) -> dict[str, Any]: ...
    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def damage(self) -> Damage | None: ...


# `O_APPEND`: the kernel puts each write at the end.
_FLAGS = os.O_RDWR | os.O_APPEND
_BLOCK = 1 << 20
# Weak, so that a journal that nobody holds can be collected.
_open_here: weakref.WeakSet[Journal] = weakref.WeakSet()


class Journal:
    """The only writer of one journal file; see `create` and `resume`.

    Attributes:
        path: the file.
        header: its first record.
        durability: "process" survives the death of the process, "power" also a power cut (after `flush`).
        damage: what `resume` had to drop, or None.
        failed: the last write that the disk refused, or None; stays set after later successes, because its
            record is not in the file.
    """

    def __init__(self, path: Path, fd: int, durability: Durability) -> None:
        """Take over `fd` and lock it; only for `create` and `resume`."""
        try:
            self._fence = fence_of(path)
            if self._fence is not None:
                self._fence.check(fd)
            self._writer = WriterLock(path, fd)
        except BaseException:
            os.close(fd)
            raise
        self.path = path
        self.header: dict[str, Any] = {}
        self.durability = durability
        self.damage: Damage | None = None
        self.failed: JournalWriteError | None = None
        self._fd = fd
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        # Next number and end of the intact bytes, in one attribute: an interrupt cannot come between the two.
        self._tail = (0, 0)
        # Length of the line that is being written; still set later if an exception cut the append short.
        self._unsettled: int | None = None
        self._mirror = current_mirror()
        self._blobs = BlobStore(path, sync=durability == "power", mirror=self._mirror)
        self._seal: Seal | None = None
        self._sync = GroupSync(path, fd, lambda: self._tail[1]) if durability == "power" else None
        _open_here.add(self)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        header: Mapping[str, Any],
        *,
        durability: Durability = "process",
        sealed: bool = True,
    ) -> Journal:
        """Begin a new journal with its header, `{"t": "header", "v": 1, ...}`, as record 0.

        Args:
            sealed: seal it if `CONCERTINO_TRACE_KEY` holds a key.

        Raises:
            JournalExists: the path is taken.
            JournalError: the file cannot be created; no file is left behind.
            UsageError: the header or the durability is not one of those above.
        """
        path = Path(path)
        _require_durability(durability)
        header = checked_header(header)
        seal = new_seal(header) if sealed else None
        header = header if seal is None else seal.header
        line = encode_json(header)  # before the file exists, so that a wrong header leaves none
        fd = _open(path, os.O_CREAT | os.O_EXCL)
        with ExitStack() as undo:
            # Undone in reverse: closed first, because Windows removes no open file.
            # What another one has put in its place is not this one's to remove.
            undo.push(lambda kind, *_: None if kind is JournalFenced else path.unlink(missing_ok=True))
            journal = cls(path, fd, durability)
            undo.callback(journal.close)
            journal._take_seal(seal)
            journal.header = {**header, "n": journal._append(line)}
            journal._settle_names()
            undo.pop_all()
        return journal

    @classmethod
    def resume(
        cls, path: str | os.PathLike[str], *, durability: Durability = "process"
    ) -> tuple[Journal, list[dict[str, Any]]]:
        """Open an existing journal to continue it, and return the intact records after its header.

        What follows the last intact record is cut off and reported in `journal.damage`; unless it is only a
        torn last line, it is first copied to `<journal>.damaged-<offset>`.

        Raises:
            JournalLocked: another writer has it open.
            JournalTooNew: it was written in a later format.
            JournalWriteError: it could not be repaired; it is left as it was.
            JournalError: it is missing, empty, not a journal, or its header is damaged.
        """
        found: list[JournalFile] = []

        def read() -> JournalFile:
            found.append(read_journal(path))
            return found[0]

        journal = cls.reopen(path, read, durability=durability)
        return journal, found[0].records

    @classmethod
    def reopen(
        cls, path: str | os.PathLike[str], read: Callable[[], Intact], *, durability: Durability = "process"
    ) -> Journal:
        """As `resume`, for a reader that does not want all records at once.

        Args:
            read: reads the whole journal, and says what of it is intact. If it raises, the file stays as it is.
        """
        path = Path(path)
        _require_durability(durability)
        # Locked before it is read: what another writer is just writing must not be taken for damage and cut off.
        journal = cls(path, _open(path, 0), durability)
        with ExitStack() as undo:
            undo.callback(journal.close)
            file = read()
            if file.damage is not None:
                journal.damage = _cut_off(path, journal._fd, file.damage)
            journal.header = file.header
            journal._take_seal(seal_of(path, file.header))
            journal._tail = (file.count, file.size)
            journal._blobs.sweep()
            journal._settle_names()
            undo.pop_all()
        return journal

    @property
    def must_flush(self) -> bool:
        """Whether `flush` has something to wait for."""
        return self._sync is not None or self._mirror is not None

    @property
    def closed(self) -> bool:
        """Whether `append` is over: after `close`, and in a forked child."""
        return self._fd < 0

    def append(self, record: Mapping[str, Any], *, limit: int | None = None) -> int:
        """Write one record and return its number `n`, which is added to it.

        Args:
            limit: bytes of JSON above which the record goes to a side file, and a reference replaces it.

        Raises:
            JournalEncodeError: the record is not a JSON object, or has its own field `n`; nothing was written.
            JournalWriteError: the disk refused; the file is as before and a later append may succeed.
            JournalFenced: another writer has taken the trace over.
            JournalForked, JournalError: this process does not have the journal open.
        """
        return self._append(self.pack(record, limit=limit))

    def pack(self, record: Mapping[str, Any], *, limit: int | None = None, in_steps: bool = False) -> bytes:
        """The bytes of a record, for `append_packed`; its side file, if it needs one, is complete when this returns.

        It is the slow part of an `append`, and may be done in another thread. Errors are those of `append`.

        Args:
            limit: as for `append`.
            in_steps: let other threads run meanwhile.
        """
        # `dict` first: an abstract class is slow to ask, and almost every record is a dict.
        if not isinstance(record, (dict, Mapping)) or "n" in record:
            raise JournalEncodeError(
                f'{self.path}: a record is a mapping without "n", which the trace adds; given: {record!r:.200}.'
            )
        encode = encode_json_in_steps if in_steps else encode_json
        body = encode(record if isinstance(record, dict) else dict(record))
        if limit is not None and len(body) > limit:
            body = encode_json({**self.externalise(body), **small_parts(record)})
        return body

    def append_packed(self, body: bytes) -> int:
        """Write a record that `pack` gave, and return its number. Errors are those of `append`."""
        return self._append(body)

    def externalise(self, value_json: bytes, digest: str = "") -> dict[str, Any]:
        """Write a large value, given as JSON bytes, to a side file and return the reference for a record.

        Args:
            digest: their SHA-256, where it is known.

        Raises:
            JournalWriteError: the disk refused.
            JournalForked, JournalError: this process does not have the journal open.
        """
        self._require_open()
        return self._blobs.write(value_json, digest)

    async def flush(self) -> None:
        """Return when all records appended so far have the promised durability; at once for "process" without a mirror.

        Raises:
            JournalWriteError: the disk failed to take them. From then on every flush of this journal raises.
            JournalError: the mirror refuses them.
        """
        if self._mirror is not None:
            await self._mirror.settle()
        if self._sync is not None:
            self._require_open()
            import asyncio

            await asyncio.wrap_future(self._sync.request())

    def flush_blocking(self) -> None:
        """`flush` for callers without an event loop."""
        if self._sync is not None:
            self._require_open()
            self._sync.request().result()

    def close(self) -> None:
        """Flush, give the lock back and close the file, even if the flush fails. Again: nothing."""
        with self._mutex:
            # In one step: a descriptor that is closed twice may be another file's the second time.
            fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            if self._sync is not None:
                self._sync.close()
        finally:
            # Even after a failed flush: a lock that stayed would keep a resume out until the process ends.
            self._writer.release()
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, body: bytes) -> int:
        with self._mutex:
            if self._fd < 0:
                self._require_open()
            if self._unsettled is not None:
                self._settle()
            n, end = self._tail
            line = frame(body, n)
            if self._seal is not None and n:  # the header stays readable
                line = self._seal.closed(line, n)
            self._unsettled = len(line)
            try:
                write_all(self._fd, line)
            except OSError as error:
                self._unsettled = 0  # the caller is told that it failed, so not even a whole line may stay
                self.failed = JournalWriteError.of(self.path, f"record {n} was not written", error)
                self._settle()
                raise self.failed from error
            self._tail = (n + 1, end + len(line))
            self._unsettled = None
            if self._fence is not None:
                self._fence.check(self._fd)
            if self._mirror is not None:
                self._mirror.write(self.path, end, line)
        return n

    def _take_seal(self, seal: Seal | None) -> None:
        self._seal = self._blobs.seal = seal

    def _settle(self) -> None:
        """Make file and tail agree after an append that did not get to its end.

        An exception out of a signal handler may strike on either side of the write. A whole line stays: it
        may be the result of a paid call. A part of one is cut off.
        """
        n, end = self._tail
        try:
            size = os.fstat(self._fd).st_size
            if self._unsettled and size == end + self._unsettled:
                self._tail = (n + 1, size)
            elif size > end:
                os.ftruncate(self._fd, end)
        except OSError as error:
            self.failed = JournalWriteError.of(self.path, "a half written record could not be taken back", error)
            raise self.failed from error
        self._unsettled = None

    def _settle_names(self) -> None:
        """With "power": the records so far and the name of the file are on disk."""
        if self._sync is not None:
            self.flush_blocking()
            try:
                sync_folder(self.path.parent)
            except OSError as error:
                raise JournalWriteError.of(self.path, "its name may not survive a power cut", error) from error

    def _require_open(self) -> None:
        if self._fd >= 0:
            return
        if os.getpid() != self._pid:
            raise JournalForked(
                f"{self.path}: opened by process {self._pid}; this is its forked child {os.getpid()}. "
                "Send the records to the parent, or create a trace of its own here."
            )
        raise JournalError(f"{self.path}: the trace is closed. Open it again with Journal.resume().")


def _forget_in_child() -> None:
    """Drop the parent's journals: closing our copy of the descriptor leaves the lock to the parent."""
    for journal in list(_open_here):
        journal._mutex = threading.Lock()  # a thread that does not exist here may have held the old one
        if journal._fd >= 0:
            os.close(journal._fd)
            journal._fd = -1
    _open_here.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


def _require_durability(durability: str) -> None:
    if durability not in ("process", "power"):
        raise UsageError(f'durability is "process" or "power"; given: {durability!r}.')


def _open(path: Path, flags: int) -> int:
    try:
        return open_private(path, _FLAGS | flags)
    except FileExistsError:
        step = "Resume the run with Orchestrator.resume(), or give another path."
        raise JournalExists(f"{path}: already there. {step}") from None
    except FileNotFoundError:
        missing = f"the folder {path.parent}" if flags else "the file"
        raise JournalError(f"{path}: {missing} does not exist. Create it first, or check the path.") from None
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be opened for writing ({error.strerror}). "
            "Check that it is a file and that you may write it."
        ) from error


def _cut_off(path: Path, fd: int, damage: Damage) -> Damage:
    """End the file at its last intact record; keep a copy of what is dropped beyond a torn line."""
    # A torn line was never confirmed to anyone, so nothing is lost with it.
    saved = None if damage.torn else path.with_name(f"{path.name}.damaged-{damage.offset}")
    try:
        if saved is not None:
            # Appending never destroys a copy from an earlier repair at the same place.
            end = open_private(saved, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with path.open("rb") as source, os.fdopen(end, "ab") as copy:
                source.seek(damage.offset)
                while block := source.read(_BLOCK):
                    copy.write(block)
                copy.flush()
                sync_file(copy.fileno())
        os.ftruncate(fd, damage.offset)
    except OSError as error:
        raise JournalWriteError.of(path, f"its damage ({damage}) was not repaired", error) from error
    return replace(damage, saved=saved)
