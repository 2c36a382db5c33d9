"""A run as a state machine without any input or output of its own.

`Strategy.begin` makes a `Machine`. Its driver asks it what it wants next and does that for it:

    step = machine.step()            # pure: asking twice changes nothing
    Ask  -> the driver asks a model  -> machine.on_reply(reply)
    Act  -> the driver runs the plan -> machine.observe(observations, remaining)
    Done -> the run is over

So the same machine is driven by `Orchestrator.run` with a model and the executor, by a replay from a trace, by a
bench over thousands of tasks, by a training engine in batches, and by a tree search that forks it. It can be copied
at any point (`fork`), written down (`dump`) and read again (`Strategy.restore`); the two copies share nothing.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

from concertino.core.errors import UsageError
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Message, Reply, Sampling
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan
from concertino.text.foreign_text import IN_QUESTIONS, Quoting

if TYPE_CHECKING:
    from .answer_reader import AnswerReader

_PLAIN = frozenset({str, int, float, bool, type(None)})


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a machine knows when it begins.

    Attributes:
        question: the user's question.
        tools: the action space as OpenAI-style function objects.
        rounds: turns that may call something; `None` leaves the strategy's own limit.
        parallel: calls in one round; `None` leaves the strategy's own limit.
        remaining: what is left of the budget at the start, as it is shown later with every observation.
        sampling: how the run samples where an `Ask` says nothing; a strategy that sets seeds of its own derives them
            from this one, so that two runs with different seeds never ask the same.
    """

    question: str
    tools: Sequence[Mapping[str, Any]] = ()
    rounds: int | None = None
    parallel: int | None = None
    remaining: Mapping[str, float] | None = None
    sampling: Sampling | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a model.

    Attributes:
        role: role of the pool whose model is asked: `orchestrator`, `summariser`, or one that the strategy defines.
        messages: the whole conversation; a live view that must not be changed.
        fresh: how many messages at its end this role has not been asked with before.
        tools: function objects for native tool calling, if the strategy uses it.
        part: the strategy's own role that speaks, where several of them may share a role of the pool; empty where
            it is the same as `role`.
        turn: the strategy's turn, counted from 1; 0 where it has no roles of its own.
        whole: the whole text of the reply is the answer, so a server may be held to its type.
    """

    role: str
    messages: Sequence[Message]
    fresh: int
    tools: Sequence[Mapping[str, Any]] = ()
    sampling: Sampling | None = None
    part: str = ""
    turn: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """Run a plan: round `round`, counted from 1.

    Attributes:
        issues: what the text lacks of the exact form: the round's verdict.
        writers: for each call of the plan the part that wrote it, "" for the strategy itself; empty where the part
            that spoke last wrote all of them.
    """

    plan: Plan
    round: int
    issues: tuple[FormatIssue, ...] = ()
    writers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over. `stop` is one of `concertino.STOP_REASONS`."""

    answer: str | None
    stop: str
    detail: str = ""


Step = Ask | Act | Done
"""What a machine can want."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a machine found in the reply that it was told last.

    Collecting, training and evaluation read this report, never the insides of a machine.

    Attributes:
        part: who spoke: a role of the strategy, or `orchestrator`.
        calls: the calls that were read, in order, as they were written; unreadable ones carry an error.
        issues: what the text lacks of the exact form; `repaired` ones had one plain meaning, which was taken.
        understood: whether the strategy could use the text. False: it held nothing to use, and the model is asked
            again or the run ends.
        closing: the text was asked for as the answer, after the last turn that may call something.
        thought: what was thought in the text, before its calls or its answer.
    """

    part: str
    calls: tuple[Call, ...] = ()
    issues: tuple[FormatIssue, ...] = ()
    understood: bool = True
    closing: bool = False
    thought: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "part": self.part,
            "calls": [call.to_json() for call in self.calls],
            "issues": [issue.to_json() for issue in self.issues],
            "understood": self.understood,
            "closing": self.closing,
            "thought": self.thought,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reading:
        """The inverse of `to_json`."""
        calls = tuple(Call.from_json(call) for call in data["calls"])
        issues = tuple(FormatIssue.from_json(issue) for issue in data["issues"])
        return cls(data["part"], calls, issues, data["understood"], data["closing"], data["thought"])


