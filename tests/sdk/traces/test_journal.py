"""Writing a journal: what a record looks like on disk, who may write, and when it is durable."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino.core.errors import TraceError, UsageError
from concertino.traces import disk as _disk
from concertino.traces import journal_lock as _journal_lock
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import (
    JournalEncodeError,
    JournalError,
    JournalExists,
    JournalForked,
    JournalLocked,
    JournalWriteError,
)
from concertino.traces.journal_reader import read_journal

HEADER = {"t": "header", "v": 1, "run": "r1"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def in_child(work: Any) -> str:
    """Run `work` in a forked child and return what it returned, as text."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return text


def open_descriptors() -> int:
    """How many; 0 where the system has no list of them."""
    listing = Path("/proc/self/fd")
    return len(list(listing.iterdir())) if listing.is_dir() else 0


# -- records -----------------------------------------------------------------------------------------------


def test_each_record_is_a_line_of_checksum_and_numbered_json(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        assert journal.append({"t": "call", "id": "c1"}) == 1
        assert journal.append({}) == 2
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert [line[9:] for line in lines] == [
        b'{"t":"header","v":1,"run":"r1","n":0}',
        b'{"t":"call","id":"c1","n":1}',
        b'{"n":2}',
    ]
    assert all(line[:9] == b"%08x " % zlib.crc32(line[9:]) for line in lines)


def test_an_append_is_one_write_and_is_in_the_file_when_it_returns(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, sizes = os.write, []

    def counting(fd: int, data: bytes) -> int:
        sizes.append(len(data))
        return real(fd, data)

    with Journal.create(path, HEADER) as journal:
        before = path.stat().st_size
        monkeypatch.setattr(os, "write", counting)
        journal.append({"t": "call", "content": "x" * 300_000})
        monkeypatch.undo()
        assert sizes == [path.stat().st_size - before]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "日本語 ü",
        "two\nlines\r\n\u2028\u0085",
        "half an emoji \ud83d",
        "\x00\x7f",
        [1, 2.5, None, {"a": True}],
        10**40,
    ],
)
def test_any_json_value_comes_back_as_it_was(path: Path, content: Any) -> None:
    with Journal.create(path, HEADER) as journal:
        journal.append({"content": content})
    assert read_journal(path).records == [{"content": content, "n": 1}]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_a_record_without_json_form_is_refused_by_field_and_takes_no_number(path: Path, bad: Any) -> None:
    with Journal.create(path, HEADER) as journal:
        with pytest.raises(JournalEncodeError, match="field 'content' cannot be written as JSON"):
            journal.append({"t": "result", "content": bad})
        assert journal.append({"t": "result"}) == 1


def test_a_record_that_contains_itself_is_refused(path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with Journal.create(path, HEADER) as journal, pytest.raises(JournalEncodeError, match="contains itself"):
        journal.append({"content": loop})


def test_a_record_may_not_bring_its_own_number(path: Path) -> None:
    with Journal.create(path, HEADER) as journal, pytest.raises(JournalEncodeError, match='without "n"'):
        journal.append({"n": 7})


def test_threads_get_distinct_numbers_and_whole_lines(path: Path) -> None:
    numbers: list[int] = []
    with Journal.create(path, HEADER) as journal:

        def write(who: int) -> None:
            numbers.extend(journal.append({"who": who, "i": i, "pad": "x" * (i * 7)}) for i in range(200))

        threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(numbers) == list(range(1, 801))
    records = read_journal(path).records
    assert [r["n"] for r in records] == list(range(1, 801))
    for who in range(4):
        assert [r["i"] for r in records if r["who"] == who] == list(range(200))


# -- opening -----------------------------------------------------------------------------------------------


def test_a_resumed_journal_returns_its_records_and_counts_on(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        journal.append({"a": 1})
    journal, records = Journal.resume(path)
    with journal:
        assert records == [{"a": 1, "n": 1}]
        assert journal.header == {**HEADER, "n": 0}
        assert journal.damage is None
        assert journal.append({"a": 2}) == 2
    assert [r["a"] for r in read_journal(path).records] == [1, 2]


def test_create_refuses_a_path_that_is_taken_and_leaves_it_alone(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(JournalExists, match="Resume the run with Orchestrator"):
        Journal.create(path, HEADER)
    assert path.read_text() == "mine"


def test_create_in_a_folder_that_is_missing_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"the folder .*nowhere does not exist"):
        Journal.create(tmp_path / "nowhere" / "run.trace", HEADER)


@pytest.mark.parametrize(
    "header", [{}, {"t": "call", "v": 1}, {"t": "header"}, {"t": "header", "v": 99}, {**HEADER, "n": 3}]
)
def test_a_wrong_header_leaves_no_file(path: Path, header: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="trace header"):
        Journal.create(path, header)
    assert not path.exists()


def test_an_unknown_durability_is_refused_with_the_choices(path: Path) -> None:
    with pytest.raises(UsageError, match='"process" or "power"'):
        Journal.create(path, HEADER, durability="disk")  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b"\x89PNG\r\n" * 100, b'{"t":"header","v":1}\n'])
