"""Checks by guards, as a line and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output import one_line, write_table

if TYPE_CHECKING:
    from concertino.traces.board import Board
    from concertino.traces.guard_checks import GuardCheck

CHECK_COLOURS = {"replaced": "yellow", "denied": "red", "ended the run": "red"}
_REASON = 200


def tell_check(check: GuardCheck) -> str:
    """`small_sums: call 1.2 denied in 0.01 s: at most 100`."""
    recorded = " (recorded)" if check.replayed else ""
    failed = f" ({check.status})" if check.status != "OK" else ""
    reason = f": {one_line(check.reason, _REASON)}" if check.reason else ""
    head = f"{one_line(check.name, 60)}: {one_line(check.subject, 80)} {check.verdict}{failed}{recorded}"
    return f"{head} in {check.seconds:.2f} s{reason}"


def write_checks(board: Board) -> None:
    """Print every check of a run, those that let pass too."""
    rows = [
        (
            check.name,
            check.stage,
            check.subject,
            check.verdict or "running",
            check.status or "-",
            f"{check.seconds:.2f}",
            one_line(check.reason, _REASON) or "-",
        )
        for check in board.checks.values()
    ]
    write_table(("GUARD", "STAGE", "ABOUT", "VERDICT", "STATUS", "SECONDS", "REASON"), rows, CHECK_COLOURS)
