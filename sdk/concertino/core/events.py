"""Events: everything that happens in a run, as it happens. A trace is the list of them, in memory or on disk.

One vocabulary serves the live view, the trace file, resume, replay and training. `to_json()["t"]` names the kind:

    run      the run begins            ask    a model is about to be asked      reply   it answered
    plan     a round's calls           intent a call is about to start          result  its observation
    retry    an attempt is repeated    stall  a plugin blocked the event loop   end     the run is over
    approval a call waits for a person decision a person has decided about a call
    attach   images, audio or files came in

The order of `intent`, the call itself, `result`, and only then its waiter, makes a run resumable.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .approval import ApprovalRequest
from .attachment import Attachment
from .late import present
from .model import Message, Reply
from .observation import Observation
from .plan import Plan, unparse

if TYPE_CHECKING:
    from .format_issue import FormatIssue


def idempotency_key(run_id: str, call_id: str) -> str:
    """The key under which a call is asked, again after a crash too: 32 hex digits of SHA-256(run, call)."""
    return hashlib.sha256(f"{run_id}\x00{call_id}".encode()).hexdigest()[:32]


@dataclass(slots=True)
class RunStarted:
    """The run begins. `setup` holds what a resume must find unchanged: strategy, pool id, budget."""

    run_id: str
    question: str
    setup: dict[str, Any]
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"t": "run", "run": self.run_id, "question": self.question, "setup": self.setup, "at": self.at}


@dataclass(slots=True)
class Asked:
    """A model is about to be asked. `messages` are those that the last question to it did not have yet."""

    call_id: str
    role: str
    model: str
    messages: list[Message]
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        messages = [message.to_json() for message in self.messages]
        return {
            "t": "ask",
            "id": self.call_id,
            "role": self.role,
            "model": self.model,
            "messages": messages,
            "at": self.at,
        }


@dataclass(slots=True)
class Replied:
    """A model answered. The observation holds usage and times; the reply holds the text and any sampled token ids."""

    call_id: str
    role: str
    reply: Reply
    observation: Observation

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        seen = self.observation.to_json()
        # Recalled from a trace, the observation holds the reply as its content; `reply` has it already.
        seen.pop("content", None)
        return {
            "t": "reply",
            "id": self.call_id,
            "role": self.role,
            "reply": self.reply.to_json(),
            "observation": seen,
        }


@dataclass(slots=True)
class Planned:
    """What the orchestrator wants done in a round. `issues` are the format issues of its text."""

    round: int
    plan: Plan
    at: float
    issues: tuple[FormatIssue, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {"t": "plan", "round": self.round, "calls": self.plan.to_json(), "at": self.at}
        return {**data, "issues": [issue.to_json() for issue in self.issues]} if self.issues else data


@dataclass(slots=True)
class CallStarted:
    """A call is about to start. After a crash, an `intent` without `result` is a call in doubt."""

    run_id: str
    call_id: str
    parent: str
    name: str
    kind: str
    arguments: Any
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {
            "t": "intent",
            "id": self.call_id,
            "name": self.name,
            "kind": self.kind,
            "at": round(self.at, 6),
        }
        if self.parent:
            data["parent"] = self.parent
        data["key"] = idempotency_key(self.run_id, self.call_id)
        data["arguments"] = unparse(self.arguments)
        return data


@dataclass(slots=True)
class CallEnded:
    """The one terminal observation of a call. `full` is the content before truncation, if it was cut.

    Of a call that a large trace knows already, `full` is a `LateValue`: its `value()` reads it.
    """

    observation: Observation
    parent: str = ""
    full: Any = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {"t": "result", **self.observation.to_json()}
        if self.parent:
            data["parent"] = self.parent
        if self.full is not None:
            data["full"] = present(self.full)
        return data


@dataclass(slots=True)
class Retried:
    """An attempt failed and the call is repeated after `delay` seconds."""

    call_id: str
    name: str
    attempt: int
    failure: str
    message: str
    delay: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "t": "retry",
            "id": self.call_id,
            "name": self.name,
            "attempt": self.attempt,
            "failure": self.failure,
            "message": self.message,
            "delay": round(self.delay, 3),
        }


@dataclass(slots=True)
class Stalled:
    """A plugin blocked the event loop for `seconds`, at the source line `where`; it now runs on its own thread."""

    call_id: str
    name: str
    seconds: float
    where: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "t": "stall",
            "id": self.call_id,
            "name": self.name,
            "seconds": round(self.seconds, 3),
            "where": self.where,
        }


@dataclass(slots=True)
class Attached:
    """The run was given attachments, or a call of it returned some. Their bytes are in side files of the trace.

    Attributes:
        call_id: of the call; empty for those of the question and its history.
    """

    call_id: str
    attachments: list[Attachment]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"t": "attach", "id": self.call_id, "attachments": [each.to_json() for each in self.attachments]}


@dataclass(slots=True)
class ApprovalAsked:
    """A call waits for a person's decision."""

    request: ApprovalRequest
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        asked = self.request
        return {
            "t": "approval",
            "id": asked.call_id,
            "name": asked.name,
            "arguments": unparse(asked.arguments),
            "at": round(self.at, 6),
        }


