"""An active run: its caller waits for it, or cancels it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from concertino.core.errors import TraceError

from .loop import RunLoop
from .run import OutputT, Run
from .setup import RESUMABLE

if TYPE_CHECKING:
    from .session import SessionHold

logger = logging.getLogger("concertino")


_LOOK = 0.25
"""Seconds between looks for a request to cancel."""


class RunHandle(Generic[OutputT]):
    """An active run. Await it for the `Run`."""

    def __init__(self, drive: RunLoop) -> None:
        self.id = drive.begun.run_id
        # Dropped when the run is over: a handle that is kept holds the run itself, and nothing of its work.
        self._drive: RunLoop | None = drive
        self._waiters: list[asyncio.Future[None]] = []
        self._run: Run[OutputT] | None = None
        self.task = asyncio.ensure_future(drive.run())
        self.task.add_done_callback(self._over)
        self._timer: asyncio.TimerHandle | None = None
        if drive.sink is not None:
            self._request = _request_beside(drive.sink.path)
            self._timer = self.task.get_loop().call_later(_LOOK, self._look)

    def _over(self, task: asyncio.Task[Run[OutputT]]) -> None:
        for waiter in self._waiters:  # they wake up after this
            if not waiter.done():
                waiter.set_result(None)
        assert self._drive is not None
        # The result of the task is not asked for: an error that nobody waits for must still be logged.
        self._run = self._drive.collect(over=True)
        if self._drive.scope is None and self._drive.sink is not None:
            self._drive.sink.close()  # cancelled before its first step: no loop closes it
        self._drive = None
        if self._timer is not None:
            self._timer.cancel()
            self._request.unlink(missing_ok=True)

    def _collect(self) -> Run[OutputT]:
        """The run as far as it is now."""
        if self._run is None:
            assert self._drive is not None
            return self._drive.collect()
        return self._run

    def _look(self) -> None:
        """Cancel the run if another process asks for it."""
        if self._request.exists():
            self.task.cancel()
        else:
            self._timer = self.task.get_loop().call_later(_LOOK, self._look)

    def __await__(self) -> Generator[Any, None, Run[OutputT]]:
        return self._wait().__await__()

    async def _wait(self) -> Run[OutputT]:
        if not self.task.done():
            # Not the task itself: a cancelled caller ends the run through `cancel`, which waits until it has ended in
            # order.
            waiter: asyncio.Future[None] = self.task.get_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                await self.cancel()
                raise
        return self.task.result()

    def ends_turn_of(self, hold: SessionHold) -> None:
        """Add the run to a session when it has ended, and give the session back."""

        def end(task: asyncio.Task[Run]) -> None:
            try:
                run = self._collect()
                # A run that can be resumed adds its turn when it has ended in truth.
                if run.stop not in RESUMABLE:
                    hold.add(run)
            except TraceError as error:
                logger.error("%s", error)
            finally:
                hold.release()

        self.task.add_done_callback(end)

    def _repr_html_(self) -> str:
        """For notebooks: the run as far as it is now."""
        return self._collect()._repr_html_()

    async def cancel(self) -> Run[OutputT]:
        """Stop the run and its calls, and return what was done; `stop` is `cancelled`."""
        if not self.task.done():
            self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait({self.task})
        return self._collect()


def ask_to_cancel(trace: Path) -> None:
    """Ask the process that runs a run to cancel it; it looks a few times a second."""
    _request_beside(trace).touch()


def forget_request(trace: Path) -> None:
    """A request that nobody was there to follow must not cancel the run when it is resumed."""
    _request_beside(trace).unlink(missing_ok=True)


def _request_beside(trace: Path) -> Path:
    return trace.with_name(f"{trace.name}.cancel")
