"""The events of a finished run in a few bytes, until somebody looks at them.

A finished run of 40 calls is 330 objects and more than 70 KB. A program that keeps a thousand of them mostly reads
their answers, and the garbage collector walks over all of it again and again. So the events are packed: what is plain
data goes into one block of bytes; what is not plain, or rare, or long and maybe shared with other runs, is kept as it
is.

Invariant: what is unpacked equals what was packed, type by type.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from concertino.core.events import Asked, CallEnded, CallStarted, Event, Planned, Replied
from concertino.core.late import LateObservation
from concertino.core.model import Message, Reply, ToolCall
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call, Plan
from concertino.core.usage import NOTHING, Usage

_FEWEST, _MOST = 32, 4_000
"""Events of a run that is packed: fewer are small anyway, and more would keep the event loop for over 5 ms."""
_LONG = 512
"""Characters from which on a text is kept as it is: it is often shared, as a system prompt is by all runs of a pool."""
_STATUSES = tuple(Status)
_PLACES = {status: place for place, status in enumerate(_STATUSES)}
_Row = tuple[Any, ...]
_Kept = list[Any]


class PackedEvents:
    """Events, packed.

    Attributes:
        first: the first of them, as it is.
        block: their rows.
        kept: what the rows refer to by its place.
    """

    __slots__ = ("block", "first", "kept")

    def __init__(self, events: Sequence[Event]) -> None:
        self.first = events[0]
        self.kept: _Kept = []
        try:
            self.block = marshal.dumps([_row(event, self.kept) for event in events])
        except ValueError:  # something in it is not plain data, so each event is tried alone
            self.kept = []
            self.block = marshal.dumps([self._alone(event) for event in events])

    @classmethod
    def of(cls, events: Sequence[Event]) -> PackedEvents | None:
        """The events, packed; None where that does not pay."""
        return cls(events) if _FEWEST <= len(events) <= _MOST else None

    def unpacked(self) -> list[Event]:
        """The events again."""
        return [_event(row, self.kept) for row in marshal.loads(self.block)]

    def _alone(self, event: Event) -> _Row:
        known = len(self.kept)
        try:
            row = _row(event, self.kept)
            marshal.dumps(row)
        except ValueError:
            del self.kept[known:]
            return _as_it_is(event, self.kept)
        return row


# -- rows --------------------------------------------------------------------------------------------------------------

_started = attrgetter("run_id", "call_id", "parent", "name", "kind", "arguments", "at")
_asked = attrgetter("call_id", "role", "model", "at")
_seen = attrgetter("call_id", "name", "attempts", "started", "ended", "repairs", "truncated", "replayed", "note")
_error = attrgetter("code", "message", "path", "expected", "got", "near", "retryable")
_call = attrgetter("name", "arguments", "id", "error", "repairs", "guarded")
_tool_call = attrgetter("name", "arguments", "id")


def _row(event: Event, kept: _Kept) -> _Row:
    return _ROWS.get(type(event), _as_it_is)(event, kept)


def _as_it_is(thing: Any, kept: _Kept) -> _Row:
    kept.append(thing)
    return (0, len(kept) - 1)


def _started_row(event: CallStarted, kept: _Kept) -> _Row:
    return (1, *_started(event))


def _ended_row(event: CallEnded, kept: _Kept) -> _Row:
    # A late one holds no content, and packing would read it.
    if event.full is not None or type(event.observation) is LateObservation:
        return _as_it_is(event, kept)
    return (2, event.parent, _observation_row(event.observation, kept))


def _asked_row(event: Asked, kept: _Kept) -> _Row:
    return (3, [_message_row(message, kept) for message in event.messages], *_asked(event))


def _replied_row(event: Replied, kept: _Kept) -> _Row:
    reply = event.reply
    if reply.token_ids is not None or reply.prompt_token_ids is not None or reply.logprobs is not None:
        return _as_it_is(event, kept)
    calls = _tool_call_rows(reply.tool_calls)
    if calls is None:
        return _as_it_is(event, kept)
    said = (_text(reply.text, kept), calls, _usage_row(reply.usage), reply.finish_reason, _text(reply.reasoning, kept))
    observation = _observation_row(event.observation, kept)
    return (4, event.call_id, event.role, said, reply.data, reply.extra or None, observation)


def _planned_row(event: Planned, kept: _Kept) -> _Row:
    plan = event.plan
    if plan.edges or plan.barriers or event.issues:
        return _as_it_is(event, kept)
    return (5, event.round, event.at, [_call(call) for call in plan.calls])


_ROWS: dict[type, Callable[[Any, _Kept], _Row]] = {
    CallStarted: _started_row,
    CallEnded: _ended_row,
    Asked: _asked_row,
    Replied: _replied_row,
    Planned: _planned_row,
}


def _observation_row(seen: Observation, kept: _Kept) -> _Row:
    content, error = seen.content, seen.error
    if type(content) is tuple or (type(content) is str and len(content) >= _LONG):
        kept.append(content)
        content = (len(kept) - 1,)
    cause = None if error is None else _error(error)
    return (_PLACES[seen.status], content, cause, _usage_row(seen.usage), _seen(seen))


def _usage_row(usage: Usage) -> _Row | None:
    return None if usage is NOTHING else usage[:]


def _message_row(message: Message, kept: _Kept) -> Any:
    calls = _tool_call_rows(message.tool_calls)
    if calls is None or message.extra or message.attachments:
        kept.append(message)
        return len(kept) - 1
    return (message.role, _text(message.text, kept), calls, message.call_id, _text(message.reasoning, kept))


def _tool_call_rows(calls: Sequence[ToolCall]) -> _Row | None:
    if not calls:
        return ()
    return None if any(call.extra for call in calls) else tuple(_tool_call(call) for call in calls)


def _text(text: str, kept: _Kept) -> str | int:
    if len(text) < _LONG:
        return text
    kept.append(text)
    return len(kept) - 1


# -- and back ----------------------------------------------------------------------------------------------------------


def _event(row: _Row, kept: _Kept) -> Event:
    kind = row[0]
    if kind == 1:
        return CallStarted(*row[1:])
    if kind == 2:
        return CallEnded(_observation(row[2], kept), row[1])
    if kind == 3:
        call_id, role, model, at = row[2:]
        return Asked(call_id, role, model, [_message(each, kept) for each in row[1]], at)
    if kind == 4:
        return Replied(row[1], row[2], _reply(row[3], row[4], row[5], kept), _observation(row[6], kept))
    if kind == 5:
        calls = [Call(name, arguments, id, (), *more) for name, arguments, id, *more in row[3]]
        return Planned(row[1], Plan.parallel(calls), row[2])
    event: Event = kept[row[1]]
    return event


def _observation(row: _Row, kept: _Kept) -> Observation:
    status, content, cause, usage, (call_id, name, *more) = row
    if type(content) is tuple:
        content = kept[content[0]]
    error = None if cause is None else ErrorInfo(*cause)
    return Observation(call_id, name, _STATUSES[status], content, error, _usage(usage), *more)


def _usage(row: _Row | None) -> Usage:
    return NOTHING if row is None else Usage._make(row)


def _reply(said: _Row, data: Any, extra: Any, kept: _Kept) -> Reply:
    text, calls, usage, finish, reasoning = said
    text, reasoning = _whole(text, kept), _whole(reasoning, kept)
    more = {} if extra is None else extra
    return Reply(
        text, tuple(ToolCall(*call) for call in calls), _usage(usage), finish, reasoning, data=data, extra=more
    )


def _message(row: Any, kept: _Kept) -> Message:
    if type(row) is int:
        message: Message = kept[row]
        return message
    role, text, calls, call_id, reasoning = row
    return Message(role, _whole(text, kept), tuple(ToolCall(*call) for call in calls), call_id, _whole(reasoning, kept))


def _whole(text: str | int, kept: _Kept) -> str:
    return text if isinstance(text, str) else str(kept[text])
