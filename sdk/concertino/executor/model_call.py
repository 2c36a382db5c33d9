"""A request to a model as a call of its own: same life, same retries and breaker, other budget and other records.

A budget in tokens or $ needs an upper bound before the request: the prompt's tokens and `max_tokens`. When less is
left, `max_tokens` shrinks to fit; a model of unknown price cannot be asked under a budget in $.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast

from concertino.core.budget import Amount
from concertino.core.events import Asked, CallEnded, CallStarted, Event, Replied, idempotency_key
from concertino.core.model import ChatRequest, Message, Reply, Sampling
from concertino.core.observation import CallFailed, ErrorInfo, Observation, Status
from concertino.core.provider_error import ProviderError
from concertino.core.usage import NOTHING, Usage
from concertino.members.routing import RouterSpec

from . import error_messages as causes
from .call import Invocation
from .routes import Route, nobody_answered, should_fall_back
from .structured import read_structured, refused_schema

if TYPE_CHECKING:
    from concertino.core.model import Model
    from concertino.members.specs import ModelSpec

    from .bound import Bound, BoundModel
    from .executor import Executor
    from .limits import Gate
    from .plan_run import PlanRun
    from .scope import Scope

_LEAST_TOKENS = 16


@lru_cache(maxsize=64)
def _limited(sampling: Sampling, max_tokens: int) -> Sampling:
    """The same sampling with a bound on what is generated."""
    return sampling.with_(max_tokens=max_tokens)


class ModelCallOwner:
    """Who waits for one request to a model: the orchestrator (`role` set) or an agent."""

    now = 0.0

    __slots__ = ("context", "deadline", "depth", "future", "ledger", "parent")

    def __init__(self, scope: Scope, parent: Invocation | None, margin: float) -> None:
        self.context = contextvars.copy_context()
        self.parent = parent
        self.depth = parent.depth + 1 if parent is not None else 0
        self.ledger = parent.ledger if parent is not None else scope.ledger
        self.deadline = parent.deadline - margin if parent is not None else scope.deadline
        self.future: asyncio.Future[Observation] = scope.loop.create_future()

    def observed(self, invocation: Invocation, observation: Observation) -> None:
        """The request has ended."""
        cast(Request, invocation).observation = observation

    def delivered(self, invocation: Invocation) -> None:
        """It may be seen now."""
        if not self.future.done():
            self.future.set_result(cast(Request, invocation).observation)


class StreamListener(Protocol):
    """Who hears a reply while it is written."""

    def begin(self) -> None:
        """An attempt begins; what was heard before is void."""

    def hear(self, piece: str) -> None:
        """More of the text."""


class Request(Invocation):
    """The life of one request to a model."""

    hooked = False

    __slots__ = ("chat", "fresh", "listener", "observation", "reply", "role", "wasted")

    def __init__(
        self,
        executor: Executor,
        scope: Scope,
        bound: BoundModel,
        call_id: str,
        chat: ChatRequest,
        owner: ModelCallOwner,
        role: str,
        fresh: Sequence[Message],
        listener: StreamListener | None = None,
    ) -> None:
        super().__init__(executor, scope, cast("Bound", bound), call_id, chat, cast("PlanRun", owner), 0)
        self.chat = chat
        self.role = role
        self.fresh = fresh
        self.listener = listener
        self.reply: Reply | None = None
        self.wasted = NOTHING
        self.observation: Observation
        gates: tuple[Gate | None, ...] = (bound.provider.gate, bound.gate)
        self.gates = tuple(gate for gate in gates if gate is not None)

    def amount(self) -> Amount:
        """Tokens and $ that the reply can cost at most."""
        left = self.ledger.remaining()
        if left.tokens == left.usd == float("inf"):
            return Amount()
        spec = cast("BoundModel", self.bound).spec
        count = cast("BoundModel", self.bound).opened.open().count_tokens
        prompt = self._prompt_tokens(count)
        most = self.chat.sampling.max_tokens or spec.max_tokens
        fitting = left.tokens - prompt
        if left.usd < float("inf"):
            if spec.prices is None:
                return Amount(usd=float("inf"))
            if spec.prices.output > 0:
                fitting = min(fitting, (left.usd * 1e6 - prompt * spec.prices.input) / spec.prices.output)
        if _LEAST_TOKENS <= fitting < most:
            most = int(fitting)
        if most != self.chat.sampling.max_tokens:
            self.chat = replace(self.chat, sampling=_limited(self.chat.sampling, most))
        usd = spec.prices.usd(prompt, most) if spec.prices else 0.0
        return Amount(0.0, 0.0, usd, float(prompt + most))

    def _prompt_tokens(self, count: Callable[[str], int]) -> int:
        """Tokens of the prompt. Of a conversation that has only grown, just the fresh messages are counted."""
        messages, counted, role = self.chat.messages, self.scope.counted, (self.role, self.bound.name)
        before = len(messages) - len(self.fresh) if self.role else 0
        known, tokens = counted.get(role, (0, 0))
        if known > before:
            known = tokens = 0
        tokens += sum(count(message.text) + 4 for message in messages[known:])
        counted[role] = (len(messages), tokens)
        return tokens + (count(json.dumps(self.chat.tools)) if self.chat.tools else 0)

    def _lacking(self, amount: Amount) -> str:
        if amount.usd == float("inf"):
            return f"the price of {self.bound.name} is unknown; give it with pool.price(...)"
        return super()._lacking(amount)

    async def invoke(self) -> Any:
        """One attempt. What a failed one consumed is remembered."""
        model = cast("BoundModel", self.bound).opened.open()
        try:
            return await (model.chat(self.chat) if self.listener is None else self._heard(model, self.listener))
        except ProviderError as error:
            if error.usage is not None:
                self.wasted = self.wasted.plus(self._priced(error.usage))
            raise

    async def _heard(self, model: Model, listener: StreamListener) -> Any:
        """The reply of a stream whose text is heard piece by piece."""
        listener.begin()
        last: Any = None
        pieces = model.stream(self.chat)
        try:
            async for last in pieces:
                if isinstance(last, str):
                    listener.hear(last)
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        return last

    def _priced(self, used: Usage) -> Usage:
        """What a server reported, in $: its own bill, else the pool's prices; without either it is unpriced."""
        prices = cast("BoundModel", self.bound).spec.prices
        usd, unpriced = used.usd, 0
        if not usd and prices is not None:
            usd = prices.usd(used.input_tokens, used.output_tokens, used.cached_tokens)
        elif not usd and used.tokens:
            unpriced = 1
        return used._replace(calls=0, units=0.0, usd=usd, seconds=0.0, unpriced=unpriced)

    def succeeded(self, value: Any) -> Observation:
        """The observation of a reply, priced."""
        if not isinstance(value, Reply):
            return self._error(Status.EXEC_ERR, causes.bad_result(f"returned {type(value).__name__}; expected Reply"))
        ended = self.scope.now()
        usage = self._priced(value.usage).plus(self.wasted)._replace(seconds=ended - self.started)
        if self.chat.schema is not None:
            data, wrong = read_structured(value, self.chat.schema)
            if wrong is not None:
                self.wasted = usage
                return self._error(Status.PARSE_ERR, wrong)
            value = replace(value, data=data)
        self.reply = value
        opened = cast("BoundModel", self.bound).opened
        opened.answered_in(ended - self.started, value.usage.output_tokens, self.scope.loop.time())
        return Observation(
            self.call_id, self.bound.name, Status.OK, None, None, usage, self.attempts, self.started, ended
        )

    def conclude(self, observation: Observation) -> None:
        """As for any call; a time-out tells on a server that had its usual time."""
        under_way = self.going or self.interrupted  # one that only waits to be repeated says nothing of the server
        timed_out = self.stopped_by == "deadline" and under_way and not self.over
        if timed_out and cast("BoundModel", self.bound).ran_long_enough(observation.ended - observation.started):
            self.bound.provider.breaker.failed()
        super().conclude(observation)

    def _usage(self, ended: float, billed: Any = None) -> Usage:
        return self.wasted._replace(seconds=ended - self.started)

    def recorded_arguments(self) -> Any:
        """What identifies the request."""
        return [message.to_json() for message in self.chat.messages]

    def started_event(self) -> Event:
        """Asked by the orchestrator, or a call of kind `model` inside an agent."""
        if self.role:
            return Asked(self.call_id, self.role, self.bound.name, list(self.fresh), self.started)
        return CallStarted(
            self.run_id,
            self.call_id,
            self.parent_id,
            self.bound.name,
            "model",
            {"messages": self.recorded_arguments()},
            self.started,
        )

    def ended_event(self, observation: Observation) -> Event:
        """The reply, or why there is none."""
        if self.reply is None and observation.content is not None:
            self.reply = Reply.from_json(observation.content)
        if self.role and self.reply is not None:
            return Replied(self.call_id, self.role, self.reply, observation)
        if self.reply is not None:
            observation.content = self.reply.to_json()
        return CallEnded(observation, self.parent_id)


