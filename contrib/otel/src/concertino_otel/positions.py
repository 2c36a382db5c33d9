"""Positions: how far the receivers of a trace's spans have acknowledged it, in a small file beside the trace.

The trace is the queue: what is behind the position is read from it again. So nothing is lost while a receiver is away
or when a process dies, and no second copy of a prompt lies anywhere.

Invariant: a position is written only after the receiver has taken everything up to it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino.core.private_files import write_private
from concertino.core.regular_file import open_regular
from concertino.traces.store import POSITIONS

_MOST = 64 << 10


@dataclass(frozen=True, slots=True)
class Position:
    """How far a receiver is.

    Attributes:
        record: number of the last record whose spans it has taken.
        over: whether it has the whole run.
    """

    record: int = 0
    over: bool = False


def position_file(trace: Path) -> Path:
    """The file of a trace's positions."""
    return trace.with_name(trace.name + POSITIONS)


def read_position(trace: Path, receiver: str) -> Position:
    """How far a receiver is; at the beginning, where nothing is known."""
    found = _read(position_file(trace)).get(receiver)
    if not isinstance(found, dict):
        return Position()
    record, over = found.get("record"), found.get("over")
    return Position(record, over is True) if type(record) is int and record >= 0 else Position()


def write_position(trace: Path, receiver: str, position: Position) -> None:
    """Keep a position.

    Raises:
        OSError: it cannot be written.
    """
    file = position_file(trace)
    data = {**_read(file), receiver: {"record": position.record, "over": position.over}}
    write_private(file, json.dumps(data).encode())


def waiting(folder: Path, receiver: str) -> list[Path]:
    """Traces of a folder whose spans a receiver was promised and does not have yet."""
    found = []
    for file in sorted(folder.glob(f"*{POSITIONS}")):
        trace = file.with_name(file.name.removesuffix(POSITIONS))
        if receiver in _read(file) and not read_position(trace, receiver).over and trace.is_file():
            found.append(trace)
    return found


def _read(file: Path) -> dict[str, Any]:
    try:
        with open_regular(file) as opened:  # a pipe of that name would make it wait
            data = json.loads(opened.read(_MOST))
    except (OSError, ValueError):  # none, or a damaged one: then everything is sent again, which harms nobody
        return {}
    return data if isinstance(data, dict) else {}
