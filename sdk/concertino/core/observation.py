"""What the orchestrator learns about one call: a status, and content or an error it can act on.

The invariant of the whole executor: **every call gets exactly one terminal observation**, whatever happens to it.
Tools and agents share the four statuses of ParaManager (section 3.2):

- `OK`         the call ran; `content` is its result.
- `PARSE_ERR`  the call could not be understood (bad JSON, unknown name, schema violation) and was *not run*: free.
- `EXEC_ERR`   it was understood but did not succeed; `error.code` says why (`CODES` lists them all).
- `TIMEOUT`    its deadline passed. What could be stopped was stopped.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from .errors import ConcertinoError
from .usage import NOTHING, Usage


class Status(enum.StrEnum):
    """The four outcomes of a call (ParaManager, section 3.2)."""

    OK = "OK"
    PARSE_ERR = "PARSE_ERR"
    EXEC_ERR = "EXEC_ERR"
    TIMEOUT = "TIMEOUT"


CODES: dict[str, str] = {
    "bad_json": "PARSE_ERR: the arguments are not one JSON object",
    "bad_format": "PARSE_ERR: the model's text does not follow the strategy's format",
    "unknown_name": "PARSE_ERR: no member of the pool has this name",
    "invalid_arguments": "PARSE_ERR: the arguments break the published input schema",
    "bad_reply": "PARSE_ERR: a model's reply breaks the schema that it was asked for",
    "too_many_calls": "PARSE_ERR: more calls in one round than allowed; this one was dropped",
    "raised": "EXEC_ERR: the plugin raised an exception",
    "bad_result": "EXEC_ERR: the result is not plain JSON, too large, or breaks the output schema",
    "rejected": "EXEC_ERR: the provider refused the request (bad request, key, quota)",
    "unavailable": "EXEC_ERR: the provider could not be reached or throttled all attempts",
    "truncated": "EXEC_ERR: the reply broke off after its first token, or ended without a finish; not repeated",
    "unknown_outcome": "EXEC_ERR: the request may or may not have been executed, and may not be repeated",
    "breaker_open": "EXEC_ERR: the provider failed too often; not called",
    "quarantined": "EXEC_ERR: this member misbehaved too often; not called",
    "dependency_failed": "EXEC_ERR: a call that this one refers to did not succeed; not run",
    "budget_exhausted": "EXEC_ERR: the remaining budget does not cover this call; not run",
    "overloaded": "EXEC_ERR: the executor's queue is full; not run",
    "duplicate": "EXEC_ERR: the same call already ran in this run; not run again",
    "cancelled": "EXEC_ERR: the run was cancelled",
    "denied": "EXEC_ERR: a hook, a guard or a person refused the call",
    "approval_pending": "EXEC_ERR: the call waits for a person's decision; the run is suspended, and this is not kept",
    "deadline": "TIMEOUT: the call's own time limit or the run's deadline passed",
    "queue_deadline": "TIMEOUT: the deadline passed while the call waited for its turn; not run",
}
"""Every `ErrorInfo.code` that concertino itself produces, with its status and meaning."""

FREE_CODES = frozenset(
    [
        "bad_json",
        "bad_format",
        "unknown_name",
        "invalid_arguments",
        "too_many_calls",
        "breaker_open",
        "quarantined",
        "dependency_failed",
        "budget_exhausted",
        "overloaded",
        "duplicate",
        "denied",
        "approval_pending",
        "queue_deadline",
    ]
)
"""Codes of calls that were never started: they cost nothing."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """Why a call did not succeed, for a model that wants to repair it and for a learner that counts causes.

    Attributes:
        code: one of `CODES`, or a plugin's own.
        message: at most 200 characters by default, worded as a direction.
        path: JSON pointer of the first offending argument, `""` for the whole.
        expected: what should have stood there.
        got: what stood there.
        near: known names close to an unknown one.
        retryable: whether the same call may succeed if repeated as it is.
    """

    code: str
    message: str
    path: str = ""
    expected: str = ""
    got: str = ""
    near: tuple[str, ...] = ()
    retryable: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields that are set."""
        data: dict[str, Any] = {"code": self.code, "message": self.message}
        for name in ("path", "expected", "got"):
            if value := getattr(self, name):
                data[name] = value
        if self.near:
            data["near"] = list(self.near)
        if self.retryable:
            data["retryable"] = True
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ErrorInfo:
        """The inverse of `to_json`."""
        return cls(**{**data, "near": tuple(data.get("near", ()))})


