"""Something to do when an event loop ends: `asyncio.run` closes every asynchronous generator that is still open."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

_open: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


async def at_loop_end(owner: Any, close: Callable[[Any], Awaitable[None]]) -> None:
    """Close the owner before the running event loop ends, if it still lives then. Asking again changes nothing.

    Args:
        owner: any object; it is not kept alive by this.
        close: what is awaited with it.
    """

    async def wait(owner: weakref.ref[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if (alive := owner()) is not None:
                with contextlib.suppress(Exception):
                    await close(alive)

    loop = asyncio.get_running_loop()
    known = _open.get(owner)
    if known is None or known[0] is not loop:
        generator = wait(weakref.ref(owner))
        _open[owner] = (loop, generator)
        await anext(generator)
