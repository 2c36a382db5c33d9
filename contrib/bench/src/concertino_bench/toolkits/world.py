"""What one run of a task acts in: a toolkit of its own, as members of its pool and as a state to be graded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from concertino import ToolSpec

from concertino_bench.tasks import Task

from .replay import GoldenCall, prepared
from .toolkit import Toolkit


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

    def state(self) -> dict[str, Any]:
        """The state now."""
        return self.toolkit.state()


def worlds(toolkit: Callable[[Task], Toolkit]) -> Callable[[Task], ToolkitWorld]:
    """Makes worlds for a task set from a function that gives the toolkit of a task.

    A task's `metadata["before"]` are calls that make its first state.

    Raises:
        ValueError: one of them failed; from the function that is returned.
    """

    def world(task: Task) -> ToolkitWorld:
        own = toolkit(task).fresh()
        for call in map(GoldenCall.of, task.metadata.get("before", ())):
            prepared(call, own.call(call.name, call.arguments))
        return ToolkitWorld(own)

    return world
