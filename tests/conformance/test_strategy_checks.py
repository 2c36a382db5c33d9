"""Checks of strategies: the five that come with the SDK pass, and each way to break the contract is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import (
    Act,
    Ask,
    Done,
    FormatIssue,
    Machine,
    ParsedReply,
    Reading,
    Step,
    Strategy,
    TaskContext,
    TextStrategy,
)
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.base.text_strategy import TextMachine
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow, reasoner_programmer
from concertino.strategies.serial_calls import SerialCalls
from concertino.testing import CheckRow, StrategyConformance
from concertino.testing.check import StrategySubject, perform
from concertino.testing.strategy_checks import STRATEGY_CHECKS


def a_tool(name: str, **types: str) -> dict[str, Any]:
    properties = {argument: {"type": kind} for argument, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": "It works.", "parameters": schema}}


CALLING = Role("one", prompt="{question}", reads="calls", tools=("lookup",))
SAYING = (Role("one", prompt="{question}"), Role("two", prompt="{question} {one.text}"))
LOOKUP = (a_tool("lookup", query="string"),)
PYTHON = (a_tool("python", code="string"),)
GOOD = {
    "rounds": StrategySubject(ParallelRounds()),
    "rounds, brief and quoting, with a summariser": StrategySubject(
        ParallelRounds(references=True, prompt="brief", summariser="summariser", history_tokens=600)
    ),
    "rounds, native": StrategySubject(ParallelRounds(native=True)),
    "one call": StrategySubject(SerialCalls()),
    "one call, released": StrategySubject(
        SerialCalls(form="qa"), (a_tool("answer", model="string"), a_tool("search", query="string"))
    ),
    "a graph": StrategySubject(AgentGraph()),
    "one agent": StrategySubject(AgentGraph(dom="low")),
    "a plan": StrategySubject(DependencyPlan()),
    "a plan, strict": StrategySubject(DependencyPlan(strict=True, schedule="ready")),
    "coder and tester": StrategySubject(RoleWorkflow(), PYTHON),
    "reasoner and programmer": StrategySubject(reasoner_programmer(), PYTHON),
    "a role that calls": StrategySubject(RoleWorkflow((CALLING, SAYING[1]), Agree("one.text", "two.text")), LOOKUP),
    "roles at once": StrategySubject(RoleWorkflow(SAYING, Agree("one.text", "two.text"), order="simultaneous")),
}


def judge(subject: StrategySubject) -> dict[str, CheckRow]:
    return {check.__name__: perform(check, subject) for check in STRATEGY_CHECKS}


# The same strategy as "rounds" with other prompts: each takes as long as all others together.
OFTEN = [name for name in GOOD if not name.startswith("rounds, ")]
RARELY = [pytest.param(name, marks=pytest.mark.soak) for name in GOOD if name not in OFTEN]


@pytest.mark.parametrize("name", [*OFTEN, *RARELY])
def test_the_strategies_of_the_sdk_conform(name: str) -> None:
    subject = GOOD[name]
    rows = judge(subject)
    assert {row.check: row.detail for row in rows.values() if row.outcome in ("failed", "missing")} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rounds", "one call", "a plan"])
def test_of_what_can_be_written_nothing_is_skipped_but_early_calls(name: str) -> None:
    skipped = {row.check for row in judge(GOOD[name]).values() if row.outcome == "skipped"}
    assert skipped <= {"calls_begun_early_are_those_of_the_turn"}


def test_what_a_strategy_cannot_write_is_skipped_with_the_strategys_reason() -> None:
    rows = judge(GOOD["a graph"])
    assert rows["a_written_answer_ends_the_run"].outcome == "skipped"
    assert "gives no answer in words" in rows["a_written_answer_ends_the_run"].detail


class Words(TextStrategy):
    """`do NAME TEXT` calls, `say TEXT` answers."""

    name = "words"

    def system_prompt(self, context: TaskContext) -> str:
        return "do NAME TEXT, or say TEXT"

    def read(self, text: str) -> ParsedReply:
        word, _, rest = text.partition(" ")
        if word == "say":
            return ParsedReply(answer=rest)
        if word == "do":
            name, _, given = rest.partition(" ")
            return ParsedReply([ct.Call(name, {"query": given})])
        return ParsedReply(issues=[FormatIssue("no_word", "begin with do or say", 0, len(text))])

    def write_turn(self, calls: Sequence[ct.Call], thought: str = "", **_: Any) -> str:
        if len(calls) != 1:
            raise ct.UsageError("words are one call")
        return f"do {calls[0].name} {calls[0].data['query']}"

    def write_answer(self, answer: str, thought: str = "", **_: Any) -> tuple[str, ...]:
        return (f"say {answer}",)


class TestWords(StrategyConformance):
    strategy = Words()
    tools = LOOKUP


class WritesAnother(Words):
    def write_turn(self, calls: Sequence[ct.Call], thought: str = "", **_: Any) -> str:
        return f"do {calls[0].name} something else"


class WritesWithFlaws(Words):
    def read(self, text: str) -> ParsedReply:
        return super().read(text)._replace(issues=[FormatIssue("short", "write more", 0, 0, True)])


class WritesNoAnswer(Words):
    def write_answer(self, answer: str, thought: str = "", **_: Any) -> tuple[str, ...]:
        return (f"say the answer is {answer}",)


class Raises(Words):
    def read(self, text: str) -> ParsedReply:
        if "\x00" in text:
            raise ValueError("a null character")
        return super().read(text)


class PlacesOutside(Words):
    def read(self, text: str) -> ParsedReply:
        return ParsedReply(issues=[FormatIssue("far", "too far", 0, len(text) + 1)])


class TrustsResults(Words):
    def begin(self, context: TaskContext) -> TextMachine:
        return Trusting(self, context)


class Trusting(TextMachine):
    def observe(self, observations: Sequence[ct.Observation], remaining: Mapping[str, float] | None = None) -> None:
        super().observe(observations, remaining)
        if isinstance(content := observations[0].content, str):
            self.phase = "ask"
            self.on_reply(ct.Reply(content))


@dataclass(frozen=True)
class LosesSettings(Words):
    tags: tuple[str, ...] = ("a",)

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "tags": "a"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Strategy:
        return cls(tags=(*data["tags"], "more"))


class Raw(Strategy):
    """A strategy with a machine of its own, which tests break in one place each."""

    name = "raw"
    machine: type[RawMachine]

    def begin(self, context: TaskContext) -> Machine:
        return self.machine([ct.Message("user", context.question)])

    def restore(self, dumped: Mapping[str, Any]) -> Machine:
        return self.machine([ct.Message.from_json(each) for each in dumped["messages"]], dumped["over"])


@dataclass
class RawMachine(Machine):
    messages: list[ct.Message]
    over: bool = False
    asked: int = field(default=0, compare=False)

    def step(self) -> Step:
        return Done("42", "answered") if self.over else Ask("orchestrator", self.messages, len(self.messages))

    def on_reply(self, reply: ct.Reply) -> None:
        self.messages.append(ct.Message("assistant", reply.text))
        self.over = len(self.messages) > 3

    @property
    def reading(self) -> Reading | None:
        told = self.messages[-1].role == "assistant"
        return Reading("orchestrator", understood=False) if told else None

    def observe(self, observations: Sequence[ct.Observation], remaining: Mapping[str, float] | None = None) -> None:
        raise NotImplementedError

    def finish(self, stop: str, detail: str = "") -> None:
        self.over = True

    def dump(self) -> dict[str, Any]:
        return {"messages": [each.to_json() for each in self.messages], "over": self.over}


class Forgetful(RawMachine):
    def dump(self) -> dict[str, Any]:
        return {**super().dump(), "messages": [self.messages[0].to_json()]}


class Sharing(RawMachine):
    def fork(self) -> Sharing:
        return Sharing(self.messages, self.over)


class Endless(RawMachine):
    def on_reply(self, reply: ct.Reply) -> None:
        self.messages.append(ct.Message("assistant", reply.text))


class GoesOn(RawMachine):
    def finish(self, stop: str, detail: str = "") -> None:
        self.messages = self.messages[:1]

    def on_reply(self, reply: ct.Reply) -> None:
        self.over = False


class Impure(RawMachine):
    def step(self) -> Step:
        self.asked += 1
        return Ask("orchestrator", self.messages, len(self.messages), turn=self.asked)


class Miscounts(RawMachine):
    def step(self) -> Step:
        return Done("42", "answered") if self.over else Ask("orchestrator", self.messages, 0)


class Empty(RawMachine):
    def step(self) -> Step:
        return Act(ct.Plan([]), 1)


class Silent(RawMachine):
    @property
    def reading(self) -> Reading | None:
        return None


def raw(machine: type[RawMachine]) -> Strategy:
    return type("OwnRaw", (Raw,), {"machine": machine})()


BROKEN: list[tuple[Strategy, str, str]] = [
    (WritesAnother(), "a_written_turn_is_read_back", "something else"),
    (WritesWithFlaws(), "a_written_turn_is_read_back", "write more"),
    (WritesNoAnswer(), "a_written_answer_ends_the_run", "the answer is 42"),
    (Raises(), "any_text_is_read", "ValueError: a null character"),
    (PlacesOutside(), "every_reply_is_reported", "characters, it reports FormatIssue(code='far'"),
    (TrustsResults(), "any_observation_is_shown", "never read a result as a reply"),
    (LosesSettings(), "its_settings_are_read_back", "was read back as"),
    (raw(Forgetful), "it_is_written_down_at_every_step", "the restored machine"),
    (raw(Sharing), "it_is_written_down_at_every_step", "copy lists and mappings"),
    (raw(Endless), "it_ends_whatever_the_model_says", "it still asks after"),
    (raw(GoesOn), "it_ends_from_outside", "ask for a last answer, or be Done"),
    (raw(Impure), "it_begins_with_a_question_or_a_plan", "two calls of `step` give different steps"),
    (raw(Miscounts), "fresh_messages_are_counted", "fresh=0"),
    (raw(Empty), "it_begins_with_a_question_or_a_plan", "an empty plan"),
]


@pytest.mark.parametrize(("strategy", "check", "text"), BROKEN, ids=lambda value: getattr(value, "name", str(value)))
def test_a_breach_of_the_contract_is_found_and_named(strategy: Strategy, check: str, text: str) -> None:
    subject = StrategySubject(strategy, LOOKUP)
    row = perform(next(each for each in STRATEGY_CHECKS if each.__name__ == check), subject)
    assert row.outcome == "failed"
    assert text in row.detail


def test_a_machine_that_reports_no_reading_lacks_something_and_does_not_fail() -> None:
    rows = judge(StrategySubject(raw(Silent)))
    assert rows["every_reply_is_reported"].outcome == "missing"
    assert {row.outcome for row in rows.values()} <= {"ok", "missing", "skipped"}
    assert "does not write turns" in rows["a_written_turn_is_read_back"].detail


def test_texts_of_the_author_stand_in_for_what_a_strategy_does_not_write() -> None:
    class ReadsOnly(Words):
        def write_turn(self, calls: Sequence[ct.Call], thought: str = "", **_: Any) -> str:
            raise ct.UsageError("it only reads")

    assert judge(StrategySubject(ReadsOnly()))["any_observation_is_shown"].outcome == "skipped"
    given = StrategySubject(ReadsOnly(), texts=["do lookup apple"])
    assert judge(given)["any_observation_is_shown"].outcome == "ok"
