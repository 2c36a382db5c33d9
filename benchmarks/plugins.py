"""What installed plugins cost before one is used: milliseconds in a fresh process, with 0 and with 200
dummies.

    python benchmarks/plugins.py [--json] [--repeat N]

*bare* is an interpreter that does nothing, *import* adds `import concertino`, *list* adds the manager and the
rows of `PluginManager.plugins()`, *pool of one* instead loads one dummy through a pattern. Each dummy is a
real `.dist-info` folder with a long description. Each figure is the best of N processes, since the machine is
shared. Bar: 200 dummies add at most 150 ms to *list*.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

DUMMIES = 200
BAR = 150.0
SETTINGS = "from concertino.core.settings import Settings"
PROGRAMS = {
    "bare": "",
    "import": "import concertino",
    "list": f"from concertino.plugins import PluginManager; {SETTINGS}; PluginManager(Settings()).plugins()",
    "pool of one": f"""
from concertino.plugins import PluginManager; {SETTINGS}
manager = PluginManager(Settings())
name = next((row.name for row in manager.plugins() if row.name.startswith("dummy")), None)
print(len(manager.specs([f"{{name}}/*"])) if name else 0)""",
}
MODULE = """
import concertino
from concertino.members.specs import ToolSpec
from concertino.plugins.hookspecs import hookimpl

@hookimpl
def concertino_tools():
    return [ToolSpec("echo", "Echoes.", {"type": "object"}, print)]
"""


def make_dummies(folder: Path) -> None:
    """Install `DUMMIES` distributions into a folder."""
    for number in range(DUMMIES):
        info = folder / f"dummy_{number}-1.0.dist-info"
        info.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: dummy-{number}\nVersion: 1.0\n\n"
        (info / "METADATA").write_text(head + "A line of the description.\n" * 300)
        (info / "entry_points.txt").write_text(f"[concertino]\ndummy{number} = dummy_{number}\n")
        (folder / f"dummy_{number}.py").write_text(MODULE)


def milliseconds(program: str, folder: Path, repeat: int) -> float:
    """Wall time of a process, the best of `repeat`."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(folder)},
            check=True,
            capture_output=True,
        )
        times.append(time.perf_counter() - started)
    return min(times) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--repeat", type=int, default=7, metavar="N", help="processes per figure")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        few, many = Path(place, "few"), Path(place, "many")
        few.mkdir()
        make_dummies(many)
        for name, program in PROGRAMS.items():
            none, all_of_them = (milliseconds(program, folder, options.repeat) for folder in (few, many))
            rows.append({"what": name, "with_0": none, f"with_{DUMMIES}": all_of_them, "added": all_of_them - none})
    if options.json:
        print(json.dumps({"milliseconds": rows, "bar": {"list": BAR}}, indent=1))
        return
    print(f"{'ms in a fresh process':24}{'0 dummies':>12}{f'{DUMMIES} dummies':>14}{'added':>9}")
    for row in rows:
        print(f"{row['what']:24}{row['with_0']:12.1f}{row[f'with_{DUMMIES}']:14.1f}{row['added']:9.1f}")
    print(f"bar: `list` may add {BAR:g} ms")


if __name__ == "__main__":
    main()
