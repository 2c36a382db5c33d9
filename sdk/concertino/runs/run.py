"""What a run gives back: the answer, how it came about, and what it used.

A run that found no answer is data, not an exception: `stop` says why it ended, and everything that was done is in
`rounds` and `trace`. `require_answer` is for callers who would rather have an exception.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, cast

from concertino.core.approval import ApprovalRequest
from concertino.core.attachment import Attachment
from concertino.core.errors import ConcertinoError
from concertino.core.events import Asked, Attached, CallEnded, Event, Planned, Replied, RunStarted
from concertino.core.observation import Observation, Status
from concertino.core.plan import Plan
from concertino.core.usage import Usage

from .packed import PackedEvents

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from concertino.core.format_issue import FormatIssue
    from concertino.traces import Trace

    # The default lets `Run` alone stand for a run with any output.
    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


class RunError(ConcertinoError):
    """A run could not continue. `run` holds everything that happened before."""

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


@dataclass(slots=True)
class Round:
    """One round: what the orchestrator wrote, its calls, their observations.

    Attributes:
        issues: the format issues of its text; empty for a well-formed one.
    """

    number: int
    text: str
    plan: Plan
    observations: list[Observation]
    started: float = 0.0
    ended: float = 0.0
    issues: tuple[FormatIssue, ...] = ()

    def critical_path(self) -> float:
        """Seconds of the longest chain of dependent calls: no execution of this plan can be faster."""
        seconds = {
            call.id: seen.ended - seen.started for call, seen in zip(self.plan.calls, self.observations, strict=True)
        }
        return self.plan.critical_path(seconds)[0]


@dataclass(frozen=True, slots=True)
class RunSummary(Generic[OutputT]):
    """A finished run without its record: no texts, no calls, no events. Some 500 bytes, and what its answer takes.

    Attributes:
        rounds: how many there were.
        statuses: how often each status occurred among the orchestrator's calls; those that did not occur are left out.
        path: the trace file, if one was written; `Trace.load` reads the rest of the run from it.
    """

    id: str
    question: str
    answer: str | None
    output: OutputT | None
    stop: str
    detail: str
    rounds: int
    statuses: Mapping[Status, int]
    usage: Usage
    seconds: float
    pool_id: str
    path: Path | None

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.answer is not None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, of the names that `Run.to_json` has, without the value of a typed answer."""
        statuses = {status.value: number for status, number in self.statuses.items()}
        return _json_of(self, rounds=self.rounds, statuses=statuses)


