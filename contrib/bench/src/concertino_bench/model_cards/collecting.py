"""Collecting answers: each item is asked through the executor, like any request, and kept the moment it is answered.

Failures are of two classes. A failure *of the model* (too slow, cut off, refused by its server, a fault of its client)
counts as an answer that did not come. A *circumstance* (the budget, the run's deadline, an unreachable server, a
refused key) says nothing about the model: the item stays open, and the next run continues.

Answers are kept, and so are failures that may have cost tokens. A refused request costs nothing, so the next run makes
it again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from concertino import Call, CallFailed, ChatRequest, ModelSpec, Observation, Plan, Reply
from concertino.core.events import Planned

from .answers import CardQuestion, ModelAnswer
from .cache import Cache

if TYPE_CHECKING:
    from .recording import RecordedModels

T = TypeVar("T")

ANSWERS = "answers"
"""The cache's name for answers."""

_OF_THE_MODEL = frozenset({"deadline", "truncated", "bad_result", "rejected", "raised", "unknown_outcome"})
_MAY_HAVE_COST = frozenset({"deadline", "truncated", "bad_result"})
_WORTH_ANOTHER_TRY = frozenset({"unavailable", "overloaded", "cut_short"})
_MAX_UNREACHABLE = 3
"""After so many unreachable answers in a row, a model is not asked again."""


@dataclass
class Collected:
    """What is known of a model's items.

    Attributes:
        answers: by the items' keys.
        asked: requests that were made for it now.
        open: items without an answer, when all is done.
        reason: why, where some are open: the first circumstance.
    """

    answers: dict[str, ModelAnswer] = field(default_factory=dict)
    asked: int = 0
    open: int = 0
    reason: str = ""


class Collector:
    """Has models answer items.

    Args:
        models: through which they are asked.
        concurrency: requests to one model under way at once.
        tell: called after each answer with the model's name.
    """

    def __init__(self, models: RecordedModels, cache: Cache, concurrency: int, tell: Callable[[str], None]) -> None:
        self._models = models
        self._scope = models.scope
        self._cache = cache
        self._concurrency = concurrency
        self._tell = tell
        self._plans = 0

    async def collect(self, spec: ModelSpec, items: Sequence[CardQuestion], known: dict[str, ModelAnswer]) -> Collected:
        """Ask for what is not known yet.

        Raises:
            RunError: an answer cannot be kept; nothing more is asked.
        """
        found = Collected(dict(known))
        missing = [item for item in items if item.key not in known]
        if missing:
            await self._ask_all(_Asking(spec, found, self._planned(spec, missing)))
        found.open = sum(item.key not in found.answers for item in items)
        return found

    def _planned(self, spec: ModelSpec, missing: Sequence[CardQuestion]) -> Iterator[tuple[str, CardQuestion]]:
        """The items with the ids of their calls; a trace shows those of a model as one round."""
        self._plans += 1
        number = self._plans
        shown = [{"kind": item.task.kind, "task": item.task.question, "repeat": item.repeat} for item in missing]
        calls = [Call(spec.name, arguments, str(place)) for place, arguments in enumerate(shown, 1)]
        self._scope.emit(Planned(number, Plan.parallel(calls), self._scope.now()))
        return ((f"{number}.{place}", item) for place, item in enumerate(missing, 1))

    async def _ask_all(self, asking: _Asking) -> None:
        async def work() -> None:
            # The workers share one iterator, so no item is asked twice.
            for call_id, item in asking.items:
                if asking.over:
                    return
                await self._ask(asking, call_id, item)

        await gather([work() for _ in range(self._concurrency)])

    async def _ask(self, asking: _Asking, call_id: str, item: CardQuestion) -> None:
        spec, found = asking.spec, asking.found
        request = ChatRequest(item.messages, sampling=item.sampling)
        try:
            reply, seen = await self._models.ask(spec.name, request, call_id)
        except CallFailed as failed:
            seen, reply = failed.observation, None
        # A request that the budget refused was never sent.
        found.asked += seen.attempts > 0
        circumstance = self._circumstance(spec, item, reply, seen)
        if circumstance:
            asking.note(circumstance, seen)
            return
        # Only failures in a row say that a server is gone.
        asking.unreachable = 0
        answer = _answer_of(spec, reply, seen)
        if reply is not None or answer.code in _MAY_HAVE_COST or answer.usage.tokens:
            # Before it counts: an answer that cannot be kept stops everything, rather than being paid for twice.
            self._cache.write(ANSWERS, item.key, answer.to_json())
        found.answers[item.key] = answer
        self._tell(spec.name)

    def _circumstance(self, spec: ModelSpec, item: CardQuestion, reply: Reply | None, seen: Observation) -> str:
        """The code of what kept the model from answering, empty if it was the model itself."""
        if reply is not None:
            return "cut_short" if self._cut_by_budget(seen.name, item, reply) else ""
        code = seen.error.code if seen.error else "raised"
        if code not in _OF_THE_MODEL:
            return code
        providers = {model.provider or model.name for model in self._scope.pool.behind(spec.name)}
        refused = code == "rejected" and not providers.isdisjoint(self._scope.switched_off)
        # A deadline before the model's own timeout is that of the run. Clocks differ by less than 50 ms.
        in_time = spec.timeout is None or seen.ended - seen.started < spec.timeout - 0.05
        return code if refused or (code == "deadline" and in_time) else ""

    def _cut_by_budget(self, answered_by: str, item: CardQuestion, reply: Reply) -> bool:
        """Whether the budget left no room for the whole reply: the executor then asks for fewer tokens."""
        limits = self._scope.ledger.limits
        if reply.finish_reason != "length" or limits is None or limits.tokens == limits.usd == float("inf"):
            return False
        wanted = item.sampling.max_tokens or self._scope.pool.model(answered_by).max_tokens
        # A reply that is as long as it was allowed to be was cut by the model's own limit, which is the model's fault.
        return reply.usage.output_tokens < wanted


@dataclass
class _Asking:
    """A model that is being asked."""

    spec: ModelSpec
    found: Collected
    items: Iterator[tuple[str, CardQuestion]]
    unreachable: int = 0
    over: bool = False

    def note(self, circumstance: str, seen: Observation) -> None:
        """Leave an item open, and stop asking the model where another try is of no use."""
        message = seen.error.message if seen.error else "the budget left no room for the whole reply"
        self.found.reason = self.found.reason or f"{circumstance}: {message}"
        self.unreachable += 1
        self.over = self.over or circumstance not in _WORTH_ANOTHER_TRY or self.unreachable >= _MAX_UNREACHABLE


def _answer_of(spec: ModelSpec, reply: Reply | None, seen: Observation) -> ModelAnswer:
    """What is kept of a reply, or of a failure of the model."""
    said = reply if reply is not None else Reply("", finish_reason="")
    return ModelAnswer(
        status=seen.status.value,
        code=seen.error.code if seen.error else "",
        text=said.text,
        reasoning=said.reasoning,
        finish=said.finish_reason,
        # Tokens and bills alone: $ at list prices are worked out when they are read, so prices may change later.
        usage=seen.usage._replace(calls=0, units=0.0, usd=said.usage.usd, seconds=0.0, unpriced=0),
        seconds=round(seen.ended - seen.started, 6),
        timeout=spec.timeout,
        at=round(time.time(), 3),
        by=seen.name,
    )


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. If one raises, or the caller is cancelled, the rest is cancelled and awaited."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        # `gather` alone lets the others run on after a failure, and they would go on paying.
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        raise
