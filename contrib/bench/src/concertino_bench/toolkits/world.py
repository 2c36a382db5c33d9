"""What one run of a task acts in: a toolkit of its own, as members of its pool and as a state to be graded.

The invariant: a state that was given stays what it was, whatever the run does afterwards, and says itself what it takes
to grade it: its digest, which records were operated on the way and by which calls, by any member of the pool, what was
said to whom, and what of the task's assertions does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from concertino import ToolSpec

from concertino_bench.tasks.task import Task

from .drafts import Draft
from .replaying import GoldenCall, Operated, prepared
from .toolkit import Toolkit


class Turn(NamedTuple):
    """What one side said in a conversation; `who` is "agent" or "user"."""

    who: str
    text: str


class WorldState(Draft):
    """A toolkit's state as plain JSON data, copied where it is looked at.

    Attributes:
        digest: of this state.
        operated: the records that the calls of the run's tools have operated; those that were refused operated nothing.
        calls: the calls of the run's tools that were not refused, by either side.
        unmet: for each of the task's assertions why it does not hold; empty where it does.
        said: the conversation with the simulated user; empty without one.
    """

    __slots__ = ("calls", "digest", "operated", "said", "unmet")

    def __init__(
        self, toolkit: Toolkit, assertions: Sequence[Mapping[str, Any]] = (), said: Sequence[Turn] = ()
    ) -> None:
        # A draft over the state as it is now: later calls make new states, so nothing has to be copied.
        super().__init__(toolkit.view())
        self.digest = toolkit.digest()
        self.operated = Operated.by(toolkit.outcomes)
        self.calls = tuple((each.name, each.arguments) for each in toolkit.outcomes if each.ok)
        self.unmet = tuple(unmet(toolkit, assertion) for assertion in assertions)
        self.said = tuple(said)


def unmet(toolkit: Toolkit, assertion: Mapping[str, Any]) -> str:
    """Why an assertion does not hold in a toolkit's state; empty if it does.

    Args:
        assertion: `{"name", "arguments", "expected"}`: a reading function, and what it is to give.
    """
    outcome = toolkit.ask(assertion["name"], assertion["arguments"])
    wanted = assertion.get("expected", True)
    if outcome.ok and outcome.content == wanted:
        return ""
    found = repr(outcome.content) if outcome.ok else outcome.error
    return f"{GoldenCall.of(assertion)} gives {found}, expected {wanted!r}"


class ToolkitWorld:
    """A toolkit as the world of a run.

    Args:
        toolkit: in the state that the run begins with; it belongs to the world from here on.
        assertions: what is to be the case in the end.
        both_sides: the run has the tools of the simulated user too, for there is none.
    """

    def __init__(
        self, toolkit: Toolkit, assertions: Sequence[Mapping[str, Any]] = (), *, both_sides: bool = False
    ) -> None:
        self.toolkit = toolkit
        self.said: list[Turn] = []
        self._assertions, self._both_sides = assertions, both_sides

    def members(self) -> Sequence[ToolSpec]:
        """The toolkit's functions as tools."""
        return [*self.toolkit.tools(), *(self.toolkit.tools("user") if self._both_sides else ())]

    def state(self) -> WorldState:
        """The state now, with its digest and what was operated."""
        return WorldState(self.toolkit, self._assertions, self.said)


def worlds(toolkit: Callable[[Task], Toolkit]) -> Callable[[Task], ToolkitWorld]:
    """Makes worlds for a task set from a function that gives the toolkit of a task.

    A task's `metadata["before"]` are calls that make its first state, `metadata["assertions"]` what is to be the case
    in the end, and `metadata["user"]` the model that plays the user; without one, the run has the user's tools too.

    Raises:
        ValueError: a call of `before` failed; from the function that is returned.
    """

    def world(task: Task) -> ToolkitWorld:
        # Toolkits are cached by their data; each run acts in one of its own.
        own = toolkit(task).fresh()
        for call in map(GoldenCall.of, task.metadata.get("before", ())):
            prepared(call, own.call(call.name, call.arguments))
        assertions = task.metadata.get("assertions", ())
        if task.metadata.get("user"):
            from .customer import DialogueWorld

            return DialogueWorld(own, assertions, task)
        return ToolkitWorld(own, assertions, both_sides=True)

    return world
