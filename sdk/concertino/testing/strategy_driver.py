"""Driving the machine of a strategy without a model and without members: replies and observations are made up.

`Driver` knows the texts that a strategy writes for itself, and makes the observation of any call. Every machine that
it drives is looked at after each step (`look`): steps are pure, rounds are counted from 1, and a plan holds calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from concertino.core.errors import UsageError
from concertino.core.model import Reply
from concertino.core.observation import ErrorInfo, Observation, Status
from concertino.core.plan import Call
from concertino.members.specs import ToolSpec
from concertino.pool.pool import Pool
from concertino.strategies.base.machine import Act, Ask, Done, Machine, Step, TaskContext

from .check import CheckFailed, CheckSkipped, StrategySubject
from .hostile_texts import HOSTILE_TEXTS, damaged

SAMPLE_TOOLS: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": sorted(properties)},
        },
    }
    for name, description, properties in (
        ("lookup", "Looks a word up in a dictionary.", {"query": {"type": "string"}}),
        ("add", "Adds two whole numbers.", {"a": {"type": "integer"}, "b": {"type": "integer"}}),
    )
)
"""What a run offers where the author gives no tools."""

AWKWARD_TEXT = 'He said "no" & left: <b>1 < 2</b> </tool_call> ]]> \\n {x} 漢字\nsecond line'
"""A text argument that many formats have to escape."""

Voice: TypeAlias = Callable[[Ask], str]
"""What a model answers."""
Speaker: TypeAlias = Callable[[Call], Observation]
"""What a call is observed as."""

_SAMPLES = {"string": "apple", "integer": 2, "number": 2.5, "boolean": True, "array": [], "object": {}}
_ASKS_PER_ROUND = 20
"""Replies for each allowed round, and each part, after which a run is taken to be endless."""


class Driver:
    """Drives the machines of one subject.

    Attributes:
        tools: what a run offers, as function objects.
        most_asks: replies after which a run is taken to be endless.
    """

    def __init__(self, subject: StrategySubject) -> None:
        self.subject = subject
        self.strategy = subject.strategy
        self.tools = _function_objects(subject.tools) if subject.tools else list(SAMPLE_TOOLS)
        own = self.strategy.limits.rounds
        self.rounds = 5 if own is None else own
        self.most_asks = (self.rounds + 1) * len(self.strategy.parts) * _ASKS_PER_ROUND
        # A strategy that limits itself is checked with its own limit; any other needs one for its runs to end.
        self._brief_rounds = 5 if own is None else None

    def begin(self, question: str | None = None) -> Machine:
        """A machine at the start of a run."""
        asked = self.subject.questions[0] if question is None else question
        return self.strategy.begin(TaskContext(asked, self.tools, rounds=self._brief_rounds, remaining={"usd": 1.0}))

    # -- what a model says -----------------------------------------------------------------------------------------

    def turns_of(self, part: str) -> tuple[list[tuple[Sequence[Call], str]], list[str]]:
        """The turns that the strategy writes for a part, as (calls, text); and why others are not written."""
        written: list[tuple[Sequence[Call], str]] = []
        reasons: list[str] = []
        for calls in self.subject.calls or self._sample_calls():
            try:
                text = self.strategy.write_turn(calls, "Let me see.", part=part, tools=self.tools)
            except UsageError as refused:
                reasons.append(str(refused))
            else:
                written.append((calls, text))
        return written, reasons

    def answers_of(self, part: str, answer: str = "42") -> tuple[str, ...]:
        """The texts with which a part ends the run.

        Raises:
            CheckSkipped: the strategy does not write answers.
        """
        try:
            return tuple(self.strategy.write_answer(answer, "Let me see.", part=part))
        except UsageError as refused:
            raise CheckSkipped(str(refused)) from None

    def good_texts(self, part: str) -> list[str]:
        """Replies of a part that the format reads: turns and those that the author gives, then answers."""
        turns = [text for _, text in self.turns_of(part)[0]]
        try:
            answers = self.answers_of(part)
        except CheckSkipped:
            answers = ()
        return [*turns, *self.subject.texts, *answers]

    def good_voice(self) -> Voice:
        """Says in turn what the format reads."""
        counts: dict[str, int] = {}

        def speak(ask: Ask) -> str:
            texts = self.good_texts(ask.part) or [""]
            place = counts[ask.part] = counts.get(ask.part, -1) + 1
            return texts[place % len(texts)]

        return speak

    def calling_voice(self) -> Voice:
        """Calls something for ever, where the format can be written; else says what is neither call nor answer."""

        def speak(ask: Ask) -> str:
            written, _ = self.turns_of(ask.part)
            return written[0][1] if written else next(iter(self.subject.texts), "")

        return speak

    def random_voice(self, seed: int) -> Voice:
        """Says what the format reads, that damaged, or something hostile."""
        # Seeded with a text, which gives the same numbers in every process, unlike `hash`.
        draw = Random(f"{self.strategy.name} {seed}")

        def speak(ask: Ask) -> str:
            good = self.good_texts(ask.part) or list(HOSTILE_TEXTS)
            match draw.randrange(3):
                case 0:
                    return draw.choice(good)
                case 1:
                    return damaged(draw.choice(good), draw)
                case _:
                    return draw.choice(HOSTILE_TEXTS)

        return speak

    def _sample_calls(self) -> list[list[Call]]:
        """One call, two calls, and one with a text that has to be escaped."""
        first = [Call(tool["function"]["name"], _arguments(tool)) for tool in self.tools]
        awkward = [
            [Call(tool["function"]["name"], arguments)]
            for tool in self.tools
            if AWKWARD_TEXT in (arguments := _arguments(tool, AWKWARD_TEXT)).values()
        ]
        return [*([call] for call in first), *([first[:2]] if len(first) > 1 else []), *awkward]

    # -- what members return ---------------------------------------------------------------------------------------

    def observe(self, call: Call) -> Observation:
        """A call that could be read succeeds; another one is a PARSE_ERR."""
        if call.error is not None:
            code, message = call.error
            return Observation(call.id, call.name, Status.PARSE_ERR, error=ErrorInfo(code, message))
        result = self.subject.results.get(call.name, 42)
        return Observation(call.id, call.name, Status.OK, result(call.data) if callable(result) else result)

    @staticmethod
    def ending_as(status: Status, content: Any = None) -> Speaker:
        """Every call ends with a status."""
        error = None if status is Status.OK else ErrorInfo("checked", "this is how the check wants it to end")
        return lambda call: Observation(call.id, call.name, status, content, error)

    def random_observer(self, seed: int) -> Speaker:
        """Calls end in any status, and return anything that is JSON."""
        draw = Random(f"{self.strategy.name} {seed} observations")

        def speak(call: Call) -> Observation:
            status = draw.choice([Status.OK, *Status])
            if call.error is not None or (status is Status.OK and draw.random() < 0.5):
                return self.observe(call)
            contents: list[Any] = [*HOSTILE_TEXTS, None, 0, [], {"state": None}, {"a": ["b"]}]
            content = draw.choice(contents)
            return self.ending_as(status, content)(call)

        return speak

    # -- runs ------------------------------------------------------------------------------------------------------

    def to_first_ask(self) -> Iterator[Machine]:
        """A machine that asks, one for each question; none for a run that ends before it asks."""
        for question in self.subject.questions:
            machine = self.begin(question)
            while isinstance(step := look(machine), Act):
                machine.observe([self.observe(call) for call in step.plan.calls], {"usd": 1.0})
            if isinstance(step, Ask):
                yield machine

    def to_each_part(self) -> Iterator[tuple[Machine, Ask]]:
        """A machine at the first ask of each part, as far as a run comes without calls that a part writes."""
        for start in self.to_first_ask():
            machine, asked = start, look(start)
            for _ in self.strategy.parts:
                if not isinstance(asked, Ask):
                    break
                yield machine, asked
                machine = machine.fork()
                machine.on_reply(Reply(self._wordless(asked.part)))
                while isinstance(asked := look(machine), Act):
                    machine.observe([self.observe(call) for call in asked.plan.calls], {"usd": 1.0})

    def _wordless(self, part: str) -> str:
        """What a part says without calling anything; an empty text where it can only call."""
        try:
            return self.answers_of(part)[0]
        except CheckSkipped:
            return ""

    def to_each_act(self) -> Iterator[tuple[Machine, Act]]:
        """A machine that wants to run the calls of a reply, for each reply and each part whose replies are known."""
        for machine, ask in self.to_each_part():
            for text in self.good_texts(ask.part):
                twin = machine.fork()
                twin.on_reply(Reply(text))
                if isinstance(act := look(twin), Act):
                    yield twin, act

    def feed(self, machine: Machine, step: Step, voice: Voice, observe: Speaker) -> None:
        """Give a machine what it wants."""
        if isinstance(step, Ask):
            machine.on_reply(Reply(voice(step)))
        elif isinstance(step, Act):
            machine.observe([observe(call) for call in step.plan.calls], {"usd": 1.0})

    def run(self, machine: Machine, voice: Voice, observe: Speaker | None = None) -> Done:
        """Drive a machine to its end.

        Raises:
            CheckFailed: it does not end, or its plans exceed its rounds.
        """
        asks = acts = 0
        while not isinstance(step := look(machine), Done):
            asks += isinstance(step, Ask)
            acts += isinstance(step, Act)
            if isinstance(step, Act) and step.round != acts:
                raise CheckFailed(f"its plan number {acts} says round={step.round}; count rounds from 1 without gaps")
            if acts > self.rounds:
                raise CheckFailed(
                    f"it wants plan number {acts}; its limit is {self.rounds} (`limits`, `TaskContext.rounds`)"
                )
            if asks > self.most_asks:
                raise CheckFailed(
                    f"it still asks after {self.most_asks} replies; end after a few replies in a row that hold nothing "
                    "to run, and say in `limits` how many rounds there are"
                )
            self.feed(machine, step, voice, observe or self.observe)
        return step


def look(machine: Machine) -> Step:
    """What a machine wants.

    Raises:
        CheckFailed: it gives something else than a step, two different ones, or an empty plan.
    """
    # Asked twice: a `step` that moves the machine shows at once.
    step, again = machine.step(), machine.step()
    if not isinstance(step, (Ask, Act, Done)):
        raise CheckFailed(f"`step` gives {type(step).__name__}; expected Ask, Act or Done")
    if seen(step) != seen(again):
        raise CheckFailed(
            "two calls of `step` give different steps; only `on_reply`, `observe` and `finish` may move it"
        )
    if isinstance(step, Act) and not step.plan.calls:
        raise CheckFailed("it wants to run an empty plan; ask again or end instead")
    return step


def seen(step: Step) -> Any:
    """A step as a value that can be compared."""
    if isinstance(step, Act):
        return step.round, step.plan.to_json(), step.plan.edges, step.plan.barriers, step.issues, step.writers
    if isinstance(step, Ask):
        return step.role, list(step.messages), step.fresh, list(step.tools), step.sampling, step.part, step.turn
    return step


def _function_objects(tools: Sequence[ToolSpec | Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        each for tool in tools for each in (Pool.of(tool).to_openai() if isinstance(tool, ToolSpec) else [dict(tool)])
    ]


def _arguments(tool: Mapping[str, Any], text: str = "apple") -> dict[str, Any]:
    """Arguments for what a tool requires, made up from their types."""
    schema = tool["function"].get("parameters") or {}
    properties = schema.get("properties") or {}
    return {name: _value(properties.get(name) or {}, text) for name in schema.get("required") or properties}


def _value(schema: Mapping[str, Any], text: str) -> Any:
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    return text if kind == "string" else _SAMPLES.get(kind)
