"""What every scenario shares: a row of figures, fair timing, facts about the machine, and how rows are printed.

A *scenario* is a script of its own. It measures in one fresh process, floors and concertino in turn inside it, and
prints rows; `run.py` repeats it in further processes and takes the medians. A *target* is a bar that the figure must
not exceed. The garbage collector stays on, and nothing is subtracted but the floor that a row names.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

_QUIET = 0.3
"""Cores that others may use while figures count."""
PACKAGES = ("concertino", "jsonschema-rs", "jsonschema", "pydantic", "pluggy", "tenacity")


@dataclass(slots=True)
class Row:
    """One figure.

    Attributes:
        scenario: its short name, `S1`.
        what: what was measured.
        value: concertino's figure; None where it could not be measured, then `note` says why.
        unit: of all the figures in this row.
        target: the bar, None for a figure without one.
        floor: the careful floor's figure, measured in the same process; None if there is none.
        low, high: the spread of `value`.
    """

    scenario: str
    what: str
    value: float | None
    unit: str
    target: float | None = None
    floor: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a figure."""
        return None if self.target is None or self.value is None else self.value <= self.target

    @property
    def key(self) -> tuple[str, str]:
        """What makes two rows of different processes the same figure."""
        return self.scenario, self.what


def merge(runs: Sequence[Iterable[Row]]) -> list[Row]:
    """One row per figure: medians of the processes, and the spread between them."""
    found: dict[tuple[str, str], list[Row]] = {}
    for rows in runs:
        for row in rows:
            found.setdefault(row.key, []).append(row)
    return [_merged(same) for same in found.values()]


def _merged(same: list[Row]) -> Row:
    first = same[0]
    note = next((row.note for row in same if row.note), "")
    values = [row.value for row in same if row.value is not None]
    floors = [row.floor for row in same if row.floor is not None]
    if not values:
        return first
    return Row(
        first.scenario, first.what, statistics.median(values), first.unit, first.target,
        statistics.median(floors) if floors else None, min(values), max(values), note,
    )  # fmt: skip


def in_turn(systems: dict[str, Callable[[], float]], repeat: int) -> dict[str, list[float]]:
    """Measure the systems one after another, `repeat` times round; one round before that does not count."""
    seen: dict[str, list[float]] = {name: [] for name in systems}
    for number in range(repeat + 1):
        for name, measure in systems.items():
            value = measure()
            if number:
                seen[name].append(value)
    return seen


def memory_mb() -> float:
    """Resident memory of this process in MB, after a collection."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "-"
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


class OthersAtWork:
    """How much of the machine other processes use while this one and its children measure."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._before = self._read()

    @staticmethod
    def _read() -> tuple[float, float] | None:
        """Seconds of processor time: of all processes, and of this one with its children; None where nobody says."""
        try:
            ticks = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        except OSError:
            return None
        user, nice, system, _idle, _wait, irq, soft, steal = map(int, ticks)
        own = os.times()
        busy = (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")
        return busy, own.user + own.system + own.children_user + own.children_system

    def remark(self) -> str | None:
        """What to say of figures that were measured meanwhile: nothing, if the machine was quiet."""
        now, elapsed = self._read(), time.monotonic() - self._began
        if self._before is None or now is None or elapsed < 1:
            return None
        others = (now[0] - self._before[0] - (now[1] - self._before[1])) / elapsed
        return f"unsure: others used {others:.1f} of {os.cpu_count()} cores" if others > _QUIET else None


def number(value: float | None) -> str:
    """A figure with as many digits as it deserves."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Iterable[Row]) -> str:
    """The rows as text."""
    lines = [f"{'':5}{'what':57}{'value':>8} {'unit':13}{'spread':>13}{'floor':>8}{'target':>8}"]
    for row in rows:
        spread = f"{number(row.low)}..{number(row.high)}" if row.low is not None else ""
        verdict = {None: "", True: "  pass", False: "  MISS"}[row.met]
        line = f"{row.scenario:5}{row.what:57}{number(row.value):>8} {row.unit:13}{spread:>13}"
        line += f"{number(row.floor):>8}{number(row.target):>8}{verdict}"
        lines.append(f"{line}  {row.note}".rstrip())
    return "\n".join(lines)


def script(rows: Callable[[bool], list[Row]], doc: str | None) -> int:
    """The command line of a scenario."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="few repetitions: shows that it works, not how fast")
    options = parser.parse_args()
    others = OthersAtWork()
    found = rows(options.quick)
    if (unsure := others.remark()) is not None:
        for row in found:
            row.note = f"{row.note}; {unsure}".strip("; ")
    if options.json:
        print(json.dumps({"machine": machine(), "rows": [{**asdict(row), "met": row.met} for row in found]}))
    else:
        print(table(found))
    return 0
