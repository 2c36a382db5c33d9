"""An item is what one system did with one task, once: the line of a results file, from which every metric is computed.

The invariant: an item is plain data and holds everything that a metric or a report reads. So reports are made on
another machine, without the pool, the traces or the task files, and two reports of one file are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from concertino import Observation, Status, Usage
from concertino.core.events import CallEnded, Replied, RunStarted

from .grade import Grade, Verdict
from .task import Task

if TYPE_CHECKING:
    from concertino import Pool, Run, Trace


_NONE = Usage()
REWARD = "reward "
"""How the name of a value begins that a reward gave: `reward gap`, and `reward gap: exact_match` for a part of it."""


class Key(NamedTuple):
    """Which item: no results file holds two with the same key."""

    system: str
    task: str
    sample: int = 0


@dataclass(frozen=True)
class MemberUse:
    """What one member of the pool did in a run, at any depth.

    Attributes:
        kind: tool, agent or model.
        calls: how often it was called.
        statuses: how often each status came back: `{"OK": 3, "TIMEOUT": 1}`.
        usage: what it consumed; an agent's does not include what it called, but for the seconds that it waited.
        seconds: of each call, in the order of ending.
    """

    kind: str
    calls: int
    statuses: Mapping[str, int]
    usage: Usage
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Item:
    """One system, one task, one sample.

    Attributes:
        key: system, task and sample.
        kind, axis, level, split: of the task.
        verdict, reason, share, values, found: of the grade.
        answer: what the system answered, None if nothing; of a very long answer both ends.
        stop, detail: why its run ended.
        seconds: wall time of the run, grading not included.
        critical_path: seconds that it would have taken with unlimited parallelism.
        turns: rounds, those without a call included.
        rounds: rounds that planned something.
        flawed: rounds whose text was not in the strategy's exact form.
        calls: calls of the orchestrator, that is of its plans; those inside agents are in `members` only.
        statuses: of those calls.
        recovered: of its calls that did not end OK, how many were followed by an OK call of the same member in a later
            round.
        widths: calls of each round; depths: the longest chain of each round's plan.
        usage: everything that the run consumed.
        members: what each member did.
        graded: what grading consumed.
        pool: id of the pool.
        first: full name of the member that was called first; where descriptions were permuted, of the member whose
            description was chosen.
        trace: the trace file, relative to the results file; empty without one.
        error: why there is no run, where the system failed before it began; the verdict is then unparsable.
    """

    key: Key
    kind: str
    verdict: Verdict
    reason: str
    share: float = 0.0
    values: Mapping[str, float] = field(default_factory=dict)
    found: tuple[str, ...] = ()
    axis: str = ""
    level: int | None = None
    split: str = ""
    answer: str | None = None
    stop: str = ""
    detail: str = ""
    seconds: float = 0.0
    critical_path: float = 0.0
    turns: int = 0
    rounds: int = 0
    flawed: int = 0
    calls: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    recovered: int = 0
    widths: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    usage: Usage = _NONE
    members: Mapping[str, MemberUse] = field(default_factory=dict)
    graded: Usage = _NONE
    pool: str = ""
    first: str = ""
    trace: str = ""
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether the verdict is right."""
        return self.verdict is Verdict.RIGHT

    @classmethod
    def of_run(
        cls,
        key: Key,
        task: Task,
        grade: Grade,
        run: Run,
        pool: Pool,
        *,
        graded: Usage = _NONE,
        trace: str = "",
        record: Trace | None = None,
        owners: Mapping[str, str] | None = None,
    ) -> Item:
        """The item of a finished and graded run.

        Args:
            graded: what grading consumed.
            trace: where its trace is.
            record: the trace itself, needed of a run that was resumed: its events leave out what went on inside of
                calls that had ended before.
            owners: whose description each member bears, where they were permuted.
        """
        calls = run.observations
        return cls(
            key,
            task.kind,
            grade.verdict,
            grade.reason,
            grade.share,
            dict(grade.values),
            grade.found,
            task.axis,
            task.level,
            task.split,
            shortened(run.answer),
            run.stop,
            run.detail,
            round(run.seconds, 6),
            round(run.critical_path(), 6),
            turns=len(run.rounds),
            rounds=sum(1 for round_ in run.rounds if round_.plan.calls),
            flawed=sum(1 for round_ in run.rounds if round_.issues),
            calls=len(calls),
            statuses=dict(Counter(seen.status.value for seen in calls)),
            recovered=_recovered(run),
            widths=tuple(len(round_.plan.calls) for round_ in run.rounds if round_.plan.calls),
            depths=tuple(len(round_.plan.levels()) for round_ in run.rounds if round_.plan.calls),
            usage=run.usage,
            members=_members(_ended(run) if record is None else _recorded(record), pool),
            graded=graded,
            pool=pool.id,
            first=_first(run, pool, owners or {}),
            trace=trace,
        )

    @classmethod
    def of_failure(cls, key: Key, task: Task, error: str) -> Item:
        """The item of a system that could not begin, or that broke."""
        return cls(
            key,
            task.kind,
            Verdict.UNPARSABLE,
            "there is no run",
            axis=task.axis,
            level=task.level,
            split=task.split,
            error=error,
        )

    def to_json(self) -> dict[str, Any]:
        """One line of a results file; fields that say nothing are left out."""
        data: dict[str, Any] = {
            "key": list(self.key),
            "kind": self.kind,
            "verdict": self.verdict.value,
            "reason": self.reason,
        }
        for name, nothing in _PLAIN.items():
            if (value := getattr(self, name)) != nothing or type(value) is not type(nothing):
                data[name] = value
        for name in ("usage", "graded"):
            if used := getattr(self, name).to_json():
                data[name] = used
        if self.members:
            data["members"] = {name: _use_to_json(use) for name, use in self.members.items()}
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Item:
        """The inverse of `to_json`; unknown fields are ignored.

        Raises:
            ValueError: a field that every item has is missing or is not what it should be.
        """
        try:
            # Unknown fields are left out, so a file of a later version can be read.
            known = {each.name: data[each.name] for each in fields(cls) if each.name in data}
            _check_types(known)
            known |= {"key": Key(*data["key"]), "verdict": Verdict(data["verdict"])}
            known |= {name: Usage.from_json(data.get(name, {})) for name in ("usage", "graded")}
            known |= {name: tuple(data.get(name, ())) for name in ("found", "widths", "depths")}
            known["members"] = {name: _use_from_json(use) for name, use in data.get("members", {}).items()}
            return cls(**known)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not an item of a results file: {type(error).__name__}: {error}") from error


