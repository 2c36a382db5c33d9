"""A run, or the tail of one, shown live.

A view gets every record in order, and a `tick` ten times a second to move what moves. A view that fails is
dropped and the run continues. Ctrl-C cancels the run, waits until all running calls have ended, and raises
`Interrupted`; the trace and the board then hold all that was done.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import click

from concertino.traces.board import Board

from .failures import Interrupted
from .log import replaces_view
from .plain import PlainView

if TYPE_CHECKING:
    from concertino.core.events import Event
    from concertino.runs.run import Run

TICK = 0.1
"""Seconds between two ticks."""

logger = logging.getLogger("concertino")


class View(Protocol):
    """Whatever shows a board."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the terminal as it was found."""

    def show(self, record: Mapping[str, Any]) -> None:
        """Show a record that the board has just taken."""

    def tick(self) -> None:
        """Move what moves."""


class EventView(PlainView):
    """Each record as one line of JSON on stdout."""

    def show(self, record: Mapping[str, Any]) -> None:
        """Write the record."""
        # As bytes: a terminal's encoding, or half a character in a model's text, must not end the run.
        click.echo(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"))


class QuietView(PlainView):
    """Nothing at all."""

    def show(self, record: Mapping[str, Any]) -> None:
        """Write nothing."""


def choose_view(board: Board, *, live: bool | None, as_json: bool = False, events: bool = False) -> View:
    """The view for an output: live on a terminal, plain lines elsewhere, nothing with JSON or beside a log."""
    if events:
        return EventView(board)
    if as_json:
        return QuietView(board)
    if live is None and replaces_view():
        return QuietView(board)
    if live is None:
        # Editors and CI offer a terminal that cannot move its cursor and say so as `dumb`.
        live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if not live:
        return PlainView(board)
    from .live import LiveView

    return LiveView(board)


def drive(begin: Callable[[Callable[[Event], None]], Awaitable[Run]], board: Board, view: View) -> Run:
    """Run something that reports events, and show it.

    Args:
        begin: takes a listener for events, and begins the run.

    Raises:
        Interrupted: Ctrl-C.
    """
    show = guarded(view.show)

    def listen(event: Event) -> None:
        record = event.to_json()
        board.apply(record)
        show(record)

    async def watch() -> Run | None:
        task = asyncio.ensure_future(begin(listen))
        tick = guarded(lambda _: view.tick())
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=TICK)
                tick({})
        # `asyncio.run` turns the first Ctrl-C into a cancellation of this coroutine.
        except asyncio.CancelledError:
            task.cancel()
            # Waited for: the calls end, and the trace gets their last records, before the loop closes.
            await asyncio.wait({task})
            return None
        return task.result()

    with view:
        run = asyncio.run(watch())
    if run is None:
        raise Interrupted("cancelled")
    return run


def guarded(show: Callable[[Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
    """The same function, switched off after its first failure: a view must not end the run that it shows."""
    failed = False

    def guard(record: Mapping[str, Any]) -> None:
        nonlocal failed
        if failed:
            return
        try:
            show(record)
        # The reader of a pipe (`head`) went away; that is not a fault to report.
        except BrokenPipeError:
            failed = True
        except Exception:
            failed = True
            logger.exception("the view failed and is switched off; the run continues")

    return guard
