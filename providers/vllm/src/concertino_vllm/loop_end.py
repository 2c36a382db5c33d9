"""What to do when an event loop ends, or an object is forgotten before: connections belong to the loop.

`asyncio.run` closes every asynchronous generator that is still open; so does the garbage collector, in the loop that
began it. So one generator per object, open as long as the object is needed, notices both.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

# The only references to the generators: when an owner is forgotten, its generator is collected, and so closed.
_open: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


async def at_loop_end(owner: Any, close: Callable[[Any], Awaitable[None]], rest: Callable[[], Awaitable[None]]) -> None:
    """Close the owner before the running event loop ends. Asking again changes nothing.

    Args:
        owner: any object; it is not kept alive by this.
        close: what is awaited with it at the end of the loop.
        rest: what is awaited if it was forgotten before; must not refer to it.
    """

    async def wait(owner: weakref.ref[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            alive = owner()
            # Nobody awaits this: an exception would only be printed by the loop.
            with contextlib.suppress(Exception):
                await (rest() if alive is None else close(alive))

    loop = asyncio.get_running_loop()
    known = _open.get(owner)
    if known is None or known[0] is not loop:
        generator = wait(weakref.ref(owner))
        _open[owner] = (loop, generator)
        # A loop closes only the generators that have begun.
        await anext(generator)