@dataclass(slots=True)
class Observation:
    """The one terminal record of a call. Treat it as immutable: it is shared by trace, strategy and caller.

    Attributes:
        call_id: id of the call inside its run.
        name: pool name of the member, or the unknown name as given.
        status: one of the four statuses.
        content: the result as plain JSON data (or text); `None` unless OK, or partial output of a TIMEOUT.
        error: the cause, `None` exactly when the status is OK.
        usage: what the call and everything below it consumed.
        attempts: how often the member was really invoked (0 = never).
        started, ended: seconds since the run started.
        repairs: names of the repairs that the arguments needed before they could be read.
        truncated: characters cut from the content, 0 if none.
        replayed: the result came from a trace, a recording or a cache; nothing was spent now.
        note: detail for logs, never shown to the model (a traceback, say).
    """

    call_id: str
    name: str
    status: Status
    content: Any = None
    error: ErrorInfo | None = None
    usage: Usage = NOTHING
    attempts: int = 0
    started: float = 0.0
    ended: float = 0.0
    repairs: tuple[str, ...] = ()
    truncated: int = 0
    replayed: bool = False
    note: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        """Whether the status is OK."""
        return self.status is Status.OK

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is empty is left out."""
        data: dict[str, Any] = {"id": self.call_id, "name": self.name, "status": self.status.value}
        if self.content is not None:
            data["content"] = self.content
        if self.error is not None:
            data["error"] = self.error.to_json()
        usage = self.usage.to_json()
        if usage:
            data["usage"] = usage
        data["attempts"] = self.attempts
        data["started"] = round(self.started, 6)
        data["ended"] = round(self.ended, 6)
        if self.repairs:
            data["repairs"] = list(self.repairs)
        if self.truncated:
            data["truncated"] = self.truncated
        if self.replayed:
            data["replayed"] = True
        if self.note:
            data["note"] = self.note
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Observation:
        """The inverse of `to_json`."""
        error = data.get("error")
        return cls(
            call_id=data["id"],
            name=data["name"],
            status=Status(data["status"]),
            content=data.get("content"),
            error=ErrorInfo.from_json(error) if error else None,
            usage=Usage.from_json(data.get("usage", {})),
            attempts=data.get("attempts", 0),
            started=data.get("started", 0.0),
            ended=data.get("ended", 0.0),
            repairs=tuple(data.get("repairs", ())),
            truncated=data.get("truncated", 0),
            replayed=data.get("replayed", False),
            note=data.get("note", ""),
        )


class CallFailed(ConcertinoError):
    """Inside an agent: a call it made through its `Context` did not succeed. `observation` says why.

    An agent that lets it pass ends with the same error code, so the orchestrator sees the real cause. A tool or agent
    may raise one of its own, with `because`.
    """

    def __init__(self, observation: Observation) -> None:
        error = observation.error
        text = error.message if error else str(observation.status)
        super().__init__(f"{observation.name}: {text}" if observation.name else text)
        self.observation = observation

    @classmethod
    def because(cls, message: str, *, code: str = "failed", content: Any = None, retryable: bool = False) -> CallFailed:
        """What a tool or agent raises to end its own call with EXEC_ERR, a code of its own, and what there is to show.

            raise ct.CallFailed.because("exit status 1", code="script_failed", content={"stderr": text})

        Args:
            message: what went wrong and what the orchestrator can do about it.
            code: a word for programs, in lower_snake_case.
            content: what there is to show nevertheless: plain JSON data.
            retryable: whether the very same call may succeed later.
        """
        return cls(Observation("", "", Status.EXEC_ERR, content, ErrorInfo(code, message, retryable=retryable)))
