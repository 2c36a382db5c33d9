"""The shape of a trace's records: which fields a record of each kind has, and of which types.

A trace may come from a stranger, and a checksum says only that nobody cut it. So each record is held against what the
record classes themselves write: of each class there are samples, and their JSON says which fields there may be, which
are always there, and of which types. Fields and kinds that are not known are left alone,
because a later version may write more of them.

Invariant: what a reader of traces is given has this shape, or `JournalError` says file, line, field, and what was
expected. It is cheap: fields and types of a record are compared with those of earlier ones in one look-up.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from concertino.core.approval import ApprovalRequest
from concertino.core.attachment import Attachment, Audio, File, Image
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
from concertino.core.late import LateValue
from concertino.core.model import Message, Reply, ToolCall
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call, Plan
from concertino.core.usage import NOTHING, Usage

from .journal_errors import JournalError

LEAST, MOST = -1e9, 1e11
"""Bounds of a number: of seconds since 1970 these are the years 1938 and 5138."""
LONGEST_ID = 2048
"""Characters of an id. An id is longer than that of the agent around it, so this bounds how deep calls nest, too."""
_FORMS = 256
"""Forms that are remembered of one shape: a hostile file could show a new one in each record."""

_ANY, _KEY = "any value", "*"
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table", list: "a list"}
_AMONG: dict[str, Collection[str]] = {
    "result.status": [str(status) for status in Status],
    "reply.observation.status": [str(status) for status in Status],
    "attach.attachments.kind": [kind.kind for kind in (Image, Audio, File)],
}
"""Fields in which only these words may stand."""
_SPARED = ("attempts", "key")
"""Fields that are always written, and that readers do without."""


class _Rule(Protocol):
    types: frozenset[type]

    def fits(self, value: Any) -> bool:
        """Whether a value of one of the types is as expected; quick."""

    def fault(self, value: Any, place: str) -> str:
        """What is wrong with such a value, empty if nothing is."""


class _Plain:
    """A value by its type alone, one of some words, or a number in bounds."""

    def __init__(self, types: Collection[type], among: Collection[str] = (), longest: int = 0) -> None:
        # A whole number is a number, too.
        self.types = frozenset({*types, int} if float in types else types)
        self._among = frozenset(among)
        self._longest = longest

    @property
    def looks_deeper(self) -> bool:
        return bool(self._among or self._longest)

    def fits(self, value: Any) -> bool:
        if type(value) is str:
            return (not self._among or value in self._among) and (not self._longest or len(value) <= self._longest)
        return type(value) not in (int, float) or LEAST <= value <= MOST

    def fault(self, value: Any, place: str) -> str:
        if self.fits(value):
            return ""
        if self._among:
            return _told(value, place, f"one of {', '.join(sorted(self._among))}")
        wanted = f"at most {self._longest} characters" if self._longest else f"a number from {LEAST:g} to {MOST:g}"
        return _told(value, place, wanted)


class _Many:
    """A list, or a table with free keys, whose values follow one rule."""

    def __init__(self, kind: type, within: _Rule | None) -> None:
        self.types = frozenset([kind])
        self._within = within

    def fits(self, value: Any) -> bool:
        within, values = self._within, value.values() if type(value) is dict else value
        if within is None or not values:
            return True
        if not within.types.issuperset(map(type, values)):
            return False
        return all(map(within.fits, values))

    def fault(self, value: Any, place: str) -> str:
        if self._within is None:
            return ""
        pairs = value.items() if type(value) is dict else enumerate(value)
        return next((found for key, each in pairs if (found := _fault(self._within, each, f"{place}[{key!r}]"))), "")


class Shape:
    """A table with known fields.

    Args:
        samples: JSON of what writes it: one with all of its fields, one with those alone that are always written.
        path: where it stands, for `_AMONG`.
    """

    types = frozenset([dict])

    def __init__(self, samples: Sequence[Mapping[str, Any]], path: str = "") -> None:
        names = dict.fromkeys(name for sample in samples for name in sample)
        self._rules = {
            name: _rule_of([sample[name] for sample in samples if name in sample], f"{path}.{name}") for name in names
        }
        always = [name for name in names if all(name in sample for sample in samples)]
        self._required = [name for name in always if name not in _SPARED]
        # Names and types of fields that were found right; with each: its numbers, and what has to be looked into.
        self._known: dict[tuple[Any, ...], tuple[list[str], list[tuple[str, _Rule]]]] = {}

    def fits(self, value: Any) -> bool:
        """Whether a table has this shape."""
        form = (*value, *map(type, value.values()))
        known = self._known.get(form)
        if known is None:
            if self._fault_of_form(value, ""):
                return False
            known = self._deeper(value)
            if len(self._known) < _FORMS:
                self._known[form] = known
        for name in known[0]:
            if not LEAST <= value[name] <= MOST:
                return False
        return all(rule.fits(value[name]) for name, rule in known[1])

    def fault(self, value: Any, place: str = "") -> str:
        """What is wrong with a table, empty if nothing is."""
        found = self._fault_of_form(value, place)
        inside = ((name, rule) for name, rule in self._rules.items() if name in value and rule is not None)
        return found or next(
            (wrong for name, rule in inside if (wrong := _fault(rule, value[name], _joined(place, name)))), ""
        )

    def _fault_of_form(self, value: Mapping[str, Any], place: str) -> str:
        """What is wrong with names and types."""
        for name in self._required:
            if name not in value:
                return f"the field {_joined(place, name)!r} is missing"
        for name, each in value.items():
            rule = self._rules.get(name)
            if rule is not None and type(each) not in rule.types and type(each) is not LateValue:
                return _told(each, _joined(place, name), _expected(rule.types))
        return ""

    def _deeper(self, value: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, _Rule]]]:
        numbers, others = [], []
        for name, each in value.items():
            rule = self._rules.get(name)
            if rule is None or each is None or type(each) is LateValue:
                continue
            if isinstance(rule, _Plain) and type(each) in (int, float):
                numbers.append(name)
            elif not isinstance(rule, _Plain) or (rule.looks_deeper and type(each) is str):
                others.append((name, rule))
        return numbers, others


def checked_record(record: Any, path: Path, line: int) -> dict[str, Any]:
    """A record of a trace, if it has the shape of its kind.

    Args:
        line: at which it stands in the file, counted from 1.

    Raises:
        JournalError: it has not; names file, line and field.
    """
    try:
        shape = _SHAPES.get(record["t"])
        if shape is None or (shape.fits(record) and not ("parent" in record and _misplaced(record))):
            return record  # type: ignore[no-any-return]
    except (TypeError, KeyError, AttributeError):
        pass  # no table, or no kind
    raise JournalError(
        f"{path}, line {line}: not a record of a trace: {_fault_of_record(record)}. The file was changed, or another "
        "program wrote it; use an unchanged copy."
    )


def _misplaced(record: Mapping[str, Any]) -> bool:
    """Whether the id of a call does not begin with that of the agent around it; so calls cannot contain each other."""
    parent, call_id = record["parent"], record["id"]
    return bool(parent) and not (len(call_id) > len(parent) and call_id.startswith(parent))


def _fault_of_record(record: Any) -> str:
    if not isinstance(record, dict):
        return _told(record, "", "a table")
    kind = record.get("t")
    if not isinstance(kind, str):
        return _told(kind, "t", "the kind of the record") if "t" in record else "the field 't' is missing"
    found = _SHAPES[kind].fault(record)
    if not found:
        found = f"the parent {_brief.repr(record['parent'])} is not the begin of the id {_brief.repr(record['id'])}"
    return f"{kind!r}: {found}"


def _fault(rule: _Rule, value: Any, place: str) -> str:
    if type(value) is LateValue:
        return ""
    return rule.fault(value, place) if type(value) in rule.types else _told(value, place, _expected(rule.types))


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 60


def _told(value: Any, place: str, wanted: str) -> str:
    there = f"the field {place!r} is {_brief.repr(value)}" if place else f"it is {_brief.repr(value)}"
    return f"{there}, expected {wanted}"


def _expected(types: Collection[type]) -> str:
    named = {float: "a number"} if float in types else {}
    words = [named.get(kind) or _WORDS[kind] for kind in _WORDS if kind in types and not (kind is int and named)]
    return " or ".join([*words, *(["null"] if type(None) in types else [])])


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _rule_of(samples: Sequence[Any], path: str) -> _Rule | None:
    """The rule that all samples of a field obey; None for anything."""
    if any(sample == _ANY for sample in samples):
        return None
    tables = [sample for sample in samples if isinstance(sample, dict)]
    if any(_KEY in table for table in tables):
        return _Many(dict, _rule_of([each for table in tables for each in table.values()], path))
    if any(tables):
        return Shape(tables, path)
    kinds = {type(sample) for sample in samples}
    if list in kinds:
        return _Many(list, _rule_of([each for sample in samples for each in sample], path))
    if not kinds or kinds == {dict}:
        return _Many(dict, None) if kinds else None
    longest = LONGEST_ID if path.rpartition(".")[2] in ("id", "parent") else 0
    return _Plain(kinds, _AMONG.get(path, ()), longest)


# -- the samples: of each class one with all of its fields, and one with those that are always written -----------------

_CALLS = [
    Call("name", {}, "id", ("id",), ("code", "message"), ("repair",), order_after=("id",)),
    Call("name", "text", "id"),
]
_ERROR = ErrorInfo("code", "message", "path", "expected", "got", ("near",), retryable=True)
_USAGE = Usage(1, 0.5, 0.5, 1, 1, 1, 0.5, 1, 1, 1, 1)
_SEEN = Observation("id", "name", Status.OK, _ANY, _ERROR, _USAGE, 1, 0.5, 0.5, ("repair",), 1, replayed=True, note="x")
_FAILED = Observation("id", "name", Status.OK, None, ErrorInfo("code", "message"), Usage(1), started=0.5, ended=0.5)
_UNSEEN = Observation("id", "name", Status.OK, usage=Usage(usd=0.5), started=0.5, ended=0.5)
_SEEN_ALL = (_SEEN, _FAILED, _UNSEEN, Observation("id", "name", Status.OK, started=0.5, ended=0.5))
_ASKED = [ToolCall("name", _ANY, "id", {"key": _ANY}), ToolCall("name", _ANY)]


def _samples_of_files() -> list[Attachment]:
    made = Attachment.made
    found: list[Attachment] = [File(b"x", name="x", media_type="text/plain"), File("https://x.example/x")]
    Attachment.made = made  # a run looks for attachments only where the process has made some; these are none
    return found


_FILES = _samples_of_files()
_MESSAGES = [
    Message("tool", "text", tuple(_ASKED), "id", "thought", {_KEY: _ANY}, tuple(_FILES)),
    Message("user", "text"),
]
_REPLIES = [
    Reply("text", tuple(_ASKED), _USAGE, "stop", "thought", (1,), (0.5,), (1,), _ANY, {_KEY: _ANY}),
    *(Reply("text", usage=usage) for usage in (Usage(1), Usage(usd=0.5), NOTHING)),
]
_ISSUES = (FormatIssue("code", "message", 1, 1, repaired=True), FormatIssue("code", "message", 1, 1))
_REQUEST = ApprovalRequest("id", "name", _ANY, "", "", "")

_SETUP: dict[str, Any] = {
    "strategy": {"name": "name"},
    "pool": "id",
    "members": {_KEY: "digest"},
    "roles": {_KEY: "name"},
    "aliases": {_KEY: "name"},
    "budget": {_KEY: 0.5},
    "sampling": {},
    "tools": [{}],
    "found": ["name"],
    "history": [message.to_json() for message in _MESSAGES],
    "instructions": "text",
    "answer_schema": _ANY,
    "guards": ["stage name"],
    "duplicates": "word",
    "durability": "word",
    "session": "name",
    "eager": True,
    "arranged": True,
}
"""What a run began with (`concertino.runs.setup`); none of it is always there."""

_SAMPLES: dict[str, list[Any]] = {
    "run": [RunStarted("id", "text", _SETUP, 0.5), RunStarted("id", "text", {}, 0.5)],
    "ask": [Asked("id", "role", "model", _MESSAGES, 0.5)],
    "reply": [Replied("id", "role", reply, seen) for reply, seen in zip(_REPLIES, _SEEN_ALL, strict=True)],
    "plan": [Planned(1, Plan.parallel(_CALLS), 0.5, _ISSUES), Planned(1, Plan.parallel(_CALLS), 0.5)],
    "intent": [CallStarted("id", "id", parent, "name", "kind", _ANY, 0.5) for parent in ("id", "")],
    "result": [CallEnded(_SEEN, "id", _ANY), *map(CallEnded, _SEEN_ALL)],
    "retry": [Retried("id", "name", 1, "failure", "text", 0.5)],
    "stall": [Stalled("id", "name", 0.5, "place")],
    "attach": [Attached("id", _FILES)],
    "approval": [ApprovalAsked(_REQUEST, 0.5)],
    "decision": [Decided("id", True, {}, "text", 0.5, 0.5), Decided("id", True, None, "", 0.0, 0.5)],
    "end": [RunEnded("text", "word", "text", usage, 0.5) for usage in (_USAGE.to_json(), {})]
    + [RunEnded(None, "word", "text", {}, 0.5)],
}
_SHAPES = {kind: Shape([event.to_json() for event in events], kind) for kind, events in _SAMPLES.items()}
