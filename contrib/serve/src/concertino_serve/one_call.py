"""OneCall: one call of one member as a run. No model is asked.

A call that a client makes itself is a run like any other: on record, within a budget, cancelled and resumed. Its
question is the call, as JSON: `{"name": "toy/calculate", "arguments": {"expression": "6*7"}}`.

Invariant: the only call of the run is the one in the question. The arguments are checked by the executor, as ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concertino import Pool
from concertino.core.approval import ApprovalRequest, Approve, Approver, Decision, Deny
from concertino.core.errors import UsageError
from concertino.core.model import Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.strategies import Act, Done, Machine, Step, Strategy, TaskContext

from .serve_settings import McpOffer

CALL_ID = "1"


def call_as_question(name: str, arguments: Mapping[str, Any]) -> str:
    """The question of the run that makes a call."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


@dataclass(frozen=True)
class OneCall(Strategy):
    """Makes the call that its question is."""

    name = "one-call"
    searches = False

    def begin(self, context: TaskContext) -> OneCallMachine:
        return OneCallMachine(context.question)

    def restore(self, dumped: Mapping[str, Any]) -> OneCallMachine:
        made = OneCallMachine(dumped["question"])
        if dumped["final"] is not None:
            made.final = Done(*dumped["final"])
        return made


class OneCallMachine(Machine):
    """One run of it.

    Raises:
        UsageError: the question is no call.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        self.final: Done | None = None
        try:
            asked = json.loads(question)
            self.call = Call(str(asked["name"]), dict(asked["arguments"]), CALL_ID)
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                f"{question[:80]!r}: expected a call such as {call_as_question('toy/solve', {})}"
            ) from None

    def step(self) -> Step:
        return self.final or Act(Plan([self.call]), 1)

    def on_reply(self, reply: Reply) -> None:
        raise UsageError("one-call asks no model, so it hears no reply")

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        (seen,) = observations
        self.final = Done(_told(seen), "answered")

    def finish(self, stop: str, detail: str = "") -> None:
        self.final = self.final or Done(None, stop, detail)

    def dump(self) -> dict[str, Any]:
        final = self.final and [self.final.answer, self.final.stop, self.final.detail]
        return {"question": self.question, "final": final}


def approver_of(pool: Pool, member: str, offer: McpOffer | None) -> Approver | None:
    """Who decides in the run of a member's call, where the settings have given approval to the member itself.

    What it calls in turn has none: such a call is denied. None where the settings have given none.
    """
    spec = pool.find(member)
    if spec is None or not spec.approval or offer is None or not offer.approves(spec):
        return None

    def decide(request: ApprovalRequest) -> Decision:
        return Approve() if request.name == spec.name else Deny("it needs a person's approval, which no client gives")

    return decide


def _told(seen: Observation) -> str:
    if seen.error is not None:
        return f"{seen.status.value} {seen.error.code}: {seen.error.message}"
    return seen.content if isinstance(seen.content, str) else json.dumps(seen.content, ensure_ascii=False)
