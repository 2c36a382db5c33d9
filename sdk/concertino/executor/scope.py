"""The scope of a run: everything its calls share. One is opened per run and closed with it.

Times inside a run are seconds since its start (`now()`), on the event loop's clock; the deadline is on the loop's
clock itself. Every event passes `emit`, which writes it to the trace *before* anyone else can act on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from concertino.core.approval import ApprovalRequest, Approver, Decision
from concertino.core.attachment import Attachment
from concertino.core.budget import Budget
from concertino.core.events import Attached, Event
from concertino.core.observation import Observation
from concertino.core.usage import Usage

from .ledger import Ledger

if TYPE_CHECKING:
    from concertino.core.model import Message
    from concertino.pool.pool import Pool

    from .guarding import Guarding

logger = logging.getLogger("concertino")

Duplicates = Literal["run", "reuse", "refuse"]
"""What to do with a call that repeats an earlier one of the run: run it, give the earlier result, or refuse it."""


class Sink(Protocol):
    """Where a scope's events become durable: a trace file, usually."""

    @property
    def must_flush(self) -> bool:
        """Whether `flush` has to be awaited before a call starts and before its result is seen."""

    def is_large(self, event: Event) -> bool:
        """Whether an event should go through `pack` and `append_packed`, or the loop would stand still too long."""

    async def pack(self, event: Event) -> bytes:
        """Do the slow part of writing an event, away from the event loop; raises if it cannot."""

    def append_packed(self, packed: bytes) -> None:
        """Write the event for which `pack` gave this; raises if it cannot."""

    def append(self, event: Event) -> None:
        """Write one event; raises if it cannot."""

    async def flush(self) -> None:
        """Return when everything appended is on disk."""


class Memory(Protocol):
    """What an earlier process already did in this run (resume), or somebody recorded (replay)."""

    def recall(self, call_id: str, name: str, arguments: Callable[[], Any]) -> Observation | None:
        """The finished result of this very call, if there is one. Its arguments are only made where they matter."""

    def asked(self, call_id: str) -> str:
        """The name of the model that was asked under this id; empty if none was."""

    def finished(self, call_id: str) -> bool:
        """Whether the call has a result on record."""

    def full_content(self, call_id: str) -> Any:
        """The content of a recalled result before it was truncated, maybe as a `LateValue`; None if it was not."""

    def in_doubt(self, call_id: str) -> bool:
        """Whether the call was started and its end is not known."""

    def decision(self, call_id: str) -> dict[str, Any] | None:
        """What a person decided about the call, as it was recorded; None if nothing was."""

    def approval_asked(self, call_id: str) -> bool:
        """Whether a decision about the call was asked for."""

    def charged(self, call_id: str) -> Usage:
        """What a call that has to be made again was charged already."""

    def claim_plan(self, parent: str, calls: list[dict[str, Any]]) -> int:
        """The number under which an agent's call ran this very plan before; 0 if it did not. Each is given once."""

    def claim_request(self, parent: str, messages: list[dict[str, Any]]) -> int:
        """As `claim_plan`, for a request to a model."""

    def highest_number(self, parent: str) -> int:
        """The highest number of a plan or request of an agent's call on record."""


