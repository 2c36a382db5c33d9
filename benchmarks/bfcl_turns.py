"""Our grader of BFCL's multi-turn categories beside the published checker: states and answers after each turn.

    python benchmarks/bfcl_turns.py --checkout GORILLA [--python PYTHON] [--cases 4000]

GORILLA is a checkout of github.com/ShishirPatil/gorilla. Its programs need no other package, so PYTHON is this one
unless another is named. Cases are the gold calls of the four categories, and then calls that are left out, added,
changed, or made in another turn (seeded). The published verdicts come from running the published programs and checker
in a process of their own (`bfcl_published.py`). Nothing of them is part of this project.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import copy
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino_bench import Submission, Task
from concertino_bench.graders import CallStates
from concertino_bench.loaders.function_calls import bfcl
from concertino_bench.machines import NEXT, not_simulated

DATA = "berkeley-function-call-leaderboard/bfcl_eval/data"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
CHANGES = ("none", "left out", "twice", "swapped", "later", "earlier", "changed", "silent turn", "added look")
Turns = list[list[dict[str, Any]]]


def changed(turns: Turns, change: str, chance: random.Random) -> Turns:
    """Calls by turn with one change; the same where there is nothing to change."""
    turns = copy.deepcopy(turns)
    filled = [place for place, calls in enumerate(turns) if calls]
    if not filled:
        return turns
    turn = chance.choice(filled)
    calls = turns[turn]
    place = chance.randrange(len(calls))
    if change == "left out":
        del calls[place]
    elif change == "twice":
        calls.insert(place, calls[place])
    elif change == "swapped":
        chance.shuffle(calls)
    elif change in ("later", "earlier"):
        other = turn + (1 if change == "later" else -1)
        if 0 <= other < len(turns):
            turns[other].insert(0 if change == "later" else len(turns[other]), calls.pop(place))
    elif change == "silent turn":
        calls.clear()
    elif change == "added look":
        looks = [call for each in turns for call in each if call["name"].startswith(("get_", "ls", "pwd", "display"))]
        calls.extend(looks[:1])
    elif change == "changed":
        _change_argument(calls[place]["arguments"], chance)
    return turns


def _change_argument(arguments: dict[str, Any], chance: random.Random) -> None:
    if arguments:
        name = chance.choice(list(arguments))
        value = arguments[name]
        if isinstance(value, bool):
            arguments[name] = not value
        elif isinstance(value, (int, float)):
            arguments[name] = value + 1
        elif isinstance(value, str):
            arguments[name] = value + chance.choice(["x", " ", "1"])


def cases(checkout: Path, count: int) -> Iterator[tuple[Task, str, Turns]]:
    """Tasks with calls by turn, the same for the same count; first the gold of every task."""
    chance = random.Random(20261130)
    tasks = [
        task
        for category in CATEGORIES
        for task in bfcl(path=checkout / DATA / f"BFCL_v4_multi_turn_{category}.json", one_by_one=True)
    ]
    if lacking := {why for task in tasks if (why := not_simulated(task))}:
        sys.exit(f"{checkout}: {'; '.join(lacking)}")
    for number in range(count):
        task = tasks[number % len(tasks)]
        change = "none" if number < len(tasks) else chance.choice(CHANGES)
        yield task, change, changed(task.metadata["turn_calls"], change, chance)


def published(checkout: Path, python: str, found: list[tuple[Task, str, Turns]]) -> list[bool | None]:
    """The verdicts of the published checker; None where it stops."""
    lines = []
    for task, _, turns in found:
        meta = task.metadata
        rows = [[_text(call) for call in calls] for calls in turns]
        gold = [[_text(call) for call in calls] for calls in meta["turn_calls"]]
        config, classes = meta.get("initial_config") or {}, meta["involved_classes"]
        lines.append(json.dumps({"id": task.id, "turns": rows, "gold": gold, "config": config, "classes": classes}))
    program = [python, "-I", str(Path(__file__).with_name("bfcl_published.py")), str(checkout), "turns"]
    done = subprocess.run(program, input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the published checker stopped:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _text(call: dict[str, Any]) -> str:
    return f"{call['name']}({', '.join(f'{name}={value!r}' for name, value in call['arguments'].items())})"


async def ours(found: list[tuple[Task, str, Turns]]) -> list[bool]:
    """Our verdicts, on the calls as a run would have made them."""
    grader, services = CallStates(), _Nobody()
    verdicts = []
    for task, _, turns in found:
        calls = [call for turn in turns for call in (*turn, {"name": NEXT, "arguments": {}})][:-1]
        seen = await grader.grade(task, Submission("", state=calls), services)
        verdicts.append(seen.verdict == "right")
    return verdicts


class _Nobody:
    async def ask(self, role: str, request: Any) -> Any:
        raise AssertionError("this grader asks nobody")

    async def call(self, name: str, arguments: Any) -> Any:
        raise AssertionError("this grader calls nothing")


def main() -> None:
    """Compare, and say where the two differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--cases", type=int, default=4000)
    given = parser.parse_args()
    found = list(cases(given.checkout, given.cases))
    theirs, mine = published(given.checkout, given.python, found), asyncio.run(ours(found))
    same: dict[str, list[bool]] = collections.defaultdict(list)
    for (task, change, _), one, other in zip(found, theirs, mine, strict=True):
        same[change].append(one == other)
        if one != other:
            print(f"{task.id}, {change}: published {one}, ours {other}")
    for change, equal in sorted(same.items()):
        print(f"{change:12} {sum(equal):5} of {len(equal)}")
    print(f"same verdict: {sum(map(sum, same.values()))} of {len(found)}, of these right: {sum(map(bool, theirs))}")


if __name__ == "__main__":
    main()
