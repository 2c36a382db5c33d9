"""An active run: its caller waits for it, or cancels it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Generator
from typing import Any

from concertino.core.errors import TraceError

from .loop import RunLoop
from .run import Run
from .session import SessionHold
from .setup import RESUMABLE

logger = logging.getLogger("concertino")


class RunHandle:
    """An active run. Await it for the `Run`."""

    def __init__(self, drive: RunLoop) -> None:
        self.id = drive.begun.run_id
        self._drive = drive
        self.task = asyncio.ensure_future(drive.run())

    def __await__(self) -> Generator[Any, None, Run]:
        return self._wait().__await__()

    async def _wait(self) -> Run:
        try:
            # Shielded: a cancelled caller ends the run through `cancel`, which waits until it has ended in order.
            return await asyncio.shield(self.task)
        except asyncio.CancelledError:
            if not self.task.done():
                await self.cancel()
            raise

    def ends_turn_of(self, hold: SessionHold) -> None:
        """Add the run to a session when it has ended, and give the session back."""

        def end(task: asyncio.Task[Run]) -> None:
            try:
                run = self._drive.collect()
                # A run that can be resumed adds its turn when it has ended in truth.
                if run.stop not in RESUMABLE:
                    hold.add(run)
            except TraceError as error:
                logger.error("%s", error)
            finally:
                hold.release()

        self.task.add_done_callback(end)

    async def cancel(self) -> Run:
        """Stop the run and its calls, and return what was done; `stop` is `cancelled`."""
        if not self.task.done():
            self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait({self.task})
        if self._drive.scope is None and self._drive.sink is not None:
            self._drive.sink.close()  # cancelled before its first step: no loop closes it
        return self._drive.collect()
