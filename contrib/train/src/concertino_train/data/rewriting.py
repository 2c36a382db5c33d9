"""Serial trajectories rewritten as rounds of parallel calls.

Calls that need nothing of each other (`dataflow`) are put into one round, and what came back is shown together. The
rewritten conversation is not put together by hand: the strategy's own machine is told the new texts and shown the
recorded observations, so what stands in it is what a policy would have read, and the machine's plan has to be the one
that was meant.

    text 1, call a          text 1, calls a and c
    text 2, call b(a)  ->   calls b(a)
    text 3, call c          last text
    last text

The invariants: no text tells what was not yet known where it now stands; every call and every observation of the
trajectory is in the rewritten one, once; and it ends with the same answer, or it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from concertino import Budget, Call, Message, Reply, Strategy, Trace, UsageError
from concertino.strategies import (
    DEFAULT_STRATEGY,
    Act,
    Ask,
    Done,
    Machine,
    OutlineStep,
    TaskContext,
    installed_strategy,
)

from .conversations import OTHERS, RoleConversation, faults_of
from .dataflow import MadeValue, dependencies, leaves, rounds_of, sources_of
from .replaying import ReplayedTrace, Spoken, Tools, replayed, tell

_BUDGET = re.compile(r"\n?<budget>(\{.*?\})</budget>\s*\Z", re.DOTALL)
# `$${` is the sign itself and no reference.
_QUOTE = re.compile(r"(?<!\$)\$\{[^{}\n]{0,64}\}")
_PLACE = re.compile(r"(?<!\$)\$\{(\d+\.\w+)\}")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_SHOWN = 160
"""Characters of a call's arguments that a text tells."""


class NotParallel(UsageError):
    """A trajectory cannot be rewritten as parallel calls, or needs not be; says why."""


@dataclass(frozen=True)
class Rewritten:
    """A trajectory as rounds of parallel calls.

    Attributes:
        conversation: what the policy is taught.
        rounds: places of the trajectory's calls, round by round.
        before: rounds that the trajectory had.
        needs: for each call the places of the calls that it needs.
        calls: names of the called members by round, as the pool has them.
    """

    conversation: RoleConversation
    rounds: tuple[tuple[int, ...], ...]
    before: int
    needs: tuple[frozenset[int], ...]
    calls: tuple[tuple[str, ...], ...]


def parallelised(
    trace: Trace,
    target: str | Strategy | None = None,
    *,
    tools: Tools = (),
    writes: Collection[str] = (),
    task: str = "",
    exact: bool = False,
) -> Rewritten:
    """Rewrite a trajectory with fewer rounds.

    Args:
        trace: of a run that ended with an answer, in one conversation of one role.
        target: the strategy of what comes out, or its name; by default that of the trace, and where that makes one
            call in a turn, the default strategy.
        tools: the action space that it ran with; needed where the target's instructions differ from those recorded.
        writes: visible names of members that change something; their order stays.
        task: id of the task.
        exact: texts that had to be mended to be read are not taught, and the last ones are taught as they are.

    Raises:
        NotParallel: its calls need each other, it is parallel already, or it cannot be told by the target.
        TraceError, UsageError: as `replaying.replayed`; or the tools are needed and were not given.
    """
    told = replayed(trace, tools)
    own, last = _parts(told, exact)
    calls = [
        MadeValue(call.name, call.data, seen, said.reading.thought if number == 0 else "")
        for said in own
        for number, (call, seen) in enumerate(said.calls)
    ]
    written = [call.data for said in own for call in said.reading.calls]
    strategy = _target(told.strategy, target)
    known = "\n".join(message.text for message in own[0].fresh)
    needs = _needs(known, calls, written, writes)
    rounds = rounds_of(needs, strategy.limits.parallel or len(calls))
    if len(rounds) >= len(own):
        side_by_side = any(len(said.calls) > 1 for said in own)
        why = "its calls are parallel already" if side_by_side else "its calls need each other's results"
        raise NotParallel(f"{trace.run_id}: {why}; {len(own)} rounds cannot become fewer")
    writer = _Writer(trace, told, strategy, own, last, calls, written, needs, rounds, tools)
    conversation = writer.conversation(task)
    names = tuple(tuple(calls[place].seen.name for place in row) for row in rounds)
    return Rewritten(conversation, tuple(map(tuple, rounds)), len(own), tuple(needs), names)


