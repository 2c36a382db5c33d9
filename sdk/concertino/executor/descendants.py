"""What an execution began and must not outlive it.

Invariant: when the execution has ended, its calls have an observation, and the tasks of its plugin code were cancelled.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .runtime import Runtime

if TYPE_CHECKING:
    from .execution import Execution


class Descendants:
    """What one execution began and must not outlive it: the calls of an agent, and tasks of plugin code.

    Attributes:
        numbered: the last number that was given to one of its plans or requests.
    """

    __slots__ = ("calls", "numbered", "tasks")

    def __init__(self) -> None:
        self.calls: set[Execution] = set()
        self.tasks: set[asyncio.Future[Any]] = set()
        self.numbered = 0

    def end(self, runtime: Runtime, home: asyncio.AbstractEventLoop) -> None:
        """End them all."""
        for call in list(self.calls):
            call.end_with_agent()
        for task in list(self.tasks):
            if (loop := task.get_loop()) is home:
                task.cancel()
                runtime.leaving(task)
            elif not loop.is_closed():
                # A task of another loop must be cancelled in that loop's own thread.
                loop.call_soon_threadsafe(task.cancel)
