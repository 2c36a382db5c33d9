"""Breakers: a host that keeps failing is not asked for a while, so that calls do not wait for it one after another.

A breaker is *open* (its host is not asked) after `AFTER` failures in a row, for `REST_SECONDS`. Then one request tries
the host again. Only failures of the host count: it cannot be reached, does not answer in time, breaks off, or answers
5xx. A refusal, a missing page or a wrong key is an answer.

Invariant: one success forgets all failures of its host; no host counts against another.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AFTER = 5
REST_SECONDS = 30.0
_KEPT_HOSTS = 1000


class HostBreakers:
    """The failures in a row of hosts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._open_until: dict[str, float] = {}

    def refusal(self, host: str) -> str:
        """Why a host is not asked now; empty if it may be asked, and then the caller must `record` the outcome."""
        left = self._open_until.get(host, 0.0) - self._clock()
        if left > 0:
            return f"{host} failed {self._failures[host]} times in a row and is not asked for {left:.0f} s"
        if host in self._open_until:
            self._open_until[host] = self._clock() + REST_SECONDS  # one request tries it, the others wait
        return ""

    def record(self, host: str, *, ok: bool) -> None:
        """Record whether a host answered a request."""
        if ok:
            self._failures.pop(host, None)
            self._open_until.pop(host, None)
            return
        while host not in self._failures and len(self._failures) >= _KEPT_HOSTS:
            oldest = next(iter(self._failures))
            del self._failures[oldest]
            self._open_until.pop(oldest, None)
        self._failures[host] = self._failures.get(host, 0) + 1
        if self._failures[host] >= AFTER:
            self._open_until[host] = self._clock() + REST_SECONDS
