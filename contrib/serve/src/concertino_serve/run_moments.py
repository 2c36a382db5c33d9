"""The moments of a run: records of its trace, and between them the pieces of its answer, in the order of their telling.

Invariant: the moments of a run are the same whenever they are read, live or from disk, up to where it has got.
Whatever is told lies on the disk before. A trace is read when somebody wants to know, and not at each event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

from concertino.core.events import (
    ApprovalAsked,
    CallEnded,
    CallStarted,
    Decided,
    Event,
    Planned,
    RunEnded,
    RunStarted,
    TextDelta,
)
from concertino.traces import TraceTail

from .told_text import ToldTail, ToldText, pieces_told

Moment = dict[str, Any] | str
"""A record of the trace, or a piece of the answer."""
_KINDS = ("run", "plan", "intent", "approval", "decision", "attach", "result", "end")
"""Records that a client is told something of."""
_SHOWN = (RunStarted, Planned, CallStarted, ApprovalAsked, Decided, CallEnded, RunEnded)
"""Their events: at all others there is nothing new to read."""


class LiveRun:
    """A run of this process while it is under way. It is a listener of the run's events.

    Args:
        trace: its trace.
        tells_text: whether the answer is told while it is written.

    Attributes:
        watch: hears every event too, for what is told while it happens and never again.
    """

    def __init__(self, trace: Path, *, tells_text: bool) -> None:
        self.trace = trace
        self.over = False
        self.readers = 0
        self.watch: Callable[[Event], None] | None = None
        self._tells = tells_text
        self._tail = TraceTail(trace)
        self._told = ToldText(trace)
        self._speech = Speech()
        self._last = 0
        self._stale = True  # a run that is resumed has a past
        self._waiting: list[asyncio.Future[bool]] = []
        self._past = list(pieces_told(trace))
        self._moments: list[Moment] = []
        for _, piece in self._past:
            self._speech.continue_with(piece)

    @property
    def moments(self) -> list[Moment]:
        """Those that there are now.

        Raises:
            TraceError: the trace is damaged.
        """
        if self._stale:
            self._catch_up()
        return self._moments

    def hear(self, event: Event) -> None:
        """Take an event of the run."""
        if self.watch is not None:
            self.watch(event)
        if isinstance(event, _SHOWN):
            self._stale = True
            self._wake()
        elif self._tells and isinstance(event, TextDelta) and event.kind == "answer":
            piece = self._speech.more(event.call_id, event.attempt, event.text)
            if piece:
                if self._stale:  # what the trace holds by now comes before the piece
                    self._catch_up()
                self._told.add(self._last, piece)
                self._moments.append(piece)
                self._wake()

    def _catch_up(self) -> None:
        """Take what is new in the trace."""
        self._stale = False
        if not self.trace.exists():
            return
        for moment in merged(self._tail.news(), self._past):
            if isinstance(moment, str):
                self._moments.append(moment)
                continue
            self._last = moment["n"]
            if _shown(moment):
                self._moments.append(_slim(moment))
        self._past = [piece for piece in self._past if piece[0] > self._last]

    def end(self) -> None:
        """The run is no longer under way."""
        try:
            self._catch_up()
        finally:
            self.over = True
            self._told.close()
            self._wake()

    async def follow(self, heartbeat: float) -> AsyncGenerator[list[Moment]]:
        """The moments so far, then each as it comes, until the run is over; an empty list for a pause of that length.

        Args:
            heartbeat: seconds.
        """
        place = 0
        self.readers += 1
        pause = _Pause(heartbeat)
        try:
            while True:
                moments = self.moments
                if place < len(moments):
                    news, place = moments[place:], len(moments)
                    yield news
                elif self.over:
                    return
                elif not await pause.ends_with_news(self._news()):
                    yield []
        finally:
            pause.close()
            self.readers -= 1

    async def until_over(self) -> None:
        """Return when the run is no longer under way."""
        self.readers += 1
        try:
            while not self.over:
                await self._news()
        finally:
            self.readers -= 1

    def _news(self) -> asyncio.Future[bool]:
        """Done as soon as there are news."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _tell(waiter, True)