@dataclass(slots=True)
class Decided:
    """A person has decided about a call.

    Attributes:
        arguments: edited ones, None where the model's stay.
        reason: why it was denied.
        waited: seconds that the decision took while the run waited for it.
    """

    call_id: str
    approved: bool
    arguments: Any
    reason: str
    waited: float
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data: dict[str, Any] = {"t": "decision", "id": self.call_id, "approved": self.approved}
        if self.arguments is not None:
            data["arguments"] = dict(self.arguments)
        if self.reason:
            data["reason"] = self.reason
        if self.waited:
            data["waited"] = round(self.waited, 6)
        return {**data, "at": round(self.at, 6)}


@dataclass(slots=True)
class Progressed:
    """A running call reports its progress. Only listeners get it; it is neither kept nor written into the trace.

    Attributes:
        done, total: in units of the call's own choice; `total` is None where it is not known.
        message: what it is doing.
    """

    call_id: str
    name: str
    done: float
    total: float | None
    message: str
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "t": "progress",
            "id": self.call_id,
            "name": self.name,
            "done": self.done,
            "total": self.total,
            "message": self.message,
            "at": round(self.at, 6),
        }


TextKind = Literal["reasoning", "text", "answer"]
"""What a piece of text is: of the reasoning channel, of the reply's text, or of the answer inside that text."""


@dataclass(slots=True)
class TextDelta:
    """A piece of a reply while it is written. Only listeners get it; it is neither kept nor written into the trace.

    The pieces of kind `text` of one attempt add up to the reply's text. Those of kind `answer` repeat the part of it
    that the strategy reads as the answer, without tags and escapes; those of the last `call_id` add up to the run's
    answer.

    Attributes:
        call_id: of the request; `answer` for an answer that was not told while it was written.
        speaker: the strategy's role that speaks (`orchestrator`, `summariser`, …), or the model that an agent asks.
        text: the piece.
        attempt: counted from 1; a higher number means that the pieces of the attempts before are void.
    """

    call_id: str
    speaker: str
    kind: TextKind
    text: str
    attempt: int
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "t": "text",
            "id": self.call_id,
            "speaker": self.speaker,
            "kind": self.kind,
            "text": self.text,
            "attempt": self.attempt,
            "at": round(self.at, 6),
        }


@dataclass(slots=True)
class RunEnded:
    """The run is over. `stop` is one of `STOP_REASONS`."""

    answer: str | None
    stop: str
    detail: str
    usage: dict[str, Any]
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "t": "end",
            "answer": self.answer,
            "stop": self.stop,
            "detail": self.detail,
            "usage": self.usage,
            "at": round(self.at, 6),
        }


Event = (
    RunStarted
    | Asked
    | Replied
    | Planned
    | CallStarted
    | CallEnded
    | Retried
    | Stalled
    | Attached
    | ApprovalAsked
    | Decided
    | Progressed
    | TextDelta
    | RunEnded
)
"""Anything that can happen in a run."""

STOP_REASONS: dict[str, str] = {
    "answered": "the orchestrator gave its answer",
    "rounds": "the last allowed round is over; the answer is made from what is known",
    "budget": "the budget does not cover another turn",
    "deadline": "the time is over",
    "format": "the orchestrator's text could not be read several times in a row",
    "model": "the orchestrator model did not answer",
    "cancelled": "the caller cancelled the run",
    "guard": "a guard denied the question or the answer, or ended the run",
    "suspended": "calls wait for a person's decision; resume the trace with the decisions",
    "crashed": "concertino failed in the middle; the trace can be resumed",
    "unfinished": "the trace has no end: the run is under way, or its process was killed and it can be resumed",
}
"""Why a run ended."""
