"""The graph of a run: its calls by rounds, with what each waits for; as SVG for a notebook, as text for a terminal.

Rounds stand below each other. In a round, calls of one level of its plan stand below each other, and levels beside each
other. A dashed line orders two calls without passing data, as in `core.plan_drawing`.

Invariants: a status is said in words and in a colour; texts of models are cut, escaped and never syntax of the drawing;
a drawing has at most `MOST_ROUNDS` rounds, and what is left out is counted; secrets are hidden.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from concertino.core.display_text import counted, one_line, show_arguments, show_cost
from concertino.core.errors import PlanError
from concertino.core.html import COLOURS, escaped, page, show
from concertino.core.plan import Call, Plan, parse_references
from concertino.core.plan_drawing import Edge, plan_edges
from concertino.core.redaction import DisplayRedactor

from .board import Board, Chapter, Row

MOST_ROUNDS = 30
_LAST = 10
"""Of the rounds that are drawn, so many are the last ones of a long run."""
_MOST_LEVELS, _MOST_IN_LEVEL, _IN_LINE = 16, 8, 4
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 176, 42, 40, 10, 8
_SEARCHED = 4_000
"""Characters of a text that are looked through for secrets."""
_COLUMNS = 24
"""Columns of a label that fit into a box."""


@dataclass(frozen=True)
class Box:
    """A call in the drawing, or what stands for several that were left out.

    Attributes:
        row: None for the latter.
        counts: how many were left out, by status.
    """

    row: Row | None
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Layer:
    """A round: its boxes level by level, and the edges between calls, by their ids in the run."""

    chapter: Chapter
    levels: list[list[Box]]
    edges: list[Edge]


class RunGraph:
    """What is drawn of a run.

    Args:
        board: what is known of it.
        plans: by round; a round without one is drawn without edges.
    """

    def __init__(self, board: Board, plans: Mapping[int, Plan]) -> None:
        self.board = board
        self.redactor = DisplayRedactor(_SEARCHED)
        chapters = board.chapters
        self.left_out = max(0, len(chapters) - MOST_ROUNDS)
        if self.left_out:
            chapters = chapters[: MOST_ROUNDS - _LAST] + chapters[-_LAST:]
        self.layers = [_layer(chapter, plans.get(chapter.number)) for chapter in chapters]

    def to_html(self) -> str:
        """For a notebook."""
        return page([_svg(self)])

    def to_text(self) -> str:
        """For a terminal: a line per call."""
        board = self.board
        head = one_line(f"run {board.run_id} {_ending(board)}", 200)
        answer = [one_line(line, 168) for line in self.answer_line()]
        question = one_line(self.redactor.text(board.question), 160)
        return "\n".join([head, f"question: {question}", *self._lines(), *answer])

    def answer_line(self) -> list[str]:
        """The answer, if there is one."""
        answer = None if self.board.end is None else self.board.end.get("answer")
        return [] if answer is None else [f"answer: {one_line(self.redactor.text(answer), 1000)}"]

    def show(self) -> None:
        """Below the cell of a notebook, or as text on stdout."""
        show(self.to_html(), self.to_text())

    def _lines(self) -> Iterator[str]:
        rows = [row for layer in self.layers for row in layer.chapter.rows]
        widths = [max((len(part(row)) for row in rows), default=0) for part in (_id, _name, _state)]
        for place, layer in enumerate(self.layers):
            if self.left_out and place == MOST_ROUNDS - _LAST:
                yield f"({left_out(self.left_out)})"
            yield f"round {layer.chapter.number}"
            before: dict[str, list[str]] = {}
            for edge in layer.edges:
                before.setdefault(edge.target, []).append(edge.source)
            for row in layer.chapter.rows:
                parts = [f"{part(row):<{width}}" for part, width in zip((_id, _name, _state), widths, strict=True)]
                seconds = f"{row.seconds(row.started):7.2f} s" if row.state == "done" else " " * 9
                after = f"  after {', '.join(before[row.id])}" if row.id in before else ""
                inside = f"  {len(row.rows)} inside" if row.rows else ""
                why = f"  {one_line(self.redactor.text(row.reason), 100)}" if row.reason else ""
                yield f"  {'  '.join(parts)}{seconds}{after}{inside}{why}".rstrip()


def plans_of(records: Iterable[Mapping[str, Any]]) -> dict[int, Plan]:
    """The plans of a trace by round. What cannot be read as a graph is left out."""
    found = {}
    for record in records:
        if record["t"] == "plan":
            calls = [Call.from_json(call) for call in record["calls"]]
            # A PlanError is no damage: a text of a model may look like a reference and be none.
            with suppress(PlanError):
                found[record["round"]] = Plan(_with_references(calls))
    return found


def _with_references(calls: list[Call]) -> list[Call]:
    """Calls whose data refers to others; a text of JSON is as the model wrote it, and holds no references."""
    ids = {call.id for call in calls}
    return [
        call if isinstance(call.arguments, str) else replace(call, arguments=parse_references(call.arguments, ids))
        for call in calls
    ]


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _layer(chapter: Chapter, plan: Plan | None) -> Layer:
    rows = {row.id: row for row in chapter.rows}
    prefix = f"{chapter.number}."
    levels = [[call.id for call in chapter.rows]]
    edges: list[Edge] = []
    if plan is not None and {f"{prefix}{call.id}" for call in plan.calls} == rows.keys():
        levels = [[f"{prefix}{call_id}" for call_id in level] for level in plan.levels()]
        edges = [Edge(f"{prefix}{e.source}", f"{prefix}{e.target}", e.data) for e in plan_edges(plan)]
    most = _MOST_IN_LEVEL if len(levels) > 1 else _MOST_IN_LEVEL * 2
    boxes = [_boxes([rows[call_id] for call_id in level], most) for level in levels[:_MOST_LEVELS]]
    if len(levels) > _MOST_LEVELS:
        rest = [rows[call_id] for level in levels[_MOST_LEVELS:] for call_id in level]
        boxes.append([Box(None, Counter(_state(row) for row in rest))])
    return Layer(chapter, boxes, edges)


def _boxes(rows: list[Row], most: int) -> list[Box]:
    shown = rows if len(rows) <= most else rows[: most - 1]
    boxes = [Box(row, {}) for row in shown]
    if len(shown) < len(rows):
        boxes.append(Box(None, Counter(_state(row) for row in rows[len(shown) :])))
    return boxes


def _id(row: Row) -> str:
    return one_line(row.id, 60)


def _name(row: Row) -> str:
    return one_line(row.name, 40)


def _state(row: Row) -> str:
    """The status, or what a call without one does."""
    if row.state == "done":
        return row.status
    return (row.progress if row.state == "waiting" else "") or row.state


def _ending(board: Board) -> str:
    stop = "unfinished" if board.end is None else str(board.end["stop"])
    counts = ", ".join(f"{count} {status}" for status, count in board.statuses().items()) or "none"
    return f"{stop} after {board.seconds:.2f} s; calls: {counts}"


def left_out(rounds: int) -> str:
    """What stands in the place of rounds that are not drawn."""
    return f"{counted(rounds, 'round')} left out"


# -- SVG ---------------------------------------------------------------------------------------------------------------


def _svg(graph: RunGraph) -> str:
    parts: list[str] = []
    y, width = float(_MARGIN), 0.0
    y = _text_box(parts, y, f"question: {one_line(graph.redactor.text(graph.board.question))}")
    for place, layer in enumerate(graph.layers):
        if graph.left_out and place == MOST_ROUNDS - _LAST:
            y = _note(parts, y, left_out(graph.left_out))
        y, reached = _draw_layer(parts, y, layer, graph.redactor)
        width = max(width, reached)
    for line in graph.answer_line():
        y = _text_box(parts, y, line)
    y = _note(parts, y, _ending(graph.board))
    width = max(width, 420.0) + _MARGIN
    title = f"<title>{escaped(f'The calls of run {graph.board.run_id}', 120)}</title>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{y:g}" viewBox="0 0 {width:g} {y:g}"'
    return f'{head} role="img" font-size="12" font-family="inherit" fill="currentColor">{title}{"".join(parts)}</svg>'


def _text_box(parts: list[str], y: float, shown: str) -> float:
    """The question, or the answer."""
    title = f"<title>{escaped(shown, 1000)}</title>"
    parts.append(
        f'<g>{title}<text x="{_MARGIN}" y="{y + 12:g}" font-weight="600">{escaped(_fit(shown, 70))}</text></g>'
    )
    return y + 26


def _note(parts: list[str], y: float, text: str) -> float:
    parts.append(f'<text x="{_MARGIN}" y="{y + 12:g}" opacity="0.75">{escaped(text)}</text>')
    return y + 24


def _draw_layer(parts: list[str], y: float, layer: Layer, redactor: DisplayRedactor) -> tuple[float, float]:
    """Draw a round from `y` on. Gives where the next may begin, and how far it reaches to the right."""
    y = _note(parts, y, f"round {layer.chapter.number}: {counted(len(layer.chapter.rows), 'call')}")
    places = dict(_places(layer, y))
    drawn = (edge for edge in layer.edges if edge.source in places and edge.target in places)
    parts += [_line(places[edge.source], places[edge.target], edge.data) for edge in drawn]
    bottom, right = y, 0.0
    for box, (x, top) in zip(_all(layer), _grid(layer, y), strict=True):
        parts.append(_draw_box(box, x, top, redactor))
        bottom, right = max(bottom, top + _HEIGHT), max(right, x + _WIDTH)
    return bottom + 16, right


def _all(layer: Layer) -> Iterator[Box]:
    return (box for level in layer.levels for box in level)


def _grid(layer: Layer, y: float) -> Iterator[tuple[float, float]]:
    """Where the boxes stand: a column for each level; a round of one level fills lines instead."""
    for number, level in enumerate(layer.levels):
        for place in range(len(level)):
            line, column = divmod(place, _IN_LINE) if len(layer.levels) == 1 else (place, number)
            gap = _GAP_Y if len(layer.levels) == 1 else _GAP_X
            yield _MARGIN + column * (_WIDTH + gap), y + line * (_HEIGHT + _GAP_Y)


def _places(layer: Layer, y: float) -> Iterator[tuple[str, tuple[float, float]]]:
    for box, place in zip(_all(layer), _grid(layer, y), strict=True):
        if box.row is not None:
            yield box.row.id, place


def _line(source: tuple[float, float], target: tuple[float, float], data: bool) -> str:
    """From the right side of one box to the left side of another, with a point at its end."""
    x1, y1 = source[0] + _WIDTH, source[1] + _HEIGHT / 2
    x2, y2 = target[0] - 6, target[1] + _HEIGHT / 2
    bend = max(16.0, (x2 - x1) / 2)
    path = f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    dashes = "" if data else ' stroke-dasharray="4 3"'
    tip = f'<path d="M{x2:g} {y2 - 4:g}l6 4l-6 4z" opacity="0.75"/>'
    return f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.6"{dashes}/>{tip}'


def _draw_box(box: Box, x: float, y: float, redactor: DisplayRedactor) -> str:
    row = None if box.row is None else box.row.hidden(redactor)
    if row is None:
        number = sum(box.counts.values())
        below = ", ".join(f"{count} {state}" for state, count in box.counts.items())
        return _frame(x, y, COLOURS["waiting"], f"and {number:,} more", below, below)
    state = _state(row)
    seconds = f" {row.seconds(row.started):.2f} s" if row.state == "done" else ""
    inside = f", {len(row.rows)} inside" if row.rows else ""
    colour = COLOURS.get(state, COLOURS["waiting"])
    return _frame(x, y, colour, f"{_id(row)} {_name(row)}", f"{state}{seconds}{inside}", _hover(row))


def _hover(row: Row) -> str:
    """What is shown of a call when the mouse is over it."""
    told = [f"{_id(row)} {_name(row)}: {_state(row)}"]
    told += [show_arguments(row.arguments, 300)] if row.arguments is not None else []
    told += [one_line(row.reason, 300)] if row.reason else []
    told += [one_line(row.content, 300)] if row.content is not None else []
    told += [show_cost(row.usage)] if row.usage else []
    return "\n".join(told)


def _frame(x: float, y: float, colour: str, first: str, second: str, hover: str) -> str:
    outline = f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="none" stroke="{colour}"/>'
    # Without a fill, only the line of a box would answer to the mouse.
    field = f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" fill="{colour}" fill-opacity="0.07"/>'
    bar = f'<rect x="{x:g}" y="{y:g}" width="5" height="{_HEIGHT}" rx="2" fill="{colour}"/>'
    text = f'<text x="{x + 12:g}" y="{y + 17:g}" font-weight="600">{escaped(_fit(first, _COLUMNS))}</text>'
    text += f'<text x="{x + 12:g}" y="{y + 33:g}">{escaped(_fit(second, _COLUMNS))}</text>'
    return f"<g><title>{escaped(hover)}</title>{field}{outline}{bar}{text}</g>"


def _fit(text: str, columns: int) -> str:
    """As much of a text as fits into so many columns; letters of East Asia take two."""
    flat, used = one_line(text, 4 * columns), 0
    for place, char in enumerate(flat):
        used += 2 if unicodedata.east_asian_width(char) in "FW" else 1
        if used > columns:
            return f"{flat[: max(0, place - 1)]}…"
    return flat