class _Pause:
    """Ends waits for news that take too long. It has one timer, which is set again where news came before it: a timer
    for each wait would cost more than what a piece is made of.

    Args:
        seconds: how long a wait may take.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._waiter: asyncio.Future[bool] | None = None
        self._since = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._look)

    async def ends_with_news(self, waiter: asyncio.Future[bool]) -> bool:
        """Wait. False if there was nothing new for so long."""
        self._waiter, self._since = waiter, self._loop.time()
        return await waiter

    def _look(self) -> None:
        left = self._since + self._seconds - self._loop.time()
        if left <= 0 and self._waiter is not None:
            _tell(self._waiter, False)
        self._timer = self._loop.call_later(left if left > 0 else self._seconds, self._look)

    def close(self) -> None:
        """Wait no more."""
        self._timer.cancel()


def _tell(waiter: asyncio.Future[bool], news: bool) -> None:
    if not waiter.done():
        waiter.set_result(news)


class Speech:
    """What was said of an answer, so that what is written again is not said again.

    Attributes:
        length: characters that were said.
    """

    def __init__(self) -> None:
        self.length = 0
        self._said: list[str] = []
        self._request = ("", 0)
        self._place = 0
        self._lost = False

    def continue_with(self, piece: str) -> None:
        """A piece that an earlier process said."""
        self._said.append(piece)
        self.length += len(piece)

    def more(self, call_id: str, attempt: int, text: str) -> str:
        """What is to be said of a piece: nothing of what was said, and nothing that does not fit to it."""
        if (call_id, attempt) != self._request:
            self._request, self._place, self._lost = (call_id, attempt), 0, False
        if self._lost:
            return ""
        known = self.length - self._place
        if known:
            # Only after a broken connection or a kill, so the pieces are seldom joined.
            whole = "".join(self._said)
            self._said = [whole]
            shared = min(known, len(text))
            self._lost = not whole.startswith(text[:shared], self._place)
            self._place += shared
            text = "" if self._lost else text[shared:]
        if text:
            self.continue_with(text)
            self._place += len(text)
        return text


class MomentTail:
    """The moments of a run that is not under way in this process, as its files grow."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace
        self._records = TraceTail(trace)
        self._told = ToldTail(trace)
        self._pieces: list[tuple[int, str]] = []
        self._place = 0

    def news(self) -> list[Moment]:
        """The moments since the last look.

        Raises:
            TraceError: the trace is missing or damaged.
        """
        # The records first: what was told before the last of them is in its file by now.
        records = list(self._records.news())
        self._pieces += self._told.news()
        found: list[Moment] = [piece for n, piece in self._pieces if n <= self._place]
        later = [piece for piece in self._pieces if piece[0] > self._place]
        for each in merged(iter(records), later):
            if isinstance(each, str):
                found.append(each)
            elif _shown(each):
                found.append(_slim(each))
        self._place = records[-1]["n"] if records else self._place
        self._pieces = [piece for piece in later if piece[0] > self._place]
        return found


def moments_on_disk(trace: Path) -> list[Moment]:
    """The moments of a run so far.

    Raises:
        TraceError: the trace is missing or damaged.
    """
    return MomentTail(trace).news()


def merged(records: Iterator[dict[str, Any]], pieces: list[tuple[int, str]]) -> Iterator[Moment]:
    """Records, and behind each the pieces that were told after it."""
    place = 0
    for record in records:
        yield record
        while place < len(pieces) and pieces[place][0] <= record["n"]:
            yield pieces[place][1]
            place += 1


def _shown(record: dict[str, Any]) -> bool:
    # What an agent calls on its own is the agent's business.
    return record["t"] in _KINDS and not record.get("parent")


def _slim(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what nobody is told, so that a live run holds no prompts."""
    if record["t"] == "run":
        return {"t": "run", "n": record["n"]}
    return record
