"""E1: kill a run with SIGKILL at random moments and at every kind of write, resume it, and count what went wrong.

A child process runs an orchestrator over paid calls: parallel rounds, an agent with a graph of calls inside, an agent
that asks a model. Each paid call notes its idempotency key in a log that plays the provider. The child prints every
observation the moment its caller sees it. The parent kills it, starts it again on the same trace, and checks:

- nothing the caller saw is missing from the trace;
- no call whose result is in the trace is executed again;
- a call that may not be repeated is executed at most once;
- the provider bills each key once, and the answer equals that of an uninterrupted run.

    python benchmarks/crash.py [--kills 200] [--json]
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

CHILD = str(Path(__file__).with_name("crash_child.py"))
ROUNDS = 6


def results_in(trace: Path) -> set[str]:
    """Ids of calls whose result is on record."""
    from concertino.traces.journal_reader import read_journal

    if not trace.exists() or not trace.read_bytes():
        return set()
    return {record["id"] for record in read_journal(trace).records if record["t"] == "result"}


def one_run(folder: Path, rng: random.Random, kills: int, count: Counter[str]) -> None:
    """One run, killed up to `kills` times, then let finish."""
    trace, log = folder / "run.trace.jsonl", folder / "provider.log"
    seen: set[str] = set()
    for attempt in range(kills + 1):
        last = attempt == kills
        die_at = 0 if last or rng.random() < 0.5 else rng.randrange(1, 60)
        done_before = results_in(trace)
        logged = log.read_text().splitlines() if log.exists() else []
        command = [sys.executable, CHILD, str(trace), str(log), str(die_at)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if not last and not die_at:
            for _ in range(rng.randrange(1, 20)):
                process.stdout.readline()
            time.sleep(rng.random() * 0.01)
            process.kill()
        output, errors = process.communicate()
        count["kills"] += process.returncode == -signal.SIGKILL
        if process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"the child failed ({process.returncode}): {errors[-2000:]}")
        shown = {line.split()[0] for line in output.splitlines() if line.count(" ") >= 2}
        count["lost"] += len(shown - results_in(trace))
        seen |= shown
        fresh = log.read_text().splitlines()[len(logged) :] if log.exists() else []
        executed = {line.split()[3] for line in fresh if line.startswith("START")}
        count["repeated"] += len(executed & done_before)
        if "ANSWER" in output:
            count["answers_wrong"] += f"ANSWER {ROUNDS}\n" not in output
            break
    lines = [line.split() for line in log.read_text().splitlines()]
    starts = Counter((kind, call) for word, kind, _, call in lines if word == "START")
    count["in_doubt_asked_again"] += sum(n - 1 for (kind, _), n in starts.items() if kind != "once")
    count["once_executed_twice"] += sum(n > 1 for (kind, _), n in starts.items() if kind == "once")
    count["runs"] += 1
    count["calls"] += len(starts)


def measure(kills: int, seed: int = 7) -> dict[str, Any]:
    """Kill until `kills` is reached."""
    rng, count = random.Random(seed), Counter[str]()
    started = time.monotonic()
    while count["kills"] < kills:
        with tempfile.TemporaryDirectory() as folder:
            one_run(Path(folder), rng, min(8, kills - count["kills"] + 1), count)
        print(f"\r{count['kills']}/{kills} kills", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    names = [
        "kills",
        "runs",
        "calls",
        "lost",
        "repeated",
        "once_executed_twice",
        "answers_wrong",
        "in_doubt_asked_again",
    ]
    return {**{name: count[name] for name in names}, "seconds": round(time.monotonic() - started, 1)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="E1: crash and resume")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="20 kills")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(20 if options.quick else options.kills)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:22} {value}")
    if any(figures[name] for name in ("lost", "repeated", "once_executed_twice", "answers_wrong")):
        sys.exit("a promise was broken")


if __name__ == "__main__":
    main()