def _parts(told: ReplayedTrace, exact: bool) -> tuple[list[Spoken], list[Spoken]]:
    """The texts with calls, and those behind the last of them."""
    refused = f"a trajectory of {told.strategy.name} is not rewritten"
    if len(told.strategy.parts) > 1:
        raise NotParallel(f"{refused}: {', '.join(told.strategy.parts)} have a conversation each")
    if any(len(levels) > 1 for levels in told.levels):
        raise NotParallel(f"{refused}: its plans have dependencies written in them already")
    spoken = [said for said in told.spoken if said.role not in OTHERS]
    if sum(said.begins for said in spoken) != 1:
        raise NotParallel("its history was rewritten, or its prompts are stateless: there is no one conversation")
    if any(said.unread or said.refused or said.reply.tool_calls for said in spoken):
        raise NotParallel("a text was malformed, a call was refused, or calls are native; it stays as it is")
    if not told.done.answer:
        raise NotParallel("it ended without an answer")
    own = [said for said in spoken if said.calls]
    if not own:
        raise NotParallel("it called nobody")
    behind = spoken.index(own[-1]) + 1
    if [said for said in spoken[:behind] if not said.calls]:
        raise NotParallel("texts without a call stand between its calls")
    if wrong := [fault for said in spoken[behind:] for fault in faults_of(said, exact)]:
        raise NotParallel(f"a text behind its calls is not taught ({', '.join(wrong)})")
    return own, spoken[behind:]


def _needs(
    known: str, calls: Sequence[MadeValue], written: Sequence[Any], writes: Collection[str]
) -> list[frozenset[int]]:
    """What each call needs: what it refers to, and what its own words hold."""
    places = {made.seen.call_id: place for place, made in enumerate(calls)}
    referred = [
        {places[name] for text in leaves(arguments) for name in _PLACE.findall(text) if name in places}
        for arguments in written
    ]
    own = [
        replace(made, arguments=_without_references(arguments), written=arguments)
        for made, arguments in zip(calls, written, strict=True)
    ]
    found = dependencies(known, own, writes)
    return [needed | frozenset(more) for needed, more in zip(found, referred, strict=True)]


def _without_references(value: Any) -> Any:
    """Data without its references; what they insert is known by name."""
    return _each_text(value, lambda text: _QUOTE.sub(" ", text))


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value


def _target(strategy: Strategy, target: str | Strategy | None) -> Strategy:
    """The strategy that is written: as it is given, or with the settings that it shares with the trace's."""
    if target is None:
        target = strategy.name if _several(strategy) else DEFAULT_STRATEGY
    if isinstance(target, Strategy):
        found = target
    elif target == strategy.name:
        found = strategy
    else:
        recorded = strategy.to_json()
        shared: dict[str, Any] = {key: recorded[key] for key in ("prompt", "references") if key in recorded}
        found = installed_strategy(target).from_json({"name": target, **shared})
    found = _several(found) or found
    if found.limits.parallel == 1:
        given = repr(target) if isinstance(target, str) else target.name
        raise UsageError(f"target={given}: its turns hold one call; expected a strategy whose turns hold several")
    return found


def _several(strategy: Strategy) -> Strategy | None:
    """The strategy with several calls in a turn, where its settings allow that: without a limit to one."""
    if strategy.limits.parallel != 1:
        return strategy
    wider = type(strategy).from_json({k: v for k, v in strategy.to_json().items() if k != "max_parallel"})
    return wider if wider.limits.parallel != 1 else None


def _refers(strategy: Strategy) -> bool:
    """Whether its texts refer to results by their places: `${1.2}`."""
    return bool(strategy.to_json().get("references", False))


