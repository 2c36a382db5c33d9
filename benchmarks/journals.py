"""Large journals: what it takes to show, list, export, load, replay and resume the trace of a long run.

    python benchmarks/journals.py [--gigabyte] [--passes N] [--folder PATH] [--json]

The trace is that of a real run: rounds of four calls whose results have 20 KB, all of which the model is shown, by a
process that is killed before the end. By default it has 100 MB with its side files, and 7,000 records; with
`--gigabyte` ten times as much. Each figure is a process of its own, its start and imports included: seconds of CPU,
most memory, and the ratio to the floor, which reads every line of the trace, checks its checksum and decodes its JSON
with `json.loads`, and nothing else; side files are not part of it. The floor runs before and after each process, and a
ratio is the median over the passes, because the machine is shared. "Resume" is everything up to the next request to
the model: the whole run is gone through again.

Bars, for a gigabyte: first screen 1 s, all of `show` 1.5 x the floor, resume 3 x the floor, memory 200 MB each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

ROUNDS, CALLS, PAGE = 620, 4, 20_000
COPY = "copy.trace.jsonl"
SCREEN = 40
"""Lines of the first screen."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is that of `cpu` to the floor; `memory` is in MB; bars are for a gigabyte."""

    name: str
    cpu: float | None
    wall: float
    memory: float | None
    ratio: float | None
    bar: str = ""


def leader(rounds: int, dies: bool) -> Any:
    """An orchestrator whose model makes so many rounds, and then dies or answers."""
    import concertino as ct

    class Reader(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            said = len(request.messages) // 2 - 1  # behind system message and question, a reply and its results each
            if said < rounds:
                calls = [{"name": "page", "arguments": {"i": CALLS * said + place}} for place in range(CALLS)]
                return ct.Reply("".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls))
            if dies:
                os._exit(0)
            return ct.Reply("<answer>read</answer>")

    return ct.Orchestrator(Reader(), ct.ParallelRounds(max_rounds=rounds + 1))


