"""A baseline is a fixed procedure: its next step follows from the question and the results so far.

So its machine keeps a log and nothing else, and `Procedure.decide` is a pure function of it. Copies, dumps and replays
are right by construction: the same log gives the same step.

Invariant: an entry of the log is never changed; a machine only appends.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

from concertino import Message, Observation, Reply, Sampling, UsageError
from concertino.strategies import Act, Ask, Done, Machine, Reading, Step, Strategy, TaskContext

from .members import AskedMember


@dataclass(frozen=True)
class ProcedureResult:
    """What one call gave: its text if it succeeded, else None and why."""

    text: str | None
    error: str = ""


@dataclass(frozen=True)
class Log:
    """Everything that happened in a run.

    Attributes:
        question: the user's question.
        members: who can be asked, in the order in which the baseline asks them.
        parallel: calls in one round; None without a limit.
        replies: texts of the leader, in order.
        rounds: results of each round of calls, in order.
        notes: what the baseline computed in `prepare`.
        sampling: how the run samples; None where that is not known.
    """

    question: str
    members: tuple[AskedMember, ...] = ()
    parallel: int | None = None
    replies: tuple[str, ...] = ()
    rounds: tuple[tuple[ProcedureResult, ...], ...] = ()
    notes: str = ""
    sampling: Sampling | None = None

    @property
    def results(self) -> tuple[ProcedureResult, ...]:
        """The results of all rounds."""
        return tuple(result for round_ in self.rounds for result in round_)

    @property
    def texts(self) -> list[str | None]:
        """Their texts."""
        return [result.text for result in self.results]


@dataclass(frozen=True)
class Procedure(Strategy):
    """What the baselines share. Subclasses write `decide`, and `best` where a run that is cut short has an answer."""

    @abstractmethod
    def decide(self, log: Log) -> Step:
        """The next step. Pure."""

    def best(self, log: Log) -> str | None:
        """The answer of a run that ends early. Pure."""
        return None

    def prepare(self, brief: TaskContext) -> Log:
        """The log of a run that begins.

        Raises:
            UsageError: the pool lacks what the baseline needs.
        """
        return Log(brief.question, parallel=brief.parallel, sampling=brief.sampling)

    def begin(self, brief: TaskContext) -> ProcedureMachine:
        """A machine at the start of a run.

        Raises:
            UsageError: the pool lacks what the baseline needs.
        """
        return ProcedureMachine(self, self.prepare(brief), brief.rounds)

    def restore(self, dumped: Mapping[str, Any]) -> ProcedureMachine:
        """A machine from `dump`."""
        return ProcedureMachine.restored(type(self).from_json(dumped["settings"]), dumped)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`; unknown settings are ignored."""
        # Fields that are not compared are objects, such as a fitted profile, which JSON cannot hold.
        known = {each.name for each in fields(cls) if each.compare}
        return cls(**{key: value for key, value in data.items() if key in known})

    def to_json(self) -> dict[str, Any]:
        """Name and settings, as a trace keeps them."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        return {"name": self.name, **{key: list(v) if type(v) is tuple else v for key, v in values.items()}}

    def _refuse(self, setting: str, expected: str) -> None:
        raise UsageError(f"{type(self).__name__}({setting}={getattr(self, setting)!r}): expected {expected}")

    def _at_least(self, **least: int) -> None:
        """Refuse whole numbers that are too small."""
        for name, number in least.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < number:
                self._refuse(name, f"a whole number, at least {number}")

    def _names(self, *settings: str) -> None:
        """Hold settings to be lists of names; lists of JSON become tuples."""
        for name in settings:
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) and each for each in value):
                self._refuse(name, 'names, such as ("ask_small", "ask_large")')
            # A trace gives lists back, and two equal strategies must compare equal.
            object.__setattr__(self, name, tuple(value))

    def _one_of(self, setting: str, known: Sequence[str]) -> None:
        if getattr(self, setting) not in known:
            self._refuse(setting, " or ".join(known))


class ProcedureMachine(Machine):
    """One run of a baseline.

    Attributes:
        settings: the baseline.
        log: what happened so far.
        limit: rounds of calls that are allowed; None without a limit.
        ended: how the run was ended from outside, None while it was not.
    """

    def __init__(self, settings: Procedure, log: Log, limit: int | None) -> None:
        self.settings = settings
        self.log = log
        self.limit = limit
        self.ended: Done | None = None

    def step(self) -> Step:
        """The next step."""
        if self.ended is not None:
            return self.ended
        step = self.settings.decide(self.log)
        # Only calls cost a round; asking the leader once more after the last round is allowed.
        if isinstance(step, Act) and self.limit is not None and step.round > self.limit:
            return Done(self.settings.best(self.log), "rounds", f"{self.limit} rounds are over")
        return step

    def on_reply(self, reply: Reply) -> None:
        """Note what the leader wrote."""
        self.log = replace(self.log, replies=(*self.log.replies, reply.text))

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        """Note what the calls gave."""
        results = tuple(_result(observation) for observation in observations)
        self.log = replace(self.log, rounds=(*self.log.rounds, results))

    @property
    def reading(self) -> Reading | None:
        """What the leader wrote last; a baseline takes any text."""
        return Reading("orchestrator", understood=bool(self.log.replies[-1].strip())) if self.log.replies else None

    def finish(self, stop: str, detail: str = "") -> None:
        """End from outside, with the best answer so far."""
        # A machine that is done keeps its answer, whatever ends the run afterwards.
        if not isinstance(self.step(), Done):
            self.ended = Done(self.settings.best(self.log), stop, detail)

    # -- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Self:
        """An independent copy; the log is never changed in place, so it is shared."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def dump(self) -> dict[str, Any]:
        """Plain JSON data."""
        log = self.log
        return {
            "settings": self.settings.to_json(),
            "question": log.question,
            "members": [list(member) for member in log.members],
            "parallel": log.parallel,
            "replies": list(log.replies),
            "rounds": [[[result.text, result.error] for result in round_] for round_ in log.rounds],
            "notes": log.notes,
            "sampling": {**asdict(log.sampling), "stop": list(log.sampling.stop)} if log.sampling else None,
            "limit": self.limit,
            "ended": [self.ended.answer, self.ended.stop, self.ended.detail] if self.ended else None,
        }

    @classmethod
    def restored(cls, settings: Procedure, dumped: Mapping[str, Any]) -> Self:
        """The machine of a dump."""
        log = Log(
            dumped["question"],
            tuple(AskedMember(*member) for member in dumped["members"]),
            dumped["parallel"],
            tuple(dumped["replies"]),
            tuple(tuple(ProcedureResult(*result) for result in round_) for round_ in dumped["rounds"]),
            dumped["notes"],
            Sampling(**{**given, "stop": tuple(given["stop"])}) if (given := dumped["sampling"]) else None,
        )
        machine = cls(settings, log, dumped["limit"])
        machine.ended = Done(*dumped["ended"]) if dumped["ended"] else None
        return machine


def ask(text: str, *, role: str = "orchestrator", sampling: Sampling | None = None) -> Ask:
    """Ask a model one text, as a conversation of its own."""
    return Ask(role, [Message("user", text)], 1, sampling=sampling)


def with_instruction(question: str, instruction: str) -> str:
    """The question, and below it what the baseline adds."""
    return f"{question}\n\n{instruction}" if instruction else question


def failures(results: Sequence[ProcedureResult]) -> str:
    """Why calls gave nothing, the first reason as an example."""
    wrong = [result.error for result in results if result.text is None]
    return f"{len(wrong)} of {len(results)} calls failed, the first: {wrong[0]}" if wrong else ""


def _result(observation: Observation) -> ProcedureResult:
    content = observation.content
    if observation.ok:
        return ProcedureResult(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))
    error = observation.error
    return ProcedureResult(None, f"{observation.name} {observation.status}: {error.message if error else 'no reason'}")