_PLAIN = {
    each.name: {} if each.default is MISSING else each.default
    for each in fields(Item)
    if each.name not in ("key", "kind", "verdict", "reason", "usage", "graded", "members")
}
"""Fields that are written as they are, unless they say nothing."""


def _check_types(known: Mapping[str, Any]) -> None:
    """TypeError for a field of another type than that of its default: a file may come from a stranger."""
    for name, value in known.items():
        wanted = type(_PLAIN.get(name))
        if (
            wanted in (str, int, float, bool)
            and type(value) is not wanted
            and not (wanted is float and type(value) is int)
        ):
            raise TypeError(f"{name} is {value!r:.60}, expected such as {_PLAIN[name]!r}")


_SHOWN = 20_000
"""Characters of an answer that are kept; it was graded whole."""


def shortened(answer: str | None) -> str | None:
    """An answer as an item keeps it."""
    if answer is None or len(answer) <= _SHOWN:
        return answer
    # Both ends: the final answer stands last, and how an answer begins tells what went wrong.
    half = _SHOWN // 2
    return f"{answer[:half]}\n[{len(answer) - _SHOWN} characters left out]\n{answer[-half:]}"


def _first(run: Run, pool: Pool, owners: Mapping[str, str]) -> str:
    called = next((round_.plan.calls[0].name for round_ in run.rounds if round_.plan.calls), "")
    # A shortlist shows members under other names than the pool of the task.
    setup = next((event.setup for event in run.events if isinstance(event, RunStarted)), {})
    names = {alias: name for name, alias in setup.get("aliases", {}).items()}
    spec = pool.find(names.get(called, called))
    return owners.get(spec.name, spec.name) if spec is not None else ""


def _ended(run: Run) -> Iterator[tuple[Observation, str]]:
    """All calls and replies of a run, each with the id of the call that it was made in."""
    for event in run.events:
        if isinstance(event, CallEnded):
            yield event.observation, event.parent
        elif isinstance(event, Replied):
            yield event.observation, ""


def _recorded(record: Trace) -> Iterator[tuple[Observation, str]]:
    """The same, from a trace; of a call that was stopped and made again, the last."""
    results = {each["id"]: (Observation.from_json(each), each.get("parent", "")) for each in record.of_kind("result")}
    yield from results.values()
    for each in record.of_kind("reply"):
        yield Observation.from_json({"content": None, **each["observation"]}), ""


def _members(ended: Iterable[tuple[Observation, str]], pool: Pool) -> dict[str, MemberUse]:
    """What each member did; an agent's usage without that of the calls below it, which are listed themselves."""
    below: dict[str, Usage] = {}
    observations = []
    for observation, parent in ended:
        observations.append(observation)
        if parent:
            below[parent] = below.get(parent, _NONE).plus(observation.usage)
    seen: dict[str, list[tuple[Observation, Usage]]] = {}
    for observation in observations:
        # An agent's usage holds that of its calls, so adding up members would count those twice.
        own = _minus(observation.usage, below.get(observation.call_id))
        seen.setdefault(observation.name, []).append((observation, own))
    return {name: _use(pool, name, uses) for name, uses in sorted(seen.items())}


def _use(pool: Pool, name: str, uses: Sequence[tuple[Observation, Usage]]) -> MemberUse:
    total, statuses, seconds = uses[0][1], dict[str, int](), []
    for place, (observation, own) in enumerate(uses):
        total = total.plus(own) if place else total
        status = observation.status.value
        statuses[status] = statuses.get(status, 0) + 1
        seconds.append(round(observation.ended - observation.started, 6))
    kind = pool[name].kind if name in pool else "unknown"
    return MemberUse(kind, len(seconds), statuses, total, tuple(seconds))


def _minus(usage: Usage, below: Usage | None) -> Usage:
    if below is None:
        return usage
    left = [max(0, have - took) for have, took in zip(usage, below, strict=True)]
    return Usage._make(left)


def _recovered(run: Run) -> int:
    """Calls that failed and whose member was called again, with success, in a later round."""
    ok_after: set[str] = set()
    count = 0
    # From the end, so that what succeeded later is known when a failure is met.
    for round_ in reversed(run.rounds):
        count += sum(1 for seen in round_.observations if seen.status is not Status.OK and seen.name in ok_after)
        ok_after |= {seen.name for seen in round_.observations if seen.status is Status.OK}
    return count


def _use_to_json(use: MemberUse) -> dict[str, Any]:
    return {
        "kind": use.kind,
        "calls": use.calls,
        "statuses": use.statuses,
        "usage": use.usage.to_json(),
        "seconds": use.seconds,
    }


def _use_from_json(data: Mapping[str, Any]) -> MemberUse:
    return MemberUse(
        data["kind"], data["calls"], data["statuses"], Usage.from_json(data["usage"]), tuple(data["seconds"])
    )
