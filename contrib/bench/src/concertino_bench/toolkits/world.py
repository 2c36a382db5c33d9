"""What one run of a task acts in: a toolkit of its own, as members of its pool and as a state to be graded.

The invariant: a state that was given stays what it was, whatever the run does afterwards, and says itself what it takes
to grade it: its digest, and which records were operated on the way, by any member of the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concertino import ToolSpec

from concertino_bench.tasks.task import Task

from .drafts import Draft
from .replaying import GoldenCall, Operated, prepared
from .toolkit import Toolkit


class WorldState(Draft):
    """A toolkit's state as plain JSON data, copied where it is looked at.

    Attributes:
        digest: of this state.
        operated: the records that the calls of the run's tools have operated; those that were refused operated nothing.
    """

    __slots__ = ("digest", "operated")

    def __init__(self, toolkit: Toolkit) -> None:
        # A draft over the state as it is now: later calls make new states, so nothing has to be copied.
        super().__init__(toolkit.view())
        self.digest = toolkit.digest()
        self.operated = Operated.by(toolkit.outcomes)


class ToolkitWorld:
    """A toolkit as the world of a run.

    Args:
        toolkit: in the state that the run begins with; it belongs to the world from here on.
    """

    def __init__(self, toolkit: Toolkit) -> None:
        self.toolkit = toolkit

    def members(self) -> Sequence[ToolSpec]:
        """The toolkit's functions as tools."""
        return self.toolkit.tools()

    def state(self) -> WorldState:
        """The state now, with its digest and what was operated."""
        return WorldState(self.toolkit)


def worlds(toolkit: Callable[[Task], Toolkit]) -> Callable[[Task], ToolkitWorld]:
    """Makes worlds for a task set from a function that gives the toolkit of a task.

    A task's `metadata["before"]` are calls that make its first state.

    Raises:
        ValueError: one of them failed; from the function that is returned.
    """

    def world(task: Task) -> ToolkitWorld:
        # Toolkits are cached by their data; each run acts in one of its own.
        own = toolkit(task).fresh()
        for call in map(GoldenCall.of, task.metadata.get("before", ())):
            prepared(call, own.call(call.name, call.arguments))
        return ToolkitWorld(own)

    return world
