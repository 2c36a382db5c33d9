"""Worker processes: killable, reused, and never alive after their parent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import concertino as ct
import pytest
from concertino.executor import Executor
from waiting import wait_until

from .faulty import POOL

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def workers() -> set[int]:
    """Process ids of the guards of this process's workers."""
    mine = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == os.getpid() and b"concertino.executor.isolation.worker" in command:
                mine.add(int(entry.name))  # the guard, which starts the worker
    return mine


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def all_gone_within(seconds: float, pids: list[int]) -> bool:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if all(gone(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def process_id(number: int) -> int:
    """Id of the process that runs this."""
    return os.getpid()


def adder(numbers: list[int], factor: int = 2) -> int:
    """Sum of numbers, times a factor."""
    return sum(numbers) * factor


async def later(seconds: float) -> str:
    """A coroutine function."""
    await asyncio.sleep(seconds)
    return "later"


def in_process(function: object, **options: object) -> ct.ToolSpec:
    return ct.tool(isolation="process", timeout=20, **options)(function)  # type: ignore[call-overload,no-any-return]


@pytest.mark.usefixtures("importable")
async def test_a_worker_serves_one_call_after_another_and_as_many_at_once_as_are_asked() -> None:
    pool = ct.Pool.of(in_process(process_id))
    async with Executor() as executor:
        first = await executor.run([ct.Call("process_id", {"number": 1})], pool)
        again = await executor.run([ct.Call("process_id", {"number": 2})], pool)
        both = await executor.run([ct.Call("process_id", {"number": n}) for n in (3, 4)], pool)
    assert first[0].content == again[0].content != os.getpid()
    assert len({o.content for o in both}) in (1, 2)


@pytest.mark.usefixtures("importable")
async def test_arguments_and_results_pass_as_json_and_coroutine_functions_run() -> None:
    pool = ct.Pool.of(in_process(adder), in_process(later))
    async with Executor() as executor:
        calls = [
            ct.Call("adder", {"numbers": [1, 2]}),
            ct.Call("later", {"seconds": 0.01}),
            ct.Call("adder", {"numbers": "x"}),
        ]
        observations = await executor.run(calls, pool)
    assert [(o.status, o.content) for o in observations] == [("OK", 6), ("OK", "later"), ("PARSE_ERR", None)]


def test_a_function_that_no_other_process_can_import_is_refused_with_its_name() -> None:
    def local() -> None:
        """Cannot be found from outside."""

    with pytest.raises(ct.SpecError, match=r"'local' .* must be a module-level function of an importable module"):
        ct.Pool.of(in_process(local))


def too_much(number: int) -> str:
    """More than a worker may answer with."""
    return "x" * number


def where_mailbox_is() -> str:
    """The file of a module of Python."""
    import mailbox

    return mailbox.__file__


@pytest.mark.usefixtures("importable")
async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    pool = ct.Pool.of(in_process(too_much))
    async with Executor(ct.Limits(result_bytes=100)) as executor:
        (seen,) = await executor.run([ct.Call("too_much", {"number": 10_000})], pool)
        (fine,) = await executor.run([ct.Call("too_much", {"number": 10})], pool)
    assert seen.status == "EXEC_ERR"
    assert seen.error is not None
    assert "returned 10,000 bytes of JSON; at most 100 are taken" in seen.error.message
    assert fine.content == "x" * 10


@pytest.mark.usefixtures("importable")
async def test_a_worker_imports_no_module_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mailbox.py").write_text("")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])  # as in a program that was started as a file
    monkeypatch.chdir(tmp_path)
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("where_mailbox_is")], ct.Pool.of(in_process(where_mailbox_is)))
    assert seen.ok
    assert str(tmp_path) not in str(seen.content)


@LINUX
@pytest.mark.usefixtures("importable")
async def test_a_worker_whose_answer_is_no_longer_awaited_is_killed() -> None:
    async with Executor() as executor:
        before = workers()
        run = asyncio.ensure_future(executor.run([ct.Call("computes_for_ever")], POOL))
        await wait_until(lambda: workers() - before)
        (worker,) = workers() - before
        run.cancel()
        await asyncio.wait([run])
        assert await asyncio.to_thread(all_gone_within, 30, [worker])


@LINUX
@pytest.mark.usefixtures("importable")
async def test_closing_the_executor_ends_workers_and_what_their_tools_forked() -> None:
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("forks_a_child_that_stays")], POOL)
        child = seen.content
        assert not gone(child)
        pids = [*workers(), child]
    assert await asyncio.to_thread(all_gone_within, 30, pids)


def busy_for_ever(sign: str) -> None:
    """Make a file, then compute."""
    Path(sign).touch()
    while True:
        pass


PARENT = """
import asyncio, sys
import concertino as ct
from concertino.executor import Executor
from {faulty} import POOL
from {module} import busy_for_ever, in_process

async def main():
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("forks_a_child_that_stays")], POOL)
        busy = ct.Call("busy_for_ever", {{"sign": sys.argv[1]}})
        run = asyncio.ensure_future(executor.run([busy], ct.Pool.of(in_process(busy_for_ever))))
        print(seen.content, flush=True)
        await asyncio.to_thread(sys.stdin.read)  # until the test closes it

asyncio.run(main())
"""


@LINUX
def test_workers_die_with_their_parent_even_while_busy(importable: Path, tmp_path: Path) -> None:
    faulty = POOL["forks"].function.__module__  # type: ignore[union-attr]
    script, sign = tmp_path / "parent.py", tmp_path / "busy"
    script.write_text(PARENT.format(faulty=faulty, module=__name__))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(importable), *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(script), str(sign)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        try:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            while not sign.exists():
                assert parent.poll() is None
                time.sleep(0.01)
            family = descendants(parent.pid)
            assert child in family
            assert len(family) == 5  # two workers with a guard each, and the child that one of them forked
        finally:
            parent.kill()
    assert all_gone_within(30, family)


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(pid, ()))
    for child in found:
        found += children.get(child, [])
    return found


LEAVER = """
import asyncio, sys, time
import concertino as ct
from concertino.executor import Executor, Limits
from {module} import POOL

@ct.tool(timeout=0.3)
def sleeps_for_a_minute():
    "Sleep in a thread, longer than anybody waits."
    time.sleep(60)

async def main():
    async with Executor(Limits(grace=0.05)) as executor:
        pool = POOL.adding(sleeps_for_a_minute)
        names = "sleeps_for_a_minute", "blocks_its_loop", "swallows_cancellation", "leaves_a_task", "computes_for_ever"
        observations = await executor.run([ct.Call(name) for name in names], pool, budget=ct.Budget(seconds=0.5))
        print(len(observations), flush=True)

asyncio.run(main())
print("over", flush=True)
"""


def test_the_process_exits_soon_after_the_run_whatever_the_tools_left_behind(importable: Path, tmp_path: Path) -> None:
    script = tmp_path / "leaver.py"
    module = POOL["forks"].function.__module__  # type: ignore[union-attr]
    script.write_text(textwrap.dedent(LEAVER).format(module=module))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(importable), *sys.path])}
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"5\n"
        output, errors = process.communicate(timeout=30)  # far less than the thread sleeps; 1 s is promised
    assert output == b"over\n"
    assert process.returncode == 0, errors.decode()
    assert b"Task was destroyed" not in errors
    assert b"Traceback" not in errors
