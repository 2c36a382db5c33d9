"""A request to a model as a call of its own: same life, same retries and breaker, other budget and other records.

A budget in tokens or $ needs an upper bound before the request: the prompt's tokens and `max_tokens`. When less is
left, `max_tokens` shrinks to fit; a model of unknown price cannot be asked under a budget in $.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from concertino.core.attachment import Attachment
from concertino.core.budget import Amount
from concertino.core.events import Asked, CallEnded, CallStarted, Event, Replied, idempotency_key
from concertino.core.known_secrets import finder
from concertino.core.model import ChatRequest, Message, Reply, Sampling, Thought
from concertino.core.observation import CallFailed, ErrorInfo, Observation, Status
from concertino.core.provider_error import ProviderError
from concertino.core.usage import NOTHING, Usage

from . import error_messages
from .bound import BoundModel
from .execution import CallOwner, Execution, Host, stop_all
from .scope import Scope
from .secrecy import DiscreetListener, clean_reply
from .validation import read_structured

if TYPE_CHECKING:
    from concertino.core.model import Model
    from concertino.members.specs import ModelSpec

_LEAST_TOKENS = 16
"""What a request shrinks to at least; a smaller rest of the budget refuses it, since no reply would fit."""


_ATTACHMENT_TOKENS = 1500
"""What an image counts for in an estimate; the server's own report replaces it."""


@lru_cache(maxsize=64)
def _limited(sampling: Sampling, max_tokens: int) -> Sampling:
    """The same sampling with a bound on what is generated."""
    return sampling.with_(max_tokens=max_tokens)


class ModelCallOwner(CallOwner):
    """Who waits for one request to a model: the orchestrator or an agent."""

    __slots__ = ("future", "observation")

    def __init__(self, host: Host, scope: Scope, parent: Execution | None) -> None:
        super().__init__(host, scope, parent)
        self.future: asyncio.Future[Observation] = scope.loop.create_future()
        self.observation: Observation

    def observed(self, index: int, observation: Observation, full: Any) -> None:
        self.observation = observation

    def delivered(self, index: int) -> None:
        if not self.future.done():
            self.future.set_result(self.observation)


class StreamListener(Protocol):
    """Who hears a reply while it is written."""

    def on_attempt(self) -> None:
        """An attempt begins: the text heard so far is void."""

    def on_thought(self, piece: str) -> None:
        """More of the reasoning channel."""

    def on_text(self, piece: str) -> None:
        """More of the text."""

    def on_end(self) -> None:
        """The text is complete."""


