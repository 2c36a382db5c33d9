"""An event loop on which time is free: when nothing is ready, its clock jumps to the next timer.

A second of `asyncio.sleep` takes no real time and is exact, so schedules can be compared with `==`. When nothing is
ready and no timer is set, everything waits for something that never comes: a deadlock, raised as `Deadlock`.
Threads and processes keep real time and have no place here.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest import mock

from concertino.executor.isolation.stall import WATCHER

T = TypeVar("T")


class Deadlock(Exception):
    """Everything waits and no timer is set."""


class _JumpingSelector(selectors.DefaultSelector):
    loop: VirtualClockLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events and timeout is None:
            raise Deadlock("everything waits and no timer is set")
        if not events and timeout:
            self.loop.now += timeout
        return events


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """Starts at 0 seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        # A timer is due before now + resolution, and that sum must differ from now after years of seconds.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self.now


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on a virtual clock.

    Raises:
        Deadlock: the work waits for what can never happen.
    """
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner, mock.patch.object(WATCHER, "add"):
        return runner.run(work)
