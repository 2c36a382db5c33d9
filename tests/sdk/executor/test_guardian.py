"""The guardian: a child process ends with its owner, in steps, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from concertino.executor.isolation import child_process
from concertino.executor.isolation.child_process import PIPE, ChildProcess, awaitable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc and /dev/shm")
PATIENCE = 30.0
"""Seconds within which what is to happen has to happen."""

MEASURED = any(name.startswith("COVERAGE_PROCESS") for name in os.environ)
"""Whether coverage measures child processes. It cannot look into an isolated guard, so these tests do not isolate."""

FAMILY = """
import os, signal, subprocess, sys
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
stray = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(os.getpid(), stray.pid, flush=True)
signal.pause()
"""


@pytest.fixture(autouse=True)
def guards_that_coverage_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    if MEASURED:
        monkeypatch.setattr(child_process, "_GUARD_FLAGS", [])


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", code, *arguments]


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def family(child: ChildProcess) -> list[int]:
    """The ids of a child that is `FAMILY`, and of what it started in a session of its own."""
    assert child.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        line += child.stdout.read(1)
    return [int(pid) for pid in line.split()]


def test_a_child_has_its_pipes_its_exit_code_and_the_end_of_its_stderr() -> None:
    code = "import sys; sys.stderr.write('x' * 20_000 + 'the end\\n'); print(input()); sys.exit(3)"
    child = ChildProcess(python(code), stdin=PIPE, stdout=PIPE)
    assert child.poll() is None
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"hello\n")
    assert child.stdout.readall() == b"hello\n"
    assert child.wait(PATIENCE) == child.poll() == 3
    assert child.stderr_tail(9) == "xxthe end"
    assert len(child.stderr_tail(10**6)) < 10_000
    child.close_pipes()


def test_a_child_that_a_signal_ended_has_its_negative_number() -> None:
    child = ChildProcess(python("import os; os.kill(os.getpid(), 11)"))
    assert child.wait(PATIENCE) == -signal.SIGSEGV


def test_a_program_that_cannot_be_executed_says_so_on_stderr(tmp_path: Path) -> None:
    child = ChildProcess([tmp_path / "nothing"])
    assert child.wait(PATIENCE) == 127
    assert child.stderr_tail() == f"cannot execute {tmp_path}/nothing: No such file or directory"


def test_killing_ends_what_left_the_process_group_too() -> None:
    child = ChildProcess(python(FAMILY), stdout=PIPE)
    pids = family(child)
    assert pids[0] == child.pid
    child.kill()
    assert child.wait(PATIENCE) == -signal.SIGKILL
    assert all(map(gone, [*pids, child.guard_pid]))
    child.close_pipes()


def test_what_a_child_leaves_behind_is_killed() -> None:
    child = ChildProcess(python("import subprocess; print(0, subprocess.Popen(['sleep', '1000']).pid)"), stdout=PIPE)
    stray = family(child)[1]
    assert child.wait(PATIENCE) == 0
    assert gone(stray)
    child.close_pipes()


def test_stopping_asks_first_and_kills_after_the_grace() -> None:
    polite = ChildProcess(python(FAMILY), stdout=PIPE, grace=PATIENCE)
    deaf = ChildProcess(python(FAMILY, "deaf"), stdout=PIPE, grace=0.3)
    for child in (polite, deaf):
        family(child)
        child.stop()
    assert polite.wait(PATIENCE) == -signal.SIGTERM
    assert deaf.wait(PATIENCE) == -signal.SIGKILL
    for child in (polite, deaf):
        child.close_pipes()


def test_a_child_dies_with_its_guard() -> None:
    child = ChildProcess(python(FAMILY), stdout=PIPE)
    pids = family(child)
    os.kill(child.guard_pid, signal.SIGKILL)
    assert child.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: gone(pids[0]))
    os.kill(pids[1], signal.SIGKILL)  # nobody was left who knew of it
    child.close_pipes()


OWNER = """
import os, sys, time
from concertino.executor.isolation import child_process
from concertino.executor.isolation.child_process import ChildProcess
family, way, folder, *measured = sys.argv[1:]
if measured:
    child_process._GUARD_FLAGS = []
child = ChildProcess([sys.executable, "-S", "-c", family], stdout=1)
child.remove_if_orphaned(folder)
child.pid
if way == "fork" and not os.fork():
    os.close(1)
    time.sleep(1000)
sys.stdin.readline()  # the test has seen the child
if way == "leave":
    os._exit(0)
if way == "exec":
    os.close(1)
    os.execv("/bin/sleep", ["sleep", "1000"])
sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["kill", "fork", "leave", "exec", "exit"])
def test_whatever_ends_the_owner_ends_the_child_too(way: str, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OWNER, FAMILY, way, str(folder), *["measured"][:MEASURED]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as owner:
        try:
            assert owner.stdin is not None
            assert owner.stdout is not None
            pids = [int(pid) for pid in owner.stdout.readline().split()]
            assert len(pids) == 2
            if way in ("kill", "fork"):
                owner.kill()
            else:
                owner.stdin.write(b"go on\n")
                owner.stdin.flush()
            if way == "exit":
                owner.stdin.close()  # an end in good order: it is the owner who cleans up, or does not
            wait_until(lambda: all(map(gone, pids)))
            if way != "exit":
                wait_until(lambda: not folder.exists())
        finally:
            os.killpg(owner.pid, signal.SIGKILL)


def test_shared_memory_that_a_child_held_is_removed() -> None:
    mine = Path(f"/dev/shm/concertino-test-{os.getpid()}")
    mine.write_bytes(b"there before")
    code = (
        "import mmap, signal, sys; a, b = open(sys.argv[1], 'r+b'), open(sys.argv[1] + '-child', 'w+b');"
        "b.write(b'x'); b.flush(); m = mmap.mmap(b.fileno(), 1); b.close(); print(1, flush=True); signal.pause()"
    )
    try:
        child = ChildProcess(python(code, str(mine)), stdout=PIPE, shared_memory=True)
        family(child)
        child.kill()
        child.wait(PATIENCE)
        assert mine.exists()
        assert not Path(f"{mine}-child").exists()
        child.close_pipes()
    finally:
        mine.unlink()


async def test_a_finished_child_may_be_stopped_and_its_end_is_told_before_it_is_known() -> None:
    told: list[int] = []
    child = ChildProcess(python("raise SystemExit(4)"), on_end=told.append)
    abandoned = awaitable(child.ended)
    abandoned.cancel()
    assert await asyncio.wait_for(awaitable(child.ended), PATIENCE) == 4
    assert told == [4]
    child.stop()
    child.kill()
