"""Answers: what came back when a model was asked a task, and the key under which it is kept.

The key holds all that can change an answer and nothing else: the model's name, options and `max_tokens`; the messages;
the sampling; the number of the repeat. So a price, a description, a role or the known answer of a task may change, and
no model is asked again. A model's *program* is not in the key; who changed it asks for a refresh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from concertino._models import Message, Sampling
from concertino._specs import ModelSpec
from concertino._usage import NOTHING, Usage

from ._tasks import Task

_HOW_TO_END = "End your reply with one line that holds the word Answer, a colon, and the answer alone."


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to ask of a model: a task, for the `repeat`-th time (from 0)."""

    task: Task
    repeat: int
    messages: tuple[Message, ...]
    sampling: Sampling
    key: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: OK, or why there is no answer.
        code: of the failure, one of `concertino.CODES`.
        text, reasoning: of the reply.
        finish: why the reply ended.
        usage: tokens, of failed attempts too; `usd` only where the server sent a bill.
        seconds: from the request to the reply, repeated attempts included.
        timeout: seconds that it was given; None for no limit.
        at: when it came, in seconds since 1970.
    """

    status: str
    code: str = ""
    text: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage = NOTHING
    seconds: float = 0.0
    timeout: float | None = None
    at: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the model answered."""
        return self.status == "OK"

    def holds_for(self, spec: ModelSpec) -> bool:
        """Whether it would come out the same now: an answer that came too late may not, if there is more time now."""
        if self.status != "TIMEOUT" or self.timeout is None:
            return True
        return spec.timeout is not None and spec.timeout <= self.timeout

    def usd(self, spec: ModelSpec) -> float | None:
        """$ for it at the present prices, or as billed; None if that is unknown."""
        if self.usage.usd:
            return self.usage.usd
        if spec.prices is None or not self.usage.tokens:
            return None
        return spec.prices.usd(self.usage.input_tokens, self.usage.output_tokens, self.usage.cached_tokens)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "usage": self.usage.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """The inverse of `to_json`."""
        return cls(**{**data, "usage": Usage.from_json(data["usage"])})


def identity(spec: ModelSpec) -> dict[str, Any]:
    """What of a model can change its answers."""
    data = spec.to_json()
    return {"name": spec.name, "options": data.get("options", {}), "max_tokens": spec.max_tokens}


def items_of(spec: ModelSpec, tasks: Sequence[Task], repeats: int, sampling: Sampling) -> Iterator[Item]:
    """What to ask of a model, all tasks once before any of them twice.

    A repeat has a seed of its own, so that a server which honours seeds does not give the same answer again.
    """
    for repeat in range(repeats):
        chosen = sampling if repeat == 0 else sampling.with_(seed=(sampling.seed or 0) + repeat)
        for task in tasks:
            messages = (Message("user", f"{task.question}\n\n{_HOW_TO_END}"),)
            key = digest([identity(spec), [m.to_json() for m in messages], asdict(chosen), repeat])
            yield Item(task, repeat, messages, chosen, key)


def digest(data: Any) -> str:
    """64 hex digits that stand for JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
