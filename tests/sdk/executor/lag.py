"""How late an event loop is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def lag_of_the_loop() -> AsyncIterator[list[float]]:
    """Seconds by which a timer on the caller's loop was late, at worst."""
    worst = [0.0]

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.005)
            worst[0] = max(worst[0], loop.time() - before - 0.005)

    task = asyncio.ensure_future(watch())
    try:
        yield worst
    finally:
        task.cancel()
