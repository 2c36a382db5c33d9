"""Plain lines of a run, for logs: one line per record that matters, on stderr.

[  0.41 s] round 1: 4 calls: solve, solve, solve, solve
[  0.41 s] 1.1 solve PARSE_ERR 0.00 s invalid_arguments: /model: expected one of …
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from concertino.traces.board import Board, Row

from .guard_checks import tell_check
from .output import counted, one_line, show_arguments, show_cost
from .terminal import say
from .written import AnswerPrinter


class PlainView:
    """Writes lines while a board changes; same use as the live view.

    Args:
        answer: writes the answer as it comes; None for not before it is complete.
        lines: whether lines are written.
    """

    def __init__(self, board: Board, answer: AnswerPrinter | None = None, *, lines: bool = True) -> None:
        self._board = board
        self._answer = answer
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the line of an answer."""
        if self._answer is not None:
            self._answer.end()

    def tick(self) -> None:
        """Nothing moves."""

    def show(self, record: Mapping[str, Any]) -> None:
        """Write a line about a record that the board has just taken, if it matters."""
        if record["t"] == "text":
            if self._answer is not None:
                self._answer.show(record)
            return
        line = self._line(record) if self._lines else ""
        if line:
            if self._answer is not None:
                self._answer.end()
            at = 0.0 if record["t"] == "run" else self._board.now()
            say(f"[{at:6.2f} s] {line}", error=True)

    def _line(self, record: Mapping[str, Any]) -> str:
        board = self._board
        match record["t"]:
            case "run":
                return f"run {one_line(board.run_id)}: {one_line(board.question, 160)}"
            case "reply" if self._answer is None or not self._answer.shows(record["id"]):
                thought = one_line(board.thought, 160)
                return f"{one_line(record['role'])}: {thought}" if thought else ""
            case "plan":
                names = [one_line(call["name"], 40) for call in record["calls"]]
                return f"round {record['round']}: {counted(len(names), 'call')}: {', '.join(names)}"
            case "result" if (check := board.checks.get(record["id"])) is not None:
                # Quiet: of a guard that lets pass, the summary says so.
                return "" if check.verdict == "passed" else f"guard {tell_check(check)}"
            case "result" if not record.get("parent"):
                return self._result(record)
            case "retry":
                why = one_line(record["message"], 120)
                return f"{_called(record)} again in {record['delay']:g} s ({one_line(record['failure'])}): {why}"
            case "stall":
                return f"{_called(record)} blocked the event loop {record['seconds']:g} s: {one_line(record['where'])}"
            case "end":
                detail = one_line(record["detail"], 200)
                return f"end: {record['stop']}{f': {detail}' if detail else ''}"
        return ""

    def _result(self, record: Mapping[str, Any]) -> str:
        row = next((row for row in self._board.rows() if row.id == record["id"]), None)
        if row is None:  # the orchestrator's model did not answer
            row = Row(record["id"], record["name"], "model", None, "done", record["status"])
            row.started, row.ended, row.error = record["started"], record["ended"], record.get("error", {})
        replayed = " (recorded)" if row.replayed else ""
        head = f"{row.id} {one_line(row.name, 40)} {row.status}{replayed} {row.seconds(0):.2f} s {show_cost(row.usage)}"
        return f"{head} {one_line(row.reason, 200) if row.reason else show_arguments(row.arguments, 80)}"


def _called(record: Mapping[str, Any]) -> str:
    return f"{one_line(record['id'], 40)} {one_line(record['name'], 40)}"
