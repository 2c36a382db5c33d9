"""An episode is everything that rewards read of one finished rollout, as plain data.

The invariant: an episode holds all that any reward term looks at, and nothing that only a live run has. So a reward is
computed again from a line of JSON, on another machine, without the pool, the trace or the task, and gives the same
number. Every number in it is finite, and none but a released reward of a role is negative; a price that nobody knew is
counted as such and never taken for 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from concertino import Observation, Reply, Status, UsageError
from concertino.core.events import CallEnded, CallStarted, Planned, Replied
from concertino_bench import Grade, Verdict
from concertino_bench.metrics import Preference
from concertino_bench.rescoring.recorded_run import as_recorded

if TYPE_CHECKING:
    from concertino import Pool, Run
    from concertino.strategies import FormatIssue, Reading
    from concertino_bench.environments import TurnReward


__all__ = ["Called", "Episode", "EpisodeRound", "RoleTurn", "Totals"]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _check(label: str, value: Any, *names: str) -> None:
    for name in names:
        given = getattr(value, name)
        if not _finite(given) or given < 0:
            raise UsageError(f"{label}: {name}={given!r}; expected a finite number, 0 or more")


def _unit(label: str, name: str, value: Any) -> None:
    if not _finite(value) or not 0 <= value <= 1:
        raise UsageError(f"{label}: {name}={value!r}; expected a number from 0 to 1")


MemberKind = Literal["tool", "agent", "model", "unknown"]
_KINDS: Mapping[str, MemberKind] = {"tool": "tool", "agent": "agent", "model": "model"}
RoundKind = Literal["calls", "final", "answer", "said", "unread", "world"]
ROUND_KINDS: Mapping[str, str] = {
    "calls": "the text became a plan",
    "final": "the text ended the run: an answer, or a `final_answer`",
    "answer": "the text is the answer that was asked for after the end; no round of the protocol",
    "said": "a role spoke, and nothing was to be run",
    "unread": "nothing could be read in the text",
    "world": "no text: the workflow itself acted, to look at an environment or to run tests",
}
"""The result of a text of the policy."""


@dataclass(frozen=True)
class Called:
    """One call that the policy made.

    Attributes:
        name: the member's name in the pool, or the unknown name as it was written.
        kind: tool, agent, model, or unknown.
        status: OK, PARSE_ERR, EXEC_ERR or TIMEOUT.
        units: cost units of it and everything below.
        usd: $ of it and everything below, as far as prices are known.
        unpriced: how many requests in it have an unknown price.
        seconds: from start to end.
        width: how many calls of its plan could run at the same time, itself included.
    """

    name: str
    kind: MemberKind = "tool"
    status: str = "OK"
    units: float = 0.0
    usd: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0
    width: int = 1

    def __post_init__(self) -> None:
        if self.status not in set(Status):
            raise UsageError(f"Called({self.name!r}, status={self.status!r}): expected one of {', '.join(Status)}")
        _check(f"Called({self.name!r})", self, "units", "usd", "unpriced", "seconds", "width")

    @property
    def ok(self) -> bool:
        """Whether the status is OK."""
        return self.status == "OK"


@dataclass(frozen=True)
class EpisodeRound:
    """One text of the policy and its result.

    Attributes:
        kind: one of `ROUND_KINDS`.
        role: who spoke: `orchestrator`, a role of a workflow; empty where nobody did.
        calls: the calls, in order.
        issues: codes of what the text lacked of the strategy's exact form: the round's format verdict.
        tokens: tokens that the policy sampled.
        truncated: the sampling ended because the text was long enough, not because it was finished.
        seconds: the model took to write it.
    """

    kind: RoundKind = "calls"
    role: str = "orchestrator"
    calls: tuple[Called, ...] = ()
    issues: tuple[str, ...] = ()
    tokens: int = 0
    truncated: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ROUND_KINDS:
            raise UsageError(f"EpisodeRound(kind={self.kind!r}): expected one of {', '.join(ROUND_KINDS)}")
        _check("EpisodeRound", self, "tokens", "seconds")

    @property
    def exact(self) -> bool:
        """Whether the text had the strategy's exact form."""
        return not self.issues and self.kind != "unread"


