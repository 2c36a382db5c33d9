"""A strategy of two roles: a scout looks things up in parallel, a judge answers or sends it out again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from concertino import Message, Observation, Reply, Strategy, UsageError
from concertino.core.plan import Call, Plan
from concertino.strategies import (
    Act,
    Ask,
    Done,
    Machine,
    Reading,
    RunLimits,
    Step,
    TaskContext,
    TurnState,
    Utterance,
)

from .text import Text, read, write

SCOUT = 'You are the scout. Write lines: NOTE ..., LOOK member {"key": "value"}, or ENOUGH. You may look with:\n'
JUDGE = "You are the judge. Write lines: NOTE ..., then VERDICT the answer, or MORE what is missing."


@dataclass(frozen=True)
class ScoutJudge(Strategy):
    """Scout and judge in turns.

    Args:
        turns: at most so many.
        wide: calls of the scout in one turn.
        max_unreadable_replies: texts of a role in a row that hold no decision, after which the run ends.
    """

    turns: int = 3
    wide: int = 4
    max_unreadable_replies: int = 2

    name = "scout-judge"

    def begin(self, context: TaskContext) -> ScoutJudgeMachine:
        """A machine at the start of a run."""
        return ScoutJudgeMachine(self, context)

    def restore(self, dumped: Mapping[str, Any]) -> ScoutJudgeMachine:
        """A machine from `dump`."""
        return ScoutJudgeMachine.restored(dumped)

    @property
    def parts(self) -> Mapping[str, str]:
        """Both roles, each with a model of its own."""
        return {"scout": "scout", "judge": "judge"}

    @property
    def limits(self) -> RunLimits:
        """Turns, and calls of the scout in one of them."""
        return RunLimits(self.turns, self.wide)

    def write_turn(self, calls: Sequence[Call], thought: str = "", *, part: str = "scout", **_: Any) -> str:
        """What the scout says to look."""
        if part == "judge" or not calls:
            raise UsageError("only the scout looks; write_answer writes what the judge says")
        return write("LOOK", note=thought, calls=calls)

    def write_answer(self, answer: str, thought: str = "", *, part: str = "") -> tuple[str, ...]:
        """The end: the scout has enough, the judge answers."""
        verdict = write("VERDICT", answer, thought)
        return (verdict,) if part == "judge" else (write("ENOUGH"), verdict)


def _value(found: Text) -> Any:
    """What a word says: data where it is JSON, else its text."""
    try:
        return json.loads(found.rest)
    except (ValueError, RecursionError):
        return found.rest or found.word


class ScoutJudgeMachine(Machine):
    """One run. The scout has one conversation; the judge reads all findings afresh in every turn."""

    def __init__(self, settings: ScoutJudge, context: TaskContext) -> None:
        self.settings, self.question = settings, context.question
        self.turns = min(settings.turns, context.rounds or settings.turns)
        self.wide = min(settings.wide, context.parallel or settings.wide)
        names = "\n".join(tool["function"]["name"] for tool in context.tools)
        self.scouted = [Message("system", SCOUT + names), Message("user", context.question)]
        self.judged: list[Message] = []
        self.asked = {"scout": 0, "judge": 0}
        self.part, self.turn, self.acts, self.fruitless = "scout", 1, 0, 0
        self.findings: list[str] = []
        self.said: dict[str, Utterance] = {}
        self.plan: Plan | None = None
        self.last: Reading | None = None
        self.final: Done | None = None

    @property
    def _messages(self) -> list[Message]:
        return self.scouted if self.part == "scout" else self.judged

    def step(self) -> Step:
        """The next step."""
        if self.final is not None:
            return self.final
        if self.plan is not None:
            issues = self.last.issues if self.last is not None else ()
            return Act(self.plan, self.acts + 1, issues, ("scout",) * len(self.plan.calls))
        messages = self._messages
        return Ask(self.part, messages, len(messages) - self.asked[self.part], part=self.part, turn=self.turn)

    def on_reply(self, reply: Reply) -> None:
        """Read what the role at hand wrote."""
        found = read(reply.text, self.part)
        self.last = Reading(self.part, found.calls, found.issues, bool(found.word), thought=found.note)
        self._messages.append(Message("assistant", reply.text))
        self.asked[self.part] = len(self._messages)
        if not found.word:
            self.fruitless += 1
            if self.fruitless >= self.settings.max_unreadable_replies:
                self.final = Done(None, "format", "no decision could be read")
            self._messages.append(Message("user", "\n".join(issue.message for issue in found.issues)))
            return
        self.fruitless = 0
        self.said[self.part] = Utterance(self.turn, reply.text, _value(found), issues=found.issues)
        if self.part == "judge":
            self._judged(found.word, found.rest)
        elif found.word == "ENOUGH" or not found.calls:
            self._ask_judge()
        else:
            late = ("too_many_calls", f"at most {self.wide} calls in one turn")
            calls = [
                call if place < self.wide else Call(call.name, call.arguments, call.id, error=late)
                for place, call in enumerate(found.calls)
            ]
            self.plan = Plan.parallel(calls)

    def _judged(self, word: str, rest: str) -> None:
        if word == "VERDICT":
            self.final = Done(rest or None, "answered")
        elif self.turn >= self.turns:
            self.final = Done(None, "rounds", f"{self.turns} turns are over")
        else:
            self.turn, self.part = self.turn + 1, "scout"
            self.scouted.append(Message("user", f"The judge says: {rest}"))

    def _ask_judge(self) -> None:
        seen = "\n".join(self.findings) or "nothing"
        text = f"Question: {self.question}\nFindings:\n{seen}"
        self.part, self.asked["judge"] = "judge", 0
        self.judged = [Message("system", JUDGE), Message("user", text)]

    def observe(self, observations: Sequence[Observation], remaining: Mapping[str, float] | None = None) -> None:
        """Show the scout's findings to both."""
        assert self.plan is not None
        lines = [
            f"{call.name}: {seen.content if seen.ok else seen.status.value}"
            for call, seen in zip(self.plan.calls, observations, strict=True)
        ]
        self.findings += lines
        self.scouted.append(Message("user", "\n".join(lines)))
        ok = all(seen.ok for seen in observations)
        spoken = self.said["scout"]
        self.said["scout"] = Utterance(spoken.turn, spoken.text, spoken.value, "\n".join(lines), ok, spoken.issues)
        self.plan, self.acts = None, self.acts + 1
        self._ask_judge()

    def finish(self, stop: str, detail: str = "") -> None:
        """End from outside."""
        if self.final is None:
            self.final, self.plan = Done(None, stop, detail), None

    @property
    def reading(self) -> Reading | None:
        """What the last text was read as."""
        return self.last

    def turn_state(self) -> TurnState:
        """What both have said."""
        over = self.turn if self.final is not None else self.turn - 1
        return TurnState(self.turn, over, self.said, answering="judge")

    def dump(self) -> dict[str, Any]:
        """Plain JSON data."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {
            **plain,
            "asked": dict(self.asked),
            "findings": list(self.findings),
            "settings": asdict(self.settings),
            "scouted": [message.to_json() for message in self.scouted],
            "judged": [message.to_json() for message in self.judged],
            "said": {name: each.to_json() for name, each in self.said.items()},
            "plan": self.plan.to_json() if self.plan is not None else None,
            "last": self.last.to_json() if self.last is not None else None,
            "final": [self.final.answer, self.final.stop, self.final.detail] if self.final is not None else None,
        }

    @classmethod
    def restored(cls, dumped: Mapping[str, Any]) -> ScoutJudgeMachine:
        """The machine of a dump."""
        machine = cls.__new__(cls)
        machine.settings = ScoutJudge(**dumped["settings"])
        for name in _PLAIN:
            setattr(machine, name, dumped[name])
        machine.asked = dict(dumped["asked"])
        machine.findings = list(dumped["findings"])
        machine.scouted = [Message.from_json(each) for each in dumped["scouted"]]
        machine.judged = [Message.from_json(each) for each in dumped["judged"]]
        machine.said = {name: Utterance.from_json(each) for name, each in dumped["said"].items()}
        plan, last, final = dumped["plan"], dumped["last"], dumped["final"]
        machine.plan = Plan.parallel([Call.from_json(each) for each in plan]) if plan is not None else None
        machine.last = Reading.from_json(last) if last is not None else None
        machine.final = Done(*final) if final is not None else None
        return machine


_PLAIN = ("question", "turns", "wide", "part", "turn", "acts", "fruitless")
