"""Run every benchmark in processes of its own and print one table.

    make bench                              speed and memory, three processes per scenario: about fifteen minutes
    make bench ARGS="--all"                 servers, and what behaves well: faults, crashes, recorded models; an hour
    make bench ARGS="--only overhead"       one script; may be repeated
    make bench ARGS="--quick"               one short process each: shows that they work
    make bench ARGS="--json"                one JSON object

Scenarios run round after round, each time in a fresh process; a figure is the median of its processes, its spread their
least and greatest. A figure that was measured while other processes were at work is marked as unsure. The other
benchmarks have tables of their own and run once. Progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import Row, machine, merge, table

HERE = Path(__file__).parent
SCENARIOS = (
    "whole_runs", "startup", "overhead", "rounds", "waiting", "faults", "graphs", "pools", "clients", "search", "early",
    "bench", "rollouts", "runs", "places", "serving",
)  # fmt: skip
SPEED = {
    "local": "Local models against the `generate` of transformers",
    "reading": "Reading what models write",
    "schema": "Schemas",
    "journal": "Traces on disk",
    "journals": "Large traces",
    "plugins": "Installed plugins",
    "sandbox": "The Python sandbox",
    "mcp_servers": "MCP servers",
}
"""Tables of speed and memory."""
BEHAVIOUR = {
    "reliability": "Reliability under faults",
    "crash": "Killed and resumed",
    "answers": "Typed answers of real schemas",
    "streaming": "Text as it is written",
    "hostile_streams": "Streams of a server that means harm",
    "approvals": "Approved, killed and resumed",
    "strategies": "All strategies on the same questions",
    "baselines": "Baselines on recorded models",
    "conductor": "The tiny conductor on pools that it never saw",
    "recorded_pools": "Recorded real models that nobody was trained on",
    "tool_search": "Searching a pool of 13,000 real tools",
}
"""Tables of what comes out: no change of speed moves them."""
OTHERS = SPEED | BEHAVIOUR
ONCE = ("rollouts", "early", "bench", "runs", "clients", "graphs", "places", "serving")
"""Long ones: one process each."""
FIVE_MINUTES = ("serving",)
"""These run with `--all`, or by themselves."""
SHORTENED = (
    *("sandbox", "strategies", "conductor", "answers", "streaming", "hostile_streams"),
    *("approvals", "tool_search", "crash"),
)
"""These run with `--quick`: all counts take many minutes, by `python benchmarks/sandbox.py` and so on."""
SPEED_PARTS = {"sandbox": ["--only", "S4", "--only", "S5", "--only", "S6"]}
"""Parts of a script that measure speed and memory. Its other parts run with `--all`, or when the script is named."""


def output_of(name: str, *options: str) -> str | None:
    """What a script prints; None, with its error on stderr, if it fails."""
    began = time.monotonic()
    command = [sys.executable, str(HERE / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    verdict = f"{time.monotonic() - began:.0f} s" if done.stdout else f"failed\n{done.stderr[-2000:]}"
    print(f"  {name} {verdict}", file=sys.stderr, flush=True)
    return done.stdout or None  # a benchmark that misses a bar may say so by its exit status


def scenarios(names: list[str], repeat: int, quick: bool) -> list[Row]:
    """The merged rows of the scenarios, in their order."""
    runs: dict[str, list[list[Row]]] = {name: [] for name in names}
    options = ["--json", "--quick"] if quick else ["--json"]
    for number in range(repeat):
        for name in (name for name in names if not number or name not in ONCE):
            printed = output_of(name, *options)
            if printed is not None:
                found = json.loads(printed)["rows"]
                runs[name].append([Row(**{k: v for k, v in row.items() if k != "met"}) for row in found])
    return [row for name in names for row in merge(runs[name])]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [*SCENARIOS, *OTHERS]
    parser.add_argument("--all", action="store_true", help="servers, and what behaves well; about an hour")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--repeat", type=int, default=3, help="processes per scenario (default: 3)")
    parser.add_argument("--quick", action="store_true", help="one short process each: shows that they work")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    return parser.parse_args()


def main() -> int:
    """Run and print; the exit status is 1 if a benchmark failed to run, whatever the figures."""
    options = parse()
    usual = [name for name in SCENARIOS if options.all or name not in FIVE_MINUTES]
    chosen = options.only or [*usual, *(OTHERS if options.all else SPEED)]
    before = machine()
    rows = scenarios([n for n in SCENARIOS if n in chosen], 1 if options.quick else options.repeat, options.quick)
    others: dict[str, Any] = {}
    for name in (name for name in OTHERS if name in chosen):
        part = [] if options.all or options.only else SPEED_PARTS.get(name, [])
        printed = output_of(name, *["--quick"][: name in SHORTENED], *part, *["--json"][: options.json])
        others[name] = json.loads(printed) if printed and options.json else printed
    if options.json:
        figures = [{**asdict(row), "met": row.met} for row in rows]
        print(json.dumps({"machine": before, "scenarios": figures, **others}, indent=2))
    else:
        print_report(before, rows, others)
    ran = {row.scenario for row in rows}
    complete = len(ran) >= len([n for n in SCENARIOS if n in chosen]) and None not in others.values()
    return 0 if complete else 1


def print_report(facts: dict[str, Any], rows: list[Row], others: dict[str, str | None]) -> None:
    """Facts, one table, and the other benchmarks' tables."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    print(f"{facts['date']}  Python {facts['python']}  {facts['cores']} cores, load {facts['load']}  {facts['system']}")
    print(versions)
    if rows:
        judged = [row for row in rows if row.met is not None]
        print(f"\n{table(rows)}\n\n{sum(bool(row.met) for row in judged)} of {len(judged)} targets met")
    for name, printed in others.items():
        if printed is not None:
            print(f"\n{OTHERS[name]}\n{printed.rstrip()}")


if __name__ == "__main__":
    sys.exit(main())
