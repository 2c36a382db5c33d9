"""The board: what is known of a run so far, put together from its records, one at a time.

The same records come from an active run, from a trace file and from the tail of one, so live view, plain lines,
`traces show` and the display of a notebook all read one board. A *row* is a call; calls inside an agent are rows below
its row. A *chapter* is a round: what the orchestrator wrote, and the rows of its plan. Checks by guards are no calls.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.observation import Status
from concertino.core.usage import Usage
from concertino.text.tool_calls import cut_blocks

from .guard_checks import GuardCheck, check_of, count_verdicts

if TYPE_CHECKING:
    from concertino.core.redaction import DisplayRedactor

State = Literal["waiting", "running", "done"]

WAITS_FOR_A_PERSON = "waits for approval"
"""What is shown of a call that a person has to decide about."""

_MARKUP = re.compile(r"</?[a-z_]+>")


@dataclass
class Row:
    """A call.

    Attributes:
        id: unique in the run.
        status: one of the four, empty until it has ended.
        started, ended: seconds since the run began.
        progress: what it last said of its work.
        rows: the calls inside it.
    """

    id: str
    name: str
    kind: str = ""
    arguments: Any = None
    state: State = "waiting"
    status: str = ""
    started: float = 0.0
    ended: float = 0.0
    error: Mapping[str, Any] = field(default_factory=dict)
    content: Any = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    retries: int = 0
    progress: str = ""
    replayed: bool = False
    rows: list[Row] = field(default_factory=list)

    def seconds(self, now: float) -> float:
        """How long it took, or has been running."""
        return 0.0 if self.state == "waiting" else (self.ended if self.state == "done" else now) - self.started

    @property
    def reason(self) -> str:
        """Why it failed: `code: message`; empty if it did not."""
        return f"{self.error['code']}: {self.error['message']}" if self.error else ""

    def hidden(self, redactor: DisplayRedactor) -> Row:
        """The same without secrets, for a display that others may see; the calls inside it are as they were."""
        return replace(
            self,
            arguments=redactor.value(self.arguments),
            content=redactor.value(self.content),
            error=redactor.value(self.error),
            progress=redactor.text(self.progress),
        )


@dataclass
class Chapter:
    """A round: the orchestrator's text, and the calls of its plan."""

    number: int
    thought: str
    started: float
    rows: list[Row]

    @property
    def over(self) -> bool:
        """Whether every call has ended."""
        return all(row.state == "done" for row in self.rows)

    @property
    def ended(self) -> float:
        """When the last call ended."""
        return max((row.ended for row in self.rows), default=self.started)


@dataclass
class Asking:
    """A request to the orchestrator's model, running or ended."""

    role: str
    model: str
    started: float
    under_way: bool = True


