"""Limits: what an executor may do at once, and how long it waits. The gates that hold them are in `gates`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from concertino.core.errors import UsageError
from concertino.core.usage import is_amount

UNLIMITED = 2**30
"""Places of a gate that is never full."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an executor may do at once, and how long it waits.

    Attributes:
        calls: tool calls under way at once, over all runs; agents likewise, per depth.
        threads: synchronous tools under way at once; each has a daemon thread of its own.
        per_provider: tool calls and requests to models under way at once, by name of the provider, or of the endpoint
            of a model; a provider's number holds for each of its endpoints.
        queue: calls that may wait; further ones are observed as EXEC_ERR `overloaded`.
        grace: seconds between the steps of the cancellation ladder (cancel, cancel again, close, abandon).
        margin: seconds by which a sub-call's deadline lies before its caller's.
        stall: seconds that a plugin may block the event loop before it is named and moved to a thread of its own.
        abandoned: calls of one member that may be left running for ever before the member is quarantined.
        result_bytes: the largest result, before truncation, that is taken at all.
        depth: how deep agents may call agents.
    """

    calls: int = 256
    threads: int = 256
    per_provider: Mapping[str, int] = field(default_factory=dict)
    queue: int = 100_000
    grace: float = 0.1
    margin: float = 0.05
    stall: float = 0.25
    abandoned: int = 3
    result_bytes: int = 8 * 2**20
    depth: int = 8

    def __post_init__(self) -> None:
        for name in ("calls", "threads", "queue", "depth"):
            if not is_amount(getattr(self, name), 1):
                raise UsageError(f"Limits({name}={getattr(self, name)!r}): expected at least 1")
        for name, places in self.per_provider.items():
            if not is_amount(places, 1):
                raise UsageError(f"Limits(per_provider={{{name!r}: {places!r}}}): expected at least 1")
