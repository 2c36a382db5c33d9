"""How one request goes through a router: which model is asked next, and whether to fall back to another one.

Policies use what is kept with the open model (usual seconds, usual length of a reply, failures in a row), so all
routers and runs of an executor learn from each other. A run that is resumed asks the models that it asked before.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from concertino.core.observation import CallFailed, ErrorInfo, Observation, Status
from concertino.members.ranking import RankingEntry, ordered_by

from . import error_messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from concertino.core.model import ChatRequest, Message, Reply
    from concertino.members.routing import RouterSpec
    from concertino.members.specs import ModelSpec

    from .bindings import Bindings
    from .scope import Scope

    AskOne = Callable[[ModelSpec, str, Sequence[Message]], Awaitable[Reply]]

logger = logging.getLogger("concertino")

FRESH = 300.0
"""Seconds for which a measured latency counts; then the model is tried again."""

_USUAL_OUTPUT = 500.0
"""Tokens that a model is taken to write before it has written anything."""

_COUNT_AGAINST_MODEL = frozenset({"unavailable", "truncated", "raised", "bad_result", "deadline"})
"""Codes of failures that count against the model, which cools down after some. A wrong request is the caller's."""


class Route:
    """The models of a router, in the order in which one request tries them."""

    def __init__(self, bindings: Bindings, scope: Scope, router: RouterSpec, chat: ChatRequest) -> None:
        self.bindings = bindings
        self.scope = scope
        self.router = router
        self.left = self._ordered(scope.pool.behind(router.name), chat)

    def next(self, call_id: str) -> ModelSpec | None:
        """The model that is asked under this id: the one on record, else the first that was not asked yet."""
        known = self.scope.memory.asked(call_id) if self.scope.memory is not None else ""
        chosen = next((spec for spec in self.left if spec.name == known), self.left[0] if self.left else None)
        if chosen is not None:
            self.left.remove(chosen)
        return chosen

    def failed(self, spec: ModelSpec, observation: Observation) -> None:
        """A model did not answer though there was time: it may have to cool down."""
        code = observation.error.code if observation.error else ""
        bound = self.bindings.model(spec)
        refused = code == "rejected" and bound.provider.name in self.scope.switched_off  # the key, not the request
        if observation.replayed or not (refused or code in _COUNT_AGAINST_MODEL):
            return
        opened = bound.opened
        opened.failed += 1
        if opened.failed >= self.router.failures:
            opened.cooling_until = self.scope.loop.time() + self.router.cooldown

    def _ordered(self, models: Sequence[ModelSpec], chat: ChatRequest) -> list[ModelSpec]:
        match self.router.policy:
            case "round-robin":
                first = self.bindings.count_use(self.router.name) % len(models)
                models = [*models[first:], *models[:first]]
            case "lowest-cost":
                models = sorted(models, key=lambda spec: self._cost(spec, chat))
            case "sticky":
                begins = _beginning(chat)
                models = sorted(models, key=lambda spec: _drawn(spec, begins), reverse=True)
            case "lowest-latency":
                models = sorted(models, key=self._latency)
            case _ if self.router.ranking:
                models = self._ranked(models, chat)
        now = self.scope.loop.time()
        # A stable sort: models that are ready keep the policy's order, and those that cool down come after.
        return sorted(models, key=lambda spec: max(self.bindings.model(spec).opened.cooling_until, now))

    def _ranked(self, models: Sequence[ModelSpec], chat: ChatRequest) -> Sequence[ModelSpec]:
        """In the order of the plugin's ranking; in the order given if that fails, for an answer is worth more."""
        entries = [self._entry(spec, chat) for spec in models]
        question = chat.messages[-1].text if chat.messages else ""
        try:
            names = ordered_by(self.scope.pool.ranking(self.router.ranking), question, entries)
        except Exception:
            logger.warning("router %r: its ranking failed; asking in the order given", self.router.name, exc_info=True)
            return models
        return sorted(models, key=lambda spec: names.index(spec.name))

    def _entry(self, spec: ModelSpec, chat: ChatRequest) -> RankingEntry:
        cost = self._cost(spec, chat)
        return RankingEntry(spec.name, spec.description, cost if cost < float("inf") else None)

    def _cost(self, spec: ModelSpec, chat: ChatRequest) -> float:
        if spec.prices is None:
            return float("inf")
        # A rough count is enough to compare prices, and opens no model for its tokenizer.
        prompt = sum(len(message.text) // 3 + 4 for message in chat.messages)
        written = self.bindings.model(spec).opened.usual_output or _USUAL_OUTPUT
        return spec.prices.usd(prompt, int(min(written, chat.sampling.max_tokens or written)))

    def _latency(self, spec: ModelSpec) -> float:
        opened = self.bindings.model(spec).opened
        # A model that was not measured lately comes first, or one slow reply would shut it out for ever.
        return opened.usual_seconds if self.scope.loop.time() - opened.measured < FRESH else 0.0


def _beginning(chat: ChatRequest) -> bytes:
    """What all requests of a conversation begin with: all up to the first message of a user."""
    ends = next((place for place, each in enumerate(chat.messages, 1) if each.role == "user"), len(chat.messages))
    return "\0".join(each.text for each in chat.messages[:ends]).encode("utf-8", "surrogatepass")


def _drawn(spec: ModelSpec, begins: bytes) -> bytes:
    """A lot that a model draws for a conversation, in every process the same.

    A model that comes takes its share of all others, and no conversation goes from one of these to another.
    """
    return hashlib.blake2b(begins, digest_size=8, key=hashlib.blake2b(spec.name.encode()).digest()).digest()


async def ask_in_turn(route: Route, ask: AskOne, call_id: str, fresh: Sequence[Message], deadline: float) -> Reply:
    """Ask the models of a route, one after another, until one answers.

    Args:
        ask: asks one model, under an id, with the messages that are not on record yet.

    Raises:
        CallFailed: none answered.
    """
    tried: list[CallFailed] = []
    name = call_id
    while chosen := route.next(name):
        try:
            return await ask(chosen, name, fresh)
        except CallFailed as failed:
            tried.append(failed)
            if failed.observation.attempts > 0:
                fresh = ()  # the record of this try holds them
            if not _should_fall_back(failed.observation, deadline, route.scope):
                break
            route.failed(chosen, failed.observation)
        # Another model has never seen this request, so it has an id and an idempotency key of its own.
        name = f"{call_id}~{len(tried) + 1}"
    raise _nobody_answered(route.router, tried)


def _should_fall_back(observation: Observation, deadline: float, scope: Scope) -> bool:
    """Whether another model may succeed where one failed: not when the run was stopped, or the time is over."""
    code = observation.error.code if observation.error else ""
    # In the last moments before the deadline no other model could answer.
    return code != "cancelled" and scope.loop.time() < deadline - 0.05


def _nobody_answered(router: RouterSpec, tried: Sequence[CallFailed]) -> CallFailed:
    """What the caller of a router sees when no model answered: the last failure, and the names of all."""
    last = tried[-1].observation
    if len(tried) == 1:
        return tried[0]
    error = last.error or ErrorInfo("unavailable", "no reply")
    names = ", ".join(failed.observation.name for failed in tried)
    text = error_messages.shorten(f"none of {names} answered; the last one: {error.message}")
    status = last.status if last.status is not Status.OK else Status.EXEC_ERR
    info = ErrorInfo(error.code, text, retryable=error.retryable)
    return CallFailed(Observation(last.call_id, router.name, status, None, info, attempts=len(tried)))
