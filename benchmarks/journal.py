"""How fast a journal takes records, against a plain file, and how fast it is read back.

    python benchmarks/journal.py [--records N] [--folder PATH] [--json]

The floor is `file.write` of a finished line through Python's buffer: no JSON, no checksum, nothing that
survives a crash. "encoded" adds only the JSON. Each figure is the best of several passes, because the machine
is shared; a pass with "power" writes fewer records, since each group of 16 waits for the disk. `--folder`
picks the disk to measure.
Bars: an append takes at most 9 µs; 10,000 records are resumed within 1 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from concertino.traces.journal import Journal
from concertino.traces.journal_line import encode_json
from concertino.traces.journal_reader import read_journal

HEADER = {"t": "header", "v": 1}
RECORD = {
    "t": "result",
    "call": "r3.c2",
    "status": "OK",
    "content": "The tower is 330 metres tall, says the page.",
    "usage": {"input_tokens": 812, "output_tokens": 64},
    "cost": 0.0021,
    "started": 1712.031,
    "ended": 1713.442,
}
PASSES = 5
WRITERS = 16


@dataclass(frozen=True)
class Row:
    """One figure: `records` handled in `seconds`."""

    name: str
    records: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def microseconds(self) -> float:
        return self.seconds / self.records * 1e6


def best(name: str, records: int, work: Callable[[Path], float], folder: Path) -> Row:
    """The fastest pass of `work`, which is given a fresh path and returns its seconds."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        return Row(name, records, min(work(Path(scratch) / f"{i}.trace") for i in range(PASSES)))


def buffered(records: int, encode: bool) -> Callable[[Path], float]:
    """What a file without any promise takes."""
    line = encode_json(RECORD) + b"\n"

    def work(path: Path) -> float:
        with path.open("wb") as file:
            start = time.perf_counter()
            for _ in range(records):
                file.write(encode_json(RECORD) + b"\n" if encode else line)
            file.flush()
            return time.perf_counter() - start

    return work


def appended(records: int) -> Callable[[Path], float]:
    """Records handed to the kernel one by one."""

    def work(path: Path) -> float:
        with Journal.create(path, HEADER) as journal:
            start = time.perf_counter()
            for _ in range(records):
                journal.append(RECORD)
            return time.perf_counter() - start

    return work


def flushed(records: int, writers: int) -> Callable[[Path], float]:
    """`writers` tasks, each of which waits for its record to be on disk before it writes the next."""

    async def write(journal: Journal) -> None:
        for _ in range(records // writers):
            journal.append(RECORD)
            await journal.flush()

    async def run(path: Path) -> float:
        with Journal.create(path, HEADER, durability="power") as journal:
            start = time.perf_counter()
            await asyncio.gather(*(write(journal) for _ in range(writers)))
            return time.perf_counter() - start

    return lambda path: asyncio.run(run(path))


def reopened(records: int, resume: bool) -> Callable[[Path], float]:
    """A journal of so many records, read back or opened to be written on."""

    def work(path: Path) -> float:
        appended(records)(path)
        start = time.perf_counter()
        if resume:
            journal, found = Journal.resume(path)
            journal.close()
        else:
            found = read_journal(path).records
        seconds = time.perf_counter() - start
        if len(found) != records:
            raise SystemExit(f"{path}: {len(found)} of {records} records came back")
        return seconds

    return work


def measure(records: int, folder: Path) -> list[Row]:
    """Every row of the table, in its order."""
    synced = max(records // 5 // WRITERS, 1) * WRITERS
    alone = max(records // 50, 1)
    return [
        best("buffered file, finished line (floor)", records, buffered(records, encode=False), folder),
        best("buffered file, encoded", records, buffered(records, encode=True), folder),
        best("append, process", records, appended(records), folder),
        best(f"append + flush, power, {WRITERS} writers", synced, flushed(synced, WRITERS), folder),
        best("append + flush, power, 1 writer", alone, flushed(alone, 1), folder),
        best("read", records, reopened(records, resume=False), folder),
        best("resume", records, reopened(records, resume=True), folder),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000, help="records per pass (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=None, help="where to write (default: the system's)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    rows = measure(options.records, options.folder or Path(tempfile.gettempdir()))
    if options.json:
        figures = [{**asdict(r), "per_second": r.per_second, "microseconds": r.microseconds} for r in rows]
        print(json.dumps({"python": platform.python_version(), "system": platform.platform(), "rows": figures}))
        return
    print(f"{'':38}{'records':>9}{'records/s':>13}{'µs/record':>12}{'seconds':>10}")
    for r in rows:
        print(f"{r.name:38}{r.records:9,}{r.per_second:13,.0f}{r.microseconds:12.2f}{r.seconds:10.3f}")


if __name__ == "__main__":
    main()
