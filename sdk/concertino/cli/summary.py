"""The summary of a run: answer, statuses, cost, time, and where its trace is; on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from concertino.core.events import STOP_REASONS
from concertino.traces.board import Board

from .guard_checks import tell_check
from .output import STATUS_COLOURS, counted, show_money, write_fields
from .terminal import Painted, say

_CHECKS = 12
"""Checks by guards that are listed."""


def write_summary(
    board: Board,
    path: Path | None,
    critical_path: float | None = None,
    *,
    answer: str | None = None,
    shown: bool = False,
    listed: bool = False,
    more: Mapping[str, object] | None = None,
) -> None:
    """Print the result of a run.

    Args:
        path: its trace, if it has one.
        critical_path: seconds of the longest chain of model turns and calls, if it is known.
        answer: as it is to be shown; by default that of the run.
        shown: whether it stands on the terminal already.
        listed: whether the checks by guards do; else those that did not let pass are listed.
        more: further lines.
    """
    end: Mapping[str, object] = board.end or {}
    text = answer if answer is not None else end.get("answer")
    if shown:
        say()
    elif text is not None:
        say(f"\n{text}\n")
    stop = str(end.get("stop", "unfinished"))
    reason = STOP_REASONS.get(stop, "")
    detail = f" ({end['detail']})" if end.get("detail") not in (None, "", reason) else ""
    write_fields(
        {
            "ended": f"{stop}: {reason}{detail}",
            "calls": _calls(board),
            **({"guards": _guards(board, listed)} if board.checks else {}),
            "cost": _cost(board),
            "time": _time(board, critical_path),
            "trace": path or "not kept",
            **(more or {}),
        }
    )


def _calls(board: Board) -> tuple[str | Painted, ...]:
    counts = board.statuses()
    rounds = f"in {counted(len(board.chapters), 'round')}"
    line: list[str | Painted] = [f"{sum(counts.values())} {rounds}{': ' if counts else ''}"]
    for place, (status, count) in enumerate(counts.items()):
        line += [", "] if place else []
        line.append(Painted(f"{count} {status}", STATUS_COLOURS[status]))
    return tuple(line)


def _guards(board: Board, listed: bool) -> str:
    """How many checks there were, and a line for each that did not let pass."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in board.verdicts().items())
    told = [] if listed else [check for check in board.checks.values() if check.verdict not in ("", "passed")]
    lines = [tell_check(check) for check in told[:_CHECKS]]
    lines += [f"and {len(told) - _CHECKS} more; `concertino traces show` has all"] if len(told) > _CHECKS else []
    return "\n".join([f"{counted(len(board.checks), 'check')}: {counts}", *lines])


def _cost(board: Board) -> str:
    usage = board.usage
    unpriced = f"; {counted(usage.unpriced, 'request')} to models of unknown price" if usage.unpriced else ""
    tokens = f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    return f"{show_money(usage.usd)}, {counted(float(usage.units), 'unit')}, {tokens}{unpriced}"


def _time(board: Board, critical_path: float | None) -> str:
    text = f"{board.now():.2f} s"
    if critical_path is not None:
        text += f"; critical path {critical_path:.2f} s"
    return f"{text}; in sequence {board.worked:.2f} s"
