"""Checks that hold for the machine of every strategy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concertino.strategies import Machine, Strategy, TaskContext


def feed(machine: Machine, item: Any) -> None:
    """A reply, or a list of observations."""
    machine.observe(item, {"units": 1}) if isinstance(item, list) else machine.on_reply(item)


def check_every_point(strategy: Strategy, context: TaskContext, script: Sequence[Any]) -> None:
    """A copy made at any point, by `fork` or by `dump` and `restore`, has the original's future."""
    straight = strategy.begin(context)
    for item in script:
        feed(straight, item)
    for steps in range(len(script) + 1):
        origin = strategy.begin(context)
        for item in script[:steps]:
            feed(origin, item)
        written = json.loads(json.dumps(origin.dump()))
        for twin in (origin.fork(), strategy.restore(written)):
            assert twin.step() == origin.step() or _same_plan(twin, origin)
            for item in script[steps:]:
                feed(twin, item)
            assert twin.dump() == straight.dump()
            assert twin.step() == straight.step()
        assert json.loads(json.dumps(origin.dump())) == written


def _same_plan(one: Machine, other: Machine) -> bool:
    """Whether both want to run the same plan; plans have no equality of their own."""
    first: Any = one.step()
    second: Any = other.step()
    one_plan, other_plan = first.plan, second.plan
    return (first.round, one_plan.to_json(), one_plan.edges) == (second.round, other_plan.to_json(), other_plan.edges)


def cut_after(path: Path, kind: str, count: int) -> Path:
    """A copy of a trace as a crash right after the `count`-th record of a kind would leave it."""
    kept, left = [], count
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        left -= json.loads(line[9:])["t"] == kind
        if left == 0:
            break
    target = path.with_name(f"cut.{kind}{count}.trace.jsonl")
    target.write_bytes(b"".join(kept))
    return target
