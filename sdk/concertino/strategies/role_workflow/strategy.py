"""RoleWorkflow: the paradigm of AT-GRPO. Roles with prompts of their own work in turns until they agree.

In each turn every role is asked, in order; what is read from its text (`format`) may be the argument of a tool.
A check ends the turn: two roles say the same, a program passes the tests of another role, or an
environment says that the goal is reached. The next turn tells the roles what did not match. After `turns`
turns the run ends with the last word of the answering role and the stop `rounds`.

`sequential` roles see what was said before them in the same turn; `simultaneous` ones see only earlier turns, are asked
at once, and their tools run together, in one plan.

Each role asks `Ask(role=…)` for the model of its policy, so whether roles share a model or have one each is a matter of
the pool's roles. Each turn makes a new prompt from the record of the turns before; there is no conversation.

Workflows are declared in Python or in a document of TOML or JSON (`document`); `run` holds a run of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino.core.documents import why_unusable
from concertino.core.errors import UsageError
from concertino.core.plan import Call
from concertino.schema import near_names
from concertino.strategies.base.machine import RunLimits, Strategy, TaskContext
from concertino.text.foreign_text import Quoting
from concertino.text.tool_calls import write_tool_call

from . import prompts
from .document import faults_of, from_document, read_document_text, to_document
from .format import write_value
from .record import quoting_for
from .role import Agree, PassTests, ReachGoal, Role, Until, Workflow
from .run import RoleWorkflowMachine


@dataclass(frozen=True)
class RoleWorkflow(Workflow, Strategy):
    """Roles in turns (AT-GRPO). The default is the workflow of a coder and a tester.

    Args:
        roles: in the order of a turn.
        until: what ends it.
        answer: the role whose last word is the answer; by default the one that `until` names.
        turns: the largest number of turns (the paper's T).
        order: `sequential`, or `simultaneous`: no role sees what another says in the same turn.
        remember: how many past turns the history shows.
        max_unreadable_replies: unreadable texts of a role in one turn, after which the turn continues without it.
        strict: refuse texts that lenient reading repairs.

    Raises:
        UsageError: lists all faults of the workflow.
    """

    roles: tuple[Role, ...] = prompts.CODER_TESTER
    until: Until = field(default_factory=lambda: PassTests("coder", "tester"))

    name = "role-workflow"
    searches = False

    def __post_init__(self) -> None:
        # Frozen; a list is accepted and made a tuple, so that the settings stay a value.
        object.__setattr__(self, "roles", tuple(self.roles))
        if not isinstance(self.until, (Agree, PassTests, ReachGoal)) or not all(
            isinstance(role, Role) for role in self.roles
        ):
            raise UsageError("RoleWorkflow: expected roles=(Role(...), ...) and until=Agree, PassTests or ReachGoal")
        _refuse(faults_of(self.to_json()), "RoleWorkflow")

    @property
    def named_members(self) -> Sequence[str]:
        return self.tools

    @property
    def max_rounds(self) -> int:
        """Plans that a run has at most: the tools of each role and the check of each turn."""
        return self.turns * (sum(1 for role in self.roles if role.tools) + 1) + 1

    @property
    def parts(self) -> Mapping[str, str]:
        """The roles in the order of a turn, each with the role of the pool that speaks."""
        return {role.name: role.speaker for role in self.roles}

    def quoting(self, tools: Sequence[Mapping[str, Any]] = ()) -> Quoting:
        return quoting_for((role.name for role in self.roles), questions=True)

    @property
    def limits(self) -> RunLimits:
        """Plans that a run has at most; the calls of one of them depend on what roles write."""
        return RunLimits(self.max_rounds)

    def write_turn(self, calls: Sequence[Call], thought: str = "", *, part: str = "", **_: Any) -> str:
        role = self._role(part)
        if not role.tools:
            raise UsageError(f"role {role.name!r} has no tools, so it makes no calls; write_answer writes what it says")
        refused = next((call.name for call in calls if not role.may_call(call.name)), None)
        if refused is not None:
            raise UsageError(f"role {role.name!r} may not call {refused!r}; it may call {', '.join(role.tools)}")
        if role.reads == "calls":
            return "\n".join([*filter(None, [thought]), *(write_tool_call(call.name, call.data) for call in calls)])
        if len(calls) != 1:
            raise UsageError(f"role {role.name!r} makes one call in each turn; got {len(calls)}")
        return write_value(role.reads, calls[0].data.get(role.argument), thought)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        return (write_value(self._role(part or self.answering).reads, answer, thought),)

    def _role(self, name: str) -> Role:
        found = next((role for role in self.roles if role.name == name), None)
        if found is None:
            raise UsageError(f"part={name!r}: no such role; there are {', '.join(role.name for role in self.roles)}")
        return found

    def begin(self, context: TaskContext) -> RoleWorkflowMachine:
        """A machine at the start of a run.

        Raises:
            UsageError: the pool lacks a tool that the workflow calls; names near ones.
        """
        visible = [tool["function"]["name"] for tool in context.tools]
        # Without a pool there is nothing to compare with: a replay begins without tools.
        for name in self.tools if visible else ():
            if name in visible or name.rpartition("/")[2] in visible:
                continue
            near = near_names(name, visible, limit=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(visible[:8])}"
            raise UsageError(f"the workflow calls {name!r}, which the pool does not have; {hint}")
        return RoleWorkflowMachine(self, context)

    def restore(self, dumped: Mapping[str, Any]) -> RoleWorkflowMachine:
        machine = RoleWorkflowMachine.__new__(RoleWorkflowMachine)
        machine._load(self.from_json(dumped["settings"]), dumped)
        return machine

    # -- documents -------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The workflow as a document of plain JSON data."""
        return {"name": self.name, **to_document(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RoleWorkflow:
        """A workflow from a document.

        Raises:
            UsageError: lists all faults of the document, with places and near names.
        """
        # A recipe or a bench file may give the name alone; it means the default workflow.
        if set(data) == {"name"}:
            return cls()
        _refuse(faults_of(data), "the workflow")
        return cls(**from_document(data))

    @classmethod
    def load(cls, path: str | Path) -> RoleWorkflow:
        """Read a workflow from a TOML or JSON file.

        Raises:
            UsageError: names the file, and each fault with its line.
        """
        file = Path(path)
        if file.suffix not in (".toml", ".json"):
            raise UsageError(f"{file}: unknown file ending {file.suffix!r}; expected .toml or .json")
        try:
            # `utf-8-sig` takes the mark that Windows editors put at the begin of a file.
            text = file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: cannot be read: {why_unusable(error)}") from error
        data, issues = read_document_text(text, "toml" if file.suffix == ".toml" else "json")
        if data is None:
            told = "\n".join(f"{file}:{issue.line_of(text)}: {issue.message}" for issue in issues)
            raise UsageError(told)
        return cls.from_json(data)

    def save(self, path: str | Path) -> None:
        """Write the workflow to a TOML or JSON file, which `load` reads back.

        Raises:
            UsageError: the file ending is neither .toml nor .json.
        """
        file, data = Path(path), self.to_json()
        if file.suffix == ".toml":
            # Imported where it is used: only saving needs it.
            import tomli_w

            text = tomli_w.dumps(data, multiline_strings=True)
        elif file.suffix == ".json":
            text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        else:
            raise UsageError(f"{file}: unknown file ending {file.suffix!r}; expected .toml or .json")
        file.write_text(text, encoding="utf-8")


def _refuse(faults: Sequence[object], what: str) -> None:
    if faults:
        raise UsageError(f"{what}: " + "; ".join(map(str, faults[:8])))
