"""The fold: records of a trace go in, finished spans come out.

    fold = SpanFold()
    for record in records:
        for span in fold.apply(record): ...     # spans that this record finished
    for span in fold.at_rest(): ...             # the run itself, if the last record ended it

A span is *settled* by the record after which nothing about it can change. So the same records give the same spans in
the same order, whether they are read at once, while the run goes on, or after it was killed and resumed. Only what is
open is remembered.

Invariant: a span has exactly one parent, and that one is a span of the same run, or the caller's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .content import message_fields, run_fields
from .conventions import SPANS, SpanKind
from .ids import Caller, read_traceparent

Record = Mapping[str, Any]

ROOT = "run"
"""Key of the span of the run itself."""
PROVIDER = "concertino"
_WORD = re.compile(r"[A-Za-z0-9_.\-]{1,64}\Z")
_GUARD = re.compile(r"guard\d+\.(question|call|result|answer)\.(.+)", re.DOTALL)
_LIMITS = ("usd", "units", "seconds", "rounds")
_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
_USED = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "usd", "units")


@dataclass(slots=True)
class SpanEvent:
    """Something that happened in a span, at a time in seconds since 1970."""

    name: str
    at: float
    fields: dict[str, Any]


@dataclass(slots=True)
class Span:
    """A finished span, in no dialect.

    Attributes:
        settled: number of the record that settled it.
        key: what it is in its run; `parent`: the key of its parent, empty for the root.
        name: what stands behind the operation in its name.
        started, ended: seconds since 1970.
        fields: by the names of `conventions.ATTRIBUTES`.
        links: keys of the spans that it waited for.
    """

    settled: int
    key: str
    parent: str
    kind: SpanKind
    name: str
    started: float
    ended: float
    fields: dict[str, Any]
    links: list[str] = field(default_factory=list)
    events: list[SpanEvent] = field(default_factory=list)

    @property
    def error(self) -> str:
        """`error.type`; empty if it went well."""
        return str(self.fields.get("error", ""))


class SpanFold:
    """What is known of a run, as far as open spans need it.

    Args:
        content: whether prompts, answers, arguments and results are taken into the spans.

    Attributes:
        run_id: of the run, empty before its first record.
        caller: the span that the run was started in, if it was.
    """

    def __init__(self, *, content: bool = False) -> None:
        self.run_id = ""
        self.caller: Caller | None = None
        self._content = content
        self._setup: Record = {}
        self._began = self._last = 0.0
        self._run: dict[str, Any] = {}
        self._open: dict[str, Record] = {}
        self._asks: dict[str, Record] = {}
        self._answered: list[Span] = []
        self._links: dict[str, list[str]] = {}
        self._events: defaultdict[str, list[SpanEvent]] = defaultdict(list)
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._end: Record | None = None

    # -- records -----------------------------------------------------------------------------------------------------

    def apply(self, record: Record) -> list[Span]:
        """Take a record. Gives the spans that it settles, children before parents."""
        self._end = None  # the run goes on after it had ended, so that end was none
        match record["t"]:
            case "run":
                self._begin(record)
            case "ask":
                self._at(record["at"])
                self._asks[record["id"]] = record
            case "reply":
                self._answer(record)
            case "plan":
                return self._plan(record)
            case "intent":
                self._at(record["at"])
                self._open[record["id"]] = record
            case "result":
                return self._result(record)
            case "retry" | "stall" | "approval" | "decision":
                self._event(record)
            case "end":
                self._at(record["at"])
                self._end = record
                return self._chats(record["n"], ROOT)
        return []

    def at_rest(self) -> list[Span]:
        """The span of the run and of what broke off with it, if the last record was its end; else none."""
        if self._end is None:
            return []
        end, stop = self._end, str(self._end["stop"])
        broken = [self._broken(record, end["n"], stop) for record in self._open.values()]
        failed = end["answer"] is None and stop != "suspended"
        fields = {"stop": stop, **({"error": stop} if failed else {})}
        return [*broken, self._root(end["n"], fields, end.get("usage", {}), end)]

    def unfinished(self) -> list[Span]:
        """What is open, ended where the trace ends: for a look at a run that was killed. Its end may still come."""
        if not self.run_id or self._end is not None:
            return []
        asked = [self._chat(ask, {}, -1) for key, ask in self._asks.items() if key not in self._answered_keys()]
        broken = [self._broken(record, -1, "unfinished") for record in self._open.values()]
        root = self._root(-1, {"stop": "unfinished", "error": "unfinished"}, self._spent, {})
        spans = [*self._answered, *asked, *broken, root]
        for span in spans:
            span.fields["unfinished"] = True
        return spans

    def _answered_keys(self) -> set[str]:
        return {span.key for span in self._answered}

    def _begin(self, record: Record) -> None:
        self.run_id = str(record["run"])
        self._began = float(record["at"])
        setup = self._setup = record.get("setup", {})
        noted = setup.get("noted", {}).get("otel", {})
        self.caller = read_traceparent(noted.get("traceparent"))
        sampling, budget = setup.get("sampling", {}), setup.get("budget", {})
        self._run = {
            "agent": PROVIDER,
            "provider": PROVIDER,
            "strategy": _word(setup.get("strategy", {}).get("name", "")),
            "pool": setup.get("pool", ""),
            "conversation": setup.get("session", ""),
            **{name: sampling[name] for name in _SAMPLING if name in sampling},
            **{f"limit_{name}": budget[name] for name in _LIMITS if name in budget},
        }
        if self._content:
            self._run.update(run_fields("input", record["question"]))

    def _answer(self, record: Record) -> None:
        seen = record["observation"]
        self._spend(seen)
        ask = self._asks.get(record["id"], {})
        span = self._chat(ask, record, record["n"])
        self._answered.append(span)
        self._asks.pop(record["id"], None)

    def _plan(self, record: Record) -> list[Span]:
        number, at = record["round"], float(record["at"])
        self._at(at)
        key = f"plan.{number}"
        started = min((span.started for span in self._answered), default=self._time(at))
        chats = self._chats(record["n"], key)
        calls = record["calls"]
        budget = self._setup.get("budget", {})
        left = {f"left_{name}": budget[name] - self._spent[name] for name in ("usd", "units") if name in budget}
        fields = {
            "agent": PROVIDER,
            "round": number,
            "calls": len(calls),
            **({"issues": len(record["issues"])} if record.get("issues") else {}),
            **left,
        }
        self._link(number, calls)
        ended = max(self._time(at), started)
        return [*chats, self._span(record["n"], key, ROOT, "plan", PROVIDER, started, ended, fields)]

    def _link(self, number: int, calls: Any) -> None:
        """Remember what the calls of a round wait for."""
        if len(calls) < 2:
            return
        from concertino.traces.run_graph import plans_of

        for plan in plans_of([{"t": "plan", "round": number, "calls": calls}]).values():
            for call in plan.calls:
                if before := plan.before(call.id):
                    self._links[f"{number}.{call.id}"] = [f"{number}.{other}" for other in dict.fromkeys(before)]

    def _chats(self, settled: int, parent: str) -> list[Span]:
        """The requests that were answered meanwhile, now that it is known what they led to."""
        spans, self._answered = self._answered, []
        for span in spans:
            span.settled, span.parent = settled, parent
        return spans

    def _result(self, record: Record) -> list[Span]:
        key = record["id"]
        intent = self._open.pop(key, {})
        if not record.get("parent"):
            self._spend(record)
        self._at(record["ended"])
        if key.startswith("ask."):  # a request to the orchestrator's model that failed
            chat = self._chat(self._asks.pop(key, {}), {"observation": record, "role": ""}, record["n"])
            chat.parent = ROOT
            return [chat]
        kind = self._kind(key, intent)
        fields = {**self._named(kind, key, record["name"], intent), **self._outcome(record)}
        if self._content:
            fields.update(message_fields(kind, intent.get("arguments"), record.get("content")))
        started = self._time(record["started"])
        parent = record.get("parent") or intent.get("parent") or ROOT
        name = str(fields.get("tool") or fields.get("agent") or fields.get("model") or fields["member"])
        span = self._span(record["n"], key, parent, kind, name, started, self._time(record["ended"]), fields)
        span.links = self._links.pop(key, [])
        span.events = self._events.pop(key, [])
        return [span]

    def _event(self, record: Record) -> None:
        at = self._time(record["at"]) if "at" in record else self._last
        told = ("attempt", "failure", "delay", "seconds", "approved", "waited")
        fields = {f"concertino.{name}": record[name] for name in told if name in record}
        self._events[record["id"]].append(SpanEvent(f"concertino.{record['t']}", at, fields))

    # -- spans -------------------------------------------------------------------------------------------------------

    def _span(
        self,
        settled: int,
        key: str,
        parent: str,
        kind: SpanKind,
        name: str,
        started: float,
        ended: float,
        fields: dict[str, Any],
    ) -> Span:
        fields["operation"] = SPANS[kind].operation
        fields["run"] = self.run_id
        return Span(settled, key, parent, kind, name, started, max(started, ended), fields)

    def _root(self, settled: int, fields: dict[str, Any], used: Record, end: Record) -> Span:
        fields = {**self._run, **fields, **_usage(used)}
        if self._content and end.get("answer") is not None:
            fields.update(run_fields("output", end["answer"]))
        if self._content and end.get("detail"):
            fields["why"] = end["detail"]
        span = self._span(settled, ROOT, "", "run", PROVIDER, self._began, self._last, fields)
        span.events = self._events.pop(ROOT, [])
        return span

    def _chat(self, ask: Record, record: Record, settled: int) -> Span:
        """A request of the orchestrator; `record` is its reply, or empty."""
        seen = record.get("observation", {})
        key = str(seen.get("id") or ask.get("id", ""))
        member = str(ask.get("model") or seen.get("name", ""))
        fields = {
            **self._named("chat", key, member, {"name": member}),
            "role": _word(record.get("role") or ask.get("role", "")),
            **self._outcome(seen),
        }
        reply = record.get("reply", {})
        if reply.get("finish_reason"):
            fields["finish"] = [_word(reply["finish_reason"])]
        if self._content:
            fields.update(message_fields("chat", {"messages": ask.get("messages", [])}, reply or None))
        started = self._time(seen["started"]) if "started" in seen else self._time(ask.get("at", 0.0))
        ended = self._time(seen["ended"]) if "ended" in seen else self._last
        self._last = max(self._last, ended)
        name = str(fields["model"])
        span = self._span(settled, key, ROOT, "chat", name, started, ended, fields)
        span.events = self._events.pop(key, [])
        return span

    def _broken(self, intent: Record, settled: int, stop: str) -> Span:
        """A call that has begun and has no end on record."""
        key = intent["id"]
        kind = self._kind(key, intent)
        fields = {**self._named(kind, key, intent["name"], intent), "error": stop}
        name = str(fields.get("tool") or fields.get("agent") or fields.get("model") or fields["member"])
        started = self._time(intent["at"])
        parent = intent.get("parent") or ROOT
        return self._span(settled, key, parent, kind, name, started, self._last, fields)

    def _kind(self, key: str, intent: Record) -> SpanKind:
        if key.startswith("guard") and _GUARD.fullmatch(key):
            return "guard"
        kinds: dict[str, SpanKind] = {"agent": "agent", "model": "chat"}
        return kinds.get(intent.get("kind", ""), "tool")

    def _named(self, kind: SpanKind, key: str, member: str, intent: Record) -> dict[str, Any]:
        """What says who was called. A name that is none of the pool's was made up by a model, so it is content."""
        if not intent and member not in self._setup.get("members", ()):
            return {"call": key, "member": "unknown", "tool": "unknown", "tool_call": key, "tool_type": "function"}
        provider, slash, short = member.partition("/")
        provider, short = (provider, short) if slash else (PROVIDER, member)
        fields: dict[str, Any] = {"call": key, "member": member}
        match kind:
            case "chat":
                fields.update(provider=provider, model=short)
            case "agent":
                fields.update(provider=provider, agent=short)
            case "tool":
                fields.update(tool=short, tool_call=key, tool_type="function")
            case "guard":
                found = _GUARD.fullmatch(key)
                fields.update(stage=found[1], about=found[2]) if found else None
        return fields

    def _outcome(self, seen: Record) -> dict[str, Any]:
        """Status, cost and error of an observation."""
        if not seen:
            return {"error": "unfinished"}
        status, error = seen["status"], seen.get("error")
        fields: dict[str, Any] = {
            "status": status,
            "attempts": seen.get("attempts", 0),
            **_usage(seen.get("usage", {})),
        }
        if seen.get("replayed"):
            fields["replayed"] = True
        if error:
            code = _word(error["code"])
            fields["error"] = status if status == "TIMEOUT" and code == "deadline" else f"{status}.{code}"
            if self._content:
                fields["why"] = error["message"]
        return fields

    # -- time and cost -----------------------------------------------------------------------------------------------

    def _time(self, seconds: float) -> float:
        """Seconds since 1970, of seconds since the run began."""
        return self._began + seconds

    def _at(self, seconds: float) -> None:
        self._last = max(self._last, self._time(seconds))

    def _spend(self, seen: Record) -> None:
        for name, amount in seen.get("usage", {}).items():
            self._spent[name] += amount


def spans_of(records: Iterator[Record], fold: SpanFold) -> Iterator[Span]:
    """All spans that the records of a trace settle, its own span included if it has ended."""
    for record in records:
        yield from fold.apply(record)
    yield from fold.at_rest()


def _usage(used: Record) -> dict[str, Any]:
    """What was used, without zeros."""
    return {name: used[name] for name in _USED if used.get(name)}


def _word(text: object) -> str:
    """A word for programs; whatever else a plugin, a model or a stranger wrote there is left out."""
    return text if isinstance(text, str) and _WORD.match(text) else "other"