@dataclass
class Run(Generic[OutputT]):
    """A finished run. `Run[Answer]` is one whose orchestrator has the `answer_type` `Answer`.

    Its events and rounds are packed until somebody looks at them (`packed`), so that a thousand runs can be kept; what
    is needed of more of them is their `summary()`.

    Attributes:
        id: id of the run and of its trace.
        answer: the answer, `None` if there is none.
        stop: why it ended; one of `STOP_REASONS`.
        detail: more about `stop`, for people.
        usage: everything consumed, by the orchestrator, the calls and all below them.
        seconds: wall time.
        events: everything that happened, in order.
        pending: calls that wait for a decision, where `stop` is `suspended`.
        output: the answer as a value of the orchestrator's `answer_type`; the text itself without one; `None` where
            there is no answer.
        path: the trace file, if one was written.
    """

    id: str
    question: str
    answer: str | None
    stop: str
    detail: str
    rounds: list[Round] = field(repr=False)
    usage: Usage
    seconds: float
    pool_id: str
    events: list[Event] = field(repr=False)
    path: Path | None = None
    output: OutputT | None = None
    pending: list[ApprovalRequest] = field(default_factory=list)
    _packed: PackedEvents | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Without a type, the answer is its own value.
        if self.output is None and "answer_schema" not in self.setup:
            self.output = cast("OutputT", self.answer)

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Events and rounds of a packed run, made when somebody looks at them; from then on they stay."""
            if name not in ("events", "rounds"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if name == "rounds":
                self.rounds = collect_rounds(self.events)
            elif self._packed is not None:
                self.events, self._packed = self._packed.unpacked(), None
            return self.__dict__[name]

    def pack(self) -> Run[OutputT]:
        """Keep events and rounds in few bytes until somebody looks at them, from now on; gives the run itself."""
        self._packed = PackedEvents.of(self.events)
        if self._packed is not None:
            del self.events
        del self.rounds
        return self

    @property
    def setup(self) -> dict[str, Any]:
        """What the run began with: strategy, pool, budget, history; as its trace keeps it."""
        begun = self._packed.first if self._packed is not None else next(iter(self.events), None)
        return begun.setup if isinstance(begun, RunStarted) else {}

    def summary(self) -> RunSummary[OutputT]:
        """The run without its record: what is left to know when the run itself is dropped."""
        # Unpacked for this alone: the run stays as small as it was.
        events = self._packed.unpacked() if self._packed is not None else self.events
        rounds = collect_rounds(events)
        statuses = Counter(seen.status for round_ in rounds for seen in round_.observations)
        return RunSummary(
            self.id,
            self.question,
            self.answer,
            self.output,
            self.stop,
            self.detail,
            len(rounds),
            dict(statuses),
            self.usage,
            self.seconds,
            self.pool_id,
            self.path,
        )

    @property
    def attachments(self) -> list[Attachment]:
        """Images, audio and files of the question, its history and the results, each once."""
        found = [each for event in self.events if isinstance(event, Attached) for each in event.attachments]
        return list(dict.fromkeys(found))

    @property
    def ok(self) -> bool:
        """Whether there is an answer."""
        return self.answer is not None

    @cached_property
    def trace(self) -> Trace:
        """The record of the run."""
        from concertino.traces import Trace

        return Trace.of_events(self.events, self.path)

    @property
    def observations(self) -> list[Observation]:
        """Observations of the orchestrator's calls, round by round."""
        return [seen for round_ in self.rounds for seen in round_.observations]

    def statuses(self) -> dict[Status, int]:
        """How often each status occurred among the orchestrator's calls."""
        counts = dict.fromkeys(Status, 0)
        for seen in self.observations:
            counts[seen.status] += 1
        return counts

    def critical_path(self) -> float:
        """Seconds that the run would have taken with unlimited parallelism: model turns and longest chains."""
        replies = [event.observation for event in self.events if isinstance(event, Replied)]
        thinking, until = 0.0, 0.0
        for seen in sorted(replies, key=lambda seen: seen.started):  # what was asked at once counts once
            thinking += max(0.0, seen.ended - max(seen.started, until))
            until = max(until, seen.ended)
        return thinking + sum(round_.critical_path() for round_ in self.rounds)

    def write_trace(self, path: Path) -> Path:
        """Write the record of a finished run to a file, as if it had been kept from the start.

        Raises:
            JournalError: the file exists already, or cannot be written.
        """
        from concertino.traces import JournalSink
        from concertino.traces.trace import header

        sink = JournalSink.create(path, header(self.id))
        try:
            for event in self.events:
                sink.append(event)
        finally:
            sink.close()
        self.path = path
        return path

    def require_answer(self) -> str:
        """The answer.

        Raises:
            RunError: there is none; says why, and where the trace is.
        """
        if self.answer is None:
            where = f"; trace: {self.path}" if self.path else ""
            raise RunError(f"the run ended without an answer ({self.stop}): {self.detail or 'no detail'}{where}", self)
        return self.answer

    def require_output(self) -> OutputT:
        """The answer as a value of the orchestrator's `answer_type`.

        Raises:
            RunError: there is no answer; says why, and where the trace is.
        """
        self.require_answer()
        return cast("OutputT", self.output)

    def _repr_html_(self) -> str:
        """For notebooks: question, answer, why it ended, what it used, and its calls."""
        from concertino.traces.board import board_of
        from concertino.traces.run_html import run_html

        typed = self.output if "answer_schema" in self.setup else None
        return run_html(board_of(event.to_json() for event in self.events), self.path, typed)

    def show(self) -> None:
        """Draw the calls by rounds, with what each waits for: below the cell in a notebook, as text elsewhere."""
        from concertino.traces.board import board_of
        from concertino.traces.run_graph import RunGraph

        plans = {event.round: event.plan for event in self.events if isinstance(event, Planned)}
        RunGraph(board_of(event.to_json() for event in self.events), plans).show()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, as `concertino run --json` prints it."""
        rounds = [
            {
                "number": r.number,
                "text": r.text,
                "issues": [issue.to_json() for issue in r.issues],
                "observations": [seen.to_json() for seen in r.observations],
            }
            for r in self.rounds
        ]
        return _json_of(self, critical_path_seconds=round(self.critical_path(), 3), rounds=rounds)


def _json_of(run: Run[Any] | RunSummary[Any], **more: Any) -> dict[str, Any]:
    """What a run and its summary say alike, and what only one of them says, as plain JSON data."""
    return {
        "id": run.id,
        "question": run.question,
        "answer": run.answer,
        "stop": run.stop,
        "detail": run.detail,
        "usage": run.usage.to_json(),
        "seconds": round(run.seconds, 3),
        **more,
        "pool": run.pool_id,
        "trace": str(run.path) if run.path else None,
    }


def collect_rounds(events: list[Event]) -> list[Round]:
    """The rounds of a run, from its events; the last one may be unfinished."""
    results: dict[str, Observation] = {}
    begun: list[tuple[Planned, str, float]] = []
    text, asked_at = "", 0.0
    for event in events:
        if isinstance(event, CallEnded):
            results[event.observation.call_id] = event.observation
        elif isinstance(event, Asked):
            asked_at = event.at
        elif isinstance(event, Replied):
            text = event.reply.text
        elif isinstance(event, Planned):
            begun.append((event, text, asked_at))
    return [_round(planned, text, asked_at, results) for planned, text, asked_at in begun]


def _round(planned: Planned, text: str, asked_at: float, results: Mapping[str, Observation]) -> Round:
    """One round; calls without an observation, because the run ended before, are left out of it."""
    found = [(call, results.get(f"{planned.round}.{call.id}")) for call in planned.plan.calls]
    seen = [observation for _, observation in found if observation is not None]
    plan = planned.plan
    if len(seen) < len(found):
        # Without edges, some of which would lead to calls that are left out.
        plan = Plan.parallel([call for call, observation in found if observation is not None])
    ended = max((observation.ended for observation in seen), default=planned.at)
    return Round(planned.round, text, plan, seen, asked_at, ended, planned.issues)
