"""How many functions a run calls: a count that no other load moves, to find what a feature costs where it is unused.

    python benchmarks/calls.py                        a round of four calls, a turn of one call, a whole run
    python benchmarks/calls.py --against PATH         beside another checkout, which has its own `.venv`
    python benchmarks/calls.py --against PATH --by    the functions whose counts differ

A round more is the difference of two runs, divided by the rounds. Each run is the second of its kind, so that what a
process does once does not count. Functions of Python and of C count alike. What is called hardly depends on anything
but the code, so the figures repeat; they are no times, since functions differ in what they cost.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import concertino as ct
from scripted import BUDGET, finished, probes, turn

ARGUMENTS = {"text": "hello", "count": 3}
SCENES = {
    "one more round of 4 calls": (4, 41, 1),
    "one more round of 4 calls, trace": (4, 41, 1),
    "one more turn of 1 call": (1, 41, 1),
    "a whole run of 1 call": (1, 1, 0),
    "a whole run of 1 call, trace": (1, 1, 0),
}
"""Calls in a round, rounds of the run, and rounds of the run that is taken away."""


class Repeating(ct.Model):
    """Says what comes next in its conversation, so that it serves any number of runs."""

    def __init__(self, turns: list[str]) -> None:
        self.turns = [*turns, turn(("final_answer", {})), "<answer>done</answer>"]

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The turn that follows."""
        said = sum(message.role == "assistant" for message in request.messages)
        return ct.Reply(self.turns[said], usage=ct.Usage(input_tokens=10, output_tokens=10))


def counted(width: int, rounds: int, folder: Path | None) -> Counter[str]:
    """The functions that one run calls, after another one of its kind."""
    model = Repeating([turn(*[("probe", ARGUMENTS)] * width)] * rounds)
    spec = ct.ModelSpec("scripted/model", lambda: model, prices=ct.Prices(1.0, 2.0))
    pool = ct.Pool([*probes(1), spec])
    leader = ct.Orchestrator(spec.name, ct.ParallelRounds(max_rounds=rounds + 1))
    found: Counter[str] = Counter()
    here = str(Path(ct.__file__).parent)

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            file = frame.f_code.co_filename
            where = file.removeprefix(here) if file.startswith(here) else Path(file).name
            name = f"{where}:{frame.f_code.co_qualname}"
            found[name if event == "call" else f"{argument.__qualname__} in {name}"] += 1

    async def run(profile: Any) -> ct.Run:
        gc.disable()  # what it collects is called at any time
        sys.setprofile(profile)
        try:
            return await leader.run("What?", pool=pool, budget=BUDGET, trace=folder)
        finally:
            sys.setprofile(None)
            gc.enable()

    for profile in (None, count):
        finished(asyncio.run(run(profile)), rounds)
    return found


def measure() -> dict[str, dict[str, int]]:
    """The functions of every scene, by scene and name."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        for scene, (width, rounds, fewer) in SCENES.items():
            folder = Path(name) if scene.endswith("trace") else None
            calls = counted(width, rounds, folder)
            if fewer:
                calls.subtract(counted(width, fewer, folder))
            found[scene] = {function: calls[function] // max(1, rounds - fewer) for function in calls}
    return found


def elsewhere(tree: Path) -> dict[str, dict[str, int]]:
    """The same in another checkout, counted by this script."""
    command = [str(tree / ".venv" / "bin" / "python"), __file__, "--raw"]
    # Whatever this process was told to import belongs to this tree.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tree, env=clean)
    if done.returncode:
        raise SystemExit(f"{tree}: the count failed\n{done.stderr[-1000:]}")
    found: dict[str, dict[str, int]] = json.loads(done.stdout)
    return found


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout with a .venv of its own")
    parser.add_argument("--by", action="store_true", help="print the functions whose counts differ")
    parser.add_argument("--raw", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    here = measure()
    if options.raw:
        print(json.dumps(here))
        return
    there = elsewhere(options.against.resolve()) if options.against else None
    for scene, calls in here.items():
        total = sum(calls.values())
        if there is None:
            print(f"{scene:36}{total:8,}")
            continue
        before = sum(there[scene].values())
        print(f"{scene:36}{total:8,}{before:8,}{total / before:8.3f}")
        for function in sorted(calls.keys() | there[scene].keys()) if options.by else ():
            now, then = calls.get(function, 0), there[scene].get(function, 0)
            if now != then:
                print(f"    {now - then:+4}  {function}")


if __name__ == "__main__":
    main()
