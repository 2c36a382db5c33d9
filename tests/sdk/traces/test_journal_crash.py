"""What a journal survives: kill -9 at any moment, a full disk at any write, an exception inside one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import JournalError, JournalWriteError
from concertino.traces.journal_reader import read_journal

HEADER = {"t": "header", "v": 1}
Write = Callable[[int, bytes], int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def numbers(path: Path) -> list[int]:
    file = read_journal(path)
    assert file.damage is None
    return [record["i"] for record in file.records]


# -- kill -9 -----------------------------------------------------------------------------------------------

# A nursery forks the writers, because a fork starts in a millisecond and an interpreter in fifty. Each writer
# reports a number, with one unbuffered write, only after append (and flush) returned.
NURSERY = r"""
import asyncio, os, random, select, signal, sys, time
from concertino.traces.journal import Journal
path, durability, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)

async def write(out):
    journal, records = Journal.resume(path, durability=durability)
    for i in range(len(records) + 1, 10**9):
        value = b'"%s"' % (b"%d " % i * (i % 500))
        record = {"i": i, "pad": "x" * (300_000 if i % 64 == 0 else i % 50 * 10)}
        if i % 7 == 0:
            record["value"] = journal.externalise(value)
        n = journal.append(record)
        await journal.flush()
        os.write(out, b"%d\n" % n)

Journal.create(path, {"t": "header", "v": 1}, durability=durability).close()
for _ in range(kills):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(write(writing))
        finally:
            os._exit(1)
    os.close(writing)
    if chance.random() < 0.9:
        select.select([reading], [], [], 10)
    time.sleep(chance.random() * 0.01)
    os.kill(pid, signal.SIGKILL)
    said = b""
    while block := os.read(reading, 1 << 16):
        said += block
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the writer failed by itself"
    sys.stdout.write(said.decode())
    sys.stdout.flush()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize(("durability", "kills"), [("process", 60), ("power", 20)])
def test_nothing_confirmed_is_lost_when_the_writer_is_killed(path: Path, durability: str, kills: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NURSERY, str(path), durability, str(kills), "7"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    confirmed = [int(n) for n in done.stdout.split()]
    assert len(confirmed) > kills, "the writers must get to write between the kills"
    assert confirmed == sorted(set(confirmed)), "no number is given twice"

    journal, records = Journal.resume(path)
    journal.close()
    assert journal.damage is None or journal.damage.torn
    assert [r["i"] for r in records] == [r["n"] for r in records] == list(range(1, len(records) + 1))
    assert confirmed[-1] <= len(records)
    file = read_journal(path)
    for record in records:
        if "value" in record:
            assert file.unpack(record["value"]) == f"{record['i']} " * (record["i"] % 500)
    assert not list(path.with_name("run.trace.blobs").glob("*.tmp"))


# -- full disk ---------------------------------------------------------------------------------------------

LIMITED = r"""
import resource, signal, sys
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import JournalWriteError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, limit = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
with Journal.create(path, {"t": "header", "v": 1}) as journal:
    kept = []
    for i in range(60):
        if i == 50:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            journal.append({"i": i, "pad": "x" * (i * 37 % 101)})
            kept.append(i)
        except JournalWriteError as error:
            assert "ulimit" in str(error) and error.errno == 27, error
    assert journal.failed is not None
print(*kept)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="uses Linux's file-size limit as a full disk")
@pytest.mark.parametrize("limit", [200, 1000, 1001, 1017, 2500, 2600])
def test_a_disk_that_fills_up_and_is_freed_loses_only_the_refused_records(path: Path, limit: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), str(limit)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    kept = [int(i) for i in done.stdout.split()]
    assert kept[-10:] == list(range(50, 60))
    assert 0 in kept
    assert len(kept) < 60
    assert numbers(path) == kept


class Disk:
    """Stands in for `os.write`: does what it is told for one write, then works again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = os.write
        self._plan: list[Write] = []
        monkeypatch.setattr(os, "write", self)

    def __call__(self, fd: int, data: bytes) -> int:
        return self._plan.pop(0)(fd, data) if self._plan else self._real(fd, data)

    def then(self, *steps: int | BaseException) -> None:
        """For each of the next writes: take so many bytes, or raise."""
        self._plan = [self._step(step) for step in steps]

    def _step(self, step: int | BaseException) -> Write:
        def write(fd: int, data: bytes) -> int:
            if isinstance(step, BaseException):
                raise step
            return self._real(fd, data[:step]) if step else 0

        return write


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def test_a_short_write_is_completed(path: Path, disk: Disk) -> None:
    with Journal.create(path, HEADER) as journal:
        disk.then(5, 1, 7)
        assert journal.append({"i": 1}) == 1
        assert journal.failed is None
    assert numbers(path) == [1]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EINVAL])
