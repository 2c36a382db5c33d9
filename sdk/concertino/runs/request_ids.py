"""The requests of a run, numbered in the order in which they are first known.

A machine asks for one text at a time, but may know the next ones (`Machine.prefetchable`), and a driver may
make those at once. Then replies come in any order, and what a trace needs is a name for each request that does not
depend on it. The invariant: the numbers follow from the machine alone, so a run, its resumption and its replay number
alike.
"""

from __future__ import annotations

from concertino.strategies import Ask, Machine


class RequestIds:
    """Numbers the requests of one run: `ask.1`, `ask.2`, …"""

    def __init__(self) -> None:
        self._count = 0
        self._early: list[tuple[str, Ask]] = []

    def name(self, step: Ask) -> str:
        """The id of what a machine asks for now: the one it was given early, or the next."""
        for place, (known, early) in enumerate(self._early):
            if early.role == step.role and list(early.messages) == list(step.messages):
                del self._early[place]
                return known
        return self._next()

    def prefetch(self, machine: Machine) -> list[tuple[str, Ask]]:
        """Requests that the machine will make too, as far as they were not known before; each with its id."""
        coming = [ask for ask in machine.prefetchable() if not self._knows(ask)]
        new = [(self._next(), ask) for ask in coming]
        self._early += new
        return new

    def _knows(self, ask: Ask) -> bool:
        return any(ask.role == known.role and ask.messages == known.messages for _, known in self._early)

    def _next(self) -> str:
        self._count += 1
        return f"ask.{self._count}"