class _Writer:
    """One rewriting: the machine of the target, told new texts and shown the recorded observations."""

    def __init__(
        self,
        trace: Trace,
        told: ReplayedTrace,
        strategy: Strategy,
        own: Sequence[Spoken],
        last: Sequence[Spoken],
        calls: Sequence[MadeValue],
        written: Sequence[Any],
        needs: Sequence[frozenset[int]],
        rounds: Sequence[Sequence[int]],
        tools: Tools,
    ) -> None:
        self.trace, self.told, self.strategy = trace, told, strategy
        places = {made.seen.call_id: place for place, made in enumerate(calls)}
        numbered = {at: f"{number}.{n}" for number, row in enumerate(rounds, 1) for n, at in enumerate(row, 1)}
        self.moved = {name: numbered[place] for name, place in places.items()}
        refers = _refers(strategy)
        self.written = [
            _each_text(value, self._renumbered) if refers else made.arguments
            for value, made in zip(written, calls, strict=True)
        ]
        self.own, self.last, self.calls, self.needs, self.rounds = own, last, calls, needs, rounds
        self.tools = tuple(trace.setup.get("tools", ())) or tuple(tools)
        self.same = strategy == told.strategy
        self.known = "\n".join(message.text for message in own[0].fresh)
        self.spent = _Spending(own, last)
        self.messages: list[Message] = []

    def conversation(self, task: str) -> RoleConversation:
        machine = self._begin()
        for number, row in enumerate(self.rounds, 1):
            self._round(machine, number, row)
        for text in self._endings():
            self._tell(machine, text)
        messages = tuple(self.messages)
        # The summariser and the like are not rewritten; what they said is told to the machine as it was recorded.
        for said in self.told.spoken:
            step = machine.step()
            if said.role in OTHERS and isinstance(step, Ask) and step.role == said.role:
                machine.on_reply(said.reply)
        done = machine.step()
        if not isinstance(done, Done) or done.answer != self.told.done.answer:
            raise NotParallel("the rewritten trajectory does not end with the same answer")
        own = tuple(place for place, message in enumerate(messages) if message.role == "assistant")
        models = tuple(dict.fromkeys(said.model for said in (*self.own, *self.last)))
        return RoleConversation(
            f"{self.trace.run_id}/rewritten",
            messages,
            own,
            own,
            task=task,
            question=self.trace.question,
            run=self.trace.run_id,
            pool=str(self.trace.setup.get("pool", "")),
            strategy=self.strategy.name,
            models=models,
            rewritten=self.told.strategy.name,
        )

    def _begin(self) -> Machine:
        budget = Budget(**self.trace.setup.get("budget", {}))
        if not self.same and not self.tools:
            raise UsageError(
                f"{self.trace.run_id}: the instructions of {self.strategy.name} list the tools, which this trace does "
                "not keep; give the pool that it ran with"
            )
        # A limit of one call at a time was for the serial run, and would forbid what is written here.
        parallel = None if budget.parallel == 1 else budget.parallel
        brief = TaskContext(self.trace.question, self.tools, budget.rounds, parallel, self.spent.left([], 0))
        return self.strategy.begin(brief)

    def _round(self, machine: Machine, number: int, row: Sequence[int]) -> None:
        """One round: its text is told, its plan compared, its observations shown."""
        self._tell(machine, self._text(number, row))
        step = machine.step()
        meant = [(self.calls[place].name, self.calls[place].arguments) for place in row]
        if not isinstance(step, Act) or _planned(step.plan.calls) != meant:
            raise NotParallel(f"{self.strategy.name} does not read round {number} back as it was meant")
        seen = [
            replace(self.calls[place].seen, call_id=f"{step.round}.{call.id}")
            for place, call in zip(row, step.plan.calls, strict=True)
        ]
        done = [place for earlier in self.rounds[:number] for place in earlier]
        machine.observe(seen, self.spent.left(done, number))

    def _tell(self, machine: Machine, text: str) -> None:
        """One text is told, behind what the policy reads before it."""
        step = machine.step()
        if not isinstance(step, Ask):
            raise NotParallel("the rewritten trajectory ends before its last text")
        if not self.messages and self.same:  # the instructions as they were recorded, which name the tools
            self.messages = list(self.own[0].fresh)
        elif step.fresh == len(step.messages):  # the history was rewritten
            self.messages = list(step.messages)
        else:
            self.messages += step.messages[-step.fresh :] if step.fresh else ()
        reply = Reply(text)
        read = tell(machine, reply)
        issues = [issue.code for issue in read.issues if not issue.repaired]
        if issues or not read.understood:
            raise NotParallel(f"a rewritten text has issues: {', '.join(issues) or 'it cannot be read'}")
        self.messages.append(Message.of(reply))

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _text(self, number: int, row: Sequence[int]) -> str:
        calls = [Call(self.calls[place].name, self.written[place], str(n)) for n, place in enumerate(row, 1)]
        outline = self._outline() if number == 1 else ()
        return self.strategy.write_turn(calls, self._reasoning(number, row), tools=self.tools, outline=outline)

    def _reasoning(self, number: int, row: Sequence[int]) -> str:
        """What was thought before the round's calls, where all that had come back by then is known here too."""
        known = {place for earlier in self.rounds[: number - 1] for place in earlier}
        # A thought may refer to anything before it, so it stays only where all of that is known here, too.
        kept = [self._renumbered(self.calls[place].thought) for place in row if set(range(place)) <= known]
        told = [text for text in kept if text]
        if len(row) > 1:
            told.append(f"These calls do not wait for each other, so they go out together:\n{self._listed(row)}")
        elif not told:
            told.append(f"The results so far allow this call:\n{self._listed(row)}")
        return "\n".join(told)

    def _listed(self, row: Sequence[int]) -> str:
        return "\n".join(f"- {self.calls[place].name}: {_brief(self.written[place])}" for place in row)

    def _outline(self) -> list[OutlineStep]:
        """All calls as tasks that wait for each other; what results brought in is told as the task that brings it."""
        return [
            OutlineStep(
                _masked(f"{made.name}: {_brief(made.arguments)}", sources_of(self.known, self.calls, place)),
                tuple(sorted(self.needs[place])),
            )
            for place, made in enumerate(self.calls)
        ]

    def _renumbered(self, text: str) -> str:
        """A text whose references to results name their new places."""
        if not _refers(self.told.strategy):
            return text
        return _PLACE.sub(lambda found: f"${{{self.moved.get(found[1], found[1])}}}", text)

    def _endings(self) -> Sequence[str]:
        """The texts behind the last result: those that were said, or new ones where the target ends otherwise."""
        if self.strategy.name == self.told.strategy.name:
            return [self._renumbered(said.reply.text) for said in self.last]
        thought = self._renumbered(self.last[0].reading.thought) if self.last else ""
        thought = thought or "The results answer the question."
        return self.strategy.write_answer(str(self.told.done.answer), thought)