async def ask(
    executor: Executor,
    scope: Scope,
    model: str,
    chat: ChatRequest,
    call_id: str,
    *,
    parent: Invocation | None = None,
    role: str = "",
    fresh: Sequence[Message] = (),
    listener: StreamListener | None = None,
) -> tuple[Reply, Observation]:
    """Ask a model of the scope's pool, by role or name; where that is a router, one of its models.

    Args:
        listener: hears the text while it is written; the model is then asked for a stream.

    Raises:
        CallFailed: it did not answer; the observation says why.
        PoolError: no such role or model.
    """
    spec = scope.pool.model(model)
    if chat.schema is not None and (wrong := refused_schema(chat.schema)) is not None:
        raise CallFailed(Observation(call_id, spec.name, Status.EXEC_ERR, None, wrong))
    if not isinstance(spec, RouterSpec):
        return await _ask_one(executor, scope, spec, chat, call_id, parent, role, fresh, listener)
    route = Route(executor, scope, spec, chat)
    tried: list[CallFailed] = []
    announced = False
    while chosen := route.next(_numbered(call_id, len(tried))):
        begun = _numbered(call_id, len(tried)), parent, role, () if announced else fresh, listener
        try:
            return await _ask_one(executor, scope, chosen, chat, *begun, spec.per_model)
        except CallFailed as failed:
            tried.append(failed)
            announced = announced or failed.observation.attempts > 0
            if not should_fall_back(failed.observation, parent.deadline if parent else scope.deadline, scope):
                break
            route.failed(chosen, failed.observation)
    raise nobody_answered(spec, tried)


