"""Stopping in good order: the first signal asks, the second ends at once.

    with GracefulStop(tell) as stop:
        while not stop.asked:
            step()
    # write a checkpoint, say how to resume

The invariant: after the block, signals do what they did before it. Outside of the main thread nothing is caught, since
Python allows it there only; `ask` then still works.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class GracefulStop:
    """Whether somebody wants the training to end.

    Args:
        tell: is told, in a sentence, when a signal comes.

    Attributes:
        asked: somebody does.
        reason: who or what.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self.asked = False
        self.reason = ""
        self._tell = tell
        self._before: dict[int, Any] = {}

    def ask(self, reason: str) -> None:
        """Ask for the end behind the step under way; the first reason is kept."""
        if not self.asked:
            self.asked, self.reason = True, reason

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._caught)
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()

    def _caught(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self.asked:
            raise KeyboardInterrupt(f"a second signal ({name})")
        self.ask(name)
        if self._tell is not None:
            self._tell(f"{name}: finishing the step and writing a checkpoint; a second signal ends at once")