@dataclass(frozen=True)
class RoleTurn:
    """What one role of a workflow did in one turn, scored.

    Attributes:
        turn: counted from 1.
        role: its name.
        team: team reward of the turn, 0 to 1.
        scores: local reward components by name, each 0 to 1.
        verifiable: whether they could be worked out: the mask m of AT-GRPO, App. A.1.
        facts: further numbers, which only the released rewards read: `{"golden": 0.5, "environment": -0.1}`.
    """

    turn: int
    role: str
    team: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    verifiable: bool = True
    facts: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        label = f"RoleTurn({self.turn}, {self.role!r})"
        _unit(label, "team", self.team)
        for name, score in self.scores.items():
            _unit(label, f"scores[{name!r}]", score)
        for name, fact in self.facts.items():
            if not _finite(fact):
                raise UsageError(f"{label}: facts[{name!r}]={fact!r}; expected a finite number")

    @classmethod
    def of(
        cls, turn: int, reward: TurnReward, facts: Mapping[str, Mapping[str, float]] | None = None
    ) -> list[RoleTurn]:
        """The roles of one turn, from what an environment of concertino-bench says of it.

        Args:
            turn: counted from 1.
            reward: its rewards.
            facts: by role, what released rewards read.
        """
        more = facts or {}
        return [
            cls(turn, role, reward.team, dict(scores), role not in reward.unverifiable, dict(more.get(role, {})))
            for role, scores in reward.scores.items()
        ]


@dataclass(frozen=True)
class Totals:
    """What a rollout consumed.

    Attributes:
        units: cost units.
        usd: $ of everything, the policy included, as far as prices are known.
        unpriced: requests of unknown price, at any depth, the policy's included.
        policy_usd: the part of `usd` for the policy's own tokens.
        policy_unpriced: the part of `unpriced` that is the policy's own requests.
        seconds: wall time.
        critical_path: seconds with unlimited parallelism.
        call_seconds: sum over the policy's calls.
        policy_tokens: tokens that the policy sampled.
        sequence_tokens: tokens of the longest conversation behind its first prompt: what the policy wrote and read.
        tokens: tokens of all models, in and out.
    """

    units: float = 0.0
    usd: float = 0.0
    unpriced: int = 0
    policy_usd: float = 0.0
    policy_unpriced: int = 0
    seconds: float = 0.0
    critical_path: float = 0.0
    call_seconds: float = 0.0
    policy_tokens: int = 0
    sequence_tokens: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        _check("Totals", self, *(each.name for each in fields(self)))


