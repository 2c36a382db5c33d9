"""A run as one request sees it: the whole, or the part that the request began.

Invariant: the moments of a part are the same whenever they are read, whatever the run did behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from concertino.traces.journal_lock import is_being_written

from .request_record import RequestRecord
from .run_ledger import RunLedger
from .run_moments import LiveRun, Moment, MomentTail, moments_on_disk
from .run_story import RunStory

HEARTBEAT = 10.0
"""Seconds without news after which a stream sends a sign of life."""
_LOOK = 0.05
"""Seconds between looks at a run of another process."""


@dataclass(eq=False)
class ServedRun:
    """A run, or a part of one, for one request.

    Attributes:
        live: it while it is under way here; None if it is not.
        ledger: tells whether it is under way in another worker.
        part: 0 for what the first request began, then those with which it went on.
        until: the number of the record that ends an earlier part; None for the last part.
    """

    id: str
    trace: Path
    request: RequestRecord
    live: LiveRun | None
    ledger: RunLedger
    part: int = 0
    until: int | None = None

    @property
    def answer_id(self) -> str:
        """The id of what the client gets: the run's own for its first part."""
        return f"{self.id}.{self.part}" if self.part else self.id

    @property
    def over(self) -> bool:
        """Whether it has ended, here or elsewhere."""
        if self.until is not None:
            return True
        return self.live.over if self.live is not None else not self.elsewhere

    @property
    def elsewhere(self) -> bool:
        """Whether another process has it under way, or takes it over from one that has died."""
        return self.live is None and (self.ledger.is_held(self.id) or is_being_written(self.trace))

    async def follow(self, heartbeat: float = HEARTBEAT) -> AsyncIterator[list[Moment]]:
        """Its moments from the beginning; an empty list where nothing happens for a while."""
        told = self.live.follow(heartbeat) if self.live is not None else self._followed(heartbeat)
        async with contextlib.aclosing(told):
            async for news in told:
                mine = self._mine(news)
                yield mine
                if len(mine) < len(news):
                    return

    async def _followed(self, heartbeat: float) -> AsyncGenerator[list[Moment]]:
        """The moments of a run that is not under way here, as they come to its files."""
        tail, quiet = MomentTail(self.trace), 0.0
        with self.ledger.reading(self.id):
            while True:
                going = not self.over  # asked before reading: what was written by then is still given
                if news := tail.news():
                    quiet = 0.0
                    yield news
                if not going:
                    return
                if quiet >= heartbeat:
                    quiet = 0.0
                    yield []
                await asyncio.sleep(_LOOK)
                quiet += _LOOK

    async def moments(self) -> list[Moment]:
        """All of them, once it is over."""
        if self.live is not None:
            if self.until is None:
                await self.live.until_over()
            return self._mine(self.live.moments)
        return [moment async for news in self.follow() for moment in news]

    def so_far(self) -> list[Moment]:
        """Those that there are now."""
        return self._mine(self.live.moments if self.live is not None else moments_on_disk(self.trace))

    def story(self) -> RunStory:
        """What is known of it now."""
        story = RunStory.of(self.request)
        story.take_all(self.so_far())
        return story

    def _mine(self, moments: list[Moment]) -> list[Moment]:
        """Without those of later parts."""
        if self.until is None:
            return list(moments)
        for place, moment in enumerate(moments):
            if isinstance(moment, dict) and moment["n"] > self.until:
                return moments[:place]
        return list(moments)
