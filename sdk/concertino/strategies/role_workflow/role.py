"""Workflows as plain data: the roles, and the condition that ends a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from concertino.core.model import Sampling

from .format import Form

CONDITIONS: dict[str, str] = {
    "first": "in the first turn",
    "later": "in every turn but the first",
    "ok": "`ok:role`: the role's last tool result was OK",
    "failed": "`failed:role`: the role's last tool result was not OK",
    "unread": "`unread:role`: the role's last text could not be read",
}
"""When a role is passed over (`Role.skip`)."""


@dataclass(frozen=True, slots=True)
class Role:
    """One part in a workflow.

    Attributes:
        name: a short word; templates and endings refer to it.
        prompt: template of what it is asked in a turn.
        again: template from the second turn on; without one, `prompt` again.
        system: template of the system message; none without one.
        reads: what is read from its text (`format.FORMS`).
        policy: the role of the pool whose model speaks; by default the role's own name. Roles of one policy share a
            model; a pool that binds neither has its orchestrator speak.
        sampling: how it samples; by default as the orchestrator does.
        tools: members that it may call. One tool, for `code`, `text` and `answer`, is called with what was read; for
            `calls`, those of the text are called.
        argument: the argument of that one tool.
        skip: conditions under which it does not speak (`CONDITIONS`); its last word stands.
    """

    name: str
    prompt: str
    again: str = ""
    system: str = ""
    reads: Form = "text"
    policy: str = ""
    sampling: Sampling | None = None
    tools: tuple[str, ...] = ()
    argument: str = "code"
    skip: tuple[str, ...] = ()

    @property
    def speaker(self) -> str:
        """The role of the pool that speaks."""
        return self.policy or self.name

    def may_call(self, name: str) -> bool:
        """Whether a member, by its full or its short name, is one of the role's tools."""
        return any(name in (tool, tool.rpartition("/")[2]) for tool in self.tools)


@dataclass(frozen=True, slots=True)
class Agree:
    """The run ends when two roles say the same.

    Attributes:
        left: `role.value`, `role.result` or `role.text`.
        right: likewise.
    """

    left: str
    right: str

    kind = "agree"


@dataclass(frozen=True, slots=True)
class PassTests:
    """The run ends when one role's program prints what another role's tests expect.

    Attributes:
        code: the role that writes the program.
        tests: the role that writes the tests.
        tool: the member that runs a script.
        argument: its argument.
    """

    code: str
    tests: str
    tool: str = "python"
    argument: str = "code"

    kind = "tests"


@dataclass(frozen=True, slots=True)
class ReachGoal:
    """The run ends when an environment says so.

    Attributes:
        action: the role whose value is the action.
        tool: the member through which the environment is reached (`environment_tool`).
    """

    action: str
    tool: str

    kind = "goal"


Until = Agree | PassTests | ReachGoal
"""What ends a workflow."""

ENDINGS: dict[str, type[Agree] | type[PassTests] | type[ReachGoal]] = {
    "agree": Agree,
    "tests": PassTests,
    "goal": ReachGoal,
}
"""Endings by their kind."""


@dataclass(frozen=True)
class Workflow:
    """Roles that speak in turns. `RoleWorkflow` is the strategy of one, and says what the fields mean."""

    roles: tuple[Role, ...]
    until: Until
    answer: str = ""
    turns: int = 4
    order: Literal["sequential", "simultaneous"] = "sequential"
    remember: int = 3
    max_unreadable_replies: int = 2
    strict: bool = False

    @property
    def answering(self) -> str:
        """The role whose last word is the answer."""
        until = self.until
        if self.answer:
            return self.answer
        if isinstance(until, Agree):
            return until.left.partition(".")[0]
        return until.code if isinstance(until, PassTests) else until.action

    @property
    def tools(self) -> tuple[str, ...]:
        """All members that it calls."""
        names = [tool for role in self.roles for tool in role.tools]
        ending = [] if isinstance(self.until, Agree) else [self.until.tool]
        return tuple(dict.fromkeys([*names, *ending]))