@dataclass(frozen=True)
class Episode:
    """One finished rollout.

    Attributes:
        id: of the run.
        group: what it is compared with: the question, or the key of an agent's turn.
        sample: which of the rollouts of that group.
        correct: the score of its grade, 0 to 1.
        verdict: right, wrong or unparsable.
        answered: whether there is an answer that is not blank.
        answer: the answer.
        expected, found: of the grade.
        stop: why the run ended, one of `concertino.STOP_REASONS`.
        rounds: what the policy wrote, in order, and what the workflow itself did.
        totals: what was consumed.
        uses: how often each member was called, at any depth; unknown names and the policy's own requests left out.
        unpriced: members and models whose requests have no known price, the policy left out.
        preference: what the user prefers; None where nobody said.
        domain: of role workflows: `plan-path`, `code`, ...
        turns: of role workflows: what each role did in each turn.
        pool: id of the pool, empty where it is not known.
        first: place of the member that was called first in the list of `offered` members, from 0; None without a call.
        judged: how good its answer is beside those of its group, 0 to 1, by a model; None where none was asked.
    """

    id: str
    group: str
    sample: int = 0
    correct: float = 0.0
    verdict: str = "wrong"
    answered: bool = True
    answer: str | None = None
    expected: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    stop: str = "answered"
    rounds: tuple[EpisodeRound, ...] = ()
    totals: Totals = Totals()
    uses: Mapping[str, int] = field(default_factory=dict)
    unpriced: tuple[str, ...] = ()
    preference: Preference | None = None
    domain: str = ""
    turns: tuple[RoleTurn, ...] = ()
    judged: float | None = None
    pool: str = ""
    first: int | None = None
    offered: int = 0

    def __post_init__(self) -> None:
        _unit(f"Episode({self.id!r})", "correct", self.correct)
        if self.judged is not None:
            _unit(f"Episode({self.id!r})", "judged", self.judged)
        if self.verdict not in set(Verdict):
            raise UsageError(f"Episode({self.id!r}, verdict={self.verdict!r}): expected one of {', '.join(Verdict)}")

    @property
    def right(self) -> bool:
        """Whether the verdict is right."""
        return self.verdict == Verdict.RIGHT

    @property
    def policy_rounds(self) -> tuple[EpisodeRound, ...]:
        """The rounds of the protocol: texts of the policy, without an answer that was asked for after the end."""
        return tuple(round_ for round_ in self.rounds if round_.kind not in ("answer", "world"))

    @property
    def calls(self) -> tuple[Called, ...]:
        """The policy's calls, in order."""
        return tuple(call for round_ in self.rounds for call in round_.calls)

    @property
    def truncated(self) -> bool:
        """Whether any text of the policy was cut off."""
        return any(round_.truncated for round_ in self.rounds)

    @classmethod
    def of_run(
        cls,
        run: Run,
        grade: Grade,
        *,
        group: str,
        sample: int = 0,
        pool: Pool | None = None,
        preference: Preference | None = None,
        turns: Sequence[RoleTurn] = (),
        domain: str = "",
        others: Collection[str] = ("summariser",),
        readings: Sequence[Reading | None] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> Episode:
        """The episode of a finished and graded run.

        Args:
            run: the run; a resumed one lacks what happened inside calls that had ended before.
            grade: of its answer.
            group: what the rollout is compared with.
            sample: which rollout of the group.
            pool: says what kind a member is whose calls never started.
            preference: the user's.
            turns: of role workflows.
            domain: of role workflows.
            others: roles that are not played by the policy: their texts and tokens are not its own.
            readings: what the strategy found in the policy's texts, in order; by default the run is replayed.
            kinds: what kind a member is by its name, where the pool is not at hand.
        """
        # Finer times are not kept, and the same run must give the same episode when it is read back.
        run = as_recorded(run)
        reader = _RunReader(run, pool, frozenset(others), readings, kinds or {})
        offered = [spec.name for _, spec in pool.actions] if pool is not None else []
        usage, own = run.usage, reader.own
        return cls(
            run.id,
            group,
            sample,
            grade.score,
            grade.verdict.value,
            bool((run.answer or "").strip()),
            run.answer,
            grade.expected,
            grade.found,
            run.stop,
            tuple(reader.rounds()),
            Totals(
                usage.units,
                usage.usd,
                usage.unpriced,
                math.fsum(seen.usage.usd for seen in own),
                sum(seen.usage.unpriced for seen in own),
                max(0.0, run.seconds),
                max(0.0, run.critical_path()),
                math.fsum(max(0.0, seen.ended - seen.started) for seen in run.observations),
                reader.policy_tokens(),
                reader.sequence_tokens(),
                usage.tokens,
            ),
            reader.uses(),
            reader.unpriced(),
            preference,
            domain,
            tuple(turns),
            pool=pool.id if pool is not None else "",
            first=_first_place(run, pool, offered) if pool is not None else None,
            offered=len(offered),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; fields with their default are left out."""
        data = _plain(self)
        if self.preference is not None:
            data["preference"] = self.preference.to_json()
        data["rounds"] = [_round_to_json(each) for each in self.rounds]
        data["totals"] = _plain(self.totals)
        data["turns"] = [_plain(turn) for turn in self.turns]
        return {key: value for key, value in data.items() if value not in ([], {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Episode:
        """The inverse of `to_json`.

        Raises:
            UsageError: a field is missing, unknown or not what it should be; says which.
        """
        try:
            given: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
            }
            given["rounds"] = tuple(_round(each) for each in data.get("rounds", ()))
            given["turns"] = tuple(RoleTurn(**each) for each in data.get("turns", ()))
            given["totals"] = Totals(**data.get("totals", {}))
            if (preference := data.get("preference")) is not None:
                given["preference"] = Preference.from_json(preference)
            return cls(**given)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise UsageError(
                f"no episode: {type(error).__name__}: {error}; expected what Episode.to_json gives"
            ) from error


def _first_place(run: Run, pool: Pool, offered: Sequence[str]) -> int | None:
    called = next((round_.plan.calls[0].name for round_ in run.rounds if round_.plan.calls), "")
    spec = pool.find(called)
    return offered.index(spec.name) if spec is not None and spec.name in offered else None


class _RunReader:
    """Reads the events of a run as rounds and sums."""

    def __init__(
        self,
        run: Run,
        pool: Pool | None,
        others: frozenset[str],
        readings: Sequence[Reading | None] | None,
        kinds: Mapping[str, str],
    ) -> None:
        self.run = run
        self.pool = pool
        # Only a call that started has an event with its kind.
        self.kinds = {**kinds, **{e.name: e.kind for e in run.events if isinstance(e, CallStarted)}}
        self.replies = [e for e in run.events if isinstance(e, Replied) and e.role not in others]
        self.own = [e.observation for e in self.replies]
        found = list(readings) if readings is not None else _readings(run, self.replies)
        # A strategy has not read replies behind the point where a run broke off.
        self.readings = [*found, *[None] * (len(self.replies) - len(found))]

    # -- rounds --------------------------------------------------------------------------------------------------------

    def rounds(self) -> Iterator[EpisodeRound]:
        """Replies and plans in the order of events; a plan belongs to the last reply before it, if none had it yet."""
        plans, spoken = iter(self.run.rounds), 0
        # By identity, as two replies may be equal.
        places = {id(told): place for place, told in enumerate(self.replies)}
        heard = 0
        for event in self.run.events:
            if id(event) in places:
                heard = places[id(event)] + 1
            elif isinstance(event, Planned):
                planned = next(plans)
                calls, issues = self._calls(planned), tuple(issue.code for issue in planned.issues)
                # A plan belongs to the last reply before it; those between led to none.
                yield from (self._unplanned(place) for place in range(spoken, heard - 1))
                if spoken < heard:
                    yield self._round("calls", self.replies[heard - 1], calls, issues)
                elif calls:
                    yield EpisodeRound("world", "", calls)
                spoken = heard
        yield from (self._unplanned(place) for place in range(spoken, len(self.replies)))

    def _unplanned(self, place: int) -> EpisodeRound:
        """A text that led to no plan of its own."""
        told = self.replies[place]
        kind = self._kind_of(place)
        reading = self.readings[place]
        issues: Sequence[FormatIssue] = () if kind == "answer" or reading is None else reading.issues
        return self._round(kind, told, (), tuple(issue.code for issue in issues))

    def _kind_of(self, place: int) -> RoundKind:
        reading = self.readings[place]
        if reading is None:
            return "said"
        if reading.closing:
            return "answer"
        if not reading.understood:
            return "unread"
        following = self.readings[place + 1 : place + 2]
        # A closing question follows only what ended the run; any other text leads on to the next one.
        if following:
            return "final" if following[0] is not None and following[0].closing else "said"
        return "final" if reading.calls or self.run.answer is not None else "said"

    def _round(
        self, kind: RoundKind, told: Replied, calls: tuple[Called, ...] = (), issues: tuple[str, ...] = ()
    ) -> EpisodeRound:
        return EpisodeRound(
            kind,
            told.role,
            calls,
            issues,
            _tokens(told.reply),
            told.reply.finish_reason == "length",
            max(0.0, round(told.observation.ended - told.observation.started, 6)),
        )

    def _calls(self, planned: Any) -> tuple[Called, ...]:
        # Calls of one level of the plan depend on each other in nothing, so they can run at the same time.
        width = {call_id: len(level) for level in planned.plan.levels() for call_id in level}
        seen = zip(planned.plan.calls, planned.observations, strict=True)
        return tuple(
            Called(
                one.name,
                self._kind(one.name),
                one.status.value,
                float(one.usage.units),
                one.usage.usd,
                one.usage.unpriced,
                max(0.0, round(one.ended - one.started, 6)),
                width[call.id],
            )
            for call, one in seen
        )

    def _kind(self, name: str) -> MemberKind:
        kind = self.kinds.get(name) or (self.pool[name].kind if self.pool is not None and name in self.pool else "")
        return _KINDS.get(kind, "unknown")

    # -- sums ----------------------------------------------------------------------------------------------------------

    def policy_tokens(self) -> int:
        return sum(_tokens(told.reply) for told in self.replies)

    def sequence_tokens(self) -> int:
        """Tokens behind the first prompt in the longest conversation of one role."""
        first: dict[str, int] = {}
        longest = 0
        for told in self.replies:
            read = _prompt_tokens(told.reply)
            # A role's first prompt is the question and the pool, which the policy has not caused.
            behind = read + _tokens(told.reply) - first.setdefault(told.role, read)
            longest = max(longest, behind)
        return max(longest, 0)

    def _ended(self) -> Iterator[Observation]:
        own = {id(seen) for seen in self.own}
        for event in self.run.events:
            if isinstance(event, (CallEnded, Replied)) and id(event.observation) not in own:
                yield event.observation

    def uses(self) -> dict[str, int]:
        counts = Counter(seen.name for seen in self._ended() if self._kind(seen.name) != "unknown")
        return dict(sorted(counts.items()))

    def unpriced(self) -> tuple[str, ...]:
        """Those without a price: the models if they are known, else the agents that used them."""
        found = {seen.name for seen in self._ended() if seen.usage.unpriced}
        # An agent's requests include those of its model, so the model is the one that lacks a price.
        models = {name for name in found if self._kind(name) in ("model", "unknown")}
        return tuple(sorted(models or found))


def _readings(run: Run, replies: Sequence[Replied]) -> list[Reading | None]:
    """Readings of these replies, from a replay of the run's trace."""
    from concertino_train.data.replaying import readings_of

    found = readings_of(run.trace)
    # A request that was made again has `~2` and so on behind its id; the strategy knows the plain one.
    return [found.get(told.call_id.partition("~")[0]) for told in replies]


def _tokens(reply: Reply) -> int:
    return len(reply.token_ids) if reply.token_ids is not None else reply.usage.output_tokens


def _prompt_tokens(reply: Reply) -> int:
    return len(reply.prompt_token_ids) if reply.prompt_token_ids is not None else reply.usage.input_tokens


# -- plain data --------------------------------------------------------------------------------------------------------


def _plain(value: Any) -> dict[str, Any]:
    """Fields of a dataclass that differ from their default, tuples as lists."""
    data: dict[str, Any] = {}
    for each in fields(value):
        held = getattr(value, each.name)
        # A reader puts defaults back, and lines of JSON stay short.
        if held == each.default or held in ((), {}):
            continue
        data[each.name] = list(held) if isinstance(held, tuple) else dict(held) if isinstance(held, Mapping) else held
    return data


def _round_to_json(each: EpisodeRound) -> dict[str, Any]:
    calls = [_plain(call) for call in each.calls]
    return {**_plain(each), "calls": calls} if calls else _plain(each)


def _round(data: Mapping[str, Any]) -> EpisodeRound:
    given = {**data, "calls": tuple(Called(**call) for call in data.get("calls", ()))}
    return EpisodeRound(**{**given, "issues": tuple(data.get("issues", ()))})
