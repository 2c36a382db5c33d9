"""A strategy of your own: one line per turn, `CALL name {arguments}` or `ANSWER text`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import concertino as ct
from concertino.strategies import Act, Ask, Brief, Done, Machine, Step

INTRODUCTION = """Answer the question. Write one line per turn: CALL name {"argument": value}, or ANSWER text.
You may call:
"""


@dataclass(frozen=True)
class OneLine(ct.Strategy):
    """One call per turn, one line per call."""

    max_rounds: int = 8

    name = "one-line"

    def begin(self, brief: Brief) -> "OneLineMachine":
        tools = "\n".join(json.dumps(tool["function"]) for tool in brief.tools)
        messages = [ct.Message("system", INTRODUCTION + tools), ct.Message("user", brief.question)]
        return OneLineMachine(min(self.max_rounds, brief.rounds or self.max_rounds), messages)

    def restore(self, dumped: Mapping[str, Any]) -> "OneLineMachine":
        machine = OneLineMachine(dumped["max_rounds"], [ct.Message.from_json(m) for m in dumped["messages"]])
        machine.round, machine.call = dumped["round"], dumped["call"]
        machine.done = Done(*dumped["done"]) if dumped["done"] else None
        return machine


class OneLineMachine(Machine):
    """One run. Its attributes are plain data, so that it can be copied and written down at any point."""

    def __init__(self, max_rounds: int, messages: list[ct.Message]) -> None:
        self.max_rounds = max_rounds
        self.messages = messages
        self.round = 0
        self.call: list[str] | None = None
        self.done: Done | None = None

    def step(self) -> Step:
        if self.done is not None:
            return self.done
        if self.call is not None:
            name, arguments = self.call
            return Act(ct.Plan([ct.Call(name, arguments)]), self.round + 1)
        return Ask("orchestrator", self.messages, fresh=2 if self.round == 0 else 1)

    def tell(self, reply: ct.Reply) -> None:
        self.messages.append(ct.Message("assistant", reply.text))
        word, _, rest = reply.text.strip().partition(" ")
        if word == "ANSWER":
            self.done = Done(rest, "answered")
        elif word == "CALL":
            name, _, arguments = rest.partition(" ")
            self.call = [name, arguments or "{}"]
        else:
            self.done = Done(None, "format", f"the line begins with {word!r}; expected CALL or ANSWER")

    def observe(self, observations: Sequence[ct.Observation], remaining: Mapping[str, float] | None = None) -> None:
        (seen,) = observations
        text = f"{seen.status} {json.dumps(seen.content) if seen.ok else seen.error.message}"
        self.messages.append(ct.Message("user", text))
        self.round, self.call = self.round + 1, None
        if self.round == self.max_rounds:
            self.done = Done(None, "rounds", f"no answer after {self.round} rounds")

    def finish(self, stop: str, detail: str = "") -> None:
        self.done = self.done or Done(None, stop, detail)

    def dump(self) -> dict[str, Any]:
        return {
            "max_rounds": self.max_rounds,
            "messages": [message.to_json() for message in self.messages],
            "round": self.round,
            "call": self.call,
            "done": [self.done.answer, self.done.stop, self.done.detail] if self.done else None,
        }
