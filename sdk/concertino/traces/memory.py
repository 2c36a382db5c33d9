"""What a trace remembers of a run, for the run that resumes it.

Resume asks before every call: is this very call finished? Then its result is given back and nothing is spent. Was it
started, with no known end? Then it is in doubt: repeated under the same idempotency key where that is safe, else
observed as `unknown_outcome`. Because the orchestrator's replies are remembered too, a resumed run goes the same way
up to the point where the trace ends.

Of a large trace, contents, replies and long arguments stay in the file, and are read when they are needed.

An agent may make its calls in another order than before, when what it waited for now comes at once. So its plans and
requests are recognised by what they say, not by when they come: each recorded one is claimed once by an equal one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from concertino.core.late import LateObservation, LateValue, present
from concertino.core.observation import Observation
from concertino.core.plan import unparse
from concertino.core.usage import NOTHING, Usage

from .facts import FACTS_WITHOUT
from .records import TraceReading
from .trace import Trace

_GUARD = re.compile(r"guard\d+\.call\.")
_LONG = 1024
"""Bytes of a line from which on a value of it stays in the file."""
_SHORT = 256
"""Characters of a content up to which it is held."""
_CONTENTS = ("content", "full")


class TraceMemory:
    """The finished and the doubtful calls of a trace."""

    def __init__(self, trace: Trace | None = None) -> None:
        self._arguments: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._results: dict[str, dict[str, Any]] = {}
        self._replies: dict[str, Any] = {}
        self._asked_for: set[str] = set()
        self._decisions: dict[str, dict[str, Any]] = {}
        self._doubtful: set[str] = set()
        self._rounds: set[int] = set()
        self._stopped: dict[str, Usage] = {}
        self._inside: dict[str, dict[int, dict[str, tuple[str, Any]]]] = {}
        if trace is not None:
            for record in trace.records:
                self._take(record, None)
            self._complete(trace)

    @classmethod
    def of_file(cls, path: str | Path) -> tuple[Trace, TraceMemory]:
        """A trace and what it remembers, from one reading of its file.

        Raises:
            TraceError: as `Trace.load`.
        """
        return cls.of_reading(TraceReading(path, without=FACTS_WITHOUT, keep=0))

    @classmethod
    def of_reading(cls, reading: TraceReading) -> tuple[Trace, TraceMemory]:
        """The same, from a reading that the caller keeps; the reading has all but what `FACTS_WITHOUT` names."""
        memory = cls()

        def take(record: dict[str, Any]) -> None:
            held = reading.whole or (reading.weight < _LONG and "n" in record)  # without a number, it is of a side file
            memory._take(record, None if held else reading.later())

        trace = Trace.read(reading, take)
        memory._complete(trace)
        return trace, memory

    def _take(self, record: dict[str, Any], later: Callable[[], dict[str, Any]] | None) -> None:
        """Take one record; of a long one that is not held anyway, `later` reads it again."""
        match record["t"]:
            case "intent":
                self._arguments[record["id"]] = _kept(record, "arguments", later)
                self._names[record["id"]] = record["name"]
            case "ask":
                self._names[record["id"]] = record["model"]
            case "result":
                self._results[record["id"]] = record if later is None else _outlined(record, later)
            case "reply":
                self._replies[record["id"]] = record if later is None else LateValue(later)
            case "approval":
                self._asked_for.add(record["id"])
            case "decision":
                self._decisions[record["id"]] = record
            case "plan":
                self._rounds.add(record["round"])

    def _complete(self, trace: Trace) -> None:
        self._doubtful = set(trace.in_doubt())
        stopped = {call_id for call_id, record in self._results.items() if _was_stopped(record)}
        self._stopped = {call_id: Usage.from_json(self._results.pop(call_id).get("usage", {})) for call_id in stopped}
        # A call that was cancelled after it began may have been executed; one that waited in the queue was not.
        self._doubtful |= {call_id for call_id in stopped if call_id in self._names}
        self._inside = self._group()

    def _group(self) -> dict[str, dict[int, dict[str, tuple[str, Any]]]]:
        """What was called inside each agent's call: by the call's id, then by the number of the plan or request.

        A request to a model stands alone, under `""`; further tries of a router under `~2` and so on.
        """
        inside: dict[str, dict[int, dict[str, tuple[str, Any]]]] = {}
        changed = {call_id for call_id, record in self._decisions.items() if "arguments" in record}
        for call_id, record in self._results.items():
            if not _GUARD.match(call_id):
                continue  # its content may be large, and in the file
            checked, verdict = present(self._arguments.get(call_id)), present(record.get("content"))
            if isinstance(checked, dict) and isinstance(verdict, dict) and "replace" in verdict:
                changed.add(str(checked.get("about", "")))
        for call_id in {**self._names, **self._results}:
            parent, slash, rest = call_id.rpartition("/")
            number, _, inner = rest.partition(".")
            number, again, try_ = number.partition("~")  # another model of a router, for the same request
            inner = inner or again + try_
            if slash:
                name = self._names.get(call_id) or self._results[call_id]["name"]
                # Of a call that was made with other arguments than planned, any plan may be meant.
                arguments = None if call_id in changed else self._arguments.get(call_id)
                inside.setdefault(parent, {}).setdefault(int(number), {})[inner] = (name, arguments)
        return inside

    def __len__(self) -> int:
        return len(self._results) + len(self._replies)

    # -- what an agent does again ----------------------------------------------------------------------------------

    def claim_plan(self, parent: str, calls: list[dict[str, Any]]) -> int:
        """The number under which this very plan ran before, 0 if it did not."""
        wanted = {call["id"]: call["arguments"] for call in calls}
        return self._claim(parent, lambda inner, entry: inner in wanted and _fits(wanted[inner], present(entry[1])))

    def claim_request(self, parent: str, messages: list[dict[str, Any]]) -> int:
        """The number under which this very request was made before, 0 if it was not."""
        asked = {"messages": messages}
        # A model that a router would have asked, and spared, has a result and no request.
        fits = lambda inner, entry: inner[:1] in ("", "~") and present(entry[1]) in (None, asked)  # noqa: E731
        return self._claim(parent, fits, lambda group: any(present(entry[1]) == asked for entry in group.values()))

    def _claim(self, parent: str, fits: Any, whole: Any = bool) -> int:
        groups = self._inside.get(parent, {})
        for number in sorted(groups):
            group = groups[number]
            if group and whole(group) and all(fits(inner, entry) for inner, entry in group.items()):
                groups[number] = {}  # claimed: the number stays taken, and fits no other call
                return number
        return 0

    def highest_number(self, parent: str) -> int:
        """The highest number that was used inside an agent's call."""
        return max(self._inside.get(parent, ()), default=0)

    # -- one call --------------------------------------------------------------------------------------------------

    def planned(self, round_: int) -> bool:
        """Whether the plan of a round is on record."""
        return round_ in self._rounds

    def recall(self, call_id: str, name: str, arguments: Callable[[], Any]) -> Observation | None:
        """The finished result of this very call, None if there is none or it was another call."""
        reply = present(self._replies.get(call_id))
        if reply is not None:
            observation = Observation.from_json(reply["observation"])
            observation.content = reply["reply"]
            return observation
        result = self._results.get(call_id)
        if result is None or self._names.get(call_id, result["name"]) != name:
            return None
        known = present(self._arguments.get(call_id))
        if known is not None:
            asked = arguments()
            # Requests to models are recorded as their messages, calls of members as their arguments.
            if known != ({"messages": asked} if isinstance(asked, list) else unparse(asked)):
                return None
        return late_result(result, None)

    def asked(self, call_id: str) -> str:
        """The name of the member that was called, or of the model that was asked, under this id."""
        return self._names.get(call_id) or str(self._results.get(call_id, {}).get("name", ""))

    def finished(self, call_id: str) -> bool:
        """Whether the call has a result on record."""
        return call_id in self._results

    def full_content(self, call_id: str) -> Any:
        """Content before truncation, or a `LateValue` of it."""
        return self._results.get(call_id, {}).get("full")

    def in_doubt(self, call_id: str) -> bool:
        """Whether the call was started and its end is not known; a cancelled one may have been executed as well."""
        return call_id in self._doubtful

    def decision(self, call_id: str) -> dict[str, Any] | None:
        """What a person decided about the call."""
        return self._decisions.get(call_id)

    def approval_asked(self, call_id: str) -> bool:
        """Whether a decision about the call was asked for."""
        return call_id in self._asked_for

    def charged(self, call_id: str) -> Usage:
        """What a call that was cancelled, and has to be made again, was charged already."""
        return self._stopped.get(call_id, NOTHING)


