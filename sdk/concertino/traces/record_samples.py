"""Samples of what a trace holds: of each kind of record some with all of their fields, some with those always written.

They are made with the record classes themselves, so that the shape of a record (`record_shape`) is written down nowhere
else. Invariant: every field that a class writes is in a sample of it.
"""

from __future__ import annotations

from typing import Any

from concertino.core.approval import ApprovalRequest
from concertino.core.attachment import Attachment, File
from concertino.core.events import (
    ApprovalAsked,
    Asked,
    Attached,
    CallEnded,
    CallStarted,
    Decided,
    Planned,
    Replied,
    Retried,
    RunEnded,
    RunStarted,
    Stalled,
)
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Message, Reply, ToolCall
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call, Plan
from concertino.core.usage import NOTHING, Usage

from .record_shape import ANY, KEY

_CALLS = [
    Call("name", {}, "id", ("id",), ("code", "message"), ("repair",), order_after=("id",)),
    Call("name", "text", "id"),
]
_ERROR = ErrorInfo("code", "message", "path", "expected", "got", ("near",), retryable=True)
_USAGE = Usage(1, 0.5, 0.5, 1, 1, 1, 0.5, 1, 1, 1, 1)
_SEEN = Observation("id", "name", Status.OK, ANY, _ERROR, _USAGE, 1, 0.5, 0.5, ("repair",), 1, replayed=True, note="x")
_FAILED = Observation("id", "name", Status.OK, None, ErrorInfo("code", "message"), Usage(1), started=0.5, ended=0.5)
_UNSEEN = Observation("id", "name", Status.OK, usage=Usage(usd=0.5), started=0.5, ended=0.5)
_SEEN_ALL = (_SEEN, _FAILED, _UNSEEN, Observation("id", "name", Status.OK, started=0.5, ended=0.5))
_ASKED = [ToolCall("name", ANY, "id", {"key": ANY}), ToolCall("name", ANY)]


def _samples_of_files() -> list[Attachment]:
    made = Attachment.made
    found: list[Attachment] = [
        File(b"x", name="x", media_type="text/plain"),
        File("https://x.example/x", media_type="text/plain"),
    ]
    Attachment.made = made  # a run looks for attachments only where the process has made some; these are none
    return found


_FILES = _samples_of_files()
_MESSAGES = [
    Message("tool", "text", tuple(_ASKED), "id", "thought", {KEY: ANY}, tuple(_FILES)),
    Message("user", "text"),
]
_REPLIES = [
    Reply("text", tuple(_ASKED), _USAGE, "stop", "thought", (1,), (0.5,), (1,), ANY, {KEY: ANY}),
    *(Reply("text", usage=usage) for usage in (Usage(1), Usage(usd=0.5), NOTHING)),
]
_ISSUES = (FormatIssue("code", "message", 1, 1, repaired=True), FormatIssue("code", "message", 1, 1))
_REQUEST = ApprovalRequest("id", "name", ANY, "", "", "")

_SETUP: dict[str, Any] = {
    "strategy": {"name": "name"},
    "pool": "id",
    "members": {KEY: "digest"},
    "roles": {KEY: "name"},
    "aliases": {KEY: "name"},
    "budget": {KEY: 0.5},
    "sampling": {},
    "tools": [{}],
    "found": ["name"],
    "history": [message.to_json() for message in _MESSAGES],
    "instructions": "text",
    "answer_schema": ANY,
    "guards": ["stage name"],
    "duplicates": "word",
    "durability": "word",
    "session": "name",
    "eager": True,
    "arranged": True,
}
"""What a run began with (`concertino.runs.setup`); none of it is always there."""

SAMPLES: dict[str, list[Any]] = {
    "run": [RunStarted("id", "text", _SETUP, 0.5), RunStarted("id", "text", {}, 0.5)],
    "ask": [Asked("id", "role", "model", _MESSAGES, 0.5)],
    "reply": [Replied("id", "role", reply, seen) for reply, seen in zip(_REPLIES, _SEEN_ALL, strict=True)],
    "plan": [Planned(1, Plan.parallel(_CALLS), 0.5, _ISSUES), Planned(1, Plan.parallel(_CALLS), 0.5)],
    "intent": [CallStarted("id", "id", parent, "name", "kind", ANY, 0.5) for parent in ("id", "")],
    "result": [CallEnded(_SEEN, "id", ANY), *map(CallEnded, _SEEN_ALL)],
    "retry": [Retried("id", "name", 1, "failure", "text", 0.5)],
    "stall": [Stalled("id", "name", 0.5, "place")],
    "attach": [Attached("id", _FILES)],
    "approval": [ApprovalAsked(_REQUEST, 0.5)],
    "decision": [Decided("id", True, {}, "text", 0.5, 0.5), Decided("id", True, None, "", 0.0, 0.5)],
    "end": [RunEnded("text", "word", "text", usage, 0.5) for usage in (_USAGE.to_json(), {})]
    + [RunEnded(None, "word", "text", {}, 0.5)],
}
