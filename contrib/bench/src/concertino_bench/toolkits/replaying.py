"""Calls carried out again, one after another, with what each of them did.

The invariant: a replay begins at the database and not at the state that a toolkit happens to be in, and it leaves that
state alone. So it can be repeated, and the same calls give the same digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from .drafts import Entry
from .toolkit import CallOutcome, Toolkit


@dataclass(frozen=True)
class GoldenCall:
    """A call as a task holds it.

    Attributes:
        name: of the function.
        arguments: what it is given.
        fails: it is meant to be refused, and to change nothing.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fails: bool = False

    @classmethod
    def of(cls, data: GoldenCall | Mapping[str, Any]) -> Self | GoldenCall:
        """A call given as JSON, in any of the forms in use.

        `{"name", "arguments"}`, also with `kwargs` for the arguments or `function_name` for the name.

        Raises:
            ValueError: there is no name, or the arguments are not an object.
        """
        if isinstance(data, GoldenCall):
            return data
        name = data.get("name") or data.get("function_name")
        arguments = data.get("arguments", data.get("kwargs")) or {}
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise ValueError(f'{dict(data)!r} is not a call; expected {{"name": ..., "arguments": {{...}}}}')
        return cls(name, dict(arguments), bool(data.get("fails", False)))

    def to_json(self) -> dict[str, Any]:
        """The call as JSON."""
        data: dict[str, Any] = {"name": self.name, "arguments": dict(self.arguments)}
        # Left out where it is false, so that golden calls of the published files come back as they were.
        return {**data, "fails": True} if self.fails else data

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments.items())})"


@dataclass(frozen=True)
class Operated:
    """The records that calls have operated.

    Attributes:
        read: looked up by key.
        written: changed, made or removed.
    """

    read: frozenset[Entry] = frozenset()
    written: frozenset[Entry] = frozenset()

    @classmethod
    def by(cls, outcomes: Iterable[CallOutcome]) -> Operated:
        """What all of these calls have operated; those that failed operated nothing."""
        read, written = set[Entry](), set[Entry]()
        for outcome in outcomes:
            read |= outcome.read
            written |= outcome.written
        return cls(frozenset(read), frozenset(written))

    def to_json(self) -> dict[str, list[list[str]]]:
        """The records in order."""
        return {
            "read": [list(entry) for entry in sorted(self.read)],
            "written": [list(entry) for entry in sorted(self.written)],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Iterable[Sequence[str]]]) -> Operated:
        """The inverse of `to_json`."""
        read, written = ({(entry[0], entry[1]) for entry in data.get(name, ())} for name in ("read", "written"))
        return cls(frozenset(read), frozenset(written))


@dataclass(frozen=True)
class ReplayStep:
    """One call of a replay."""

    call: GoldenCall
    outcome: CallOutcome


@dataclass(frozen=True)
class ReplayedCalls:
    """The result of calls.

    Attributes:
        steps: each call with its outcome.
        digest: of the final state.
        initial: digest of the state that they began with.
    """

    steps: tuple[ReplayStep, ...]
    digest: str
    initial: str

    @property
    def operated(self) -> Operated:
        """The records that they operated."""
        return Operated.by(step.outcome for step in self.steps)

    @property
    def faults(self) -> tuple[str, ...]:
        """Calls that failed though they should not, or did not fail though they should; one sentence each."""
        return tuple(
            f"call {place}, {step.call}: " + (step.outcome.error or "it was meant to fail, and did not")
            for place, step in enumerate(self.steps, 1)
            # A broken tool is a fault even where a refusal was meant.
            if step.outcome.ok == step.call.fails or step.outcome.broken
        )

    @property
    def changed(self) -> bool:
        """Whether the final state differs from the first."""
        return self.digest != self.initial


Calls = Iterable[GoldenCall | Mapping[str, Any]]
"""Calls, as objects or as JSON."""


def replay(toolkit: Toolkit, calls: Calls, *, before: Calls = ()) -> ReplayedCalls:
    """Carry out calls from the database on.

    Args:
        toolkit: stays in the state it is in.
        calls: what to carry out; also the calls after one that failed.
        before: calls that make the first state; a failing one is an error.

    Raises:
        ValueError: a call is not one, or one of `before` failed.
    """
    fresh = toolkit.fresh()
    for call in map(GoldenCall.of, before):
        prepared(call, fresh.call(call.name, call.arguments))
    initial = fresh.digest()
    golden = [GoldenCall.of(call) for call in calls]
    steps = tuple(ReplayStep(call, fresh.call(call.name, call.arguments)) for call in golden)
    return ReplayedCalls(steps, fresh.digest(), initial)


async def replay_async(toolkit: Toolkit, calls: Calls, *, checked: bool = True) -> ReplayedCalls:
    """As `replay`; also for toolkits whose functions run elsewhere, such as in a sandbox.

    Args:
        checked: refuse arguments that break a function's schema.
    """
    fresh = toolkit.fresh()
    golden = [GoldenCall.of(call) for call in calls]
    steps = [ReplayStep(call, await fresh.use(call.name, call.arguments, checked=checked)) for call in golden]
    return ReplayedCalls(tuple(steps), fresh.digest(), toolkit.database.digest())


def prepared(call: GoldenCall | Any, outcome: CallOutcome) -> None:
    """Make sure that a call which makes the first state succeeded.

    Raises:
        ValueError: it did not.
    """
    if not outcome.ok:
        raise ValueError(f"{call}, which is to make the first state, failed: {outcome.error}")
