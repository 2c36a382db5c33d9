"""Which questions a step asks: all of them in an order drawn again for every pass, divided among the ranks.

The invariant: what is taken depends on the seed and on how much was taken before, and on nothing else; so a training
that is resumed asks what it would have asked, and several ranks together ask what one rank would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from concertino import UsageError

T = TypeVar("T")


class TaskStream(Generic[T]):
    """Tasks without an end.

    Attributes:
        tasks: of one pass.
        position: how many this rank has taken.
    """

    def __init__(
        self, tasks: Sequence[T], *, seed: int = 0, shuffle: bool = True, rank: int = 0, ranks: int = 1
    ) -> None:
        """Begin with the first.

        Args:
            tasks: of one pass, one or more.
            seed: of the order.
            shuffle: draw a new order for every pass; without, the given order is kept.
            rank: which of the ranks this is: it takes every `ranks`-th task.
            ranks: how many share the tasks.
        """
        if not tasks:
            raise UsageError("TaskStream: got no tasks; expected one or more")
        self.tasks, self.position = tasks, 0
        self._seed, self._shuffle, self._rank, self._ranks = seed, shuffle, rank, ranks
        self._order: tuple[int, list[int]] = (-1, [])

    def take(self, count: int) -> list[T]:
        """The next tasks."""
        taken = [self._task(self.position + number) for number in range(count)]
        self.position += count
        return taken

    def _task(self, number: int) -> T:
        # Ranks take turns, so together they ask what one rank would.
        turn, place = divmod(number * self._ranks + self._rank, len(self.tasks))
        if not self._shuffle:
            return self.tasks[place]
        if self._order[0] != turn:
            # The order follows from seed and pass, so a checkpoint holds a position and no state of a generator.
            self._order = turn, np.random.default_rng([self._seed, turn]).permutation(len(self.tasks)).tolist()
        return self.tasks[self._order[1][place]]

    def state_dict(self) -> dict[str, Any]:
        """How many tasks were taken, and how many a pass has."""
        return {"position": self.position, "tasks": len(self.tasks)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the state was made.

        Raises:
            UsageError: it was made of another number of tasks.
        """
        if state["tasks"] != len(self.tasks):
            raise UsageError(
                f"TaskStream: the state is of {state['tasks']} tasks, there are {len(self.tasks)}; give the same ones"
            )
        self.position = state["position"]