class Board:
    """What is known of a run. Feed it records with `apply`.

    Args:
        brief: makes the content of a result shorter, of its kind and itself; without, all of it is kept.

    Attributes:
        checks: those by guards, by their id, in the order in which they began.
        end: the last record, once the run is over.
    """

    def __init__(self, brief: Callable[[str, Any], Any] | None = None) -> None:
        self._brief = brief
        self._numbers: set[int] = set()
        self.run_id = ""
        self.question = ""
        self.setup: Mapping[str, Any] = {}
        self.chapters: list[Chapter] = []
        self.checks: dict[str, GuardCheck] = {}
        self.asking: Asking | None = None
        self.thought = ""
        self.end: Mapping[str, Any] | None = None
        # By id, and not only in chapters: eager calls begin before the record of their plan.
        self._rows: dict[str, Row] = {}
        self._asked: dict[str, float] = {}
        self._settled: Counter[str] = Counter()
        self._seconds = 0.0
        self._clock = time.monotonic()

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take one record. Unknown kinds are ignored: a later version may write more of them."""
        kind = record["t"]
        if kind != "run":
            seen = record["observation"] if kind == "reply" else record
            # Results may be recorded out of order, and time must not run backwards.
            at = seen["ended"] if "ended" in seen else record.get("at", 0.0)
            if at > self._seconds:
                self._seconds = at
        # Between two records, this machine's clock tells the time.
        self._clock = time.monotonic()
        take = _TAKE.get(kind)
        if take is not None:
            take(self, record)

    def _run(self, record: Mapping[str, Any]) -> None:
        self.run_id, self.question, self.setup = record["run"], record["question"], record["setup"]

    def _ask(self, record: Mapping[str, Any]) -> None:
        self.asking = Asking(record["role"], record["model"], record["at"])

    def _end(self, record: Mapping[str, Any]) -> None:
        self.end, self.asking = record, None

    def _reply(self, record: Mapping[str, Any]) -> None:
        if self.asking is not None:
            self.asking.under_way = False
        self.thought = _first_thought(record["reply"])
        self._add_usage(record["observation"])
        self._asked[record["id"]] = _duration(record["observation"])

    def _plan(self, record: Mapping[str, Any]) -> None:
        number = record["round"]
        rows = [self._planned(f"{number}.{call['id']}", call) for call in record["calls"]]
        # A resumed run writes the plan of an unfinished round again.
        if number in self._numbers:
            self.chapters = [chapter for chapter in self.chapters if chapter.number != number]
        self._numbers.add(number)
        self.chapters.append(Chapter(number, self.thought, record["at"], rows))

    def _planned(self, call_id: str, call: Mapping[str, Any]) -> Row:
        """The row of a call; one that was begun before its round was written out is known already."""
        return self._rows.setdefault(call_id, Row(call_id, call["name"], "", call["arguments"]))

    def _row(self, record: Mapping[str, Any]) -> Row:
        """The row of a call that is not known yet."""
        row = self._rows[record["id"]] = Row(record["id"], record["name"])
        parent = self._rows.get(record.get("parent", ""))
        if parent is not None:
            parent.rows.append(row)
        return row

    def _check(self, record: Mapping[str, Any]) -> GuardCheck | None:
        """The check by a guard that a record is about, None if it is about something else."""
        if record["id"] not in self.checks and (found := check_of(record)) is not None:
            self.checks[record["id"]] = found
        return self.checks.get(record["id"])

    def _intent(self, record: Mapping[str, Any]) -> None:
        # Almost no execution is a check, and to ask takes longer than this.
        if record["id"].startswith("guard") and (check := self._check(record)) is not None:
            # A resumed run asks again where it has no verdict on record.
            check.status, check.started = "", record["at"]
            return
        row = self._rows.get(record["id"]) or self._row(record)
        row.kind, row.arguments, row.started = record["kind"], record["arguments"], record["at"]
        # A resumed run may begin a call again that has ended already.
        row.state, row.status = "running", ""

    def _result(self, record: Mapping[str, Any]) -> None:
        # A request to the orchestrator's model is recorded as a result only where it failed.
        call_id = record["id"]
        if call_id.startswith("ask."):
            self._unanswered(record)
            return
        if call_id.startswith("guard") and (check := self._check(record)) is not None:
            check.status, check.started, check.ended = record["status"], record["started"], record["ended"]
            content = record.get("content")
            check.error, check.content = record.get("error", {}), content if isinstance(content, dict) else {}
            check.replayed = record.get("replayed", False)
            if not record.get("parent"):
                self._add_usage(record)
            return
        row = self._rows.get(call_id) or self._row(record)
        row.state, row.status = "done", record["status"]
        row.started, row.ended = record["started"], record["ended"]
        content = record.get("content")
        row.error, row.content = record.get("error", {}), self._brief(row.kind, content) if self._brief else content
        row.usage, row.replayed = record.get("usage", {}), record.get("replayed", False)
        # An agent's result includes what the calls inside it used.
        if not record.get("parent"):
            self._add_usage(record)

    def _note(self, record: Mapping[str, Any]) -> None:
        """Something about a running call."""
        row = self._rows.get(record["id"])
        if row is None:
            return
        match record["t"]:
            case "progress":
                row.progress = _progress(record)
            case "retry":
                row.retries += 1
            case "approval":
                row.progress = WAITS_FOR_A_PERSON
            case "decision":
                row.progress = ""

    def _unanswered(self, record: Mapping[str, Any]) -> None:
        """The orchestrator's model did not answer."""
        if self.asking is not None:
            self.asking.under_way = False
        self._add_usage(record)
        self._asked[record["id"]] = _duration(record)

    def _add_usage(self, record: Mapping[str, Any]) -> None:
        # Added up by their names: as `Usage` objects, thousands of them take longer than all else.
        for name, amount in record.get("usage", {}).items():
            self._settled[name] += amount

    # -- totals ------------------------------------------------------------------------------------------------------

    @property
    def usage(self) -> Usage:
        """What was used so far; running calls are not in it."""
        return Usage.from_json(self._settled if self.end is None else self.end["usage"])

    @property
    def worked(self) -> float:
        """Seconds that the orchestrator's requests and calls took, added up."""
        return sum(self._asked.values()) + sum(row.seconds(row.started) for row in self.rows())

    @property
    def seconds(self) -> float:
        """Seconds from the begin of the run to the last thing on record."""
        return self._seconds

    def now(self) -> float:
        """Seconds since the run began, continuing between records until the end."""
        return self._seconds if self.end is not None else self._seconds + time.monotonic() - self._clock

    def row(self, call_id: str) -> Row | None:
        """A call by its id, None if it is not known."""
        return self._rows.get(call_id)

    def rows(self) -> Iterator[Row]:
        """The orchestrator's own calls."""
        return (row for chapter in self.chapters for row in chapter.rows)

    def statuses(self) -> dict[str, int]:
        """How often each status occurred among the orchestrator's own calls, those that did occur."""
        statuses = Counter(row.status for row in self.rows())
        return {status: statuses[status] for status in Status if status in statuses}

    def verdicts(self) -> dict[str, int]:
        """How often guards gave each verdict, those that they did give."""
        return count_verdicts(self.checks.values())

    def limits(self) -> Iterator[tuple[str, float, float]]:
        """The limits of the budget as (name, used, limit)."""
        used = self.usage
        spent = {
            "rounds": len(self.chapters),
            "calls": used.calls,
            "units": used.units,
            "usd": used.usd,
            "tokens": used.tokens,
            "seconds": self.now(),
        }
        budget = self.setup.get("budget", {})
        return ((name, float(value), budget[name]) for name, value in spent.items() if name in budget)


