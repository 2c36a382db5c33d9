"""Results that look like real ones, and a browser."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from chromium import Browser, headless_chromium
from concertino import Usage
from concertino_bench import Item, Key, MemberUse, Verdict
from concertino_bench.reports import Results

AXES = ("breadth", "depth", "horizon", "parallel", "robustness")
LEVELS = (2, 4, 6, 8)
SYSTEMS: dict[str, dict[str, Any]] = {
    # skill, loss per level, $ scale, calls, width, several agents
    "single": {"skill": 0.82, "loss": 0.085, "usd": 0.002, "calls": 0.0, "width": 1, "several": False},
    "single+tools": {"skill": 0.86, "loss": 0.07, "usd": 0.004, "calls": 2.0, "width": 1, "several": False},
    "serial": {"skill": 0.88, "loss": 0.055, "usd": 0.011, "calls": 4.0, "width": 1, "several": True},
    "parallel": {"skill": 0.92, "loss": 0.04, "usd": 0.014, "calls": 6.0, "width": 3, "several": True},
    "graph": {"skill": 0.86, "loss": 0.035, "usd": 0.019, "calls": 5.0, "width": 2, "several": True},
}
Make = Callable[..., Results]


@pytest.fixture
def make_results() -> Make:
    """Makes results: systems, tasks, samples, and an unpriced system if asked for."""
    return make


def make(tasks: int = 200, samples: int = 1, unpriced: str = "", seed: int = 1) -> Results:
    """Plausible results of five systems."""
    chance = random.Random(seed)
    items = []
    for number in range(tasks):
        axis, level = AXES[number % 5], LEVELS[number // 5 % 4]
        hard = chance.gauss(0, 0.12)
        for name, trait in SYSTEMS.items():
            for sample in range(samples):
                key = Key(name, f"masbench/{axis}-{level}-test-s1-{number}", sample)
                items.append(_item(chance, key, trait, axis, level, hard, name == unpriced))
    header = {
        "title": "Five systems on MASBENCH",
        "sets": [{"name": f"masbench/{axis}", "limit": tasks // 5, "seed": 1} for axis in AXES],
        "systems": [
            {
                "name": name,
                "strategy": {"name": name.split("+")[0]},
                "model": "orchestrator",
                "only": [],
                "offer": [],
                "roles": {},
                "sampling": None,
                "eager": False,
                "summary": "simulated",
            }
            for name in SYSTEMS
        ],
        "samples": samples,
        "seed": 1,
        "budget": {"rounds": 12, "usd": 0.5, "seconds": 60.0},
        "grader": "",
        "pool": "9bcd17e1c59e12d1",
        "pools": dict.fromkeys(SYSTEMS, "9bcd17e1c59e12d1"),
        "tasks": tasks,
        "prices": "2026-11-01",
        "started": "2026-11-21T10:00:00+00:00",
        "versions": {"concertino": "0.1.0"},
    }
    return Results(header, items, (), ("results.jsonl",))


def _item(
    chance: random.Random, key: Key, trait: dict[str, Any], axis: str, level: int, hard: float, unpriced: bool
) -> Item:
    if chance.random() < 0.005:
        return Item(
            key, "masbench", Verdict.UNPARSABLE, "there is no run", axis=axis, level=level, error="PoolError: no"
        )
    loss = trait["loss"] * (0.6 if axis == "parallel" and trait["several"] else 1.0)
    right = chance.random() < trait["skill"] - loss * (level - 2) - hard
    calls = max(0, round(chance.gauss(trait["calls"], 1.2)))
    statuses: dict[str, int] = {}
    for _ in range(calls):
        status = chance.choices(["OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT"], [88, 5, 5, 2])[0]
        statuses[status] = statuses.get(status, 0) + 1
    failed = calls - statuses.get("OK", 0)
    widths = [min(trait["width"], calls - at) for at in range(0, calls, trait["width"])]
    usd = trait["usd"] * chance.lognormvariate(0, 0.5)
    tokens = round(1e6 * usd / 2)
    members = _members(chance, trait, calls, usd)
    work = sum(sum(use.seconds) for use in members.values() if use.kind != "agent")
    path = work / (1 + 0.4 * (trait["width"] - 1))
    verdict = Verdict.RIGHT if right else Verdict.UNPARSABLE if chance.random() < 0.1 else Verdict.WRONG
    reason = {"right": "all answers are right", "wrong": "17 is not 4", "unparsable": "no \\boxed{} was found"}
    return Item(
        key,
        "masbench",
        verdict,
        reason[verdict.value],
        float(right),
        {},
        () if verdict == "unparsable" else ("4",),
        axis,
        level,
        "test",
        "4",
        "answered",
        "",
        path * chance.uniform(1.0, 1.1),
        path,
        len(widths),
        len(widths),
        int(chance.random() < 0.1 and bool(widths)),
        calls,
        statuses,
        min(failed, 1),
        tuple(widths),
        (1,) * len(widths),
        Usage(calls, float(calls), usd, tokens, tokens // 8, tokens // 3, work, int(unpriced)),
        members,
        pool="9bcd17e1c59e12d1",
        trace=f"results.traces/{key.system}-{key.task.rpartition('-')[2]}.trace.jsonl",
    )


def _members(chance: random.Random, trait: dict[str, Any], calls: int, usd: float) -> dict[str, MemberUse]:
    def use(kind: str, count: int, median: float, cost: float = 0.0) -> MemberUse:
        seconds = tuple(round(median * chance.lognormvariate(0, 0.6), 6) for _ in range(count))
        return MemberUse(kind, count, {"OK": count} if count else {}, Usage(count, 0.0, cost), seconds)

    members = {"lead/small": use("model", 2 + calls // 2, 0.8, usd / 2)}
    tools = [
        "code/python",
        "search/wiki",
        "search/web",
        "calc/evaluate",
        "files/read",
        "sql/query",
        "time/now",
        "units/convert",
        "maps/route",
        "mail/find",
    ]
    for _ in range(calls):
        if trait["several"] and chance.random() < 0.6:
            name, kind = chance.choices(["reason/solve", "reason/critic"], [4, 1])[0], "agent"
            model = chance.choices(["big/sage", "mid/steady"], [1, 2])[0]
            before = members.get(model)
            more = use("model", 1, 2.5 if model == "big/sage" else 1.2, usd / 10)
            members[model] = _sum(before, more) if before else more
        else:
            name, kind = chance.choices(tools, range(len(tools), 0, -1))[0], "tool"
        more = use(kind, 1, 2.0 if kind == "agent" else 0.15)
        members[name] = _sum(members[name], more) if name in members else more
    return members


def _sum(a: MemberUse, b: MemberUse) -> MemberUse:
    return MemberUse(
        a.kind, a.calls + b.calls, {"OK": a.calls + b.calls}, a.usage.plus(b.usage), (*a.seconds, *b.seconds)
    )


# -- a browser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium."""
    yield from headless_chromium(tmp_path_factory.mktemp("profile"))