def test_resume_refuses_what_is_no_journal_and_leaves_it_as_it_was(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JournalError, match=str(path)):
        Journal.resume(path)
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_folder_is_not_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be opened"):
        Journal.resume(tmp_path)


def test_ten_thousand_records_are_resumed(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        for i in range(10_000):
            journal.append({"t": "result", "call": f"c{i}", "content": "some words " * 10})
    journal, records = Journal.resume(path)
    journal.close()
    assert len(records) == 10_000


# -- one writer --------------------------------------------------------------------------------------------


def test_a_second_writer_in_the_same_process_is_refused(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        with pytest.raises(JournalLocked, match=str(path)):
            Journal.resume(path)
        assert journal.append({}) == 1
    Journal.resume(path)[0].close()


def test_a_second_writer_in_another_process_is_refused_and_told_who_writes(path: Path) -> None:
    script = "import sys; from concertino.traces.journal import Journal; Journal.resume(sys.argv[1])"
    with Journal.create(path, HEADER):
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "JournalLocked" in done.stderr
    if Path("/proc/locks").exists() and f" {os.getpid()} " in _locks_while_writing(path):
        assert f"process {os.getpid()}" in done.stderr


def _locks_while_writing(path: Path) -> str:
    with Journal.resume(path)[0]:
        return Path("/proc/locks").read_text()


def test_an_open_that_fails_keeps_neither_lock_nor_descriptor(path: Path) -> None:
    path.write_bytes(b"not a journal\n")
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(JournalError, match="not a trace"):
            Journal.resume(path)
    path.unlink()
    Journal.create(path, HEADER).close()
    assert open_descriptors() == before


def test_an_exception_in_the_body_gives_the_lock_back(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Journal.create(path, HEADER):
        _ = 1 / 0
    Journal.resume(path)[0].close()


def test_close_may_be_repeated_and_ends_writing(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    journal.close()
    journal.close()
    assert journal.closed
    with pytest.raises(JournalError, match="closed"):
        journal.append({})
    with pytest.raises(JournalError, match="closed"):
        journal.externalise(b"1")


def test_without_flock_a_lock_file_keeps_the_second_writer_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal_lock, "_fcntl", None)
    with (
        Journal.create(path, HEADER),
        pytest.raises(JournalLocked, match=r"delete .*run\.trace\.lock") as caught,
    ):
        Journal.resume(path)
    assert caught.value.pid == os.getpid()
    Journal.resume(path)[0].close()
    assert sorted(p.name for p in path.parent.iterdir()) == ["run.trace"]


# -- fork --------------------------------------------------------------------------------------------------


def needs_fork(test: Callable[..., None]) -> Callable[..., None]:
    """A process with threads, as a worker of the test run is, must not fork."""
    return pytest.mark.alone(pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")(test))


@needs_fork
@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_forked_child_cannot_write_into_its_parents_journal(path: Path, durability: Any) -> None:
    with Journal.create(path, HEADER, durability=durability) as journal:
        journal.append({"by": "parent"})
        assert in_child(lambda: journal.append({"by": "child"})).startswith("JournalForked")
        assert in_child(lambda: journal.externalise(b"1")).startswith("JournalForked")
        assert in_child(journal.close) == "None"
        assert journal.append({"by": "parent"}) == 2
    assert [r["by"] for r in read_journal(path).records] == ["parent", "parent"]


@needs_fork
def test_a_forked_child_that_lives_on_does_not_hold_the_lock(path: Path) -> None:
    journal = Journal.create(path, HEADER)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent closes its end
        os._exit(0)
    journal.close()
    try:
        Journal.resume(path)[0].close()
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(pid, 0)


@needs_fork
def test_a_fork_while_another_thread_writes_leaves_no_deadlock(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                journal.append({"pad": "x" * 10_000})

        thread = threading.Thread(target=write)
        thread.start()
        try:
            answers = {in_child(lambda: journal.append({}))[:13] for _ in range(20)}
        finally:
            stop.set()
            thread.join()
    assert answers == {JournalForked.__name__}
    assert read_journal(path).damage is None


# -- durability --------------------------------------------------------------------------------------------


class Syncs:
    """Stands in for fdatasync: counts, takes a while, and can fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.began = threading.Event()
        self.seconds = 0.0
        self.error: OSError | None = None
        self.threads: set[str] = set()
        monkeypatch.setattr(_disk, "_sync", self)

    def __call__(self, fd: int) -> None:
        self.count += 1
        self.began.set()
        self.threads.add(threading.current_thread().name)
        time.sleep(self.seconds)
        if self.error:
            raise self.error


def test_with_process_durability_a_flush_never_suspends_and_never_syncs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, HEADER) as journal:
        journal.append({})
        with pytest.raises(StopIteration):  # ran to its end in one step, without a loop
            journal.flush().send(None)
        journal.flush_blocking()
    assert syncs.count == 0


async def test_flushes_that_wait_together_share_a_sync(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, HEADER, durability="power") as journal:
        syncs.count, syncs.seconds = 0, 0.05

        async def work(i: int) -> None:
            journal.append({"i": i})
            await journal.flush()

        await asyncio.gather(*(work(i) for i in range(64)))
        assert 1 <= syncs.count <= 4
        done = syncs.count
        await journal.flush()
        assert syncs.count == done, "nothing new to sync"
    assert len(syncs.threads) == 1
    assert next(iter(syncs.threads)).startswith("sync ")


async def test_a_flush_does_not_return_before_a_sync_that_began_after_its_append(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, HEADER, durability="power") as journal:
        syncs.count, syncs.seconds = 0, 0.1
        syncs.began.clear()
        journal.append({"i": 1})
        first = asyncio.create_task(journal.flush())
        assert await asyncio.to_thread(syncs.began.wait, 10)
        journal.append({"i": 2})  # the running sync may have missed it
        await journal.flush()
        assert first.done()
        assert syncs.count == 2


async def test_a_cancelled_flush_leaves_the_others_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    with Journal.create(path, HEADER, durability="power") as journal:
        syncs.seconds = 0.05
        journal.append({})
        flushes = [asyncio.create_task(journal.flush()) for _ in range(8)]
        await asyncio.sleep(0.01)
        for task in flushes[::2]:
            task.cancel()
        results = await asyncio.gather(*flushes, return_exceptions=True)
        assert [type(r) for r in results] == [asyncio.CancelledError, type(None)] * 4


async def test_after_a_failed_sync_no_later_flush_claims_success(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs = Syncs(monkeypatch)
    journal = Journal.create(path, HEADER, durability="power")
    journal.append({"i": 1})
    syncs.error = OSError(5, "I/O error")
    with pytest.raises(JournalWriteError, match="power cut") as caught:
        await journal.flush()
    assert caught.value.errno == 5
    syncs.error = None
    with pytest.raises(JournalWriteError):
        journal.flush_blocking()
    with pytest.raises(JournalWriteError):
        journal.close()
    assert journal.closed
    assert [r["i"] for r in read_journal(path).records] == [1]
    Journal.resume(path)[0].close()


def test_closing_a_power_journal_syncs_the_rest_and_ends_its_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    threads = set(threading.enumerate())
    with Journal.create(path, HEADER, durability="power") as journal:
        syncs.count = 0
        journal.append({})
    assert syncs.count == 1
    assert set(threading.enumerate()) <= threads  # one of another test may end meanwhile


def test_resuming_with_power_syncs_what_an_earlier_writer_left_in_the_cache(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.create(path, HEADER) as journal:
        journal.append({})
    syncs = Syncs(monkeypatch)
    Journal.resume(path, durability="power")[0].close()
    assert syncs.count == 1


def test_flush_blocking_works_without_a_loop_on_the_real_disk(path: Path) -> None:
    with Journal.create(path, HEADER, durability="power") as journal:
        journal.append({"i": 1})
        journal.flush_blocking()
        asyncio.run(journal.flush())
    assert len(read_journal(path).records) == 1


def test_journal_errors_are_trace_errors_and_cross_processes(path: Path) -> None:
    error = pickle.loads(pickle.dumps(JournalWriteError("no space", 28)))
    assert isinstance(error, TraceError)
    assert (str(error), error.errno) == ("no space", 28)


def test_a_line_can_be_read_with_nothing_but_a_shell_and_json(path: Path) -> None:
    with Journal.create(path, HEADER) as journal:
        journal.append({"t": "call"})
    assert json.loads(path.read_text().splitlines()[-1].split(" ", 1)[1])["t"] == "call"
