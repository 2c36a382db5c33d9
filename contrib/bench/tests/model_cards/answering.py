"""Models that answer by a rule and count who asked, and tasks for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import concertino as ct
from concertino_bench.model_cards import make_task

Rule = Callable[[str], "str | ct.Reply"]

TASKS = (
    *(make_task(f"What is {n} plus {n}?", str(2 * n), "sums", "number") for n in range(11, 16)),
    *(
        make_task(f"Write '{word}' backwards.", word[::-1], "words")
        for word in ("lamp", "stone", "river", "cloud", "grape")
    ),
)
"""Ten tasks in two kinds."""

ANSWERS = {task.question: task.answer for task in TASKS}
KINDS = {task.question: task.kind for task in TASKS}


def question_of(request: ct.ChatRequest) -> str:
    """The task that a request is about."""
    return request.messages[-1].text.partition("\n\n")[0]


def knows(*kinds: str) -> Rule:
    """Right about tasks of these kinds, wrong about the others."""

    def answer(question: str) -> str:
        return f"Answer: {ANSWERS[question] if KINDS[question] in kinds else 'no idea'}"

    return answer


class Answering(ct.Model):
    """Answers by a rule, with 20 tokens in and 5 out; remembers every request."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.requests: list[ct.ChatRequest] = []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.requests.append(request)
        said = self.rule(question_of(request))
        return said if isinstance(said, ct.Reply) else ct.Reply(said, usage=ct.Usage(input_tokens=20, output_tokens=5))

    @property
    def asked(self) -> int:
        return len(self.requests)


class Writing(ct.Model):
    """A writer: says what it is given to say, as JSON; remembers every request."""

    def __init__(self, strengths: object = (), weaknesses: object = (), text: str = "") -> None:
        self.said = text or json.dumps({"strengths": _remarks(strengths), "weaknesses": _remarks(weaknesses)})
        self.requests: list[ct.ChatRequest] = []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.requests.append(request)
        return ct.Reply(self.said, usage=ct.Usage(input_tokens=300, output_tokens=40))

    @property
    def asked(self) -> int:
        return len(self.requests)


def _remarks(given: Any) -> list[dict[str, Any]]:
    pairs = [(item, []) if isinstance(item, str) else item for item in given]
    return [{"text": text, "kinds": list(kinds)} for text, kinds in pairs]


PRICES = ct.Prices(input=1.0, output=2.0)
PER_ANSWER = (20 * 1.0 + 5 * 2.0) / 1e6
"""$ for one answer of an `Answering` model at `PRICES`."""


def spec(name: str, model: ct.Model, **options: Any) -> ct.ModelSpec:
    """A model of the pool."""
    return ct.ModelSpec(name, lambda: model, **{"prices": PRICES, "description": f"{name} as published.", **options})


def text_of(pool: ct.Pool, name: str) -> str:
    """The description of a member."""
    return pool[name].description