class _Spending:
    """What was left of the budget, and what each call took of it."""

    def __init__(self, own: Sequence[Spoken], last: Sequence[Spoken]) -> None:
        shown = [_remaining(said.fresh) for said in (*own, *last[:1])]
        self.first = shown[0]
        self.taken: list[dict[str, float]] = []
        for place, said in enumerate(own):
            before, after = shown[place], shown[place + 1] if place + 1 < len(shown) else None
            used = {key: before[key] - after.get(key, before[key]) for key in before} if before and after else {}
            self.taken += [used, *({} for _ in said.calls[1:])]

    def left(self, done: Sequence[int], rounds: int) -> dict[str, float] | None:
        """What is left after so many rounds in which these calls were made."""
        if self.first is None:
            return None
        left = dict(self.first)
        for key, before in self.first.items():
            # Rounds are those of the new trajectory; all else is what its calls took in the old one.
            used = rounds if key == "rounds" else sum(self.taken[place].get(key, 0.0) for place in done)
            left[key] = round(before - used, 4)
        return left


def _remaining(fresh: Sequence[Message]) -> dict[str, float] | None:
    found = _BUDGET.search(fresh[-1].text) if fresh else None
    return json.loads(found.group(1)) if found else None


def _planned(calls: Sequence[Call]) -> list[tuple[str, Any]]:
    return [(call.name, call.data) for call in calls if call.error is None]


def _brief(arguments: Any) -> str:
    line = " ".join(" ".join(leaves(arguments)).split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _masked(text: str, sources: Mapping[str, int]) -> str:
    """A text in which what results brought in is named by the task that brings it."""

    def told(match: re.Match[str]) -> str:
        word = match.group()
        plain = word.replace(",", "") if word[0].isdigit() else word.casefold()
        return f"[result of T{sources[plain] + 1}]" if plain in sources else word

    return _WORD.sub(told, text)
