"""Answers: what came back when a model was asked a task, and the key under which it is kept.

The key holds all that can change an answer and nothing else: what identifies the model (its name, options and
`max_tokens`; of a router, its models and policy too); the messages; the sampling; the number of the repeat. So a price,
a description, a role or the known answer of a task may change, and no model is asked again. A model's *program* is not
in the key; who changed it asks for a refresh.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from concertino import Message, ModelSpec, Prices, Sampling, Usage

from concertino_bench.tasks.task import Task

if TYPE_CHECKING:
    from concertino import Pool

_HOW_TO_END = "End your reply with one line that holds the word Answer, a colon, and the answer alone."
_NOTHING = Usage()
_UNIMPORTANT = frozenset({"kind", "description", "prices", "context", "concurrency", "timeout"})
"""What of a model can change without changing its answers; a time-out is looked at when an answer is read."""


@dataclass(frozen=True, slots=True)
class CardQuestion:
    """One thing to ask of a model: a task, for the `repeat`-th time (from 0)."""

    task: Task
    repeat: int
    messages: tuple[Message, ...]
    sampling: Sampling
    key: str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
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
        by: the model that answered; of a router, the one that it chose.
    """

    status: str
    code: str = ""
    text: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage = _NOTHING
    seconds: float = 0.0
    timeout: float | None = None
    at: float = 0.0
    by: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model answered."""
        return self.status == "OK"

    def holds_for(self, spec: ModelSpec) -> bool:
        """Whether it would come out the same now: an answer that came too late may not, if there is more time now."""
        if self.status != "TIMEOUT" or self.timeout is None:
            return True
        return spec.timeout is not None and spec.timeout <= self.timeout

    def usd(self, prices: Mapping[str, Prices | None]) -> float | None:
        """$ for it as billed, or at prices by model; None if that is unknown."""
        if self.usage.usd:
            return self.usage.usd
        known = prices.get(self.by)
        # A server that counts no tokens did not work for nothing: what it cost is unknown.
        if known is None or not self.usage.tokens:
            return None
        return known.cost_of(self.usage)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {**asdict(self), "usage": self.usage.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ModelAnswer:
        """The inverse of `to_json`."""
        return cls(**{**data, "usage": Usage.from_json(data["usage"])})


def identity(spec: ModelSpec, pool: Pool) -> dict[str, Any]:
    """What of a model can change its answers; of a router, also what can change those of its models."""
    data = {key: value for key, value in spec.to_json().items() if key not in _UNIMPORTANT}
    # A router is a policy over models; if one of them changes, so may its answers.
    behind = [identity(model, pool) for model in pool.behind(spec.name) if model.name != spec.name]
    return {**data, "behind": behind} if behind else data


def items_of(
    who: Mapping[str, Any], tasks: Sequence[Task], repeats: int = 1, sampling: Sampling | None = None
) -> Iterator[CardQuestion]:
    """What to ask of a model, given by its identity, all tasks once before any of them twice.

    A repeat has a seed of its own, so that a server which honours seeds does not give the same answer again.
    """
    sampling = sampling or Sampling()
    for repeat in range(repeats):
        # The first repeat keeps the sampling as it is, so that asking for more repeats later finds it in the cache.
        chosen = sampling if repeat == 0 else sampling.with_(seed=(sampling.seed or 0) + repeat)
        for task in tasks:
            messages = (Message("user", f"{task.question}\n\n{_HOW_TO_END}"),)
            key = digest([who, [m.to_json() for m in messages], asdict(chosen), repeat])
            yield CardQuestion(task, repeat, messages, chosen, key)


def digest(data: Any) -> str:
    """64 hex digits that stand for JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
