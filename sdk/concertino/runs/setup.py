"""What a run began with, as its trace keeps it, and what must be the same when it is resumed.

Invariant: nothing of `deps` is in it, and everything in it is plain JSON data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.approval import Decision, as_decision
from concertino.core.budget import Budget
from concertino.core.errors import BudgetError, TraceError, UsageError
from concertino.core.model import Sampling
from concertino.strategies import Strategy
from concertino.strategies.built_in import installed_strategy

from .run_input import RunInput

if TYPE_CHECKING:
    from concertino.traces import Trace, TraceMemory
    from concertino.traces.records import TraceReading

RESUMABLE = ("cancelled", "crashed", "suspended")
"""Reasons of a recorded end after which a run may be resumed."""


def is_over(last: Mapping[str, Any]) -> bool:
    """Whether a run whose trace ends with this record is over, so that there is nothing to resume."""
    return bool(last["t"] == "end" and last["stop"] not in RESUMABLE)


class ReopenedTrace:
    """A trace that is read to resume its run.

    Args:
        path: of the trace.
        decisions: about calls that wait.

    Attributes, known after `read`:
        trace, memory: what the trace says, and remembers of the run.
        chosen: the decisions, checked.
    """

    trace: Trace
    memory: TraceMemory
    chosen: dict[str, Decision]

    def __init__(self, path: Path, decisions: Mapping[str, Decision | bool]) -> None:
        self._path = path
        self._decisions = decisions

    def read(self) -> TraceReading:
        """Read it.

        Raises:
            TraceError: the run is over, or as `Trace.load`.
            UsageError: a decision is about a call that does not wait.
        """
        from concertino.traces import TraceMemory
        from concertino.traces.facts import FACTS_WITHOUT
        from concertino.traces.records import TraceReading

        reading = TraceReading(self._path, without=FACTS_WITHOUT, keep=0)
        self.trace, self.memory = TraceMemory.of_reading(reading)
        self.chosen = decisions_about(self.trace, self._decisions)
        end = self.trace.end
        if end is not None and is_over(end):
            raise TraceError(f"{self._path}: the run is finished ({end['stop']}); there is nothing to resume")
        return reading


def input_setup(given: RunInput) -> dict[str, Any]:
    """What a trace keeps of a run's input; nothing of `deps`."""
    frame, answer_type = given.frame, given.answer_type
    return {
        **({"instructions": frame.told} if frame.told else {}),
        **({"history": [message.to_json() for message in frame.history]} if frame.history else {}),
        **({"answer_schema": answer_type.schema} if answer_type is not None else {}),
        **({"session": given.session} if given.session else {}),
    }


def chosen_sampling(sampling: Sampling) -> dict[str, Any]:
    """The fields of a sampling that are set, as plain JSON data."""
    given = [(field, getattr(sampling, field.name)) for field in fields(sampling)]
    chosen = {field.name: value for field, value in given if value != field.default}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}


def recorded_sampling(trace: Trace) -> Sampling:
    """How the run of a trace samples.

    Raises:
        TraceError: the trace holds something else.
    """
    known = {field.name for field in fields(Sampling)}
    said: dict[str, Any] = {key: value for key, value in trace.setup.get("sampling", {}).items() if key in known}
    with fault_of_trace(trace.run_id, "its sampling cannot be read"):
        return Sampling(**{**said, "stop": tuple(said.get("stop", ()))})


def recorded_budget(trace: Trace) -> Budget:
    """The budget of the run of a trace.

    Raises:
        TraceError: the trace holds something else.
    """
    with fault_of_trace(trace.run_id, "its budget cannot be read"):
        return Budget(**trace.setup.get("budget", {}))


def recorded_strategy(run_id: str, setup: Mapping[str, Any]) -> Strategy:
    """The strategy that led a run.

    Raises:
        TraceError: its trace does not say, or holds other settings than the strategy has.
        UsageError: no such strategy is installed.
    """
    said = setup.get("strategy")
    if said is None:
        raise TraceError(f"trace {run_id}: it does not say which strategy led the run; use an unchanged copy")
    kind = installed_strategy(said["name"])
    with fault_of_trace(run_id, f"the settings of its strategy {kind.name!r} cannot be read"):
        strategy = kind.from_json(said)
        # Whoever writes a strategy counts on its types.
        for name, value in _defaults(kind).items():
            given = said.get(name, value)
            if value is not None and type(given) is not type(value) and not {type(given), type(value)} <= {int, float}:
                raise TypeError(f"{name} is {given!r:.60}, expected such as {value!r:.60}")
    return strategy


def _defaults(kind: type[Strategy]) -> dict[str, Any]:
    try:
        return kind().to_json()
    except TypeError:  # it has settings without defaults
        return {}


@contextmanager
def fault_of_trace(run_id: str, what: str) -> Iterator[None]:
    """What goes wrong inside with the values of a trace is told as a fault of the trace.

    Raises:
        TraceError: in place of an error that values of wrong kinds lead to.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, BudgetError) as error:
        told = " ".join(str(error).split())[:200]
        raise TraceError(f"trace {run_id}: {what}: {type(error).__name__}: {told}; use an unchanged copy") from error


def decisions_about(known: Trace, given: Mapping[str, Decision | bool]) -> dict[str, Decision]:
    """The decisions about calls of a run.

    Raises:
        UsageError: one is about a call that does not wait; names those that do.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"decisions={given!r}: expected a dict by the ids of calls, such as {{'1.2': Approve()}}")
    waiting = known.pending()
    for call_id in given:
        if call_id not in waiting:
            there = ", ".join(f"{name} ({record['name']})" for name, record in waiting.items()) or "none"
            if known.finished and not waiting:
                there = f"none, since the run has ended ({(known.end or {}).get('stop')})"
            raise UsageError(
                f"no call {call_id!r} of run {known.run_id} waits for a decision; those that wait: {there}"
            )
    return {call_id: as_decision(value, f"decisions[{call_id!r}]") for call_id, value in given.items()}


def refuse_changes(known: Trace, setup: Mapping[str, Any]) -> None:
    """A run is only resumed on what it began with."""
    before = known.setup
    changes = []
    if before.get("strategy") != setup["strategy"]:
        changes.append(f"strategy {before.get('strategy')} is now {setup['strategy']}")
    old, new = before.get("members", {}), setup["members"]
    changes += [f"{name} is missing" for name in old if name not in new]
    changes += [f"{name} is new" for name in new if name not in old]
    changes += [f"{name} has changed" for name in new if name in old and old[name] != new[name]]
    if before.get("answer_schema") != setup.get("answer_schema"):
        changes.append("answer_type is another one")
    if before.get("guards", []) != setup.get("guards", []):
        changes.append(f"guards {before.get('guards', [])} are now {setup.get('guards', [])}")
    if before.get("roles", {}) != setup["roles"]:
        changes.append(f"roles {before.get('roles', {})} are now {setup['roles']}")
    if changes:
        raise TraceError(f"trace {known.run_id} cannot be resumed on another set-up: {'; '.join(changes[:6])}")
