"""Admission: which gates a call passes.

A call holds no place that its own calls could need: agents pass gates of their own, one per depth of nesting.
"""

from __future__ import annotations

from collections.abc import Iterator

from .bindings import Bindings
from .bound import BoundTool
from .gates import Gate, Waiting
from .limits import UNLIMITED, Limits


class Admission:
    """The gates of one executor that are shared by the calls of all members."""

    __slots__ = ("_agents", "_limits", "_threads", "_tools")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._tools = Gate(limits.calls)
        self._threads = Gate(limits.threads)
        self._agents: dict[int, Gate] = {}

    def gates(self, bound: BoundTool, depth: int) -> tuple[Gate, ...]:
        """The gates that a call passes."""
        own = () if bound.gate is None else (bound.gate,)
        if bound.is_agent:
            common = self._agents.get(depth)
            if common is None:
                common = self._agents[depth] = Gate(self._limits.calls)
            return (common, *own)
        threads = () if bound.spec.is_async else (self._threads,)
        # A provider's gate that never was full is not even counted: most calls pass one gate.
        provider = () if bound.provider.gate.capacity >= UNLIMITED else (bound.provider.gate,)
        return (self._tools, *provider, *own, *threads)

    def queued(self, bindings: Bindings) -> Iterator[Waiting]:
        """Every call that waits at one of these gates or at one of the members' own."""
        queues: set[Gate] = {self._tools, self._threads, *self._agents.values(), *bindings.gates()}
        return (call for gate in queues for queue in list(gate.waiting.values()) for call in list(queue))
