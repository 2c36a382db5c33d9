"""A model that replies from a script, and fails the test where the conversation leaves the script.

A *turn* answers one request: a text, a `Reply`, a list of `(name, arguments)` calls, an exception to raise, or a
function of the request that gives one of these. Turns are used in the order in which requests arrive.

Invariant: a strict script is spoken exactly. One request too many is an `AssertionError` inside `chat`; since an
executor turns whatever a model raises into an observation, the model also remembers it, and `assert_done` (called by
the context manager and by the fixture `scripted_model`) fails for it, as it does for turns that nobody asked for.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeAlias

from concertino.core.model import ChatRequest, Model, Reply, ToolCall
from concertino.core.usage import NOTHING, Usage
from concertino.strategies.parallel_rounds.format import write_round

Answer: TypeAlias = str | Reply | Sequence[tuple[str, Mapping[str, Any]]] | BaseException | type[BaseException]
"""What a turn can be in the end."""
ScriptedTurn: TypeAlias = Answer | Callable[[ChatRequest], Answer | Awaitable[Answer]]
"""An answer, or a function of the request that gives one."""

_PIECE = 3
"""Characters of a token, as `Model.count_tokens` estimates them."""
_SHOWN = 200


class ScriptedModel(Model):
    """A model with its turns written beforehand.

    Args:
        turns: what it answers, in order.
        strict: fail on a request after the last turn and on turns left over; otherwise the last turn is repeated.
        native: write calls as native tool calls; otherwise as the text of a round (`<tool_call>` blocks).
        tokens_per_second: how fast it writes, in tokens of `count_tokens`; by default everything is there at once.

    Attributes:
        requests: every request so far, in order.

        with ScriptedModel([("add", {"a": 1, "b": 2})], "<answer>3</answer>") as model:
            run = Orchestrator(model).run_sync("1 + 2?", pool=Pool.of(add))
    """

    def __init__(
        self, *turns: ScriptedTurn, strict: bool = True, native: bool = False, tokens_per_second: float = math.inf
    ) -> None:
        self.requests: list[ChatRequest] = []
        self._turns = turns
        self._strict = strict
        self._native = native
        self._pace = tokens_per_second
        self._unexpected = 0

    async def chat(self, request: ChatRequest) -> Reply:
        """The next turn.

        Raises:
            AssertionError: the script is over; shows the request's last message.
        """
        reply = await self._answer(request)
        await asyncio.sleep(self.count_tokens(reply.text) / self._pace)
        return reply

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """The next turn, token by token."""
        reply = await self._answer(request)
        for start in range(0, len(reply.text), _PIECE):
            await asyncio.sleep(1 / self._pace)
            yield reply.text[start : start + _PIECE]
        yield reply

    async def _answer(self, request: ChatRequest) -> Reply:
        turn = self._next(request)
        # An exception class is callable too, and is to be raised.
        if callable(turn) and not isinstance(turn, type):
            result = turn(request)
            turn = await result if inspect.isawaitable(result) else result
        if isinstance(turn, BaseException) or (isinstance(turn, type) and issubclass(turn, BaseException)):
            raise turn
        reply = self._reply(turn)
        # A budget of tokens can only be tested with a usage, so a reply without one gets an estimate.
        return reply if reply.usage != NOTHING else replace(reply, usage=self._usage(request, reply))

    def _next(self, request: ChatRequest) -> ScriptedTurn:
        place = len(self.requests)
        self.requests.append(request)
        if place < len(self._turns):
            return self._turns[place]
        if not self._strict and self._turns:
            return self._turns[-1]
        self._unexpected += 1
        raise AssertionError(self._too_many())

    def _reply(self, turn: Any) -> Reply:
        if isinstance(turn, Reply):
            return turn
        if isinstance(turn, str):
            return Reply(turn)
        if not isinstance(turn, Sequence):
            raise TypeError(
                f"turn {len(self.requests)} is {turn!r}; expected a text, a Reply, a list of (name, arguments), "
                "an exception, or a function of the request"
            )
        if self._native:
            calls = tuple(ToolCall(name, dict(given), f"call_{i}") for i, (name, given) in enumerate(turn, 1))
            return Reply("", calls, finish_reason="tool_calls")
        return Reply(write_round("", [(name, dict(given)) for name, given in turn]))

    def _usage(self, request: ChatRequest, reply: Reply) -> Usage:
        read = sum(self.count_tokens(message.text) for message in request.messages)
        return Usage(input_tokens=read, output_tokens=self.count_tokens(reply.text))

    # -- the end of the script -----------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """How many turns nobody has asked for yet."""
        return max(0, len(self._turns) - len(self.requests))

    def assert_done(self) -> None:
        """Check that every turn was used and nothing beyond was asked.

        Raises:
            AssertionError: says what was left over or was too much. Never for a script that is not strict.
        """
        if self._unexpected:
            raise AssertionError(self._too_many())
        if self._strict and self.left:
            turn = _shorten(repr(self._turns[len(self.requests)]))
            raise AssertionError(
                f"{self.left} of {len(self._turns)} scripted turns were never asked for; the next one is {turn}"
            )

    def _too_many(self) -> str:
        messages = self.requests[-1].messages
        last = f"{messages[-1].role}: {_shorten(messages[-1].text)}" if messages else "(no message)"
        return (
            f"request {len(self.requests)} came, but {len(self._turns)} turns were scripted; add a turn, or find out "
            f"why the run continued. Its last message is\n{last}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_done()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