class Clocks:
    """Deadlines that stand still.

    Anything with a `deadline` can be held, several times if need be. When it has been released as often, its clock runs
    again, and its deadline is later by the time in between.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[Any, tuple[int, float]] = {}

    def hold(self, thing: Any, now: float) -> None:
        """Stop a clock."""
        count, since = self._held.get(thing, (0, now))
        if not count and hasattr(thing, "stop_timer"):
            thing.stop_timer()
        self._held[thing] = (count + 1, since)

    def go_on(self, thing: Any, now: float) -> float:
        """Start it again, unless something else holds it too; gives the seconds that its deadline was put off now."""
        count, since = self._held.pop(thing)
        # At each release: the call that was just decided about starts now, whatever else still waits.
        thing.deadline += now - since
        if count > 1:
            self._held[thing] = (count - 1, now)
        elif hasattr(thing, "start_timer"):
            thing.start_timer()
        return now - since


@dataclass(slots=True, eq=False, weakref_slot=True)
class Scope:
    """What the calls of one run share.

    Attributes:
        started: time on the event loop's clock at which the run began (resumed: would have begun in one go).
        deadline: time on the event loop's clock at which the run ends, infinity for never.
        before: hooks before calls.
        after: hooks after calls.
        seen: id of the first call of this run with a given name and arguments.
        finished: observations of the orchestrator's own calls, in the order of finishing.
        transcript: the orchestrator's messages so far; agents that review a run read them.
        counted: by role and model, how many messages of its conversation were counted, and their tokens.
    """

    run_id: str
    pool: Pool
    ledger: Ledger
    loop: asyncio.AbstractEventLoop
    started: float
    deadline: float
    question: str = ""
    sink: Sink | None = None
    memory: Memory | None = None
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    before: Sequence[Callable[..., Any]] = ()
    after: Sequence[Callable[..., Any]] = ()
    duplicates: Duplicates = "run"
    events: list[Event] = field(default_factory=list)
    seen: dict[Any, str] = field(default_factory=dict)
    finished: list[Observation] = field(default_factory=list)
    results: dict[str, Observation] = field(default_factory=dict)
    transcript: Sequence[Message] = ()
    counted: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    sink_failed: str = ""
    deps: Any = None
    """What the caller of the run gave its tools, agents and guards; never shown to a model, never recorded."""
    streams: bool = False
    """Listeners want text as it is written."""
    attachments: dict[str, Attachment] = field(default_factory=dict)
    """What marks in texts stand for, by the first 12 digits of the SHA-256."""
    approver: Approver | None = None
    """Decides about calls that need approval; without one the run is suspended."""
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    """Decisions that were given when the run was resumed, by call."""
    pending: dict[str, ApprovalRequest] = field(default_factory=dict)
    """Calls that wait for a decision beyond the end of this process."""
    guarding: Guarding | None = None
    """The guards of the run; None without any."""
    halted: asyncio.Future[str] | None = None
    """Done, with the reason, when a guard has ended the run; None without guards."""
    clocks: Clocks = field(default_factory=Clocks)
    """Whose deadlines stand still, because a person decides."""
    asks: int = 0
    """Requests made by `Executor.ask`."""
    switched_off: dict[str, str] = field(default_factory=dict)
    """Providers that refused key or quota in this run, with what they said."""

    def attach(self, call_id: str, attachments: Sequence[Attachment], *, recalled: bool = False) -> None:
        """Take in attachments and record them."""
        self.emit_result(self.take(call_id, attachments), recalled=recalled)

    def take(self, call_id: str, attachments: Sequence[Attachment]) -> Attached:
        """Take in attachments; the event that records them."""
        self.attachments.update({each.sha256[:12]: each for each in attachments})
        return Attached(call_id, list(attachments))

    def end_run(self, reason: str) -> None:
        """A guard ends the run."""
        if self.halted is not None and not self.halted.done():
            self.halted.set_result(reason)

    def now(self) -> float:
        """Seconds since the run started."""
        return self.loop.time() - self.started

    def emit(self, event: Event, packed: bytes | None = None) -> None:
        """Record an event and tell the listeners. A trace that cannot be written raises *before* a call starts."""
        if self.sink is not None:
            self._append(self.sink, event, packed)
        self._tell(event)

    @staticmethod
    def _append(sink: Sink, event: Event, packed: bytes | None) -> None:
        if packed is None:
            sink.append(event)
        else:
            sink.append_packed(packed)

    def emit_result(self, event: Event, *, recalled: bool = False, packed: bytes | None = None) -> None:
        """Record the end of a call. It has happened, so a failing trace is noted and the result is still delivered.

        Args:
            recalled: the trace holds it already.
            packed: what the sink gave for a large event.
        """
        if self.sink is not None and not recalled:
            try:
                self._append(self.sink, event, packed)
            except Exception as error:
                self.sink_failed = str(error)
        self._tell(event)

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self.tell(event)

    def tell(self, event: Event) -> None:
        """Tell the listeners alone."""
        for listener in self.listeners:
            try:
                listener(event)
            except Exception:  # a listener only observes; its failure must not stop the run
                logger.exception("a listener failed on %s", type(event).__name__)

    def resume_from(self, past: Scope, begun: Event) -> None:
        """Continue from another scope, under a start event of its own: for a fork of its run."""
        # The first event of the past is its own start, whose place `begun` takes.
        self.events += [begun, *past.events[1:]]
        self.ledger.charge(past.ledger.usage)
        self.seen, self.finished = dict(past.seen), list(past.finished)
        self.results, self.counted = dict(past.results), dict(past.counted)
        self.switched_off, self.asks = dict(past.switched_off), past.asks
        self.transcript = tuple(past.transcript)

    @property
    def must_flush(self) -> bool:
        """Whether results have to be flushed to disk before they may be seen."""
        return self.sink is not None and self.sink.must_flush

    def seconds_left(self) -> float:
        """Seconds until the run's deadline; infinity without one."""
        return self.deadline - self.loop.time()

    def remaining(self, budget: Budget, rounds_left: int | None) -> dict[str, float]:
        """What is left of each limit that the budget sets, for the orchestrator to see (ParaManager's b_t)."""
        left = self.ledger.remaining()
        amounts: Mapping[str, float | None] = {
            "rounds": rounds_left if budget.rounds is not None else None,
            "calls": left.calls if budget.calls is not None else None,
            "units": left.units if budget.units is not None else None,
            "usd": left.usd if budget.usd is not None else None,
            "tokens": left.tokens if budget.tokens is not None else None,
            "seconds": max(0.0, self.seconds_left()) if budget.seconds is not None else None,
        }
        # Rounded, because the orchestrator reads these numbers as text.
        return {name: round(value, 4) for name, value in amounts.items() if value is not None}