def test_a_refused_append_takes_its_part_back_and_the_next_one_works(path: Path, disk: Disk, code: int) -> None:
    kept = []
    with Journal.create(path, HEADER) as journal:
        for taken in range(20):  # bytes of the line that the disk takes before it refuses
            before = path.read_bytes()
            disk.then(*([taken] if taken else []), OSError(code, "injected"))
            with pytest.raises(JournalWriteError) as caught:
                journal.append({"i": -1})
            assert caught.value.errno == code
            message = f"{path}: record {taken + 1} was not written: {os.strerror(code)}. "
            assert str(caught.value).startswith(message)
            assert path.read_bytes() == before
            assert journal.append({"i": taken}) == taken + 1
            assert journal.failed is caught.value, "a hole in the record stays visible"
            kept.append(taken)
    assert numbers(path) == kept


def test_a_disk_that_takes_nothing_without_an_error_counts_as_full(path: Path, disk: Disk) -> None:
    with Journal.create(path, HEADER) as journal:
        disk.then(4, 0)
        with pytest.raises(JournalWriteError, match="Free space"):
            journal.append({"i": 1})
        journal.append({"i": 2})
    assert numbers(path) == [2]


def test_a_part_that_cannot_be_taken_back_at_once_is_taken_back_by_the_next_append(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "injected")

    with Journal.create(path, HEADER) as journal:
        disk.then(6, OSError(errno.ENOSPC, "injected"))
        with monkeypatch.context() as broken:
            broken.setattr(os, "ftruncate", refuse)
            for _ in range(2):
                with pytest.raises(JournalWriteError, match="could not be taken back"):
                    journal.append({"i": 1})
        assert journal.append({"i": 2}) == 1
    assert numbers(path) == [2]


def test_a_part_that_is_never_taken_back_is_a_torn_tail_for_the_next_writer(
    path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EIO, "injected")

    with Journal.create(path, HEADER) as journal, monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refuse)
        journal.append({"i": 1})
        disk.then(6, OSError(errno.ENOSPC, "injected"))
        with pytest.raises(JournalWriteError):
            journal.append({"i": 2})
    journal, records = Journal.resume(path)
    journal.close()
    assert journal.damage is not None
    assert journal.damage.torn
    assert [r["i"] for r in records] == [1]


@pytest.mark.parametrize("taken", [0, 11, 10**6])
def test_an_exception_out_of_a_signal_handler_never_gives_a_number_twice(path: Path, disk: Disk, taken: int) -> None:
    """Struck before the write, in the middle (after a short one), and after a whole one."""
    real = disk._real

    def interrupted(fd: int, data: bytes) -> int:
        if taken:
            real(fd, data[:taken])
        raise KeyboardInterrupt

    with Journal.create(path, HEADER) as journal:
        disk._plan = [interrupted]
        with pytest.raises(KeyboardInterrupt):
            journal.append({"i": 1})
        journal.append({"i": 2})
    assert numbers(path) == ([1, 2] if taken == 10**6 else [2])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this platform")
@pytest.mark.skipif(sys.gettrace() is not None, reason="a signal inside the tracer of coverage leaves its lock held")
def test_real_signals_at_random_moments_leave_an_unbroken_journal(path: Path) -> None:
    class Struck(Exception):
        pass

    def strike(signum: int, frame: object) -> None:
        raise Struck

    confirmed: list[int] = []
    tries = strikes = 0
    old = signal.signal(signal.SIGALRM, strike)
    journal = Journal.create(path, HEADER)
    try:
        while strikes < 200 and tries < 200_000:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True:
                    tries += 1
                    n = journal.append({"i": tries, "pad": "x" * (tries % 20_000)})
                    confirmed.append(n)
            except Struck:
                strikes += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        journal.close()
    assert strikes == 200
    kept = numbers(path)
    assert kept == sorted(set(kept))
    assert confirmed == sorted(set(confirmed))
    assert len(confirmed) <= len(kept) <= len(confirmed) + strikes


def test_a_disk_that_is_full_at_the_header_leaves_no_file(path: Path, disk: Disk) -> None:
    for durability in ("process", "power"):
        disk.then(3, OSError(errno.ENOSPC, "injected"))
        with pytest.raises(JournalWriteError, match="Free space"):
            Journal.create(path, HEADER, durability=durability)
        assert not path.exists()
    Journal.create(path, HEADER).close()


def test_an_interrupted_system_call_is_repeated_by_python(path: Path) -> None:
    hits: list[int] = []
    old = signal.signal(signal.SIGALRM, lambda signum, frame: hits.append(signum))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        with Journal.create(path, HEADER) as journal:
            i = 0
            while len(hits) < 50 and i < 100_000:
                journal.append({"i": i, "pad": "x" * 5000})
                i += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(hits) >= 50
    assert numbers(path) == list(range(i))


def test_a_repair_that_the_disk_refuses_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.create(path, HEADER) as journal:
        journal.append({"i": 1})
    path.write_bytes(path.read_bytes() + b"torn")
    before = path.read_bytes()

    def refuse(fd: int, size: int) -> None:
        raise OSError(errno.EROFS, "injected")

    with monkeypatch.context() as broken:
        broken.setattr(os, "ftruncate", refuse)
        with pytest.raises(JournalWriteError, match="was not repaired") as caught:
            Journal.resume(path)
    assert isinstance(caught.value, JournalError)
    assert path.read_bytes() == before
    Journal.resume(path)[0].close()
    assert numbers(path) == [1]
