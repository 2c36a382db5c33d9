"""A run that is one conversation with one model: what four of the five paradigms have in common.

A conversation is a list of messages that grows, and a phase: the model is *asked*, a plan is *acted* on, an *answer* is
awaited after the last turn, or all is *done*. Paradigms differ in how a text is read and how observations are shown.

Invariant: messages and plans are never changed in place, so a fork shares them and copies only the lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from concertino.core.format_issue import FormatIssue
from concertino.core.function_objects import FINDER, FunctionObjects, functions_in
from concertino.core.model import Message, Reply
from concertino.core.observation import Observation
from concertino.core.plan import Call, Plan

from .machine import Act, Ask, Done, Machine, Reading, Step, Strategy, TaskContext

Phase = Literal["ask", "act", "answer", "done"]
_PLAIN = ("question", "phase", "round", "asked", "fruitless")


class Conversation(Machine):
    """One run of one conversation.

    Attributes:
        asked: how many messages the model was asked with before.
        fruitless: texts in a row that held nothing to run.
        last_reading: what the last text was read as.
    """

    settings: Strategy

    def __init__(self, settings: Strategy, context: TaskContext) -> None:
        self.settings = settings
        self.question = context.question
        self.tools = FunctionObjects.of(context.tools)
        self.phase: Phase = "ask"
        self.round = 0
        self.asked = 0
        self.fruitless = 0
        self.plan: Plan | None = None
        self.last_reading: Reading | None = None
        self.final = Done(None, "answered")
        self.messages: list[Message] = []

    def step(self) -> Step:
        if self.phase == "act":
            assert self.plan is not None
            return Act(self.plan, self.round + 1, self.last_reading.issues if self.last_reading is not None else ())
        return self.final if self.phase == "done" else self._question()

    @property
    def reading(self) -> Reading | None:
        return self.last_reading

    def _read_as(
        self,
        calls: Sequence[Call] = (),
        issues: Sequence[FormatIssue] = (),
        *,
        understood: bool = True,
        thought: str = "",
    ) -> None:
        """Report what a text was read as."""
        closing = self.phase == "answer"
        self.last_reading = Reading("orchestrator", tuple(calls), tuple(issues), understood, closing, thought)

    def _question(self) -> Ask:
        """What the model is asked now."""
        return Ask("orchestrator", self.messages, len(self.messages) - self.asked)

    def _heard(self, reply: Reply, *, with_calls: bool = False) -> None:
        """Put the model's text into the conversation; its native calls only where they are answered."""
        message = Message.of(reply)
        # Chat APIs refuse a conversation in which a native call is not answered by a message of role `tool`.
        self.messages.append(message if with_calls else replace(message, tool_calls=()))
        self.asked = len(self.messages)

    def _hand_back(self, text: str, why: str, at_most: int) -> None:
        """Have the model write again after a text that could not be used; the run ends after so many in a row.

        Args:
            text: what the model reads; nothing where empty.
            why: completes "2 texts in a row …", for the detail of the end.
        """
        self.fruitless += 1
        if self.fruitless >= at_most:
            texts = f"{self.fruitless} texts in a row" if self.fruitless > 1 else "the text"
            self._end(Done(None, "format", f"{texts} {why}"))
        elif text:
            self.messages.append(Message("user", text))

    def _take_found(self, observations: Sequence[Observation]) -> None:
        """Have the members that a search of the pool found among the tools from now on."""
        results = [seen.content for seen in observations if seen.ok and seen.name == FINDER]
        if not results:
            return
        found = {tool["function"]["name"]: tool for content in results for tool in functions_in(content)}
        # A schema that was asked for whole takes the place of the short one.
        kept = [found.pop(tool["function"]["name"], tool) for tool in self.tools]
        self.tools = FunctionObjects([*kept, *found.values()])

    def finish(self, stop: str, detail: str = "") -> None:
        # The first end counts: a budget that runs out during the last step must not overwrite an answer.
        if self.phase != "done":
            self._end(Done(None, stop, detail))

    def _end(self, final: Done) -> None:
        self.final, self.phase, self.plan = final, "done", None

    # -- copies ----------------------------------------------------------------------------------------------------

    def fork(self) -> Self:
        # `copy.deepcopy` would copy every message; they are never changed in place, so copied lists are enough.
        twin = object.__new__(type(self))
        twin.__dict__.update({k: list(v) if type(v) is list else v for k, v in self.__dict__.items()})
        return twin

    def dump(self) -> dict[str, Any]:
        """Plain JSON data. The plan is not in it: a paradigm keeps it, or reads it again."""
        return {
            "settings": self.settings.to_json(),
            **{name: getattr(self, name) for name in _PLAIN},
            # Not from the pool of the day: a restored run must read the last text with the tools that the model saw.
            "tools": list(self.tools),
            "reading": None if self.last_reading is None else self.last_reading.to_json(),
            "final": [self.final.answer, self.final.stop, self.final.detail],
            "messages": [message.to_json() for message in self.messages],
        }

    @classmethod
    def restored(cls, settings: Strategy, dumped: Mapping[str, Any]) -> Self:
        """The machine of a dump."""
        machine = cls.__new__(cls)
        machine.settings = settings
        machine._load(dumped)
        return machine

    def _load(self, dumped: Mapping[str, Any]) -> None:
        """Take everything but the settings from a dump."""
        for name in _PLAIN:
            setattr(self, name, dumped[name])
        self.tools = FunctionObjects(dumped["tools"])
        read = dumped["reading"]
        self.last_reading = None if read is None else Reading.from_json(read)
        self.final = Done(*dumped["final"])
        self.messages = [Message.from_json(message) for message in dumped["messages"]]
        self.plan = None

    def _restore_calls(self, calls: Sequence[Call]) -> None:
        """A dump holds references as text; the calls that were read again have them as references."""
        if self.last_reading is not None:
            self.last_reading = replace(self.last_reading, calls=tuple(calls))
