"""The Python sandbox at full counts: containment, left-overs, death of a parent, speed, floods, memory, fairness.

    python benchmarks/sandbox.py [--quick] [--json] [--only S4]

The scripts are those of the package's tests and of the folder of attacks beside the data samples
(`CONCERTINO_TEST_DATA`). Each bar stands in the table; the exit status is 1 if one is missed. Run it on a machine that
does nothing else: S4 measures time. `--quick` takes a twentieth of the counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "providers" / "code" / "tests"))

import jail_suite  # noqa: E402
from concertino_code.sandbox import Ending, JailedSandbox, ScriptLimits  # noqa: E402

SHARED = Path(os.environ.get("CONCERTINO_TEST_DATA", ROOT.parent / "shared" / "data")).parent / "attacks"
SYMPY = "import sympy as s\nx = s.symbols('x')\nprint(s.solve(x**2 - 1, x), s.integrate(s.exp(-x), (x, 0, s.oo)))"
FOUR = (
    "import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'cncSURV', 0, 0, 0)\nos.fork(); os.fork()\n"
    "print('up', flush=True)\ntime.sleep(60)"
)
LONG = ScriptLimits(wall=120, cpu=120)


@dataclass
class Row:
    """One figure and its bar: `met` says whether it is on the right side of it."""

    scenario: str
    what: str
    value: float
    unit: str
    bar: str
    met: bool


def row(scenario: str, what: str, value: float, unit: str, *, at_most: float | None = None, at_least: float = 0) -> Row:
    """A row with a bar on one side."""
    if at_most is not None:
        return Row(scenario, what, value, unit, f"<= {at_most:g}", value <= at_most)
    return Row(scenario, what, value, unit, f">= {at_least:g}", value >= at_least)


def resident(pid: int) -> int:
    """KB of resident memory."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


def available() -> int:
    """MB of memory that the machine has left."""
    found = re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) >> 10 if found else 0


def mounts() -> int:
    """Mounts that this process sees."""
    return len(Path("/proc/self/mounts").read_text().splitlines())


def children(pid: int) -> int:
    """Children of a process."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def handles(pid: int) -> int:
    """Open descriptors."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def spread(count: int, at_once: int, one: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """Do something `count` times, so many at once; results in order."""
    places = asyncio.Semaphore(at_once)

    async def placed(number: int) -> Any:
        async with places:
            return await one(number)

    return await asyncio.gather(*(placed(number) for number in range(count)))


async def gone(seconds: float) -> float:
    """Seconds until no marked process is left; more than `seconds` if one still is.

    A script that was cancelled before it marked itself may do so before it is killed, so the end is what a tenth of a
    second without any shows.
    """
    began = seen = time.monotonic()
    while (now := time.monotonic()) - seen < 0.1:
        if jail_suite.survivors():
            seen = time.monotonic()
            if now - began > seconds:
                return seconds * 2
        await asyncio.sleep(0.01)
    return seen - began


async def s1(scale: float) -> list[Row]:
    """Attacks, as this user and as an ordinary one."""
    scripts = jail_suite.ATTACKS + (jail_suite.read_attacks(SHARED) if SHARED.is_dir() else [])
    repetitions = 3 if scale == 1 else 1
    async with JailedSandbox() as sandbox:
        achieved = await jail_suite.assault(sandbox, scripts, repetitions=repetitions, seed=os.getpid())
    rows = [
        row(
            "S1",
            f"{len(scripts)} scripts x {repetitions}, user {os.getuid()}: not contained",
            len(achieved),
            "scripts",
            at_most=0,
        )
    ]
    if os.getuid() == 0:
        program = ROOT / "providers" / "code" / "tests" / "attack_cell.py"
        folder = [str(SHARED)] if SHARED.is_dir() else []
        for level, most in (("namespaces", 0), ("landlock", 0.04 * len(scripts))):
            command = [sys.executable, str(program), "ordinary", level, str(repetitions), *folder]
            done = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            answer = json.loads((await done.communicate())[0])
            what = f"{level}, {answer['scripts']} scripts x {repetitions}, user {answer['user']}: not contained"
            rows.append(row("S1", what, 999 if answer["refused"] else len(answer["achieved"]), "scripts", at_most=most))
    return rows


async def s2(scale: float) -> list[Row]:
    """What ten thousand executions leave."""
    count = int(10_000 * scale)
    async with JailedSandbox() as sandbox:
        await spread(16, 8, lambda _: sandbox.run("print(1)"))
        zygote, own = sandbox.process_id or 0, os.getpid()
        before = (
            handles(own),
            handles(zygote),
            resident(zygote),
            mounts(),
        )

        async def one(number: int) -> bool:
            if number % 50 == 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await sandbox.run(FOUR)
                return True
            if number % 50 == 1:
                return (await sandbox.run(FOUR, limits=ScriptLimits(wall=0.05))).ending is Ending.WALL
            return (await sandbox.run("print(1)", limits=LONG)).ok

        good = await spread(count, 8, one)
        seconds = await gone(2.0)
        await asyncio.sleep(0.3)
        after = handles(own), handles(zygote), resident(zygote), mounts()
        left = children(zygote)
    return [
        row("S2", f"{count} executions: wrong endings", good.count(False), "executions", at_most=0),
        row("S2", "survivors gone after", seconds, "s", at_most=2.0),
        row("S2", "descriptors more, caller and zygote", after[0] + after[1] - before[0] - before[1], "", at_most=0),
        row("S2", "zygote's memory more", (after[2] - before[2]) / 1024, "MB", at_most=5),
        row("S2", "mounts and children left", after[3] - before[3] + left, "", at_most=0),
    ]


_CALLER = """
import asyncio, sys
from concertino_code.sandbox import JailedSandbox
async def main():
    sandbox = JailedSandbox(preload=())
    runs = [asyncio.ensure_future(sandbox.run(sys.argv[1])) for _ in range(20)]
    await asyncio.sleep(2.5)
    print(sandbox.process_id, flush=True)
    await asyncio.gather(*runs)
