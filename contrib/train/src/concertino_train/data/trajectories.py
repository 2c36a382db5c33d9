"""Trajectories to choose from: what a results file and its traces say of each run, without keeping the traces.

The invariant: everything that a choice looks at is here, so one choice over the same files is the same on every
machine; and what cannot be read is told with its reason, never skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino import Call, Observation, Pool, Status, Trace, TraceError, UsageError
from concertino_bench import Item, Key
from concertino_bench.reports import read_results

from .conversations import OTHERS, conversations_of
from .replaying import ReplayedTrace, Spoken, replayed

PoolOf = Callable[[Item], Pool]
"""The pool that an item ran with, where tasks have worlds."""


@dataclass(frozen=True)
class Trajectory:
    """One run that may be learnt from.

    Attributes:
        key: system, task and sample.
        source: results file.
        trace: file of its trace.
        verdict: of its answer.
        run, pool, strategy, question, stop: of the run.
        tools: how often the orchestrator called each member; calls that were not understood are not counted.
        statuses: of all its calls.
        models: how often each model of the pool answered, at any depth.
        unread: texts that were handed back.
        failed: calls that did not end OK.
        repaired: of the failed calls and the texts handed back, how many were made good in a later round.
        rounds: plans with calls.
        widths: by level of each plan, what ran side by side: `{"search": 2}`.
        taught: texts that would be taught.
        conversations: how many.
    """

    key: Key
    source: str
    trace: Path
    verdict: str
    run: str = ""
    pool: str = ""
    strategy: str = ""
    question: str = ""
    stop: str = ""
    tools: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, int] = field(default_factory=dict)
    unread: int = 0
    failed: int = 0
    repaired: int = 0
    rounds: int = 0
    widths: tuple[Mapping[str, int], ...] = ()
    taught: int = 0
    conversations: int = 0

    @property
    def right(self) -> bool:
        """Whether its answer is right."""
        return self.verdict == "right"

    @property
    def recovered(self) -> bool:
        """Whether something failed and was made good."""
        return self.repaired > 0

    @property
    def calls(self) -> int:
        """How many calls the orchestrator made."""
        return sum(self.statuses.values())


REASONS: Mapping[str, str] = {
    "broken": "the system broke before there was a run",
    "no trace": "the run left no trace, or its file is gone",
    "unreadable": "the trace is damaged, has no end, or does not fit its strategy",
    "wrong": "its answer is wrong",
    "unparsable": "it gave no answer that could be read",
    "excluded": "its question is kept for something else",
    "no recovery": "only trajectories that recovered were asked for",
    "nothing to learn": "every text of it has a fault",
    "few calls": "it made fewer calls than were asked for",
    "beaten": "another trajectory of its question was taken",
    "balance": "one member would have had too large a share of all calls",
    "enough": "as many as were asked for are there",
    "not rewritten": "it could not be rewritten as parallel calls",
    "simple": "it takes fewer searches than were asked for",
    "ratio": "its kind, parallel or serial, was there too often",
    "long": "it has more tokens than were asked for",
}
"""Why a trajectory is left out."""


@dataclass(frozen=True)
class LeftOutTrajectory:
    """A trajectory that is not taken.

    Attributes:
        key: system, task and sample.
        source: results file.
        reason: one of `REASONS`.
        detail: more about it; may be empty.
    """

    key: Key
    source: str
    reason: str
    detail: str = ""

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise UsageError(f"LeftOutTrajectory(reason={self.reason!r}): expected one of {', '.join(REASONS)}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {"key": list(self.key), "source": self.source, "reason": self.reason}
        return {**data, "detail": self.detail} if self.detail else data


def read_trajectories(
    results: str | Path,
    *,
    pool: Pool | PoolOf | None = None,
    others: Sequence[str] = OTHERS,
    exact: bool = False,
    right_only: bool = True,
    systems: Sequence[str] = (),
    source: str = "",
) -> Iterator[Trajectory | LeftOutTrajectory]:
    """The trajectories of a results file, one by one, in its order.

    Args:
        pool: what they ran with; needed for strategies that call natively. A function gives the pool of an item, where
            tasks have worlds.
        others: roles that are not played by the policy.
        exact: teach only texts without any issue.
        right_only: do not open traces of wrong answers.
        systems: only these; all by default.
        source: what the file is called; by default its name.

    Raises:
        UsageError: the file cannot be read, has no such system, or its texts call natively and there is no pool.
    """
    path = Path(results)
    source = source or path.name
    read = read_results(path)
    if missing := sorted(set(systems) - set(read.systems)):
        known = ", ".join(read.systems) or "none"
        raise UsageError(f"{path} has no system {missing[0]!r}; there are {known}")
    for item in read.items:
        if systems and item.key.system not in systems:
            continue
        if item.error:
            yield LeftOutTrajectory(item.key, source, "broken", item.error)
        elif right_only and not item.right:
            yield LeftOutTrajectory(item.key, source, item.verdict.value, item.reason)
        else:
            yield _read(item, path, source, pool, others, exact)


def _read(
    item: Item, path: Path, source: str, pool: Pool | PoolOf | None, others: Sequence[str], exact: bool
) -> Trajectory | LeftOutTrajectory:
    if not item.trace or not (file := path.parent / item.trace).is_file():
        return LeftOutTrajectory(item.key, source, "no trace", item.trace or "the evaluation kept none")
    try:
        return trajectory_of(item, Trace.load(file), source, tools_of(item, pool), others, exact)
    except TraceError as error:
        return LeftOutTrajectory(item.key, source, "unreadable", str(error))


def tools_of(item: Item, pool: Pool | PoolOf | None) -> list[dict[str, Any]]:
    """The action space that an item ran with, as far as a pool is known."""
    if pool is None:
        return []
    found = pool if isinstance(pool, Pool) else pool(item)
    return found.to_openai()


def trajectory_of(
    item: Item,
    trace: Trace,
    source: str,
    tools: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = OTHERS,
    exact: bool = False,
) -> Trajectory:
    """What a choice looks at of one run.

    Raises:
        TraceError: the trace does not fit its strategy, or its run has not ended.
    """
    told = replayed(trace, tools)
    conversations = conversations_of(told, others=others, exact=exact)
    own = [said for said in told.spoken if said.part not in others and said.role not in others]
    calls = [pair for said in own for pair in said.calls]
    return Trajectory(
        item.key,
        source,
        trace.path or Path(),
        item.verdict.value,
        trace.run_id,
        item.pool or str(trace.setup.get("pool", "")),
        told.strategy.name,
        trace.question,
        item.stop,
        tools=_counted(seen.name for _, seen in calls if seen.status is not Status.PARSE_ERR),
        statuses=_counted(seen.status.value for _, seen in calls),
        models=_counted(_models(trace)),
        unread=sum(said.unread for said in own),
        failed=sum(not seen.ok for _, seen in calls),
        repaired=repaired(told, others),
        rounds=sum(1 for said in own if said.calls),
        widths=tuple(row for said in own for row in _widths(said, told)),
        taught=sum(len(each.train) for each in conversations),
        conversations=len(conversations),
    )


def repaired(told: ReplayedTrace, others: Sequence[str] = OTHERS) -> int:
    """How many failures of the policy were made good later.

    A failed call is, if a later text's call succeeded that has the same member, one that its error names as near, or an
    argument of it handed to another member. A text that was handed back is, if a later one of the same part was read.
    """
    own = [said for said in told.spoken if said.part not in others and said.role not in others]
    count = 0
    for place, said in enumerate(own):
        later = own[place + 1 :]
        if said.unread:
            count += any(other.part == said.part and not other.unread for other in later)
        good = [(call, seen) for other in later for call, seen in other.calls if seen.ok]
        for call, seen in said.calls:
            count += not seen.ok and any(_makes_good(call, seen, one, done) for one, done in good)
    return count


def _makes_good(call: Call, seen: Observation, later: Call, done: Observation) -> bool:
    near = seen.error.near if seen.error is not None else ()
    if later.name == call.name or done.name == seen.name or later.name in near:
        return True
    return bool(_long_texts(call.data) & _long_texts(later.data))


_SUBTASK = 12
"""Characters from which on two equal arguments are the same sub-task, and no accident."""


def _long_texts(value: Any) -> set[str]:
    if isinstance(value, str):
        return {" ".join(value.split())} if len(value) >= _SUBTASK else set()
    if isinstance(value, Mapping):
        return {text for item in value.values() for text in _long_texts(item)}
    if isinstance(value, list | tuple):
        return {text for item in value for text in _long_texts(item)}
    return set()


def _models(trace: Trace) -> Iterator[str]:
    asked = {record["id"].partition("~")[0]: record["model"] for record in trace.of_kind("ask")}
    yield from (asked.get(record["id"].partition("~")[0], "") for record in trace.of_kind("reply"))
    yield from (record["name"] for record in trace.of_kind("intent") if record["kind"] == "model")


def _widths(said: Spoken, told: ReplayedTrace) -> Iterator[dict[str, int]]:
    """What a text's calls had running side by side, level by level."""
    if said.calls:
        names = {call.id: seen.name for call, seen in said.calls if seen.status is not Status.PARSE_ERR}
        for level in told.levels[said.round - 1]:
            if row := _counted(names[id] for id in level if id in names):
                yield row


def _counted(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name).items()))
