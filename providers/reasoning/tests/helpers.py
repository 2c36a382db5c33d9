"""What these tests share: models that count, wait and keep what they were asked, and a clock on which time is free."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import concertino as ct
from concertino_reasoning import agents

_CLOCK = Path(__file__).parents[3] / "tests" / "sdk" / "executor" / "virtual_clock.py"
TASK = {"subtask": "What is six times seven?"}
ROLES = ["optimist", "accountant", "sceptic"]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "debate": {**TASK, "roles": ROLES},
    "ensemble_solver": {},
    "conclude": {},
    "extract": {"text": "Six times seven\nis 42, they say.", "wanted": "the product"},
}
"""Arguments by agent, where they are not `TASK`."""
EACH_AGENT = {spec.name: spec for spec in agents.AGENTS}
REQUESTS = {
    "cot": 1,
    "self_consistency": 5,
    "debate": 5 * len(ROLES) + 1,
    "reflexion": 11,
    "standard_reasoner": 1,
    "critical_reviewer": 1,
    "ensemble_solver": 4,
    "conclude": 1,
    "extract": 1,
}
"""Requests of one undisturbed call whose critic is never certain."""
ROUND_TRIPS = {**REQUESTS, "self_consistency": 1, "debate": 6, "ensemble_solver": 1}
"""The same, with those made at once counted once."""


def run_virtually(work: Coroutine[Any, Any, Any]) -> Any:
    """`asyncio.run` on a clock that jumps to the next timer."""
    spec = importlib.util.spec_from_file_location("virtual_clock", _CLOCK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_virtually(work)


def arguments_of(name: str) -> dict[str, Any]:
    return ARGUMENTS.get(name, TASK)


def solution(answer: str, reasoning: str = "It follows.") -> str:
    return f"<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n\\boxed{{{answer}}}\n</answer>"


class Worker(ct.Model):
    """Answers every request after a second; a word is a token; it keeps to `max_tokens`.

    Args:
        say: the text for a request and its number, from 0; by default 42 in whatever form is asked for.
    """

    def __init__(self, say: Callable[[ct.ChatRequest, int], str] | None = None, seconds: float = 1.0) -> None:
        self.requests: list[ct.ChatRequest] = []
        self.running = self.most_at_once = 0
        self._say = say or (lambda request, number: self.obliging(request))
        self._seconds = seconds

    @staticmethod
    def obliging(request: ct.ChatRequest) -> str:
        """The answer 42; a critic's verdict is always `wrong`."""
        if request.schema is not None:
            return '{"found": true, "value": "42", "quote": "Six times seven is 42"}'
        if any("<verdict>" in message.text for message in request.messages):
            return "<feedback>Check the last step.</feedback>\n<verdict>wrong</verdict>"
        return solution("42")

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        number = len(self.requests)
        self.requests.append(request)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.running -= 1
        words = self._say(request, number).split(" ")
        most = request.sampling.max_tokens or len(words)
        read = sum(self.count_tokens(message.text) for message in request.messages)
        usage = ct.Usage(input_tokens=read, output_tokens=min(most, len(words)))
        return ct.Reply(" ".join(words[:most]), usage=usage, finish_reason="length" if len(words) > most else "stop")

    def count_tokens(self, text: str) -> int:
        return len(text.split(" "))


def pool_of(
    model: ct.Model, *members: Any, prices: ct.Prices | None = None, max_tokens: int = 64, **others: ct.Model
) -> ct.Pool:
    """A pool with the model in the role `default`, and others in roles of their own."""
    specs = [ct.ModelSpec("worker", lambda: model, prices=prices, max_tokens=max_tokens)]
    specs += [ct.ModelSpec(f"model-{role}", lambda other=other: other) for role, other in others.items()]  # type: ignore[misc]
    return ct.Pool.of(*members, *specs, default="worker", **{role: f"model-{role}" for role in others})


def notes_of(observation: ct.Observation) -> str:
    content = str(observation.content)
    return content.partition("<notes>\n")[2].partition("\n</notes>")[0]


def answer_of(observation: ct.Observation) -> str:
    content = str(observation.content)
    return content.partition("<answer>\n")[2].partition("\n</answer>")[0]


def well_formed(observation: ct.Observation) -> bool:
    """An answer in a block, or an error with a code and a text."""
    if observation.ok:
        return bool(answer_of(observation))
    return observation.error is not None and observation.error.code in ct.CODES and bool(observation.error.message)
