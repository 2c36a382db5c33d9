"""A run as one request sees it: the whole, or the part that the request began.

Invariant: the moments of a part are the same whenever they are read, whatever the run did behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

from concertino.traces.journal_lock import is_being_written

from .request_record import RequestRecord
from .run_moments import LiveRun, Moment, moments_on_disk
from .run_story import RunStory

HEARTBEAT = 10.0
"""Seconds without news after which a stream sends a sign of life."""
_LOOK = 0.2
"""Seconds between looks at a run of another process."""


@dataclass(eq=False)
class ServedRun:
    """A run, or a part of one, for one request.

    Attributes:
        live: it while it is under way here; None if it is not.
        part: 0 for what the first request began, then those with which it went on.
        until: the number of the record that ends an earlier part; None for the last part.
    """

    id: str
    trace: Path
    request: RequestRecord
    live: LiveRun | None
    part: int = 0
    until: int | None = None

    @property
    def answer_id(self) -> str:
        """The id of what the client gets: the run's own for its first part."""
        return f"{self.id}.{self.part}" if self.part else self.id

    @property
    def over(self) -> bool:
        """Whether it is no longer under way here."""
        return self.until is not None or self.live is None or self.live.over

    async def follow(self, heartbeat: float = HEARTBEAT) -> AsyncIterator[list[Moment]]:
        """Its moments from the beginning; an empty list where nothing happens for a while."""
        if self.live is not None:
            async for news in self.live.follow(heartbeat):
                mine = self._mine(news)
                yield mine
                if len(mine) < len(news):
                    return
            return
        while self.until is None:
            if not is_being_written(self.trace):
                break
            await asyncio.sleep(_LOOK)  # another process runs it
            yield []
        yield self._mine(moments_on_disk(self.trace))

    async def moments(self) -> list[Moment]:
        """All of them, once it is over."""
        if self.live is not None:
            if self.until is None:
                await self.live.until_over()
            return self._mine(self.live.moments)
        found: list[Moment] = []
        async for news in replace(self, live=None).follow():
            found = news
        return found

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
