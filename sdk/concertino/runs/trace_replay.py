"""Replay: a strategy driven from a trace, without any model or tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from concertino.core.errors import TraceError
from concertino.core.model import Reply
from concertino.core.observation import Observation
from concertino.strategies import Ask, Done, Strategy, TaskContext
from concertino.traces import Trace
from concertino.traces.facts import FACTS_WITHOUT
from concertino.traces.memory import late_result
from concertino.traces.records import StoredRecords, TraceReading

from .loop import UNHELD, RequestIds
from .setup import fault_of_trace, recorded_budget, recorded_sampling, recorded_strategy


def replay(trace: Trace | str | Path, strategy: Strategy | None = None) -> Done:
    """Drive a machine from a trace, without any model or tool: the same texts and observations give the same end.

    Args:
        trace: of the run, or its path.
        strategy: instead of the recorded one, to see how another reader or another limit would have continued.

    Raises:
        TraceError: the machine wants something that the trace does not have (says what and where).
    """
    if not isinstance(trace, Trace):
        return replay_file(trace, strategy)[1]
    known = _Recorded()
    for place, record in enumerate(trace.records):
        known.take(
            record, partial(trace.records.__getitem__, place) if isinstance(trace.records, StoredRecords) else None
        )
    return _replayed(trace, known, strategy)


def replay_file(path: str | Path, strategy: Strategy | None = None) -> tuple[Trace, Done]:
    """As `replay`, from one reading of the file; gives the trace, too."""
    reading, known = TraceReading(path, without=FACTS_WITHOUT, keep=0), _Recorded()

    def take(record: dict[str, Any]) -> None:
        known.take(record, None if reading.whole else reading.later())

    trace = Trace.read(reading, take)
    return trace, _replayed(trace, known, strategy)


class _Recorded:
    """What was said and observed, by id; of a large trace, results are read when the machine is shown them.

    A router's further tries are recorded as `ask.1~2`, one without a schema as `ask.1.unheld`: replies to `ask.1`.
    """

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.results: dict[str, Observation] = {}

    def take(self, record: Mapping[str, Any], later: Callable[[], dict[str, Any]] | None) -> None:
        """Take a record; `later` reads it again, if it is not held anyway."""
        if record["t"] == "reply":
            self.replies[record["id"].partition("~")[0].removesuffix(UNHELD)] = record["reply"]
        elif record["t"] == "result":
            self.results[record["id"]] = late_result(record, later)


def _replayed(trace: Trace, known: _Recorded, strategy: Strategy | None) -> Done:
    # Replies and results are free to hold anything, and a machine counts on what a run can hold.
    with fault_of_trace(trace.run_id, "the run cannot be driven again"):
        return _driven(trace, known, strategy)


def _driven(trace: Trace, known: _Recorded, strategy: Strategy | None) -> Done:
    setup, replies, results = trace.setup, known.replies, known.results
    if strategy is None:
        strategy = recorded_strategy(trace.run_id, setup)
    budget = recorded_budget(trace)
    tools, sampling = setup.get("tools", ()), recorded_sampling(trace)
    machine = strategy.begin(TaskContext(trace.question, tools, budget.rounds, budget.parallel, sampling=sampling))
    request_ids = RequestIds()
    while True:
        step = machine.step()
        if isinstance(step, Done):
            return _as_corrected(step, trace, replies)
        if isinstance(step, Ask):
            reply = replies.get(request_ids.name(step))
            # As the run did, so that requests get the numbers that they had.
            request_ids.prefetch(machine)
            if reply is None:
                if (end := trace.end) is not None:
                    return Done(end["answer"], end["stop"], end["detail"])
                raise TraceError(
                    f"trace {trace.run_id}: it ends before the {step.role} was asked again; resume it instead"
                )
            machine.on_reply(Reply.from_json(reply))
        else:
            end = trace.end
            if end is not None and end["stop"] == "guard":
                return Done(end["answer"], end["stop"], end["detail"])
            missing = [call.id for call in step.plan.calls if f"{step.round}.{call.id}" not in results]
            if missing:
                raise TraceError(
                    f"trace {trace.run_id}: round {step.round} wants call {missing[0]}, which is not recorded"
                )
            machine.observe([results[f"{step.round}.{call.id}"] for call in step.plan.calls])


def _as_corrected(done: Done, trace: Trace, replies: Mapping[str, Any]) -> Done:
    """The end with a typed answer: as the last request made it, if there was one."""
    end = trace.end
    if end is not None and any(name.startswith("answer ") for name in trace.setup.get("guards", ())):
        # What a guard left of the answer is in the end alone.
        return Done(end["answer"], end["stop"], end["detail"])
    corrections = [reply for name, reply in replies.items() if name.startswith("answer.")]
    if not corrections or end is None:
        return done
    if end["answer"] is None:
        return Done(None, end["stop"], end["detail"])
    return replace(done, answer=corrections[-1]["text"])
