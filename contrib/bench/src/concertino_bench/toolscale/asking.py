"""One step of a synthesis: ask a model for JSON, check it, tell it what is wrong, keep the result.

The invariants: a step whose artefact is in the folder is not asked again; a model is told every problem that was found,
and is asked again a bounded number of times; and what is not taken over is on record with a reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from concertino import CallFailed, Context, Message

from .folder import Folder
from .prompts import SYSTEM, for_repair

REASONS = {
    "bad_reply": "the model wrote no JSON of the form that was asked for",
    "schema_invalid": "the database's schema cannot be used",
    "entry_invalid": "an entry breaks the schema, uses a key twice, or refers to nothing",
    "entry_implausible": "the reviewing model found a contradiction in an entry",
    "tool_invalid": "a tool's name, parameters or code cannot be used",
    "tool_broken": "a tool raised, did not end, or changed what it may not, when it was tried",
    "task_invalid": "a task calls an unknown tool, or with arguments that its schema refuses",
    "golden_error": "filter 1: a golden call reports an error",
    "unsolved": "filter 2: no attempt of the solver was right",
    "no_action_needed": "filter 3: the task is solved without any action",
    "evolve_unchanged": "the harder task has the calls and the facts of the old one",
    "duplicate": "the same request, or the same calls and facts, as a task before it",
}
"""Why something is not taken over."""


@dataclass(frozen=True)
class StepProblem:
    """What is wrong with a part of a reply.

    Attributes:
        reason: a key of `REASONS`.
        text: in words for the model.
        part: which part: the key of an entry, the name of a tool.
    """

    reason: str
    text: str
    part: str = ""

    def to_json(self, where: str) -> dict[str, str]:
        """The problem as an entry of the report."""
        return {"id": f"{where}/{self.part}" if self.part else where, "reason": self.reason, "detail": self.text}


@dataclass(frozen=True)
class Checked:
    """A reply that was checked.

    Attributes:
        problems: what is wrong with it.
        usable: what can be taken over all the same, None for nothing.
    """

    problems: Sequence[StepProblem] = ()
    usable: Any = None


Check: TypeAlias = Callable[[Any], Awaitable[Checked]]


class StepFailed(Exception):
    """A step without which it cannot continue has failed; says which and why."""


@dataclass
class StepModel:
    """Asks for the artefacts of one folder.

    Attributes:
        repairs: how often a model is told what is wrong, at most.
        asked: requests so far, in this process.
        known: artefacts that were found in the folder.
        rejected: what was not taken over, of all artefacts.
        tell: called after every step with its name.
    """

    ctx: Context
    folder: Folder
    repairs: int = 2
    tell: Callable[[str], None] = lambda name: None
    asked: int = 0
    known: int = 0
    rejected: list[dict[str, str]] = field(default_factory=list)

    async def artefact(
        self, name: str, prompt: str, schema: Mapping[str, Any], check: Check, *, role: str = "writer"
    ) -> Any:
        """What a step gives; None if nothing of it can be used.

        Args:
            name: of the artefact, `entries/members-1`.
            prompt: what the model is asked.
            schema: of its reply.
            check: finds problems; see `Checked`.
            role: who is asked.

        Raises:
            CallFailed: the model did not answer.
        """
        known = self.folder.load(name)
        if known is None:
            checked = await self._ask(prompt, schema, check, role)
            known = {"data": checked.usable, "rejected": [problem.to_json(name) for problem in checked.problems]}
            # Also where nothing was usable, so that a run which is continued does not pay for the same replies again.
            self.folder.save(name, known)
        else:
            self.known += 1
        self.rejected += known["rejected"]
        self.tell(name)
        return known["data"]

    async def _ask(self, prompt: str, schema: Mapping[str, Any], check: Check, role: str) -> Checked:
        messages = [Message("system", SYSTEM), Message("user", prompt)]
        checked = Checked()
        for _ in range(1 + self.repairs):
            self.asked += 1
            try:
                reply = await self.ctx.model(role).chat(messages, schema=schema)
            except CallFailed as failed:
                error = failed.observation.error
                # Anything else is not the model's mistake: the step stays open, and the next run asks again.
                if error is None or error.code != "bad_reply":
                    raise
                # What an earlier reply gave stays usable.
                checked = Checked([StepProblem("bad_reply", error.message)], checked.usable)
                messages.append(Message("user", for_repair([error.message])))
                continue
            checked = await check(reply.data)
            if not checked.problems:
                break
            told = [f"{problem.part}: {problem.text}" if problem.part else problem.text for problem in checked.problems]
            messages += [Message.of(reply), Message("user", for_repair(told))]
        return checked
