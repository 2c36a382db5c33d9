"""A run as HTML for a notebook: question, answer, why it ended, what it used, and a table of its calls.

It is made of a board, so an active run, a finished one and a trace look alike. Long lists and texts are cut, which they
say. Secrets are hidden.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concertino.core.display_text import counted, show_arguments, show_cost, show_money
from concertino.core.events import STOP_REASONS
from concertino.core.html import details, escaped, fitting, lines, page, pill, pretty, row, table
from concertino.core.redaction import DisplayRedactor

from .board import Board, Row

MOST_ROWS = 100
"""Calls in the table."""
_OPEN = 12
"""Up to how many calls the table is unfolded at first."""
_TEXT, _VALUE = 4_000, 600
"""Characters of a question or an answer, and of the arguments and the result of one call."""
_SEARCHED = 4_000
"""Characters of the texts of one call that are looked through for secrets."""
_REFUSALS = 5
"""Checks by guards whose reason is shown."""
_TITLES = ("id", "member", "arguments", "status", "seconds", "cost")
_COLUMNS = {2: "long", 4: "num", 5: "num"}


def run_html(board: Board, path: Path | None = None, output: Any = None) -> str:
    """What a notebook shows of a run.

    Args:
        path: its trace file, if it has one.
        output: its answer as a value of the type that was asked for; None where no type was.
    """
    redactor = DisplayRedactor()
    question = f"<p><b>{lines(redactor.text(board.question), _TEXT)}</b></p>"
    return page([question, _answer(board, output, redactor), _facts(board, path, redactor), _calls(board)])


def _answer(board: Board, output: Any, redactor: DisplayRedactor) -> str:
    answer = None if board.end is None else board.end.get("answer")
    if answer is None:
        return ""
    typed = (
        ""
        if output is None
        else f'<p class="dim">{escaped(type(output).__name__, 80)}</p>{_pre(_shown(output, redactor))}'
    )
    return f'<div class="text">{lines(redactor.text(answer), _TEXT)}</div>{typed}'


def _shown(output: Any, redactor: DisplayRedactor) -> str:
    """A value of anybody's class, which may refuse to be shown."""
    try:
        return lines(redactor.text(repr(output)), _TEXT)
    except Exception as error:
        return escaped(redactor.text(f"its repr() failed: {type(error).__name__}: {error}"), 200)


def _facts(board: Board, path: Path | None, redactor: DisplayRedactor) -> str:
    """Why it ended, and what it used."""
    end = board.end or {}
    stop = str(end.get("stop", "unfinished"))
    detail = f": {escaped(redactor.text(end['detail']), 400)}" if end.get("detail") else ""
    usage = board.usage
    counts = ", ".join(f"{count} {status}" for status, count in board.statuses().items())
    unpriced = f" ({counted(usage.unpriced, 'request')} of unknown price)" if usage.unpriced else ""
    facts = [
        f"<b>{escaped(stop)}</b> ({escaped(STOP_REASONS.get(stop, ''), 120)}){detail}",
        f"{board.seconds:.2f} s",
        f"{show_money(usage.usd)}{unpriced}, {usage.units:g} units",
        f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens",
        f"calls: {counts or 'none'}",
        *([f"checks by guards: {_verdicts(board, redactor)}"] if board.checks else []),
        f"run {escaped(board.run_id, 80)}",
        *([f"trace {escaped(path, 200)}"] if path is not None else []),
    ]
    return f'<p class="dim">{" · ".join(facts)}</p>'


def _verdicts(board: Board, redactor: DisplayRedactor) -> str:
    """How often guards gave each verdict, and why they did not let pass."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in board.verdicts().items())
    refused = [check for check in board.checks.values() if check.verdict in ("denied", "ended the run")]
    why = [f"{check.name}, {check.subject}: {check.reason}" for check in refused[:_REFUSALS]]
    return counts + (f" ({'; '.join(escaped(redactor.text(each), 240) for each in why)})" if why else "")


def _calls(board: Board) -> str:
    total = sum(1 for _ in _walk(board))
    redactor = DisplayRedactor(_SEARCHED)
    if not total:
        return ""
    kept = fitting((_row(depth, call.hidden(redactor)) for depth, call in _walk(board)), MOST_ROWS)
    left_out = f'<p class="dim">and {counted(total - len(kept), "more call")}</p>' if len(kept) < total else ""
    what = f"{counted(total, 'call')} in {counted(len(board.chapters), 'round')}"
    inside = table(_TITLES, kept, _COLUMNS) + left_out
    return details(what, inside, opened=total <= _OPEN)


def _walk(board: Board) -> Iterator[tuple[int, Row]]:
    """All calls in order, those inside an agent below it."""

    def below(rows: list[Row], depth: int) -> Iterator[tuple[int, Row]]:
        for each in rows:
            yield depth, each
            yield from below(each.rows, depth + 1)

    return below(list(board.rows()), 0)


def _row(depth: int, call: Row) -> str:
    done = call.state == "done"
    arguments = "" if call.arguments is None else escaped(show_arguments(call.arguments, 120), 120)
    found = _found(call)
    inside = f"{_pre(pretty(call.arguments, _VALUE))}{found}" if call.arguments is not None else found
    status = call.status if done else call.state
    notes = [f"{call.retries} repeated"] if call.retries else []
    notes += [escaped(call.progress, 60)] if call.progress and not done else []
    notes += ["recorded"] if call.replayed else []
    return row(
        [
            escaped(call.id, 60),
            f"{'&nbsp;' * 4 * min(depth, 8)}{escaped(call.name, 80)}",
            details(arguments or "…", inside) if inside else arguments,
            f"{pill(status)}{''.join(f' <span class=dim>{note}</span>' for note in notes)}",
            f"{call.seconds(call.started):.2f}" if done else "",
            show_cost(call.usage) if done else "",
        ],
        _COLUMNS,
    )


def _found(call: Row) -> str:
    """What a call gave, or why it failed."""
    content = call.content
    if call.kind == "model" and isinstance(content, dict):
        content = content.get("text", content)
    failed = f"<p>{escaped(call.reason, 400)}</p>" if call.reason else ""
    return failed + ("" if content is None else _pre(pretty(content, _VALUE)))


def _pre(inside: str) -> str:
    return f"<pre>{inside}</pre>"
