"""Two runs compared: where they first differ, and what else differs.

Runs are aligned by what was called, not by ids or times: round by round, a call is the same in both if member,
arguments and the calls before it are the same. Invariant: two runs with the same question, calls, results and answer
have no difference, however long they took and in whatever order the calls of a round ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .run_file import RunFile
from .run_fold import Item

MOST = 500
"""Differences that are listed; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        where: `question`, `round 2`, `end`.
        what: in what they differ: `question`, `setup`, `call`, `status`, `error`, `result`, `inside`, `answer`, `stop`.
        a, b: what each run has there; empty if it has nothing.
        items: the indexes of the items, -1 where a run has none.
    """

    where: str
    what: str
    a: str
    b: str
    items: tuple[int, int] = (-1, -1)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"where": self.where, "what": self.what, "a": self.a, "b": self.b, "items": list(self.items)}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is compared of a call."""

    item: Item
    identity: str
    status: str
    error: str
    result: str
    inside: tuple[str, ...]


def differences(a: RunFile, b: RunFile) -> Iterator[Difference]:
    """All differences, in the order of the runs: the first one is where they part."""
    heads = a.patch()["head"], b.patch()["head"]
    if heads[0]["question"] != heads[1]["question"]:
        yield Difference("question", "question", heads[0]["question"], heads[1]["question"])
    rounds = _rounds(a), _rounds(b)
    for number in sorted(rounds[0].keys() | rounds[1].keys()):
        yield from _of_round(number, rounds[0].get(number, []), rounds[1].get(number, []), a)
    for name in ("answer", "stop"):
        if heads[0][name] != heads[1][name]:
            yield Difference("end", name, str(heads[0][name] or ""), str(heads[1][name] or ""))


def comparison(a: RunFile, b: RunFile) -> dict[str, Any]:
    """Two runs and their differences, as plain JSON data."""
    found = [each.to_json() for each in differences(a, b)]
    heads = [{**run.patch()["head"], "critical": []} for run in (a, b)]
    calls = [sum(1 for item in run.fold.items if item.kind not in ("request", "guard")) for run in (a, b)]
    return {"runs": heads, "calls": calls, "differences": found[:MOST], "more": max(0, len(found) - MOST)}


def _of_round(number: int, before: list[_Seen], after: list[_Seen], a: RunFile) -> Iterator[Difference]:
    where = f"round {number}"
    waiting: dict[str, list[_Seen]] = {}
    for seen in after:
        waiting.setdefault(seen.identity, []).append(seen)
    alone: list[_Seen] = []
    for seen in before:
        twins = waiting.get(seen.identity)
        if twins:
            # Of several calls that are the same, one with the same outcome.
            twin = next((each for each in twins if _outcome(each) == _outcome(seen)), twins[0])
            twins.remove(twin)
            yield from _of_call(where, seen, twin)
        else:
            alone.append(seen)
    rest = [seen for seen in after if any(seen is each for each in waiting.get(seen.identity, ()))]
    for place in range(max(len(alone), len(rest))):
        one, other = alone[place : place + 1], rest[place : place + 1]
        yield Difference(where, "call", _named(one), _named(other), (_index(one), _index(other)))


def _of_call(where: str, a: _Seen, b: _Seen) -> Iterator[Difference]:
    items = (a.item.index, b.item.index)
    name = a.item.name
    if a.status != b.status:
        yield Difference(where, "status", f"{name}: {_told(a)}", f"{name}: {_told(b)}", items)
    elif a.error != b.error:
        yield Difference(where, "error", f"{name}: {a.item.error}", f"{name}: {b.item.error}", items)
    elif a.result != b.result:
        yield Difference(where, "result", f"{name}: {a.result[:300]}", f"{name}: {b.result[:300]}", items)
    elif a.inside != b.inside:
        yield Difference(where, "inside", f"{name}: {len(a.inside)} calls", f"{name}: {len(b.inside)} calls", items)


def _outcome(seen: _Seen) -> tuple[str, ...]:
    return (seen.status, seen.error, seen.result, *seen.inside)


def _told(seen: _Seen) -> str:
    return f"{seen.status} {seen.item.error}".strip()


def _named(seen: list[_Seen]) -> str:
    return f"{seen[0].item.name}({seen[0].item.label})" if seen else ""


def _index(seen: list[_Seen]) -> int:
    return seen[0].item.index if seen else -1


def _rounds(run: RunFile) -> dict[int, list[_Seen]]:
    """The orchestrator's own calls by round; checks by guards among them, its requests not."""
    inside: dict[int, list[str]] = {}
    found: dict[int, list[_Seen]] = {}
    identities: dict[int, str] = {}
    top: list[tuple[Item, str]] = []
    for item in run.fold.items:
        if item.kind == "request":
            continue
        if item.parent >= 0:
            inside.setdefault(item.parent, []).append(f"{_identity(run, item)} {item.status}")
            continue
        top.append((item, _identity(run, item)))
        identities[item.index] = top[-1][1]
    for item, own in top:
        before = sorted(identities.get(index, "") for index in item.after)
        error, result = _ended(run, item)
        seen = _Seen(
            item, f"{own} after {before}", item.status, error, result, tuple(sorted(inside.get(item.index, ())))
        )
        found.setdefault(item.round, []).append(seen)
    return found


def _identity(run: RunFile, item: Item) -> str:
    """Member and arguments, whatever the order of their names."""
    arguments: Any = None
    for record in run.records(item):
        if record["t"] == "intent":
            arguments = record.get("arguments")
        elif record["t"] == "plan":
            arguments = next(
                (call["arguments"] for call in record["calls"] if item.id == f"{record['round']}.{call['id']}"), None
            )
    return f"{item.name} {_canonical(arguments)}"


def _ended(run: RunFile, item: Item) -> tuple[str, str]:
    """The code of the error, and the result."""
    last: Mapping[str, Any] = {}
    for record in run.records(item):
        if record["t"] == "result":
            last = record
    return str(last.get("error", {}).get("code", "")), run.fold.texts.text(_canonical(last.get("content")))


def _canonical(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
