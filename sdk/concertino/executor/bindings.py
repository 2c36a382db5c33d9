"""Bindings: the members that an executor has made ready to run, the gates before them, and how long it keeps them.

An executor may serve for months over pools that come and go. It holds the members of the newest pool and of the pools
of runs under way, and forgets all others.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from concertino.core.model import Model
from concertino.members.specs import AgentSpec, ModelSpec, ToolSpec

from .bound import BoundModel, BoundTool, OpenModel, Provider
from .breaker import BreakerPolicy
from .gates import Gate, Waiting
from .limits import UNLIMITED, Limits
from .scope import Scope

if TYPE_CHECKING:
    from concertino.members.specs import Spec


class Bindings:
    """Members made ready to run, with their gates, providers and open models."""

    def __init__(self, limits: Limits, breaker: BreakerPolicy) -> None:
        self._limits = limits
        self._breaker = breaker
        self.tools: dict[ToolSpec, BoundTool] = {}
        self.models: dict[ModelSpec, BoundModel] = {}
        self.open_models: dict[Callable[[], Model], OpenModel] = {}
        self.providers: dict[str, Provider] = {}
        self._calls = Gate(limits.calls)
        self._threads = Gate(limits.threads)
        self._guards = Gate(limits.threads)
        self._agents: dict[int, Gate] = {}
        self._uses: Counter[str] = Counter()
        # Weak, so that a run which is dropped without a release does not keep its members for ever.
        self._scopes: weakref.WeakSet[Scope] = weakref.WeakSet()
        self._newest: tuple[Spec, ...] = ()
        self._stale = False

    # -- binding ---------------------------------------------------------------------------------------------------

    def provider(self, name: str, endpoint: str = "") -> Provider:
        """The state kept about a provider, or about one of its endpoints."""
        # By endpoint where there is one: a server that is down must not shut out the provider's other servers.
        key = endpoint or name
        known = self.providers.get(key)
        if known is None:
            capacity = self._limits.per_provider.get(key, self._limits.per_provider.get(name, UNLIMITED))
            known = self.providers[key] = Provider(key, capacity, self._breaker)
        return known

    def tool(self, spec: ToolSpec) -> BoundTool:
        """A tool or agent made ready to run."""
        bound = self.tools.get(spec)
        if bound is None:
            bound = self.tools[spec] = BoundTool(spec, self.provider(spec.provider or spec.name))
        return bound

    def model(self, spec: ModelSpec) -> BoundModel:
        """A model made ready to be asked."""
        bound = self.models.get(spec)
        if bound is None:
            opened = self.open_models.get(spec.factory)
            if opened is None:
                opened = self.open_models[spec.factory] = OpenModel(spec.factory)
            provider = self.provider(spec.provider or spec.name, spec.endpoint)
            bound = self.models[spec] = BoundModel(spec, provider, opened)
        return bound

    def count_use(self, router: str) -> int:
        """Count a use of a router. Gives how often it was used before."""
        self._uses[router] += 1
        return self._uses[router] - 1

    # -- gates -----------------------------------------------------------------------------------------------------

    def gates(self, bound: BoundTool, depth: int) -> tuple[Gate, ...]:
        """The gates that a call passes.

        A call holds no place that its own calls could need: agents pass gates of their own, one per depth of nesting.
        """
        own = () if bound.gate is None else (bound.gate,)
        if bound.is_agent:
            common = self._agents.get(depth)
            if common is None:
                common = self._agents[depth] = Gate(self._limits.calls)
            return (common, *own)
        threads = () if bound.spec.is_async else (self._threads,)
        # A provider's gate that never was full is not even counted: most calls pass one gate.
        provider = () if bound.provider.gate.capacity >= UNLIMITED else (bound.provider.gate,)
        return (self._calls, *provider, *own, *threads)

    def guard_gates(self, bound: BoundTool) -> tuple[Gate, ...]:
        """The gates that a guard passes: none that a call can hold, for that call may wait for the guard."""
        return () if bound.spec.is_async else (self._guards,)

    def queued(self) -> Iterator[Waiting]:
        """Every call or request that waits at a gate."""
        members = [bound.gate for bound in (*self.tools.values(), *self.models.values()) if bound.gate is not None]
        providers = [provider.gate for provider in self.providers.values()]
        gates: set[Gate] = {self._calls, self._threads, self._guards, *self._agents.values(), *members, *providers}
        return (call for gate in gates for queue in list(gate.waiting.values()) for call in list(queue))

    # -- keeping ---------------------------------------------------------------------------------------------------

    def keep_for(self, scope: Scope, members: tuple[Spec, ...]) -> None:
        """A run begins: keep the members of its pool until it is released."""
        if members != self._newest:
            self._newest, self._stale = members, True
        self._scopes.add(scope)

    async def release(self, scope: Scope) -> None:
        """A run is over: forget members that are neither in the newest pool nor in that of a run under way."""
        self._scopes.discard(scope)
        if not self._stale:
            return
        others = [s.pool.members for s in self._scopes if s.pool.members != self._newest]
        # Runs on another pool need their members to the end, so this is repeated when they are released.
        self._stale = bool(others)
        used = {spec for members in (self._newest, *others) for spec in members}
        used |= {tool for spec in used if isinstance(spec, AgentSpec) for tool in spec.toolbox}
        for tool in [spec for spec in self.tools if spec not in used]:
            self.tools.pop(tool).close()
        for model in [spec for spec in self.models if spec not in used]:
            del self.models[model]
        needed = {spec.factory for spec in used if isinstance(spec, ModelSpec)}
        # Taken out first: nobody can begin to use a model that is being closed.
        unused = [self.open_models.pop(factory) for factory in list(self.open_models) if factory not in needed]
        for opened in unused:
            await close_quietly(opened)

    def take_models(self) -> list[OpenModel]:
        """Forget all models. Gives those that have to be closed."""
        opened = list(self.open_models.values())
        self.models.clear()
        self.open_models.clear()
        return opened

    async def close(self) -> None:
        """End worker processes, models and loop threads."""
        for bound in self.tools.values():
            bound.close()
        self.tools.clear()
        for opened in self.take_models():
            await close_quietly(opened)
        for provider in self.providers.values():
            provider.close()


async def close_quietly(opened: OpenModel) -> None:
    """Close a model that is not used any more, and ignore what it raises."""
    with contextlib.suppress(Exception):
        await opened.close()
