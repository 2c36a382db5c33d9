"""Worker processes: killable, reused, and never alive after their parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import concertino as ct
import pytest
from concertino.executor import Executor

from .faulty import POOL

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def workers() -> set[int]:
    """Process ids of worker processes of this process."""
    mine = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == os.getpid() and b"concertino.executor._worker" in command:
                mine.add(int(entry.name))
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


@LINUX
@pytest.mark.usefixtures("importable")
async def test_a_worker_whose_answer_is_no_longer_awaited_is_killed() -> None:
    async with Executor() as executor:
        before = workers()
        run = asyncio.ensure_future(executor.run([ct.Call("computes_for_ever")], POOL))
        for _ in range(500):
            if workers() - before:
                break
            await asyncio.sleep(0.01)
        (worker,) = workers() - before
        run.cancel()
        await asyncio.wait([run])
        assert await asyncio.to_thread(all_gone_within, 5, [worker])


@LINUX
@pytest.mark.usefixtures("importable")
async def test_closing_the_executor_ends_workers_and_what_their_tools_forked() -> None:
    async with Executor() as executor:
        (seen,) = await executor.run([ct.Call("forks_a_child_that_stays")], POOL)
        child = seen.content
        assert not gone(child)
        pids = [*workers(), child]
    assert await asyncio.to_thread(all_gone_within, 5, pids)


PARENT = """
import asyncio, os, sys
import concertino as ct
from concertino.executor import Executor
from {module} import POOL

async def main():
    async with Executor() as executor:
        calls = [ct.Call("computes_for_ever"), ct.Call("forks_a_child_that_stays")]
        run = asyncio.ensure_future(executor.run(calls, POOL))
        await asyncio.sleep({seconds})
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


@LINUX
def test_workers_die_with_their_parent_even_while_busy(importable: Path, tmp_path: Path) -> None:
    module = POOL["forks"].function.__module__  # type: ignore[union-attr]
    script = tmp_path / "parent.py"
    script.write_text(PARENT.format(module=module, seconds=1.0))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(importable), *sys.path])}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        family = descendants(parent.pid)
        assert len(family) == 3  # two workers, and a child that one of them forked
        parent.send_signal(signal.SIGKILL)
    assert all_gone_within(5, family)


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

async def main():
    async with Executor(Limits(grace=0.05)) as executor:
        names = "sleeps_in_a_thread", "blocks_its_loop", "swallows_cancellation", "leaves_a_task", "computes_for_ever"
        observations = await executor.run([ct.Call(name) for name in names], POOL, budget=ct.Budget(seconds=0.5))
        print(len(observations), flush=True)

asyncio.run(main())
print("over", flush=True)
"""


@pytest.mark.alone
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
        ended = time.monotonic()
        output, errors = process.communicate(timeout=10)
    assert output == b"over\n"
    assert process.returncode == 0, errors.decode()
    assert time.monotonic() - ended < 1.9  # 1 s is promised; sleeps_in_a_thread sleeps for 2
    assert b"Task was destroyed" not in errors
    assert b"Traceback" not in errors