_TAKE: dict[str, Callable[[Board, Mapping[str, Any]], None]] = {
    "run": Board._run,
    "ask": Board._ask,
    "reply": Board._reply,
    "plan": Board._plan,
    "intent": Board._intent,
    "result": Board._result,
    **dict.fromkeys(("retry", "progress", "approval", "decision"), Board._note),
    "end": Board._end,
}


def board_of(records: Iterable[Mapping[str, Any]]) -> Board:
    """What records say of a run."""
    board = Board()
    for record in records:
        board.apply(record)
    return board


def _progress(record: Mapping[str, Any]) -> str:
    """`3 of 10: reading page 3`."""
    done = f"{record['done']:g}" + (f" of {record['total']:g}" if record["total"] is not None else "")
    return f"{done}: {record['message']}" if record["message"] else done


def _duration(record: Mapping[str, Any]) -> float:
    return float(record["ended"] - record["started"])


def _first_thought(reply: Mapping[str, Any]) -> str:
    """What the model wrote apart from calls and markup."""
    text = str(reply.get("text", ""))
    outside = [
        text[block.start : block.end] for block in cut_blocks(text, ("tool_call",), stray=False) if not block.tag
    ]
    text = " ".join(outside) or reply.get("reasoning", "")
    return _MARKUP.sub(" ", text).strip()