def _numbered(call_id: str, tries: int) -> str:
    """The id of another try of one request."""
    return f"{call_id}~{tries + 1}" if tries else call_id


async def _ask_one(
    executor: Executor,
    scope: Scope,
    spec: ModelSpec,
    chat: ChatRequest,
    call_id: str,
    parent: Invocation | None,
    role: str,
    fresh: Sequence[Message],
    listener: StreamListener | None,
    seconds: float | None = None,
) -> tuple[Reply, Observation]:
    bound = executor.bind_model(spec)
    owner = ModelCallOwner(scope, parent, executor.limits.margin)
    if seconds is not None:
        owner.deadline = min(owner.deadline, scope.loop.time() + seconds)
    chat = replace(chat, idempotency_key=idempotency_key(scope.run_id, call_id))
    request = Request(executor, scope, bound, call_id, chat, owner, role, fresh, listener)
    if parent is not None:
        if parent.over:
            raise asyncio.CancelledError
        if parent.stopping:
            raise CallFailed(Observation(call_id, bound.name, Status.EXEC_ERR, None, causes.cancelled()))
        parent.made(request)
    started = time.monotonic()
    executor.submit(request)
    try:
        observation = await owner.future
    except asyncio.CancelledError:
        request.stop("cancelled")
        await executor.settle_down([request])
        raise
    if not observation.ok or request.reply is None:
        if observation.error is None:
            observation.error = ErrorInfo("bad_result", f"no reply after {time.monotonic() - started:.1f} s")
        raise CallFailed(observation)
    return request.reply, observation
