"""Wait until something holds, not for a time in which it should: a slow machine takes longer, and nothing fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which a condition counts as never coming true: many times what a busy machine needs."""


def until(condition: Callable[[], object], what: str = "", seconds: float = PATIENCE) -> None:
    """Return as soon as `condition()` is true, and fail where it stays false."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"after {seconds:g} s still not: {what or condition}"
        time.sleep(0.01)


async def wait_until(condition: Callable[[], object], what: str = "") -> None:
    """The same for a coroutine; the event loop stays free."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, f"after {PATIENCE:g} s still not: {what or condition}"
        await asyncio.sleep(0.01)
