"""Approval: a person decides about a call before it runs.

    @ct.tool(approval=True)                             # or a rule: approval=lambda arguments: arguments["usd"] > 100
    async def pay(usd: float) -> str: ...

    leader = ct.Orchestrator(..., approve=ask_the_person)    # the call waits for the answer
    run = await leader.resume(path, pool=pool, decisions={"2.1": ct.Approve()})    # or the run waits, for days

Without a handler a run that needs a decision is *suspended*: what does not depend on the call is finished, the run ends
with `stop="suspended"`, its process may end, and `resume` takes the decisions. Nothing is paid again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import UsageError


@dataclass(frozen=True, slots=True)
class Approve:
    """Let the call run.

    Attributes:
        arguments: instead of those that the model wrote; validated like them. None keeps the model's.

    Raises:
        UsageError: they are not a dict.
    """

    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, Mapping | None):
            raise UsageError(f"Approve({self.arguments!r}): expected other arguments as a dict, or nothing")


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not let it run. The model reads the reason as the call's observation, `EXEC_ERR` with the code `denied`.

    Raises:
        UsageError: the reason is not a text.
    """

    reason: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str):
            raise UsageError(f"Deny({self.reason!r}): expected the reason as a text, such as Deny('too expensive')")


Decision = Approve | Deny
"""What a person decides about a call."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a decision.

    Attributes:
        call_id: id of the call, unique in its run; the key of `decisions`.
        name: the member's name.
        arguments: as validated.
        description: what the model was told about the member.
        run_id: id of the run.
        question: of the run.
    """

    call_id: str
    name: str
    arguments: Any
    description: str
    run_id: str
    question: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {name: getattr(self, name) for name in self.__slots__}


Approver = Callable[[ApprovalRequest], Decision | bool | Awaitable[Decision | bool]]
"""Decides about a call: `Approve`, `Deny`, or plainly True or False; may be asynchronous and take any time."""


def as_decision(value: Any, place: str) -> Decision:
    """A decision as given by a person's program.

    Args:
        place: where it was given, for the message.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, (Approve, Deny)):
        return value
    if value is True:
        return Approve()
    if value is False:
        return Deny()
    raise UsageError(f"{place} is {value!r}; expected Approve(), Deny(reason), True or False")