class ModelCall(Execution):
    """The life of one request to a model.

    Attributes:
        chat: the request.
        role: the role that the orchestrator asks for, empty inside an agent.
        fresh: the messages that are new since the role's last request; only they are recorded.
        reply: what the model answered.
        wasted: what failed attempts consumed.
        checked: a reply that breaks the request's schema is a failure; without, whoever asks checks it.
    """

    has_hooks = owns_tasks = False  # a model's tasks belong to the model, which serves other calls too

    __slots__ = ("chat", "checked", "fresh", "listener", "reply", "role", "wasted")

    bound: BoundModel

    def __init__(
        self,
        owner: ModelCallOwner,
        bound: BoundModel,
        call_id: str,
        chat: ChatRequest,
        role: str,
        fresh: Sequence[Message],
        listener: StreamListener | None = None,
        checked: bool = True,
    ) -> None:
        gates = (bound.provider.gate,) if bound.gate is None else (bound.provider.gate, bound.gate)
        super().__init__(owner, bound, call_id, chat, gates)
        self.chat = chat
        self.role = role
        self.fresh = fresh
        self.listener = listener
        self.reply: Reply | None = None
        self.wasted = NOTHING
        self.checked = checked

    def amount(self) -> Amount:
        """Tokens and $ that the reply can cost at most."""
        left = self.ledger.remaining()
        # Counting may need the model's tokenizer, so nothing is counted where no budget asks for it.
        if left.tokens == left.usd == float("inf"):
            return Amount()
        spec = self.bound.spec
        count = self.bound.opened.open().count_tokens
        prompt = self._prompt_tokens(count)
        most = self.chat.sampling.max_tokens or spec.max_tokens
        fitting = left.tokens - prompt
        if left.usd < float("inf"):
            if spec.prices is None:
                # It fits no budget, and `lacking` says what to do about the price.
                return Amount(usd=float("inf"))
            prices = spec.prices.at(prompt)
            if prices.output > 0:
                fitting = min(fitting, (left.usd * 1e6 - prompt * prices.prompt) / prices.output)
        if _LEAST_TOKENS <= fitting < most:
            most = int(fitting)
        if most != self.chat.sampling.max_tokens:
            self.chat = self.chat.sampled(_limited(self.chat.sampling, most))
        usd = spec.prices.most(prompt, most) if spec.prices else 0.0
        return Amount(0.0, 0.0, usd, float(prompt + most))

    def _prompt_tokens(self, count: Callable[[str], int]) -> int:
        """Tokens of the prompt. Of a conversation that has only grown, just the fresh messages are counted."""
        messages, counted, role = self.chat.messages, self.scope.counted, (self.role, self.bound.name)
        before = len(messages) - len(self.fresh) if self.role else 0
        known, tokens = counted.get(role, (0, 0))
        # The conversation is shorter than what was counted, so it is another one and is counted afresh.
        if known > before:
            known = tokens = 0
        # Four more per message, for its role and the marks of a chat template.
        tokens += sum(count(message.text) + 4 for message in messages[known:])
        if Attachment.made:
            tokens += _ATTACHMENT_TOKENS * sum(len(message.attachments) for message in messages[known:])
        counted[role] = (len(messages), tokens)
        return tokens + (count(json.dumps(self.chat.tools)) if self.chat.tools else 0)

    def lacking(self, amount: Amount) -> str:
        if amount.usd == float("inf"):
            return f"the price of {self.bound.name} is unknown; give it with pool.price(...)"
        return super().lacking(amount)

    async def invoke(self) -> Any:
        """One attempt. What a failed one consumed is remembered."""
        model = self.bound.opened.open()
        try:
            # A stream costs more than a plain reply, so it is asked for only where somebody listens.
            return await (model.chat(self.chat) if self.listener is None else self._heard(model, self.listener))
        except ProviderError as error:
            if error.usage is not None:
                self.wasted = self.wasted.plus(self._priced(error.usage))
            raise

    async def _heard(self, model: Model, listener: StreamListener) -> Any:
        """The reply of a stream whose text is heard piece by piece."""
        listener = DiscreetListener(listener)
        listener.on_attempt()
        last: Any = None
        pieces = model.stream(self.chat)
        try:
            async for last in pieces:
                if isinstance(last, Thought):
                    listener.on_thought(last)
                elif isinstance(last, str):
                    listener.on_text(last)
        finally:
            if isinstance(pieces, AsyncGenerator):
                # Closed at once when the attempt is cancelled: an open connection keeps the server working.
                await pieces.aclose()
        listener.on_end()
        return last

    def _priced(self, used: Usage) -> Usage:
        """What a server reported, in $: its own bill, else the pool's prices; without either it is unpriced."""
        prices = self.bound.spec.prices
        usd, unpriced = used.usd, 0
        if not usd and prices is not None:
            usd = prices.cost_of(used)
        elif not usd and used.tokens:
            unpriced = 1
        return used._replace(calls=0, units=0.0, usd=usd, seconds=0.0, unpriced=unpriced)

    def is_alone(self) -> bool:
        # A router is no endpoint of its own, so what needs other models is left out.
        return len({m.endpoint or m.provider or m.name for m in self.scope.pool.models if not m.needs}) <= 1

    def succeeded(self, value: Any) -> Observation:
        """The observation of a reply, priced."""
        if not isinstance(value, Reply):
            return self.error(
                Status.EXEC_ERR, error_messages.bad_result(f"returned {type(value).__name__}; expected Reply")
            )
        if finder() is not None:
            value = clean_reply(value)
        ended = self.scope.now()
        usage = self._priced(value.usage).plus(self.wasted)._replace(seconds=ended - self.started)
        if self.chat.schema is not None and self.checked:
            data, wrong = read_structured(value, self.chat.schema)
            if wrong is not None:
                # The reply is of no use, but it was paid for; `usage` reports it with the failure.
                self.wasted = usage
                return self.error(Status.PARSE_ERR, wrong)
            value = replace(value, data=data)
        self.reply = value
        opened = self.bound.opened
        opened.answered_in(ended - self.started, value.usage.output_tokens, self.scope.loop.time())
        return Observation(
            self.call_id, self.bound.name, Status.OK, None, None, usage, self.attempts.count, self.started, ended
        )

    def conclude(self, observation: Observation) -> None:
        """As for any execution. A time-out counts against the breaker if the model had its usual time."""
        late = self.ladder is not None and self.ladder.why == "deadline" and not self.over
        # A request that only waits to be repeated says nothing of the server.
        under_way = self.attempts.in_flight or (self.ladder is not None and self.ladder.interrupted)
        if late and under_way and self.bound.ran_long_enough(observation.ended - observation.started):
            self.bound.provider.breaker.failed()
        super().conclude(observation)

    def usage(self, ended: float) -> Usage:
        return self.wasted._replace(seconds=ended - self.started)

    def recorded_arguments(self) -> Any:
        """What identifies the request."""
        return [message.to_json() for message in self.chat.messages]

    def started_event(self) -> Event:
        """Asked by the orchestrator, or a call of kind `model` inside an agent."""
        if self.role:
            return Asked(self.call_id, self.role, self.bound.name, list(self.fresh), self.started)
        return CallStarted(
            self.scope.run_id,
            self.call_id,
            self.owner.parent_id,
            self.bound.name,
            "model",
            {"messages": self.recorded_arguments()},
            self.started,
        )

    def ended_event(self, observation: Observation) -> Event:
        """The reply, or why there is none."""
        # Recalled from a trace, the observation holds the reply as its content.
        if self.reply is None and observation.content is not None:
            self.reply = Reply.from_json(observation.content)
        if self.role and self.reply is not None:
            return Replied(self.call_id, self.role, self.reply, observation)
        if self.reply is not None:
            observation.content = self.reply.to_json()
        return CallEnded(observation, self.owner.parent_id)


