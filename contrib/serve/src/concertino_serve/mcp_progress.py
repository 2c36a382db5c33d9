"""How far a call is, for the MCP client that waits for it.

Invariants: the number only grows. What comes faster than the client reads it is left out; nothing waits for a client.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from concertino.core.events import CallEnded, CallStarted, Event, Progressed

_OF_MODELS = ("model", "guard")


@dataclass(frozen=True)
class Progress:
    """Where a call is.

    Attributes:
        done, total: in units of the call's own choice, or steps; `total` is None where it is not known.
    """

    done: float
    total: float | None
    message: str


class ProgressWatch:
    """Watches the events of a run.

    Args:
        by_steps: what it calls counts, as for a question and an agent. Without, what the member itself reports.
    """

    def __init__(self, *, by_steps: bool) -> None:
        self._by_steps = by_steps
        self._done = 0.0
        self._latest: Progress | None = None
        self._changed = asyncio.Event()

    def hear(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, Progressed) and not self._by_steps:
            if event.done > self._done:
                self._tell(event.done, event.total, event.message)
        elif self._by_steps and (said := _said(event)):
            self._tell(self._done + 1, None, said)

    async def next(self) -> Progress:
        """The newest that was not taken yet, as soon as there is one."""
        await self._changed.wait()
        self._changed.clear()
        assert self._latest is not None
        return self._latest

    def _tell(self, done: float, total: float | None, message: str) -> None:
        self._done = done
        self._latest = Progress(done, total, message)
        self._changed.set()


def _said(event: Event) -> str:
    if isinstance(event, CallStarted) and event.kind not in _OF_MODELS:
        return f"{event.name} began"
    if isinstance(event, CallEnded):
        return f"{event.observation.name}: {event.observation.status.value}"
    if isinstance(event, Progressed):
        return f"{event.name}: {event.message or f'{event.done:g}'}"
    return ""
