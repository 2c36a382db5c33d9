"""A trace replayed: every text that a role wrote, with the conversation that it read and its result.

A trace keeps of each question only the messages that were new. What a role read as a whole follows from the strategy:
a chat continues, a stateless prompt and the next turn of a role begin again, a compacted history is rewritten. So the
strategy's own machine is driven by the recorded replies and observations, without any model or tool, and says where a
conversation begins; the words are those of the trace.

The invariant: a text stands in exactly one conversation as the text that was written there, and every message before
it is what its writer read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from concertino import Call, Message, Observation, Reply, Status, Trace, TraceError, UsageError, replay
from concertino.strategies import Act, Ask, Done, Machine, Reading, Step, Strategy, TaskContext, installed_strategy

Tools = Sequence[Mapping[str, Any]]
_ID = "concertino_ask"
"""Key under which a reply carries the id of its question through a replay."""


@dataclass
class Spoken:
    """One text of a role.

    Attributes:
        id: of the question in the trace, `ask.3`.
        role: of the pool, whose model wrote it.
        part: role of the workflow that it plays; the same as `role` where a strategy has no roles of its own.
        model: which model of the pool played the role.
        begins: a conversation begins with `fresh`; else it continues after the role's previous text.
        fresh: messages that it read and that this conversation did not have yet.
        reply: what it wrote.
        reading: what the strategy's machine found in it.
        tools: function objects for native calls that it was given.
        calls: calls that it led to, with their observations.
        round: number of the plan that it led to, 0 for none.
    """

    id: str
    role: str
    part: str
    model: str
    begins: bool
    fresh: tuple[Message, ...]
    reply: Reply
    reading: Reading
    tools: tuple[Mapping[str, Any], ...] = ()
    calls: list[tuple[Call, Observation]] = field(default_factory=list)
    round: int = 0

    @property
    def issues(self) -> tuple[str, ...]:
        """Codes of what the text lacks of the exact form, those without one plain reading."""
        return tuple(issue.code for issue in self.reading.issues if not issue.repaired)

    @property
    def repaired(self) -> tuple[str, ...]:
        """Codes of issues that had one plain reading, which was taken."""
        return tuple(issue.code for issue in self.reading.issues if issue.repaired)

    @property
    def unread(self) -> bool:
        """Whether nothing could be read in it, so that it was handed back."""
        return not self.reading.understood

    @property
    def refused(self) -> bool:
        """Whether a call of it was not run because it could not be understood."""
        return any(seen.status is Status.PARSE_ERR for _, seen in self.calls)


@dataclass(frozen=True)
class ReplayedTrace:
    """A trace gone through again.

    Attributes:
        spoken: all texts, in the order in which the strategy read them.
        rounds: by plan, its calls with their observations; calls that nobody wrote, such as a look at an environment,
            included.
        levels: by plan, the ids of its calls by depth: what could run side by side.
        done: how the strategy ended.
        strategy: what was replayed.
    """

    spoken: tuple[Spoken, ...]
    rounds: tuple[tuple[tuple[Call, Observation], ...], ...]
    levels: tuple[tuple[tuple[str, ...], ...], ...]
    done: Done
    strategy: Strategy


def strategy_of(trace: Trace) -> Strategy:
    """The strategy that a trace was made with, as it was set.

    Raises:
        UsageError: no such strategy is installed.
    """
    said = trace.setup.get("strategy", {})
    return installed_strategy(str(said.get("name", ""))).from_json(said)


def replayed(trace: Trace, tools: Tools = ()) -> ReplayedTrace:
    """Go through a trace again.

    Args:
        trace: of a run that ended.
        tools: the action space as OpenAI-style function objects, for strategies that hand it to the server (native
            calls, the released stateless prompts); a trace keeps it only where its reader needs it.

    Raises:
        TraceError: the trace does not fit its strategy, or its run has not ended.
        UsageError: its strategy is not installed, or its texts call natively and nobody said what could be called.
    """
    strategy = strategy_of(trace)
    known = tuple(trace.setup.get("tools", ())) or tuple(tools)
    # Without a pool nothing is offered in the replay, so the strategy's setting says that the run called natively.
    heard = _Heard(trace, bool(known), native=getattr(strategy, "native", False))
    done = replay(_with_ids(trace, known), _Overheard(strategy, heard))
    if not trace.finished:
        raise TraceError(f"{trace.path or trace.run_id}: the run has no end yet; resume it before it is taught")
    return ReplayedTrace(tuple(heard.spoken), tuple(heard.rounds), tuple(heard.levels), done, strategy)


def readings_of(trace: Trace, look: Callable[[Machine], None] | None = None) -> dict[str, Reading]:
    """What a trace's strategy found in each reply, by the id of its question; of a run that broke, as far as it got.

    Args:
        look: is shown the machine whenever it waits for a text or is done, as it was in the run.

    Raises:
        UsageError: its strategy is not installed, or does not say what it reads.
    """
    noted = _Noted(look)
    with contextlib.suppress(TraceError):
        # A run that broke ends in the middle; what was read up to there is what was asked for.
        replay(_with_ids(trace, ()), _Overheard(strategy_of(trace), noted))
    return noted.readings


def _with_ids(trace: Trace, tools: Tools) -> Trace:
    """The same records, with replies that carry the id of their question, and a setup that knows the tools."""
    records: list[dict[str, Any]] = []
    for record in trace.records:
        if record["t"] == "reply":
            said = record["reply"]
            reply = {**said, "extra": {**said.get("extra", {}), _ID: record["id"].partition("~")[0]}}
            records.append({**record, "reply": reply})
        elif record["t"] == "run" and tools:
            records.append({**record, "setup": {**record.get("setup", {}), "tools": list(tools)}})
        else:
            records.append(record)
    return Trace(records, trace.path)


class _Listener(Protocol):
    """A listener to a replay."""

    def told(self, step: Ask, reply: Reply, reading: Reading) -> None: ...

    def ran(self, step: Act, observations: Sequence[Observation]) -> None: ...

    def waits(self, machine: Machine) -> None: ...


class _Noted:
    """The readings of a replay, by question."""

    def __init__(self, look: Callable[[Machine], None] | None) -> None:
        self.readings: dict[str, Reading] = {}
        self.look = look

    def told(self, step: Ask, reply: Reply, reading: Reading) -> None:
        self.readings[str(reply.extra.get(_ID, ""))] = reading

    def ran(self, step: Act, observations: Sequence[Observation]) -> None:
        pass

    def waits(self, machine: Machine) -> None:
        if self.look is not None:
            self.look(machine)


class _Heard:
    """Puts the texts of a replay together with what the trace recorded."""

    def __init__(self, trace: Trace, tools_known: bool, *, native: bool = False) -> None:
        self.spoken: list[Spoken] = []
        self.rounds: list[tuple[tuple[Call, Observation], ...]] = []
        self.levels: list[tuple[tuple[str, ...], ...]] = []
        self.tools_known = tools_known
        self.native = native
        self.where = str(trace.path or trace.run_id)
        self.fresh: dict[str, tuple[Message, ...]] = {}
        self.models: dict[str, str] = {}
        for record in trace.of_kind("ask"):
            name = record["id"].partition("~")[0]
            self.models[name] = record["model"]
            if record["messages"] and name not in self.fresh:
                # Only the first request of a question counts: later ones (`~2`) repeat it.
                self.fresh[name] = tuple(_plain(Message.from_json(each)) for each in record["messages"])
        self.lines: set[str] = set()

    def told(self, step: Ask, reply: Reply, reading: Reading) -> None:
        """A reply to a question, and what the machine found in it."""
        name = str(reply.extra.get(_ID, ""))
        fresh = self.fresh.get(name)
        if fresh is None:
            raise TraceError(f"{self.where}: it holds the reply to {name or 'a question'} and not what was asked")
        if (self.native or step.tools or reply.tool_calls) and not self.tools_known:
            raise UsageError(
                f"{self.where}: its texts call natively, and a trace of this strategy does not keep what could be "
                "called; give the pool that it ran with"
            )
        # Nothing was left out of the record, so this is a beginning also where the machine does not say so.
        whole = step.fresh == len(step.messages) == len(fresh)
        begins = step.role not in self.lines or fresh[0].role == "system" or whole
        self.lines.add(step.role)
        kept = replace(reply, extra={key: value for key, value in reply.extra.items() if key != _ID})
        model = self.models.get(name, "")
        self.spoken.append(
            Spoken(name, step.role, step.part or step.role, model, begins, fresh, kept, reading, tuple(step.tools))
        )

    def ran(self, step: Act, observations: Sequence[Observation]) -> None:
        """A plan's observations, given to those whose calls they are."""
        pairs = tuple(zip(step.plan.calls, observations, strict=True))
        self.rounds.append(pairs)
        self.levels.append(tuple(tuple(level) for level in step.plan.levels()))
        for place, (call, seen) in enumerate(pairs):
            writer = self._writer(step.writers[place] if step.writers else None)
            if writer is not None:
                writer.calls.append((call, seen))
                writer.round = len(self.rounds)

    def waits(self, machine: Machine) -> None:
        """A machine that waits says nothing new."""

    def _writer(self, owner: str | None) -> Spoken | None:
        """The text that a call stands in: the last one, or the last of a role; None where the strategy itself calls."""
        if owner == "":
            return None
        return next((said for said in reversed(self.spoken) if owner is None or said.part == owner), None)


