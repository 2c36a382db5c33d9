"""Trials of approval: a run that waits for a person is killed with SIGKILL again and again, and compared in the end.

A trial is a random plan with approvals (`approval_child.py`): rounds, a graph whose calls wait for each other, agents
that pay. First it runs undisturbed, with a handler that decides at once. Then it runs again, and each of its processes
is killed at a random moment or at a random write; decisions are given in random portions, in another process. Used by
the test, and by `benchmarks/approvals.py` at full count.

What must hold: the result is that of the undisturbed run; no call whose result is on record is made again; a call that
may not be repeated is made once at most; nobody is asked again about what is decided; and time between processes, and
time in which a handler decides, is none of the run's budget.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import concertino as ct

CHILD = str(Path(__file__).with_name("approval_child.py"))
BUDGET, LONG = 2.5, 3.0
"""Seconds that each run may take, and how long some of them wait: for a handler, or for a process that goes on."""
MOST_KILLS = 8


class Children:
    """Processes that do jobs, each forked from a warm one."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, **job: Any) -> int:
        """The exit status of one process, negative for a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{CHILD} ended")
        return int(answer)


@contextmanager
def children() -> Iterator[Children]:
    """The warm process."""
    with subprocess.Popen([sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Children(process)
        finally:
            process.terminate()


@dataclass
class Trial:
    """What came of one plan.

    Attributes:
        kills: processes that were killed.
        calls: paid calls, those of models included.
        decided: calls that a person decided about.
        in_doubt: a kill left it open whether a call was made that may not be repeated, so results differ by right.
        wrong: promises that were broken.
    """

    kills: int = 0
    calls: int = 0
    decided: int = 0
    in_doubt: bool = False
    wrong: list[str] = field(default_factory=list)


def trial(work: Children, seed: int) -> Trial:
    """One plan, undisturbed and disturbed."""
    found = Trial()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = _undisturbed(work, seed, folder, found)
        result = _disturbed(work, seed, folder, found)
        lines = _lines(folder / "disturbed.log")
    starts = Counter((kind, call_id) for word, kind, _, call_id in lines if word == "START")
    found.calls = len(starts)
    twice = {call_id: n for (kind, call_id), n in starts.items() if kind == "once" and n > 1}
    found.wrong += [f"{call_id} was made {n} times" for call_id, n in twice.items()]
    keys: dict[str, str] = {}
    for word, _, key, call_id in lines:
        if word == "START" and keys.setdefault(call_id, key) != key:
            found.wrong.append(f"{call_id} was paid under two keys")
    found.in_doubt = any(code == "unknown_outcome" for *_, code in result["observations"])
    if not found.in_doubt:
        found.wrong += [
            f"{what} {result[what]!r}, undisturbed {expected[what]!r}"
            for what in ("stop", "answer", "observations", "usage")
            if result[what] != expected[what]
        ]
    return found


def _undisturbed(work: Children, seed: int, folder: Path, found: Trial) -> dict[str, Any]:
    job = _job(seed, folder, "plain", handler=True, wait=LONG if seed % 20 == 0 else 0.0)
    status = work.do(**job)
    if status:
        raise RuntimeError(f"the undisturbed run of seed {seed} ended with {status}")
    result: dict[str, Any] = json.loads(Path(job["result"]).read_text())
    found.decided = sum(word == "ASK" for word, *_ in _lines(folder / "plain.log"))
    if result["stop"] in ("deadline", "budget"):
        found.wrong.append(f"undisturbed: {result['stop']} {result['detail']}")
    return result


def _disturbed(work: Children, seed: int, folder: Path, found: Trial) -> dict[str, Any]:
    chance = random.Random(seed)
    handler, left_alone = seed % 4 == 0, seed % 20 == 10
    trace, log = folder / "disturbed.trace.jsonl", folder / "disturbed.log"
    waited = False
    for _ in range(100):
        known = _known(trace)
        recorded = {record["id"] for record in known.of_kind("result")} if known else set()
        decided = {record["id"] for record in known.of_kind("decision")} if known else set()
        seconds = known.seconds() if known else 0.0
        pending = list(known.pending()) if known else []
        idle = LONG if pending and left_alone else 0.0
        left_alone = left_alone and not idle
        time.sleep(idle)
        chosen = [name for name in pending if chance.random() < 0.7] or pending[:1]
        job = _job(seed, folder, "disturbed", handler=handler, decisions=chosen)
        job["wait"] = LONG if seed % 20 == 0 and not waited else 0.0
        waited = handler and any(word == "ASK" for word, *_ in _lines(log))
        if found.kills < MOST_KILLS and chance.random() < 0.7:
            at_a_write = chance.random() < 0.6
            job["die_at"] = chance.randrange(1, 40) if at_a_write else 0
            job["kill_after"] = 0.0 if at_a_write else 0.001 + chance.random() * 0.06
        before = len(_lines(log))
        status = work.do(**job)
        found.kills += status == -9
        if status not in (0, -9):
            raise RuntimeError(f"a process of seed {seed} ended with {status}")
        fresh = _lines(log)[before:]
        found.wrong += [f"{c} was made again" for word, _, _, c in fresh if word == "START" and c in recorded]
        found.wrong += [f"{c} was asked about again" for word, _, _, c in fresh if word == "ASK" and c in decided]
        if status == 0:
            result: dict[str, Any] = json.loads(Path(job["result"]).read_text())
            if idle and result["first"] > seconds + LONG * 0.7:
                found.wrong.append(f"went on at {result['first']:.3f} s, left at {seconds:.3f} s")
            if result["stop"] != "suspended":
                return result
    raise RuntimeError(f"the run of seed {seed} does not end")


def _job(seed: int, folder: Path, name: str, **more: Any) -> dict[str, Any]:
    files = {"trace": f"{name}.trace.jsonl", "log": f"{name}.log", "result": f"{name}.json"}
    rest = {"handler": False, "decisions": [], "seconds": BUDGET, "wait": 0.0, "die_at": 0, "kill_after": 0.0}
    return {"seed": seed, **{what: str(folder / file) for what, file in files.items()}, **rest, **more}


def _known(trace: Path) -> ct.Trace | None:
    begun = trace.exists() and len(trace.read_bytes().splitlines()) > 1
    return ct.Trace.load(trace) if begun else None


def _lines(log: Path) -> list[tuple[str, str, str, str]]:
    if not log.exists():
        return []
    lines = [line.split(" ") for line in log.read_text().splitlines()]
    return [(line[0], line[1], line[2], line[3]) for line in lines if len(line) == 4]
