"""Traces with wrong contents and right checksums, as a stranger could write them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino.core.approval import ApprovalRequest
from concertino.core.attachment import File
from concertino.core.events import ApprovalAsked, Attached, Decided, Event, Retried, Stalled
from concertino.traces.journal_line import encode_json, frame

HEADER = {"t": "header", "v": 1, "format": "concertino-trace", "run": "r"}
WRONG: list[Any] = [
    None,
    True,
    -1,
    3,
    10**30,
    1e300,
    -1e300,
    0.5,
    "",
    "x",
    "\x1b]0;x\x07",
    "x" * 100_000,
    [],
    [[]],
    [1],
    {},
    {"x": 1},
    {"id": []},
    [{"name": 3}],
]


def write_trace(path: Path, records: list[dict[str, Any]], header: dict[str, Any] | None = None) -> Path:
    """A trace file with these records, each line with its right checksum and number."""
    lines = [frame(encode_json(header or HEADER), 0)]
    lines += [frame(encode_json({k: v for k, v in r.items() if k != "n"}), n) for n, r in enumerate(records, 1)]
    path.write_bytes(b"".join(lines))
    return path


def write_raw(path: Path, *bodies: bytes) -> Path:
    """A trace file whose lines after the header are these JSON texts."""
    lines = [frame(encode_json(HEADER), 0), *(frame(body, n) for n, body in enumerate(bodies, 1))]
    path.write_bytes(b"".join(lines))
    return path


def every_kind(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records of a run, and one of each kind that it has not."""
    more: list[Event] = [
        Retried("1.1", "add", 1, "timeout", "slow", 0.5),
        Stalled("1.1", "add", 0.5, "x.py:3"),
        Attached("", [File(b"x", name="x.txt", media_type="text/plain")]),
        ApprovalAsked(ApprovalRequest("1.1", "add", {"a": 1}, "Adds.", "r", "q"), 0.5),
        Decided("1.1", True, None, "", 0.5, 0.5),
    ]
    return [*records[:-1], *(event.to_json() for event in more), records[-1]]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the fields and items of a value are."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def wronged(records: list[dict[str, Any]], seed: int) -> tuple[str, list[dict[str, Any]]]:
    """The same records with one field of another type, or without it. Says which."""
    draw = random.Random(seed)
    changed = copy.deepcopy(records)
    number = draw.randrange(len(changed))
    *way, last = draw.choice([place for place in places(changed[number]) if place != ("t",)])
    target: Any = changed[number]
    for step in way:
        target = target[step]
    before = target[last]
    if draw.random() < 0.2:
        del target[last]
        how = "gone"
    else:
        target[last] = draw.choice([each for each in WRONG if type(each) is not type(before)])
        how = repr(target[last])[:40]
    return f"line {number + 2}: {'.'.join(map(str, (*way, last)))} is {how}", changed
