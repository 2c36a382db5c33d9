"""A circuit breaker per provider: stop asking one that is down, and find out cheaply when it is back.

closed --(5 failures in a row, or half of at least 20 in 30 s)--> open --(30 s x times opened)--> half-open
half-open --one probe succeeds--> closed, or --it fails--> open again, longer.

Only failures that say something about the provider count: connection errors, resets, 5xx, and time-outs of
models that had their usual time. A caller's own short deadline or wrong request never opens it. A provider
without an alternative in the pool is never shut out: while open it gets one call at a time.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a breaker opens and for how long. Times in seconds."""

    consecutive: int = 5
    window: float = 30.0
    minimum: int = 20
    share: float = 0.5
    open_for: float = 30.0
    longest: float = 300.0
    jitter: float = 0.1


class Breaker:
    """The breaker of one provider or model. Not shared between processes; runs on a monotonic clock."""

    __slots__ = (
        "_clock",
        "_consecutive",
        "_outcomes",
        "_probing",
        "_random",
        "opened",
        "policy",
        "reopens_at",
        "state",
    )

    def __init__(
        self,
        policy: BreakerPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        self.policy = policy or BreakerPolicy()
        self.state: State = "closed"
        self.opened = 0
        self.reopens_at = 0.0
        self._clock = clock
        # The one of the process by default: to make and seed another one costs more than a call.
        self._random = rng.random if rng is not None else random.random
        self._consecutive = 0
        self._outcomes: deque[tuple[float, bool]] = deque()
        self._probing = False

    def allows(self, *, alone: bool = False) -> bool:
        """Whether a call may go out now. In half-open exactly one may.

        Args:
            alone: no other provider could take the call, so waiting for the window to pass helps nobody.
        """
        if self.state == "closed":
            return True
        if self.state == "open" and (alone or self._clock() >= self.reopens_at):
            self.state = "half-open"
        if self.state == "half-open" and not self._probing:
            self._probing = True
            return True
        return False

    def seconds_left(self) -> float:
        """How long it stays open."""
        return max(0.0, self.reopens_at - self._clock()) if self.state == "open" else 0.0

    def succeeded(self) -> None:
        """A call came back."""
        self._consecutive = 0
        if self.state != "closed":
            self.state, self.opened, self._probing = "closed", 0, False
            self._outcomes.clear()
        elif self._outcomes:
            # Successes only matter beside a failure in the window, so a healthy provider keeps no list.
            self._note(True)

    def failed(self, *, at_once: bool = False) -> None:
        """A call failed in a way that counts against the provider; `at_once` opens (key or quota)."""
        self._consecutive += 1
        self._note(False)
        failures = sum(not ok for _, ok in self._outcomes)
        enough = len(self._outcomes) >= self.policy.minimum and failures >= self.policy.share * len(self._outcomes)
        if self.state == "half-open" or at_once or self._consecutive >= self.policy.consecutive or enough:
            self._open()

    def undecided(self) -> None:
        """A probe ended without a verdict (cancelled, or the caller's own deadline): let the next one try."""
        self._probing = False

    def _note(self, ok: bool) -> None:
        now = self._clock()
        self._outcomes.append((now, ok))
        while self._outcomes and self._outcomes[0][0] < now - self.policy.window:
            self._outcomes.popleft()

    def _open(self) -> None:
        if self.state == "open":
            return  # calls that were sent before it opened must not prolong it
        self.state = "open"
        self.opened += 1
        self._probing = False
        length = min(self.policy.open_for * self.opened, self.policy.longest)
        # Jitter, so that processes whose breakers opened together do not all probe at one moment.
        self.reopens_at = self._clock() + length * (1 + self.policy.jitter * self._random())