asyncio.run(main())
"""


async def s3(scale: float) -> list[Row]:
    """Death of the caller, then of the zygote."""
    rows = []
    for victim in ("caller", "zygote"):
        caller = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _CALLER, FOUR, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert caller.stdout is not None
        zygote = int(await caller.stdout.readline())
        alive = len(jail_suite.survivors())
        if victim == "zygote":
            caller.send_signal(19)  # stopped, so that it cannot start again
        os.kill(caller.pid if victim == "caller" else zygote, 9)
        rows.append(row("S3", f"{alive} processes: gone after the {victim}'s death", await gone(3.0), "s", at_most=0.5))
        with contextlib.suppress(ProcessLookupError):
            caller.kill()
        await caller.wait()
    return rows


async def s4(scale: float) -> list[Row]:
    """How long one takes, how many a second, how much memory."""
    count = max(20, int(200 * scale))
    began = time.monotonic()
    rows = []
    async with JailedSandbox() as sandbox:
        await sandbox.run("print(1)")
        rows.append(
            row("S4", "first execution, with the start of the zygote", time.monotonic() - began, "s", at_most=1.5)
        )
        for name, code, bar in (("hello", "print('hello')", 20), ("sympy", SYMPY, 30)):
            seen = []
            for _ in range(count):
                started = time.perf_counter()
                assert (await sandbox.run(code, limits=LONG)).ok
                seen.append((time.perf_counter() - started) * 1000)
            rows.append(row("S4", f"{name}: median of {count}", statistics.median(seen), "ms", at_most=bar))
            if name == "hello":
                rows.append(row("S4", "hello: 99 of 100 within", sorted(seen)[int(0.99 * count)], "ms", at_most=80))
        end, ran = time.monotonic() + 60 * scale, 0

        async def caller() -> None:
            nonlocal ran
            while time.monotonic() < end:
                assert (await sandbox.run("print(1)", limits=LONG)).ok
                ran += 1

        await asyncio.gather(*(caller() for _ in range(8)))
        rows.append(row("S4", f"8 callers for {60 * scale:g} s", ran / (60 * scale), "/s", at_least=60))
        before = available()
        held = [asyncio.ensure_future(sandbox.run("import time; time.sleep(4)", limits=LONG)) for _ in range(30)]
        await asyncio.sleep(2.5)
        rows.append(row("S4", "memory of one sleeping execution", (before - available()) / 30, "MB", at_most=10))
        await asyncio.gather(*held)
    return rows


async def s5(scale: float) -> list[Row]:
    """Output without end, and a gigabyte of it."""
    async with JailedSandbox() as sandbox:
        await sandbox.run("print(1)")
        before, began = resident(os.getpid()), time.monotonic()
        flood = await sandbox.run(
            "import os\nb = b'x' * 65536\nwhile True: os.write(1, b)", limits=ScriptLimits(wall=3)
        )
        seconds, more = time.monotonic() - began, resident(os.getpid()) - before
        code = "import os\nb = b'x' * (1 << 20)\nfor _ in range(1024): os.write(1, b)"
        whole = await sandbox.run(code, limits=LONG)
    return [
        row("S5", f"flood of {flood.stdout.total >> 20} MB: caller's memory more", more / 1024, "MB", at_most=2),
        row("S5", "flood: returned beyond its limit by", seconds - 3, "s", at_most=0.5),
        row("S5", "1 GB printed: bytes counted and OK", whole.stdout.total * whole.ok, "B", at_least=1 << 30),
    ]


async def s6(scale: float) -> list[Row]:
    """Eight memory bombs at once."""
    limits = LONG.with_(tree_mb=300)
    bomb = "import os\nfor _ in range(3): os.fork()\nx = []\nwhile True: x.append(bytearray(b'x') * (2 << 20))"
    async with JailedSandbox() as sandbox:
        await sandbox.run("print(1)")
        low = before = available()
        running = asyncio.gather(*(sandbox.run(bomb, limits=limits) for _ in range(8)))
        other = asyncio.ensure_future(sandbox.run("print(sum(range(10**6)))", limits=LONG))
        while not running.done():
            low = min(low, available())
            await asyncio.sleep(0.01)
        done, fine = await running, await other
    peak = max(one.peak_bytes for one in done) / (300 << 20)
    return [
        row(
            "S6",
            "bombs that ended otherwise than by memory",
            sum(one.ending is not Ending.MEMORY for one in done),
            "",
            at_most=0,
        ),
        row("S6", "most that a tree held, of its limit", peak, "x", at_most=1.25),
        row("S6", "memory of the machine less, of 8 limits", (before - low) / 2400, "x", at_most=1.25),
        row("S6", "the script beside them failed", float(not fine.ok), "", at_most=0),
    ]


async def s7(scale: float) -> list[Row]:
    """Threads of many callers, and forks beside a fork bomb."""
    threads = (
        "import threading, time\nthreads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(8)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()"
    )
    fork = "import os\nif os.fork() == 0: os._exit(0)\nos.wait()"
    bomb = "import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(0.05)"
    async with JailedSandbox() as sandbox:
        many = await spread(max(24, int(96 * scale)), 24, lambda _: sandbox.run(threads, limits=LONG))
        bombs = asyncio.ensure_future(sandbox.run(bomb, limits=LONG))
        forks = await spread(int(200 * scale), 8, lambda _: sandbox.run(fork, limits=LONG))
        bombs.cancel()
        await asyncio.gather(bombs, return_exceptions=True)
    return [
        row("S7", f"{len(many)} x 8 threads, 24 callers: failed", sum(not one.ok for one in many), "", at_most=0),
        row("S7", f"{len(forks)} forks beside a fork bomb: failed", sum(not one.ok for one in forks), "", at_most=0),
    ]


async def s9(scale: float) -> list[Row]:
    """State of one execution in another."""
    leave = (
        "import builtins, json\nbuiltins.LEFT = json.LEFT = 1\n"
        "for d in ('/box', '/tmp', '/dev/shm'): open(d + '/left', 'w')"
    )
    look = (
        "import builtins, json, os\nassert not hasattr(builtins, 'LEFT') and not hasattr(json, 'LEFT')\n"
        "assert not any(os.path.exists(d + '/left') for d in ('/box', '/tmp', '/dev/shm'))"
    )
    async with JailedSandbox() as sandbox:

        async def pair(_: int) -> bool:
            await sandbox.run(leave, limits=LONG)
            return (await sandbox.run(look, limits=LONG)).ok

        clean = await spread(int(500 * scale), 4, pair)
    return [row("S9", f"{len(clean)} pairs: state seen", clean.count(False), "pairs", at_most=0)]


async def s10(scale: float) -> list[Row]:
    """Cancellation at random moments."""
    random, returned, left = Random(1), [0.0], [0.0]
    async with JailedSandbox() as sandbox:
        await sandbox.run("print(1)")
        for _ in range(int(200 * scale)):
            running = asyncio.ensure_future(sandbox.run(FOUR))
            await asyncio.sleep(random.random() * 0.08)
            began = time.monotonic()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            returned.append(time.monotonic() - began)
            left.append(await gone(2.0))
    return [
        row("S10", f"{len(left) - 1} cancelled: slowest return", max(returned), "s", at_most=0.2),
        row("S10", "slowest end of a jail", max(left), "s", at_most=0.5),
    ]


SCENARIOS = {"S1": s1, "S2": s2, "S3": s3, "S4": s4, "S5": s5, "S6": s6, "S7": s7, "S9": s9, "S10": s10}


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the counts")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.only or SCENARIOS:
        began = time.monotonic()
        rows += asyncio.run(SCENARIOS[name](0.05 if options.quick else 1.0))
        print(f"  {name} {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps({"load": os.getloadavg()[0], "rows": [asdict(one) for one in rows]}, indent=1))
    else:
        print(f"The Python sandbox ({os.cpu_count()} cores, load {os.getloadavg()[0]:.1f})\n")
        for one in rows:
            verdict = "" if one.met else "   MISSED"
            print(f"{one.scenario:4} {one.what:62.62} {one.value:14,.2f} {one.unit:10} {one.bar:>14}{verdict}")
    return 0 if all(one.met for one in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
