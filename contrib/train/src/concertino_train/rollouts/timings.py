"""Where the time of rollouts goes, although many things happen at once.

Invariant: only seconds in which somebody waits for rollouts count, each once: for the first of `generate`, `grading`
and `environment` that is under way.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

_ORDER = ("generate", "grading", "environment")


@dataclass
class Timings:
    """Seconds of wall time by what was waited for.

    Attributes:
        generate: the policy.
        environment: calls, and models that are not the policy.
        grading: graders and rewards of turns.
        total: all of it, the engine's own work included.
    """

    generate: float = 0.0
    environment: float = 0.0
    grading: float = 0.0
    total: float = 0.0
    _active: Counter[str] = field(default_factory=Counter, init=False, repr=False, compare=False)
    _since: float = field(default=0.0, init=False, repr=False, compare=False)

    @property
    def own(self) -> float:
        """Seconds of the engine's own work: the total without the others."""
        return max(0.0, self.total - self.generate - self.environment - self.grading)

    @contextlib.contextmanager
    def measured(self, what: str) -> Iterator[None]:
        """Count the seconds of a block; blocks of several runs may overlap."""
        self._count()
        self._active[what] += 1
        try:
            yield
        finally:
            self._count()
            self._active[what] -= 1

    def _count(self) -> None:
        """Add the seconds since the last change."""
        now = time.monotonic()
        passed, self._since = now - self._since, now
        if not self._active["total"]:
            return  # what goes on beside a training's update is waited for by nobody
        self.total += passed
        for name in _ORDER:
            if self._active[name]:
                setattr(self, name, getattr(self, name) + passed)
                break