@dataclass(frozen=True, slots=True)
class Utterance:
    """The last word of a role.

    Attributes:
        turn: in which it was said.
        text: what was written, without its thought.
        value: what was read from it, `None` if it could not be read.
        result: what its tools returned, as text; "" without tools.
        ok: its tools succeeded; `None` if none was called.
        issues: what is wrong; their places count in the whole reply, its thought included.
    """

    turn: int
    text: str = ""
    value: Any = None
    result: str = ""
    ok: bool | None = None
    issues: tuple[FormatIssue, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "issues": [asdict(issue) for issue in self.issues]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Utterance:
        """The inverse of `to_json`."""
        return cls(**{**data, "issues": tuple(FormatIssue(**issue) for issue in data["issues"])})


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where a strategy with roles of its own stands.

    Attributes:
        turn: the turn at hand, counted from 1.
        finished: turns that are over.
        said: the last utterance of each role, by its name.
        state: state of the environment as plain data, `None` without one.
        answering: the role whose last word is the run's answer, or its action on the environment.
    """

    turn: int
    finished: int
    said: Mapping[str, Utterance]
    state: Any = None
    answering: str = ""


class OutlineStep(NamedTuple):
    """A step of a task, as a plan in words names it."""

    text: str
    needs: tuple[int, ...] = ()
    """Places of the steps, counted from 0, whose results it needs."""


class RunLimits(NamedTuple):
    """Limits of the strategy's own; `None` for no limit."""

    rounds: int | None = None
    """Turns that may call something."""
    parallel: int | None = None
    """Calls in one turn."""


class Machine(ABC):
    """One run of one strategy. Its attributes are plain data, so that a copy is a fork."""

    @abstractmethod
    def step(self) -> Step:
        """What is wanted next. Pure: only `on_reply`, `observe` and `finish` move the machine."""

    @abstractmethod
    def on_reply(self, reply: Reply) -> None:
        """Answer an `Ask`."""

    @abstractmethod
    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        """Answer an `Act`, with what is left of the budget."""

    @abstractmethod
    def finish(self, stop: str, detail: str = "") -> None:
        """End the run from outside: the budget or the time is over, or the model does not answer.

        The machine may still ask for a last answer (`rounds`), or be `Done` at once.
        """

    @property
    def reading(self) -> Reading | None:
        """What the last reply was read as; `None` before the first one. Kept in copies and dumps.

        Training and evaluation need it: a strategy that is to be trained overrides it.
        """
        return None

    def turn_state(self) -> TurnState | None:
        """What roles have said and done; `None` for a strategy without roles of its own."""
        return None

    marks: ClassVar[tuple[str, ...]] = (">",)
    """Texts with one of which every complete call ends; `complete_calls` is only asked when one of them was written."""

    def complete_calls(self, text: str) -> Sequence[Call]:
        """Calls that are complete in a text that the model is still writing, for eager dispatch. None by default.

        Pure. Each must be as the plan of the finished text will have it, id included, and a longer text gives at least
        these.
        """
        return ()

    def prefetchable(self) -> Sequence[Ask]:
        """While it asks: further asks that it will make whatever the reply is, so that they may be made at once.

        Pure. Each must be as `step` will give it, messages included, before the machine wants anything else. None by
        default.
        """
        return ()

    def answer_reader(self) -> AnswerReader | None:
        """While it asks: a reader that finds the answer in the text of the reply while it is written.

        None, the default, for a reply that holds no answer in its text, or of which only the whole text says it.
        """
        return None

    def fork(self) -> Self:
        """An independent copy: what happens to one never shows in the other."""
        return copy.deepcopy(self)

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """Plain JSON data from which `Strategy.restore` makes the same machine."""


@cache
def _field_names(kind: type[Strategy]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


class Strategy(ABC):
    """A paradigm: what the model is shown, how its text is read, how observations are shown back, when to stop.

    Subclasses are frozen dataclasses, so that their settings are their fields.
    """

    name: ClassVar[str]
    reads_tools: ClassVar[bool] = False
    """Its reader needs to know the pool: a trace then keeps the action space, and a replay gives it to `begin`."""

    needs_members: ClassVar[bool] = True
    """A pool without any tool or agent is refused; without this, a strategy may work with its model alone."""

    searches: ClassVar[bool] = True
    """Its model can look for more members during a run of a large pool; a plan that is written once cannot."""

    def within(self, context: TaskContext) -> Self:
        """These settings within the limits of a run: the same object where those change nothing."""
        limits = {"max_rounds": context.rounds, "max_parallel": context.parallel}
        lower = {name: limit for name, limit in limits.items() if limit and limit < getattr(self, name, 0)}
        changed: Self = replace(cast("Any", self), **lower) if lower else self
        return changed

    @property
    def named_members(self) -> Sequence[str]:
        """Members that the strategy itself calls by name; they are listed, however large the pool is."""
        return ()

    @abstractmethod
    def begin(self, context: TaskContext) -> Machine:
        """A machine at the start of a run."""

    @abstractmethod
    def restore(self, dumped: Mapping[str, Any]) -> Machine:
        """A machine from `Machine.dump`."""

    def _require_at_least(self, **least: int) -> None:
        """Refuse settings that are not whole numbers, or that are below a value; `None` leaves a setting out.

        Raises:
            UsageError: names the setting and its least value.
        """
        for name, lowest in least.items():
            value = getattr(self, name)
            if value is None:
                continue
            place = f"{type(self).__name__}({name}={value!r})"
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"{place}: expected a whole number, at least {lowest}")
            if value < lowest:
                raise UsageError(f"{place}: expected at least {lowest}")

    def quoting(self, tools: Sequence[Mapping[str, Any]] = ()) -> Quoting:
        """How questions and earlier turns are quoted, so that they hold no mark of the strategy's own prompts.

        Args:
            tools: function objects on offer, for a strategy whose marks have their names.
        """
        return IN_QUESTIONS

    @property
    def parts(self) -> Mapping[str, str]:
        """The roles that speak, in order, each with the role of the pool whose model plays it."""
        return {"orchestrator": "orchestrator"}

    @property
    def limits(self) -> RunLimits:
        """Turns and calls that the settings allow, for estimates of what a run may cost."""
        return RunLimits()

    def write_turn(
        self,
        calls: Sequence[Call],
        thought: str = "",
        *,
        part: str = "",
        tools: Sequence[Mapping[str, Any]] = (),
        outline: Sequence[OutlineStep] = (),
    ) -> str:
        """The text of a turn that makes these calls, in the exact form that the strategy reads.

        Args:
            calls: of one turn; their ids are counted again by the reader.
            thought: what is thought before them.
            part: the role that writes, for a strategy with roles of its own.
            tools: the action space as OpenAI-style function objects.
            outline: the whole task in steps, for the first turn of a strategy whose format has room for it.

        Raises:
            UsageError: the strategy's format cannot hold it.
        """
        raise UsageError(f"the strategy {self.name!r} does not write turns; give its class a method write_turn")

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        """The texts with which a run ends in an answer, in the order of asking.

        Raises:
            UsageError: the strategy's format cannot hold it.
        """
        raise UsageError(f"the strategy {self.name!r} does not write answers; give its class a method write_answer")

    @classmethod
    def load(cls, path: str | Path) -> Strategy:
        """Read a strategy of this kind from a file, for strategies that have a file format of their own.

        Raises:
            UsageError: this kind has none; or the file cannot be read.
        """
        raise UsageError(f"{path}: the strategy {cls.name!r} is not read from files; give its settings")

    def to_json(self) -> dict[str, Any]:
        """Name and settings, as a trace keeps them."""
        # Every run records it, and most settings are numbers and words, which `asdict` would look at for long.
        settings = {name: getattr(self, name) for name in _field_names(type(self))}
        plain = all(type(value) in _PLAIN for value in settings.values())
        return {"name": self.name, **(settings if plain or not is_dataclass(self) else asdict(self))}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Strategy:
        """The inverse of `to_json`, for this class; unknown settings are ignored."""
        # A trace of a later version may hold settings that this one does not have.
        known: set[str] = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
        return cls(**{key: value for key, value in data.items() if key in known})
