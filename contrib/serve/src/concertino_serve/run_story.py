"""The story of a run: the fold over its moments that every protocol tells in its own words.

    story = RunStory.of(request)
    for moment in moments:
        for step in story.take(moment): ...      # a call was opened or closed, or there is more of the answer
    for step in story.close(): ...               # the run is no longer under way

The story of a part of a run tells what lies behind the record with which it begins. Of what was before, it knows what
was planned, which calls wait, and what was used.

Invariants: the steps follow from the moments alone; a call is opened once and closed once, and the pieces of the answer
add up to the answer, or the last step says that it was written again. An end that is followed by more was no end: the
run was resumed. A call of the client's tools is told only while it waits for the client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from .client_tools import names_of, plain_name
from .request_record import RequestRecord
from .run_moments import Moment

_NO_CALLS = ("model", "guard")
"""Kinds of what a run asks beside the calls of its plan."""
StepKind = Literal["opened", "closed", "waits", "text", "rewritten"]


@dataclass
class ServedCall:
    """A call of the pool, or one for the client to make.

    Attributes:
        arguments: as JSON.
        output: as text; None where it failed, or has not come.
        error: what failed.
        for_client: the client is to make it.
        content: the result as data, whole, also where a model is shown a part of it.
        attached: the records of images and files that came with it.
    """

    id: str
    name: str
    arguments: str
    output: str | None = None
    error: str | None = None
    done: bool = False
    for_client: bool = False
    content: Any = None
    attached: list[dict[str, Any]] = field(default_factory=list)


class Step(NamedTuple):
    """One step of the story.

    Attributes:
        call: for `opened`, `closed`, and `waits`: the run continues when the client has made the call, or when it was
            decided whether the server may.
        text: for `text`: more of the answer; for `rewritten`: the whole answer, which is not what was told before.
    """

    kind: StepKind
    call: ServedCall | None = None
    text: str = ""


@dataclass
class RunStory:
    """What is known of a run, or of a part of it.

    Args:
        after: the number of the record with which it begins.
        tools: names of the client's tools.

    Attributes:
        place: the number of the last record.
        waiting: calls that wait for the client or a decision.
        calls: in the order of their beginning.
        told: the pieces of the answer.
        answer: the answer of an ended run.
        stop: why it ended; `unfinished` before that.
        usage: of an ended run, without what earlier parts have used.
    """

    after: int = -1
    tools: frozenset[str] = frozenset()
    place: int = 0
    waiting: dict[str, ServedCall] = field(default_factory=dict)
    calls: dict[str, ServedCall] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    answer: str | None = None
    stop: str = "unfinished"
    usage: dict[str, Any] = field(default_factory=dict)
    _planned: dict[str, dict[str, Any]] = field(default_factory=dict)
    _used: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, request: RequestRecord) -> RunStory:
        """The story of what a request has begun, yet without moments."""
        return cls(request.after, names_of(request.tools))

    @property
    def suspended(self) -> bool:
        """Whether the run has ended because calls wait."""
        return self.stop == "suspended" and bool(self.waiting)

    @property
    def for_client(self) -> list[ServedCall]:
        """Calls that the client is to make, now that the run has ended."""
        return [call for call in self.waiting.values() if call.for_client] if self.suspended else []

    def take(self, moment: Moment) -> Iterator[Step]:
        """The steps of a moment."""
        if isinstance(moment, str):
            if self.place > self.after:
                self.told.append(moment)
                yield Step("text", text=moment)
            return
        self.place = moment["n"]
        self._note(moment)
        if self.place <= self.after:
            if moment["t"] == "end":
                self._used = moment["usage"]
            return
        yield from self._steps(moment)

    def _steps(self, moment: dict[str, Any]) -> Iterator[Step]:
        match moment["t"]:
            case "plan":
                self._begun_again()
            case "intent":
                self._begun_again()
                if self._is_of_pool(moment) and moment["id"] not in self.calls:
                    yield self._opened(moment["id"], moment["name"], moment["arguments"])
            case "attach" if (call := self.calls.get(moment["id"])) is not None:
                call.attached = moment["attachments"]
            case "result":
                self._begun_again()
                yield from self._result(moment)
            case "end":
                self.answer, self.stop = moment["answer"], moment["stop"]
                self.usage = _less(moment["usage"], self._used)

    def take_all(self, moments: list[Moment]) -> list[Step]:
        """The steps of some moments."""
        return [step for moment in moments for step in self.take(moment)]

    def _note(self, moment: dict[str, Any]) -> None:
        """What a part has to know of those before it, too."""
        match moment["t"]:
            case "plan":
                self._planned |= {f"{moment['round']}.{call['id']}": call for call in moment["calls"]}
            case "approval":
                name, written = moment["name"], moment["arguments"]
                arguments = written if isinstance(written, str) else _json(written)
                asked = ServedCall(moment["id"], plain_name(name), arguments, for_client=name in self.tools)
                self.waiting.setdefault(moment["id"], asked)
            case "decision":
                self.waiting.pop(moment["id"], None)

    def _is_of_pool(self, record: dict[str, Any]) -> bool:
        return record["kind"] not in _NO_CALLS and record["name"] not in self.tools

    def close(self) -> Iterator[Step]:
        """The last steps: open calls will not end any more, and what was not told of the answer is told."""
        for call in self.calls.values():
            if not call.done:
                call.done, call.error = True, call.error or self.stop
                yield Step("closed", call)
        if self.suspended:
            yield from (Step("waits", call) for call in self.waiting.values())
        if self.answer is None:
            return
        told = "".join(self.told)
        if not self.answer.startswith(told):
            self.told = [self.answer]
            yield Step("rewritten", text=self.answer)
        elif len(self.answer) > len(told):
            self.told.append(rest := self.answer[len(told) :])
            yield Step("text", text=rest)

    def _begun_again(self) -> None:
        self.answer, self.stop, self.usage = None, "unfinished", {}

    def _opened(self, call_id: str, name: str, arguments: Any) -> Step:
        written = arguments if isinstance(arguments, str) else _json(arguments)
        call = self.calls[call_id] = ServedCall(call_id, name, written)
        return Step("opened", call)

    def _result(self, record: dict[str, Any]) -> Iterator[Step]:
        planned = self._planned.get(record["id"])
        if planned is not None and planned["name"] in self.tools:
            return
        if record["id"] not in self.calls and planned is not None:
            # It was refused before it began, or is known already.
            yield self._opened(record["id"], planned["name"], planned["arguments"])
        call = self.calls.get(record["id"])
        if call is None or call.done:
            return  # a request to a model that failed is no call of the pool
        failure = record.get("error")
        if failure is None:
            content = record.get("content")
            call.content = record.get("full", content)
            call.output = content if isinstance(content, str) else _json(content)
            call.error = None  # of a run that was cancelled before it was resumed
        else:
            call.error = f"{failure['code']}: {failure['message']}"
            # A resumed run makes it again, so only the end of the run tells whether that was its last word.
            if failure["code"] == "cancelled":
                return
        call.done = True
        yield Step("closed", call)


def _less(usage: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What was used since then."""
    return {name: value - before[name] if _is_count(before.get(name)) else value for name, value in usage.items()}


def _is_count(value: Any) -> bool:
    return type(value) in (int, float)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
