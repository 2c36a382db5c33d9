"""Awaiting several things of which each may fail: the first failure ends them all, and none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. If one raises, or the caller is cancelled, the rest is cancelled and awaited."""
    tasks = [asyncio.ensure_future(item) for item in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        raise
