"""A run, or the tail of one, shown live.

A view gets every record in order, and a `tick` ten times a second to move what moves. A view that fails is
dropped and the run continues. Ctrl-C cancels the run, waits until all running calls have ended, and raises
`Interrupted`; the trace and the board then hold all that was done.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from concertino.traces.board import Board

from .failures import Interrupted, OutputLost
from .log import replaces_view
from .plain import PlainView
from .terminal import say_json
from .written import AnswerPrinter

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
        say_json(record)


class QuietView(PlainView):
    """Nothing at all."""

    def show(self, record: Mapping[str, Any]) -> None:
        """Write nothing."""


def choose_view(
    board: Board,
    *,
    live: bool | None,
    as_json: bool = False,
    events: bool = False,
    quiet: bool = False,
    answer: AnswerPrinter | None = None,
) -> View:
    """The view for an output: live on a terminal, plain lines elsewhere, nothing with JSON or beside a log.

    Args:
        quiet: nothing but the answer.
        answer: writes the answer as it comes, where the view does not show it itself.
    """
    if events:
        return EventView(board)
    if as_json:
        return QuietView(board)
    if quiet or (live is None and replaces_view()):
        return PlainView(board, answer, lines=False)
    if live is None:
        # Editors and CI offer a terminal that cannot move its cursor and say so as `dumb`.
        live = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if not live:
        return PlainView(board, answer)
    from .live import LiveView

    return LiveView(board)


def drive(begin: Callable[[Callable[[Event], None]], Awaitable[Run]], board: Board, view: View) -> Run:
    """Run something that reports events, and show it.

    Args:
        begin: takes a listener for events, and begins the run.

    Raises:
        Interrupted: Ctrl-C.
        OutputLost: the view could not write to stdout; the run has ended all the same.
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
    if show.lost is not None:
        raise show.lost
    return run


class Guarded:
    """A view's function, switched off after its first failure: a view must not end the run that it shows.

    Attributes:
        lost: the failure to write to stdout, if that was it.
    """

    def __init__(self, show: Callable[[Mapping[str, Any]], None]) -> None:
        self._show = show
        self._failed = False
        self.lost: OutputLost | None = None

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Show a record."""
        if self._failed:
            return
        try:
            self._show(record)
        except OutputLost as error:
            self._failed, self.lost = True, error
        # The reader of a pipe (`head`) went away; that is not a fault to report.
        except BrokenPipeError:
            self._failed = True
        except Exception:
            self._failed = True
            logger.exception("the view failed and is switched off; the run continues")


def guarded(show: Callable[[Mapping[str, Any]], None]) -> Guarded:
    """The same function, switched off after its first failure."""
    return Guarded(show)
