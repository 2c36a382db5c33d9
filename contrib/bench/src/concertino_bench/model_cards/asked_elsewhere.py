"""Models that are asked in other processes: worker processes of this machine, or a cluster.

    async with asked_elsewhere(pool, "local:4", slots=16) as pool:      # the same pool, each model with a way there
        ...

Everything around a request stays here: budget, deadline, retries, trace, cache. Invariant: a request is answered, or
fails, as it would here. Where a worker dies with it, another one makes it again under the same idempotency key.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from concertino import (
    ChatRequest,
    ConcertinoError,
    FailureClass,
    Message,
    Model,
    ModelSpec,
    Pool,
    ProviderError,
    Reply,
    Sampling,
    Usage,
)
from concertino.executor.retry import classify
from concertino.rollouts import PoolReference, Rollouts, RunOrder, RunResult, Work, open_rollouts

_numbers = itertools.count()


@contextlib.asynccontextmanager
async def asked_elsewhere(pool: Pool, on: str, *, slots: int, env_from: Sequence[str] = ()) -> AsyncIterator[Pool]:
    """A pool whose models are asked at a place.

    Args:
        on: as `concertino.rollouts.open_rollouts` takes it.
        slots: requests at once.
        env_from: environment variables that worker processes are given, such as OPENAI_API_KEY.

    Raises:
        UsageError: `on` does not name a place.
        PoolError: the pool holds what another process cannot load by name.
    """
    work = ModelRequests(pool)
    try:
        async with open_rollouts(on, work, slots=slots, env_from=env_from) as rollouts:
            # Workers start now, so that the time of the first answers is that of the models.
            async with contextlib.aclosing(rollouts.submit(_nothing(slots))) as begun:
                async for _ in begun:
                    pass
            # A router only chooses, and asks a model of the pool.
            placed = [
                each.with_(factory=partial(_Elsewhere, rollouts, each.name)) if type(each) is ModelSpec else each
                for each in pool.members
            ]
            yield Pool.of(*placed).bind(**pool.roles)
    finally:
        await work.aclose()  # a place that could not be opened has closed nothing


class ModelRequests(Work):
    """Requests to the models of a pool.

    Args:
        pool: whose models are asked by their full names.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._models: dict[str, Model] = {}
        self._folder: TemporaryDirectory[str] | None = None

    async def perform(self, order: RunOrder) -> RunResult:
        """Make one request; nothing for an order without one."""
        if not order.model:
            return RunResult(order.id)
        try:
            model = self._models.get(order.model)
            if model is None:
                model = self._models[order.model] = self._pool.model(order.model).factory()
            reply = await model.chat(_request_of(order.task))
            data = {"reply": reply.to_json()}
        except Exception as error:
            data = {"error": _error_to_json(error)}
        return RunResult(order.id, data=data)

    def to_json(self) -> dict[str, Any]:
        """A reference to the pool."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="concertino-pools-")
        return {"pool": PoolReference.of(self._pool, Path(self._folder.name)).to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Load the pool, and compare it.

        Raises:
            PoolError: it is another one here; says what differs.
        """
        return cls(PoolReference.from_json(data["pool"]).load())

    async def aclose(self) -> None:
        """Close the models."""
        while self._models:
            await self._models.popitem()[1].close()
        if self._folder is not None:
            self._folder.cleanup()


def _nothing(count: int) -> Iterator[RunOrder]:
    return (RunOrder(model="", id=f"nothing-{next(_numbers)}") for _ in range(count))


class _Elsewhere(Model):
    """A model that is asked at a place."""

    def __init__(self, rollouts: Rollouts, name: str) -> None:
        self._rollouts, self._name = rollouts, name

    async def chat(self, request: ChatRequest) -> Reply:
        # A request that is made again is another order: the same one would be joined.
        order = RunOrder(model=self._name, task=_request_to_json(request), id=f"request-{next(_numbers)}")
        try:
            async with contextlib.aclosing(self._rollouts.submit([order])) as results:
                (result,) = [each async for each in results]
        except ConcertinoError as error:
            # The place failed, not the model.
            raise ProviderError(str(error), failure=FailureClass.NOT_EXECUTED) from error
        if result.status != "done":
            raise ProviderError(result.detail, failure=FailureClass.MAYBE_EXECUTED)
        if "error" in result.data:
            raise _error_of(result.data["error"])
        return Reply.from_json(dict(result.data["reply"]))


# -- as data -----------------------------------------------------------------------------------------------------------


def _request_to_json(request: ChatRequest) -> dict[str, Any]:
    return {
        "messages": [message.to_json() for message in request.messages],
        "sampling": asdict(request.sampling),
        "key": request.idempotency_key,
        "schema": request.schema,
    }


def _request_of(data: Mapping[str, Any]) -> ChatRequest:
    sampling = {**data["sampling"], "stop": tuple(data["sampling"]["stop"])}
    messages = [Message.from_json(each) for each in data["messages"]]
    return ChatRequest(messages, (), Sampling(**sampling), data["key"], data["schema"])


def _error_to_json(error: Exception) -> dict[str, Any]:
    # As the executor would here, from the exception that a plugin raised.
    known = classify(error)
    data = {"message": known.message, "failure": known.kind, "retry_after": known.retry_after}
    if not isinstance(error, ProviderError):
        return data
    usage = None if error.usage is None else error.usage.to_json()
    return {**data, "message": str(error), "status": error.status, "usage": usage}


def _error_of(data: Mapping[str, Any]) -> ProviderError:
    usage = None if data.get("usage") is None else Usage.from_json(data["usage"])
    return ProviderError(
        data["message"],
        failure=FailureClass(data["failure"]),
        retry_after=data.get("retry_after"),
        status=data.get("status"),
        usage=usage,
    )