class _Overheard(Strategy):
    """A strategy whose machine is listened to."""

    name = "overheard"

    def __init__(self, strategy: Strategy, heard: _Listener) -> None:
        self.strategy, self.heard = strategy, heard

    def begin(self, brief: TaskContext) -> Machine:
        """The machine of the strategy, listened to."""
        return _Listening(self.strategy.begin(brief), self.heard)

    def restore(self, dumped: Mapping[str, Any]) -> Machine:
        """The machine of the strategy, listened to."""
        return _Listening(self.strategy.restore(dumped), self.heard)


class _Listening(Machine):
    """Passes everything on, and notes what was asked, told and done."""

    def __init__(self, machine: Machine, heard: _Listener) -> None:
        self.machine, self.heard = machine, heard
        self._look()

    def _look(self) -> None:
        if not isinstance(self.machine.step(), Act):
            self.heard.waits(self.machine)

    def step(self) -> Step:
        return self.machine.step()

    def prefetchable(self) -> Sequence[Ask]:
        return self.machine.prefetchable()

    def on_reply(self, reply: Reply) -> None:
        step = self.machine.step()
        assert isinstance(step, Ask)
        asked = replace(step, messages=tuple(step.messages))  # a live view, which `on_reply` may change
        self.heard.told(asked, reply, tell(self.machine, reply))
        self._look()

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        step = self.machine.step()
        assert isinstance(step, Act)
        self.heard.ran(step, observations)
        self.machine.observe(observations, remaining)
        self._look()

    def finish(self, stop: str, detail: str = "") -> None:
        self.machine.finish(stop, detail)
        self._look()

    def dump(self) -> dict[str, Any]:
        return self.machine.dump()


def tell(machine: Machine, reply: Reply) -> Reading:
    """Tell a machine a reply; what it found in it.

    Raises:
        UsageError: the machine does not say.
    """
    machine.on_reply(reply)
    if machine.reading is None:
        raise UsageError(
            f"{type(machine).__name__} does not say what it read, so nothing can be learnt from its runs; "
            "override Machine.reading"
        )
    return machine.reading


def _plain(message: Message) -> Message:
    """A message without what a server said about itself."""
    return replace(message, extra={}) if message.extra else message
