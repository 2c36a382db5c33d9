"""A model object that a program hands to several runs: closed when the last of them is over, not by the first.

Each run has an executor that closes what it opened. A program that starts many runs with one object would lose its
connections in the middle of all others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from weakref import WeakKeyDictionary, ref

from concertino.core.model import ChatRequest, Model, Reply
from concertino.members.specs import ModelSpec

# By model object and for the whole process, since several orchestrators may hold the same one.
_users: WeakKeyDictionary[Model, int] = WeakKeyDictionary()
_leaders: WeakKeyDictionary[Model, ModelSpec] = WeakKeyDictionary()


def leader(model: Model) -> ModelSpec:
    """The member that a model object is while it leads: one per object, so that pools know it again."""
    spec = _leaders.get(model)
    if spec is None:
        spec = _leaders[model] = ModelSpec("orchestrator", _Sharing(model))
    return spec


class _Sharing:
    """Makes the hold of each run. Weak, because pools keep the spec; the orchestrator of a run keeps the model."""

    __slots__ = ("_model",)

    def __init__(self, model: Model) -> None:
        self._model = ref(model)

    def __call__(self) -> SharedModel:
        model = self._model()
        if model is None:
            raise ReferenceError("the model object that led is gone; keep its Orchestrator as long as a run needs it")
        return SharedModel(model)


class SharedModel(Model):
    """One run's hold on a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._held = True
        _users[model] = _users.get(model, 0) + 1

    async def chat(self, request: ChatRequest) -> Reply:
        """Ask the shared model."""
        return await self._model.chat(request)

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Ask the shared model for a stream."""
        return self._model.stream(request)

    def count_tokens(self, text: str) -> int:
        """Count as the shared model does."""
        return self._model.count_tokens(text)

    async def close(self) -> None:
        """Give it back; the last one closes it."""
        # Closed twice, it must not give back the hold of another run.
        if not self._held:
            return
        self._held = False
        _users[self._model] -= 1
        if _users[self._model] == 0:
            del _users[self._model]
            await self._model.close()
