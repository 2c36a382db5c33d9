"""Bounded concurrency: gates that calls pass before they start. A call that waits costs no task.

A `Gate` counts the calls of one kind that are under way (all tools; all agents of one depth; one provider; one
member). A call passes all its gates at once or waits, as a plain object in a queue, at the first gate that is full.
Queues are first in, first out inside a run and round-robin between runs.

Agents are counted per depth, because an agent holds its place while its sub-calls need places of their own: with one
common count, sixteen agents that each wait for a tool would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import Literal, Protocol


class Waiting(Protocol):
    """What passes gates: it starts when all of its gates have room."""

    gates: tuple[Gate, ...]

    @property
    def run_id(self) -> str:
        """The run whose queue it waits in."""

    @property
    def over(self) -> bool:
        """Whether it has ended while it waited."""

    def start(self, *, waited: bool) -> None:
        """Begin; it was just submitted, or waited until another call ended."""

    def stop(self, why: Literal["cancelled"]) -> None:
        """End it."""


class Gate:
    """At most `capacity` calls under way; the rest waits in order."""

    __slots__ = ("capacity", "running", "waiting")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.running = 0
        self.waiting: OrderedDict[str, deque[Waiting]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """Whether the next call has to wait."""
        return self.running >= self.capacity

    def park(self, call: Waiting) -> None:
        """Put a call at the end of its run's queue."""
        queue = self.waiting.get(call.run_id)
        if queue is None:
            queue = self.waiting[call.run_id] = deque()
        queue.append(call)

    def next(self) -> Waiting | None:
        """Take the next call: one of each run in turn."""
        while self.waiting:
            run_id, queue = self.waiting.popitem(last=False)
            call = queue.popleft()
            if queue:
                # Back to the end, so that the next place goes to another run.
                self.waiting[run_id] = queue
            if not call.over:
                return call
        return None


def enter(call: Waiting, *, waited: bool = False) -> bool:
    """Start a call if all its gates have room, else park it. Says whether it started."""
    # All or none: a place held while waiting for another one would be lost to everybody else.
    for gate in call.gates:
        if gate.running >= gate.capacity:
            gate.park(call)
            return False
    for gate in call.gates:
        gate.running += 1
    call.start(waited=waited)
    return True


def leave(gates: tuple[Gate, ...]) -> None:
    """Give the places back and start whoever can take them."""
    # All places are given back before one is given out, since a waiting call may need several of them.
    for gate in gates:
        gate.running -= 1
    for gate in gates:
        while gate.waiting and gate.running < gate.capacity:
            call = gate.next()
            if call is None:
                break
            enter(call, waited=True)


class AdaptiveGate(Gate):
    """A provider's gate, which finds out how much the provider takes at once.

    When the provider throttles, the gate halves, once for all that had begun before; for the rest of them it goes
    down to what is still under way, which is what the provider did take. It grows back by one per window of successes
    (AIMD). `active` counts attempts under way; a call that waits to be repeated holds its place but is not active.
    """

    __slots__ = ("_granted", "_turns", "active", "limit", "lowered", "successes")

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.limit = capacity
        self.successes = 0
        self.active = 0
        self.lowered = float("-inf")
        self._turns: deque[asyncio.Future[None]] = deque()
        self._granted = 0

    def began(self) -> None:
        """An attempt goes out."""
        self.active += 1

    def ended(self) -> None:
        """An attempt came back, successful or not."""
        self.active -= 1
        self._grant()

    def _grant(self) -> None:
        """Let as many go out as have room; a turn that was given counts until it is used."""
        while self._turns and self.active + self._granted < self.capacity:
            turn = self._turns.popleft()
            if not turn.done():
                self._granted += 1
                turn.set_result(None)

    async def turn(self) -> None:
        """Wait until another attempt has room: those that are repeated must not crowd out each other."""
        if not self._turns and self.active + self._granted < self.capacity:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            await turn
        finally:
            if turn.done() and not turn.cancelled():
                self._granted -= 1
                asyncio.get_running_loop().call_soon(self._grant)  # if it was cancelled meanwhile, its turn is free

    def throttled(self, begun: float, now: float) -> None:
        """The provider said "later" to an attempt that began at `begun` and is still counted as active."""
        others = self.active - 1
        # Only an attempt that began after the last halving can say that the half is still too much.
        if begun >= self.lowered:
            self.lowered = now
            # Never 0, because only a success opens the gate again.
            self.capacity = max(1, min(self.capacity, self.active) // 2)
        else:
            self.capacity = max(1, min(self.capacity, others))
        self.successes = 0

    def succeeded(self) -> None:
        """A call went through."""
        if self.capacity < self.limit:
            self.successes += 1
            if self.successes >= self.capacity:
                self.capacity += 1
                self.successes = 0
