"""Equal calls of several rollouts of a group are made once, and their result is given to all.

Rollouts of one question often begin with the same calls, and each costs money and time. What is shared is the
observation with all that it cost: every rollout is charged as if it had made the call, so that rewards do not depend
on who came first.

The invariants: only calls of one group are shared, equal in name, in arguments, in how often the rollout made that call
before, so that a repeat behind a failure is a new call, and in what the rollout wrote before, so that nobody reads of a
world that is not his; a call that writes is never shared; and whoever waits for another's call makes it himself if that
one does not come to an end.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from concertino import Observation, ToolSpec

_WAIT = 600.0
"""Seconds to wait for another's call of a member without a timeout."""


class SharedCalls:
    """The calls of one group.

    Args:
        counts: `asked` goes up by each call that could be shared, `hits` by each that another's result answered.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.results: dict[str, asyncio.Future[Observation]] = {}

    def seat(self) -> Seat:
        """The hooks of one rollout."""
        return Seat(self)


class Seat:
    """One rollout's part in the calls of its group: the hooks around its calls."""

    def __init__(self, shared: SharedCalls) -> None:
        self._shared = shared
        self._made: Counter[str] = Counter()
        self._written: list[str] = []
        # Calls of a rollout run at the same time, and `after` is not told the key that `before` made.
        self._mine: ContextVar[str] = ContextVar("shared_call", default="")

    async def before(self, spec: ToolSpec, arguments: Any, call_id: str) -> Observation | None:
        """A hook before a call: another's result, or None to make the call."""
        call = f"{spec.name}\0{_canonical(arguments)}"
        if spec.writes:
            # A write in a task that has read before must not settle that read once more.
            self._mine.set("")
            self._written.append(call)
            return None
        self._made[call] += 1
        # What was written counts: a rollout must not read of a world that another one has changed.
        key = "\0".join((call, str(self._made[call]), *self._written))
        results, counts = self._shared.results, self._shared.counts
        counts["asked"] += 1
        known = results.get(key)
        if known is None:
            results[key] = asyncio.get_running_loop().create_future()
            self._mine.set(key)
            return None
        try:
            # Others wait for the same future, and one that gives up must not cancel it.
            seen = await asyncio.wait_for(asyncio.shield(known), spec.timeout or _WAIT)
        except TimeoutError:
            # The caller that makes it may have failed or been cancelled, so it is made here after all.
            return None
        counts["hits"] += 1
        return replace(seen, call_id=call_id)

    def after(self, spec: ToolSpec, observation: Observation) -> None:
        """A hook after a call: those who wait get its result."""
        waiting = self._shared.results.get(self._mine.get())
        if waiting is not None and not waiting.done():
            waiting.set_result(observation)


def _canonical(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=repr)
