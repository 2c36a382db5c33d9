"""Random runs of the five strategies, each said by a script that its question names."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.strategies import Strategy
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.serial_calls import SerialCalls
from concertino.strategies.serial_calls.format import write_turn as serial_turn
from concertino_serve.serve_settings import Preset, ServeSettings

from .serving_here import Scripted, pool_of

FIVE = ("parallel-rounds", "serial-calls", "dependency-plan", "agent-graph", "role-workflow")
_WORDS = [
    "kiwi",
    "plum",
    "Ünïcode",
    "日本語",
    "🙂",
    '"quoted"',
    "line\nbreak",
    "<tag>",
    "\u2028",
    "data: x",
    "\\n",
    "a" * 40,
]


def strategy_of(name: str) -> Strategy:
    finder = Role("finder", "{tools} {question}", reads="calls", tools=("price",))
    writer = Role("writer", "{question} {finder.result}", reads="answer")
    made: dict[str, Strategy] = {
        "parallel-rounds": ct.ParallelRounds(),
        "serial-calls": SerialCalls(),
        "dependency-plan": DependencyPlan(),
        "agent-graph": AgentGraph(),
        "role-workflow": RoleWorkflow((finder, writer), Agree("writer.value", "writer.value")),
    }
    return made[name]


def random_script(name: str, seed: int) -> list[str]:
    """What the model says: some rounds of calls, some of them failing, and mostly an answer."""
    chance, strategy = random.Random(seed), strategy_of(name)
    writer: Any = strategy
    answer = " ".join(chance.choice(_WORDS) for _ in range(chance.randrange(1, 12)))
    calls = [ct.Call("price", {"fruit": chance.choice(_WORDS[:4])}, f"c{i}") for i in range(chance.randrange(1, 4))]
    if chance.random() < 0.15:
        return ["nothing that can be read"]
    if name == "role-workflow":
        return ["".join(serial_turn("", call.name, dict(call.data)) for call in calls), f"\\boxed{{{seed}}}"]
    if name == "agent-graph":
        return [writer.write_turn(calls[:1], "look")]
    if name == "serial-calls":
        turns = [writer.write_turn([ct.Call(call.name, call.arguments, "")], "look") for call in calls]
        return [*turns, *writer.write_answer(answer)]
    return [writer.write_turn(calls, "look"), *writer.write_answer(answer)]


class Scripts:
    """The scripts of many runs, and the presets that follow them."""

    def __init__(self) -> None:
        self._scripts: list[list[str]] = []
        self.asked = 0

    def add(self, turns: list[str]) -> int:
        """The number of a new script."""
        self._scripts.append(list(turns))
        return len(self._scripts) - 1

    def say(self, messages: list[ct.Message]) -> str:
        self.asked += 1
        found = re.search(r"script-(\d+)", "\n".join(message.text for message in messages))
        assert found is not None
        turns = self._scripts[int(found[1])]
        return turns.pop(0) if len(turns) > 1 else turns[0]

    def settings(self, folder: Path) -> ServeSettings:
        pool = pool_of(Scripted(self.say, piece=5))
        return ServeSettings({name: Preset(name, pool, strategy=strategy_of(name)) for name in FIVE}, traces=folder)


__all__ = ["FIVE", "Scripts", "random_script"]
