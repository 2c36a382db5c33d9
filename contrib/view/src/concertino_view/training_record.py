"""What a training wrote beside a trace: the reward of its rollout, its group, and the advantage of its turns.

`concertino train rl` writes traces, `rewards.jsonl` and `drift.jsonl` into one folder for each step. Invariants:
without these files, or a line for this run, there is nothing to show and no error; a line that cannot be read is left
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino.traces.sink import SUFFIX

from .shown_texts import ShownTexts

NAME, DRIFT = "rewards.jsonl", "drift.jsonl"
MOST_BYTES = 32_000_000
"""Of a larger file, nothing is shown."""
MOST_ROLLOUTS = 64
"""Rollouts of a group that are listed."""


def training_of(trace: Path, texts: ShownTexts) -> dict[str, Any] | None:
    """The reward of a run, its components, the rollouts of its group with the best first, and its rows; None if there
    is nothing on record."""
    name = trace.name.removesuffix(SUFFIX)
    lines = list(_lines(trace.with_name(NAME)))
    own = next((line for line in lines if line["id"] == name), None)
    if own is None:
        return None
    group = [line for line in lines if line.get("group") is not None and line.get("group") == own.get("group")] or [own]
    group.sort(key=lambda line: -_number(line.get("total")))
    place = group.index(own)
    drift = {
        turn: values
        for line in _lines(trace.with_name(DRIFT))
        if line["id"] == name
        for turn, values in _mapping(line.get("turns")).items()
    }
    # This run is among those that are listed.
    listed = group[:MOST_ROLLOUTS] if place < MOST_ROLLOUTS else [*group[: MOST_ROLLOUTS - 1], own]
    return {
        "group": texts.line(own.get("group", "")),
        "of": len(group),
        "components": [[texts.line(key), _number(value)] for key, value in _mapping(own.get("components")).items()],
        "rollouts": [_rollout(line, trace, texts) for line in listed],
        "rows": [_row(row, texts, drift) for row in _rows(own)],
    }


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.stat().st_size > MOST_BYTES:
            return
        data = path.read_bytes()
    except OSError:
        return
    for text in data.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("id"), str):
            yield line


def _rollout(line: Mapping[str, Any], trace: Path, texts: ShownTexts) -> list[Any]:
    """Its id, reward, advantage, why it is left out, whether it is this one, and whether its trace is there."""
    rows = _rows(line)
    name = line["id"]
    # One path component, so that no line makes this look elsewhere.
    there = Path(name).name == name and trace.with_name(name + SUFFIX).is_file()
    advantage = _number(rows[0].get("advantage")) if rows else None
    left_out = texts.line(rows[0].get("left_out", "")) if rows else ""
    this = name == trace.name.removesuffix(SUFFIX)
    return [texts.line(name), _number(line.get("total")), advantage, left_out, this, there]


def _row(row: Mapping[str, Any], texts: ShownTexts, drift: Mapping[str, Any]) -> list[Any]:
    """The numbers of its turns, its advantage, why it is left out, and of each turn the drift of its tokens."""
    turns = row.get("turns")
    numbers = [turn for turn in turns if type(turn) is int] if isinstance(turns, list) else []
    values = [drift.get(str(number)) for number in numbers]
    drifts = [[_number(value) for value in each] if isinstance(each, list) else [] for each in values]
    return [numbers, _number(row.get("advantage")), texts.line(row.get("left_out", "")), drifts]


def _rows(line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = line.get("rows")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else 0.0