def refused_attachments(spec: ModelSpec, messages: Sequence[Message]) -> str | None:
    """Why a model cannot be asked with these messages: it takes no attachments of some kind; None if it can."""
    if spec.accepts is None:
        return None
    kinds = {each.kind for message in messages if message.attachments for each in message.attachments}
    wrong = sorted(kinds - set(spec.accepts))
    return f"{spec.name} takes no {wrong[0]}; it takes text{''.join(f', {k}' for k in spec.accepts)}" if wrong else None


async def ask_model(
    host: Host,
    scope: Scope,
    spec: ModelSpec,
    chat: ChatRequest,
    call_id: str,
    parent: Execution | None,
    role: str,
    fresh: Sequence[Message],
    listener: StreamListener | None,
    seconds: float | None = None,
    checked: bool = True,
) -> Reply:
    """Ask one model, in at most so many seconds.

    Raises:
        CallFailed: it did not answer; the observation says why.
    """
    bound = host.bindings.model(spec)
    if Attachment.made and (refused := refused_attachments(spec, chat.messages)) is not None:
        raise CallFailed(Observation(call_id, bound.name, Status.EXEC_ERR, None, ErrorInfo("rejected", refused)))
    if listener is None and scope.streams:
        from .text_teller import TextTeller

        listener = TextTeller(scope, call_id, role or bound.name)
    owner = ModelCallOwner(host, scope, parent)
    if seconds is not None:
        owner.deadline = min(owner.deadline, scope.loop.time() + seconds)
    chat = chat.keyed(idempotency_key(scope.run_id, call_id))
    request = ModelCall(owner, bound, call_id, chat, role, fresh, listener, checked)
    if parent is not None:
        if parent.over:
            # Left over from a call that was given up: nobody sees what it does now.
            raise asyncio.CancelledError
        if parent.ending:
            # Stopped, but still running: it may catch this and clean up.
            raise CallFailed(Observation(call_id, bound.name, Status.EXEC_ERR, None, error_messages.cancelled()))
    request.submit()
    try:
        observation = await owner.future
    except asyncio.CancelledError:
        # The request has a task of its own, which the cancellation of the caller does not reach.
        await stop_all([request], host.runtime)
        raise
    if not observation.ok or request.reply is None:
        if observation.error is None:
            observation.error = ErrorInfo("bad_result", "the model gave no reply")
        raise CallFailed(observation)
    return request.reply