def pool() -> Any:
    """A page of text by its number."""
    import concertino as ct

    text = ("The tower is 330 metres tall, says the page. " * (PAGE // 45 + 1))[:PAGE]

    @ct.tool(max_chars=10 * PAGE)
    async def page(i: int) -> str:
        """Give a page."""
        return f"{i} {text}"

    return ct.Pool.of(page)


# -- what is measured, each in a process of its own --------------------------------------------------------------------


def make(path: Path, rounds: int) -> None:
    """Write the trace of a run that is killed."""
    leader(rounds, dies=True).run_sync("What do they say?", pool=pool(), trace=path)


def floor(path: Path, rounds: int) -> None:
    """Read, check and decode every line."""
    with path.open("rb") as file:
        for line in file:
            data = line[9:-1]
            if line[:8] != b"%08x" % crc32(data):
                raise SystemExit(f"{path}: damaged")
            json.loads(data)


def load(path: Path, rounds: int) -> None:
    """Load a trace, and count its calls."""
    from concertino.traces import Trace

    if Trace.load(path).summary().calls != rounds * CALLS:
        raise SystemExit(f"{path}: calls are missing")


def replay(path: Path, rounds: int) -> None:
    """Go through the run without any model."""
    import concertino as ct

    try:
        ct.replay(path)
    except ct.TraceError as error:  # the run was killed before its last request was answered
        if "asked again" not in str(error):
            raise


def resume(path: Path, rounds: int) -> None:
    """Go on with the run."""
    run = asyncio.run(leader(rounds, dies=False).resume(path, pool=pool()))
    if run.answer != "read" or sum(seen.replayed for seen in run.observations) != rounds * CALLS:
        raise SystemExit(f"{path}: not resumed: {run.stop} {run.detail}")


STEPS = {work.__name__: work for work in (make, floor, load, replay, resume)}


# -- measuring ---------------------------------------------------------------------------------------------------------


def used(command: list[str], output: Path) -> tuple[float, float, float]:
    """Seconds of CPU, seconds, and MB at most of a process."""
    began = time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE)
        errors = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: {errors.decode()[-2000:]}")
    scale = 1024 if sys.platform == "linux" else 1024 * 1024
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss / scale


def first_screen(command: list[str]) -> float:
    """Seconds until the first lines are there."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(SCREEN)]
        seconds = time.perf_counter() - began
        process.kill()
    if not all(lines):
        raise SystemExit("the first screen is not full")
    return seconds


def step(name: str, path: Path, rounds: int) -> list[str]:
    """The command that does one of these."""
    return [sys.executable, __file__, "--step", name, str(path), str(rounds)]


def copy_of(path: Path) -> None:
    """Make a copy of a trace that may be written to; its side files are shared."""
    copy = path.with_name(COPY)
    shutil.rmtree(f"{copy}.blobs", ignore_errors=True)
    shutil.copyfile(path, copy)
    shutil.copytree(f"{path}.blobs", f"{copy}.blobs", copy_function=os.link)


def measure(rounds: int, passes: int, folder: Path) -> list[Row]:
    """All figures."""
    traces = folder / "traces"
    traces.mkdir()
    path, output = traces / "run.trace.jsonl", folder / "output"
    took = used(step("make", path, rounds), output)
    side = sum(entry.stat().st_size for entry in os.scandir(f"{path}.blobs"))
    with path.open("rb") as file:
        records = sum(1 for _ in file)
    name = f"{path.stat().st_size / 1e6:.0f} MB + {side / 1e6:.0f} MB, {records:,} records: written"
    rows = [Row(name, *took, ratio=None)]

    cli = [sys.executable, "-m", "concertino", "traces"]
    screens = [first_screen([*cli, "show", str(path)]) for _ in range(passes)]
    rows.append(Row("show, first screen", None, statistics.median(screens), None, None, "1 s"))
    floors, found = [], []
    for command, bar, what in (
        ([*cli, "show", str(path)], "1.5 x, 200 MB", "show, all of it"),
        ([*cli, "list", "--folder", str(traces)], "200 MB", "list"),
        ([*cli, "list", "--folder", str(traces)], "", "list, with its index"),
        ([*cli, "export", str(path), "--format", "jsonl"], "200 MB", "export as lines, side files included"),
        (step("load", path, rounds), "200 MB", "load"),
        (step("replay", path, rounds), "200 MB", "replay"),
        (step("resume", path.with_name(COPY), rounds), "3 x, 200 MB", "resume"),
    ):
        taken, ratios = [], []
        for _ in range(passes):
            if what == "list":
                path.with_name(f"{path.name}.index").unlink(missing_ok=True)
            if what == "resume":
                copy_of(path)
            before = used(step("floor", path, rounds), output)
            taken.append(used(command, output))
            after = used(step("floor", path, rounds), output)
            floors += [before, after]
            ratios.append(2 * taken[-1][0] / (before[0] + after[0]))
        cpu, wall, memory = (statistics.median(each) for each in zip(*taken, strict=True))
        found.append(Row(what, cpu, wall, memory, statistics.median(ratios), bar))
    cpu, wall, memory = (statistics.median(each) for each in zip(*floors, strict=True))
    return [*rows, Row("floor", cpu, wall, memory, 1.0), *found]


def table(rows: list[Row]) -> str:
    """The rows as text."""
    lines = [f"{'':48}{'CPU s':>9}{'wall s':>9}{'MB':>7}{'x floor':>9}  bar for a gigabyte"]
    for r in rows:
        cpu = "" if r.cpu is None else f"{r.cpu:.2f}"
        memory = "" if r.memory is None else f"{r.memory:.0f}"
        ratio = "" if r.ratio is None else f"{r.ratio:.2f}"
        lines.append(f"{r.name:48}{cpu:>9}{r.wall:9.2f}{memory:>7}{ratio:>9}  {r.bar}".rstrip())
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabyte", action="store_true", help="a trace of a gigabyte and 70,000 records")
    parser.add_argument("--passes", type=int, default=3, help="processes of each figure (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=None, help="where to write (default: the system's)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--step", nargs=3, metavar=("WORK", "TRACE", "ROUNDS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        work, path, rounds = options.step
        STEPS[work](Path(path), int(rounds))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = measure(ROUNDS * (10 if options.gigabyte else 1), options.passes, Path(folder))
    if options.json:
        found = {"python": platform.python_version(), "system": platform.platform(), "rows": list(map(asdict, rows))}
        print(json.dumps(found))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
