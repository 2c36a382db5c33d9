"""A run as the page shows it: a fold over the records of its trace, one at a time.

An *item* is whatever takes time: a request to the orchestrator's model, a call, a call inside an agent, a check by a
guard. Invariants: the fold holds no text of a message or a result, only where its records stand; it does not know which
strategy wrote them; `patch(since)` holds exactly what changed after a version, so a page that missed some is whole
again after one patch. A *version* is a number of changes: each record is one.

To make texts safe to show takes most of the time of a long trace. So a fold that is `brief` leaves labels and errors of
calls out; `tell` adds them, when it is given the same records again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from concertino.core.events import STOP_REASONS
from concertino.core.plan_drawing import Edge, plan_edges
from concertino.traces.board import WAITS_FOR_A_PERSON, Board
from concertino.traces.run_graph import plans_of

from .critical_path import critical_path
from .shown_texts import ShownTexts

Record = Mapping[str, Any]
_NAMES = 1024
"""Names of members whose safe form is remembered."""


@dataclass(slots=True)
class Item:
    """Something that took time.

    Attributes:
        kind: `request`, `tool`, `agent`, `model`, `guard`; empty for a call that has not begun.
        parent: index of the agent around it, -1 if there is none.
        round: number of the round that it belongs to.
        started, ended: seconds since the run began; None as long as it has not.
        status: `waiting`, `running`, or one of the four.
        after: indexes of the calls that it waits for.
        units, calls: of the budget, with everything below it, as `usd` and `tokens` are.
        marks: what happened to it and when, in seconds since the run began: `retry`, `stall`, `approval`, `approved`,
            `denied`.
        places: of its records in the trace.
        planned: place of its plan, which holds its arguments until it begins; -1 afterwards.
        arguments: of a call that has not begun; a label is made of them when it is shown.
        version: of the fold when it last changed.
        told: version of the fold when its texts were added.
    """

    index: int
    id: str
    name: str
    kind: str = ""
    parent: int = -1
    round: int = 0
    started: float | None = None
    ended: float | None = None
    status: str = "waiting"
    label: str = ""
    error: str = ""
    note: str = ""
    usd: float = 0.0
    tokens: int = 0
    units: float = 0.0
    calls: int = 0
    marks: Sequence[tuple[str, float]] = ()
    after: Sequence[int] = ()
    places: list[int] = field(default_factory=list)
    planned: int = -1
    arguments: Any = None
    version: int = 0
    told: int = 0

    def to_row(self, texts: ShownTexts) -> list[Any]:
        """In the order that `run_data.js` reads."""
        if self.arguments is not None:
            self.label, self.arguments = texts.arguments(self.arguments), None
        begun = [self.parent, self.round, self.started, self.ended, self.status]
        used = [round(self.usd, 8), self.tokens, self.units, self.calls]
        told = [
            self.label,
            self.error,
            self.note,
            *used,
            list(self.after),
            [mark for pair in self.marks for mark in pair],
        ]
        return [self.index, self.id, self.name, self.kind, *begun, *told]


@dataclass(slots=True)
class Round:
    """What the orchestrator wrote before its calls, and how many faults its text had."""

    number: int
    at: float
    thought: str
    issues: int
    version: int

    def to_row(self) -> list[Any]:
        """In the order that `run_data.js` reads."""
        return [self.number, self.at, self.thought, self.issues]


class RunFold:
    """What is known of a run. Feed it the records in their order with `apply`.

    Attributes:
        count: how many records it has taken.
        brief: texts of calls are left out for now.
        notes: what is missing, as sentences.
    """

    def __init__(self) -> None:
        self.board = Board(lambda _, __: None)
        self.texts = ShownTexts()
        self.count = 0
        self.brief = False
        self.began = 0.0
        self.items: list[Item] = []
        self.notes: list[str] = []
        self._ids: dict[str, Item] = {}
        self._changed: dict[int, None] = {}
        self._told: dict[int, None] = {}
        self._head: dict[str, Any] = {}
        self._head_of = -1
        self._tellings = 0
        self._name = lru_cache(_NAMES)(self.texts.line)
        self._rounds: dict[int, Round] = {}
        self._round = 1
        self._latest = 0.0
        self._request: Item | None = None

    @property
    def version(self) -> int:
        """How many changes there were."""
        return self.count + self._tellings

    def apply(self, record: Record) -> None:
        """Take one record; kinds that it does not know change nothing."""
        self.board.apply(_for_board(record))
        self.count += 1
        take = _TAKE.get(record["t"])
        if take is not None:
            if record["t"] != "run":
                seen = record["observation"] if record["t"] == "reply" else record
                self._latest = max(self._latest, seen.get("ended", seen.get("at", 0.0)))
            take(self, record)

    def tell(self, record: Record) -> None:
        """Add the texts that were left out when this record was taken."""
        if record["t"] not in ("intent", "result") or (item := self._ids.get(record["id"])) is None:
            return
        before = item.label, item.error
        self._say(item, record)
        if before != (item.label, item.error):
            self._tellings += 1
            item.told = self.version
            self._told.pop(item.index, None)
            self._told[item.index] = None

    def item(self, call_id: str) -> Item | None:
        """An item by its id, None if it is not known."""
        return self._ids.get(call_id)

    # -- records -----------------------------------------------------------------------------------------------------

    def _touched(self, record: Record, kind: str = "") -> Item:
        """The item that a record is about, now changed."""
        item = self._known(record)
        item.kind = kind or item.kind
        item.places.append(self.count - 1)
        self._change(item)
        return item

    def _known(self, record: Record) -> Item:
        """The item of an id, made if it is new."""
        call_id = record["id"]
        item = self._ids.get(call_id)
        if item is None:
            parent = self._ids.get(record.get("parent", ""))
            name = self._name(record.get("name") or record.get("role", ""))
            item = Item(len(self.items), self.texts.line(call_id), name, round=self._round)
            if parent is not None:
                item.parent, item.round = parent.index, parent.round
            self._ids[call_id] = item
            self.items.append(item)
        return item

    def _change(self, item: Item) -> None:
        item.version = self.version
        # The last of the table is what changed last.
        self._changed.pop(item.index, None)
        self._changed[item.index] = None

    def _run(self, record: Record) -> None:
        self.began = float(record["at"])

    def _ask(self, record: Record) -> None:
        item = self._request = self._touched(record, "request")
        item.started, item.ended, item.status = record["at"], None, "running"
        item.name = self.texts.line(f"{record['role']} ({record['model']})")

    def _reply(self, record: Record) -> None:
        item = self._touched(record, "request")
        self._finish(item, record["observation"])
        item.error = self._error(record["observation"])
        item.label = self.texts.line(self.board.thought or record["reply"].get("text") or "")

    def _plan(self, record: Record) -> None:
        number = record["round"]
        thought, issues = self.texts.line(self.board.thought), len(record.get("issues", ()))
        self._rounds[number] = Round(number, record["at"], thought, issues, self.version)
        self._round = number
        if self._request is not None:
            self._request.places.append(self.count - 1)
            self._request.round = number
            self._change(self._request)
        for call in record["calls"]:
            item = self._known({**call, "id": f"{number}.{call['id']}"})
            item.round = number
            # One that was begun before its round was written out has a record of its arguments.
            if not item.places:
                item.planned, item.arguments = self.count - 1, call["arguments"]
            self._change(item)
        for edge in _edges(record):
            before, then = self._ids[f"{number}.{edge.source}"], self._ids[f"{number}.{edge.target}"]
            if before.index not in then.after:
                then.after = [*then.after, before.index]
        self._round = number + 1

    def _intent(self, record: Record) -> None:
        item = self._touched(record, record["kind"])
        item.started, item.ended, item.status, item.planned = record["at"], None, "running", -1
        # As they were run. Nothing is made of those of the plan, which most often are the same.
        item.arguments = None
        if not self.brief:
            self._say(item, record)

    def _result(self, record: Record) -> None:
        item = self._touched(record)
        self._finish(item, record)
        check = self.board.checks.get(record["id"])
        if check is not None:
            item.note = check.verdict
        if not self.brief:
            self._say(item, record)

    def _say(self, item: Item, record: Record) -> None:
        """Texts of a call, from one of its records."""
        if record["t"] == "intent":
            item.label = self.texts.arguments(record.get("arguments"))
            return
        item.error = self._error(record)
        check = self.board.checks.get(record["id"])
        if check is not None:
            item.label = self.texts.line(check.subject)

    def _error(self, seen: Record) -> str:
        error = seen.get("error")
        return self.texts.line(f"{error['code']}: {error['message']}") if error else ""

    def _finish(self, item: Item, seen: Record) -> None:
        item.started, item.ended, item.status = seen["started"], seen["ended"], seen["status"]
        usage = seen.get("usage", {})
        item.usd = usage.get("usd", 0.0)
        item.tokens = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        item.units, item.calls = usage.get("units", 0), usage.get("calls", 0)
        item.note = "recorded" if seen.get("replayed") else ""
        if item.marks:
            item.marks = [(kind, min(at, seen["ended"])) for kind, at in item.marks]

    def _noted(self, record: Record) -> None:
        """Something about an item that goes on."""
        if record["id"] not in self._ids:
            return  # attachments of the question
        item = self._touched(record)
        kind = record["t"]
        if kind == "decision":
            kind = "approved" if record["approved"] else "denied"
        if kind == "approval":
            item.note = WAITS_FOR_A_PERSON
        elif kind in ("approved", "denied"):
            item.note = ""
        if kind != "attach":
            # Records of repeated attempts and stalls hold no time, but they stand where they happened.
            item.marks = [*item.marks, (kind, max(record.get("at", self._latest), item.started or 0.0))]

    # -- for the page ------------------------------------------------------------------------------------------------

    def patch(self, since: int = 0) -> dict[str, Any]:
        """What changed after a version, as plain JSON data; all of it for 0. `texts`: of other items."""
        changed: list[Item] = []
        for index in reversed(self._changed):
            if self.items[index].version <= since:
                break
            changed.append(self.items[index])
        changed.sort(key=lambda item: item.index)
        told = []
        for index in reversed(self._told):
            item = self.items[index]
            if item.told <= since:
                break
            if item.version <= since:
                told.append([index, item.label, item.error])
        rows = [item.to_row(self.texts) for item in changed]
        rounds = [each.to_row() for each in self._rounds.values() if each.version > since]
        return {"version": self.version, "head": self.head(), "rounds": rounds, "items": rows, "texts": told}

    def head(self) -> dict[str, Any]:
        """Everything that is neither an item nor a round."""
        if self._head_of != self.count:
            self._head, self._head_of = self._made_head(), self.count
        return {**self._head, "notes": [self.texts.text(note) for note in self.notes]}

    def _made_head(self) -> dict[str, Any]:
        board, texts = self.board, self.texts
        end = board.end or {}
        stop = str(end.get("stop", "unfinished"))
        usage = board.usage
        return {
            "run": texts.line(board.run_id),
            "question": texts.text(board.question),
            "answer": None if end.get("answer") is None else texts.text(end["answer"]),
            "stop": texts.line(stop),
            "meaning": STOP_REASONS.get(stop, ""),
            "detail": texts.text(end.get("detail", "")),
            "began": self.began,
            "seconds": board.seconds,
            "over": board.end is not None,
            "usage": usage.to_json(),
            "limits": [list(limit) for limit in board.limits()],
            "facts": self._facts(),
            "statuses": board.statuses(),
            "verdicts": board.verdicts(),
            "critical": critical_path(self.items) if board.end is not None else [],
        }

    def _facts(self) -> list[list[str]]:
        """What the run began with."""
        setup = self.board.setup
        facts = [["strategy", setup.get("strategy", {}).get("name", "")], ["pool", setup.get("pool", "")]]
        facts += [[f"role {role}", model] for role, model in setup.get("roles", {}).items()]
        facts += [[name, setup.get(name, "")] for name in ("session", "durability")]
        return [[self.texts.line(name), self.texts.line(value)] for name, value in facts if value]


def _for_board(record: Record) -> Record:
    """A record as the board needs it: what it would hold for nobody is left out, except of checks by guards."""
    kind = record["t"]
    if kind == "intent" and not record["id"].startswith("guard"):
        return {**record, "arguments": None}
    if kind == "plan":
        return {
            **record,
            "calls": [{"id": call["id"], "name": call["name"], "arguments": None} for call in record["calls"]],
        }
    return record


def _edges(record: Record) -> list[Edge]:
    """What waits for what in a round; nothing, where its plan is none."""
    calls = record["calls"]
    ids = [call["id"] for call in calls]
    # A plan without references has the edges that its calls name, and most calls of a long trace name none.
    if "${" not in repr(calls) and len(set(ids)) == len(ids):
        named = {other for call in calls for other in (*call.get("after", ()), *call.get("order_after", ()))}
        calls = [
            {**call, "arguments": ""}
            for call in calls
            if call["id"] in named or call.get("after") or call.get("order_after")
        ]
    return [edge for plan in plans_of([{**record, "calls": calls}]).values() for edge in plan_edges(plan)]


_TAKE: dict[str, Any] = {
    "run": RunFold._run,
    "ask": RunFold._ask,
    "reply": RunFold._reply,
    "plan": RunFold._plan,
    "intent": RunFold._intent,
    "result": RunFold._result,
    **dict.fromkeys(("retry", "stall", "approval", "decision", "attach"), RunFold._noted),
}