def late_result(record: Mapping[str, Any], later: Callable[[], dict[str, Any]] | None) -> Observation:
    """The observation of a result; its content is read with `later` when it is asked for, if that is given."""
    outline = dict(record) if later is None else _outlined(record, later)
    return (LateObservation if isinstance(outline.get("content"), LateValue) else Observation).from_json(outline)


def _kept(record: Mapping[str, Any], field: str, later: Callable[[], dict[str, Any]] | None) -> Any:
    """A field of a record, or what reads it."""
    value = record[field]
    return value if later is None or isinstance(value, LateValue) else LateValue(lambda: later()[field])


def _outlined(record: Mapping[str, Any], later: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A result whose long contents are read when they are needed."""
    outline = dict(record)
    for field in _CONTENTS:
        # An empty one may have been cut when its line was skimmed.
        if field in record and not (isinstance(record[field], str) and 0 < len(record[field]) <= _SHORT):
            outline[field] = _kept(record, field, later)
    return outline


def _was_stopped(record: dict[str, Any]) -> bool:
    """Whether a call ended only because the run was cancelled, or waited for another call; it is made again.

    One that waited for a call that really failed ends in the same way again.
    """
    return record.get("error", {}).get("code") in ("cancelled", "queue_deadline", "dependency_failed")


def _fits(wanted: Any, recorded: Any) -> bool:
    """Whether planned arguments can be the recorded ones: raw JSON is read, and a reference stands for anything."""
    if recorded is None:
        return True
    if isinstance(wanted, str):
        from concertino.text.json import ReadingError, read_json

        try:
            wanted = read_json(wanted or "{}").value
        except ReadingError:
            return False
    return _equal(wanted, recorded)


def _equal(wanted: Any, recorded: Any) -> bool:
    if isinstance(wanted, str) and "${" in wanted:
        return True
    if isinstance(wanted, dict) and isinstance(recorded, dict):
        return wanted.keys() == recorded.keys() and all(_equal(wanted[key], recorded[key]) for key in wanted)
    if isinstance(wanted, list) and isinstance(recorded, list):
        return len(wanted) == len(recorded) and all(map(_equal, wanted, recorded))
    return bool(wanted == recorded)
