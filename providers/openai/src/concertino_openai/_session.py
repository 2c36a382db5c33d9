"""The connections: one pooled aiohttp session per event loop, shared by all models, closed with its last user.

The session has no limit of its own. Who may ask how much at once is decided by the executor's gates, where waiting is
seen as waiting; a limit here would make a queue that counts as the server's time. Nor does it repeat or follow
anything: `POST` is never repeated by aiohttp, and redirects are switched off per request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from aiohttp import ClientSession

KEPT_ALIVE = 15.0
"""Seconds for which an idle connection is kept."""


class _Shared:
    __slots__ = ("session", "users")

    def __init__(self) -> None:
        import aiohttp

        connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEPT_ALIVE)
        self.session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        self.users = 0


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


class Sessions:
    """One user's hold on the sessions of the event loops in which it is used."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientSession] = WeakKeyDictionary()

    def get(self) -> ClientSession:
        """The session of the running loop, opened at first use."""
        loop = asyncio.get_running_loop()
        session = self._held.get(loop)
        if session is None or session.closed:
            _forget_closed_loops()
            shared = _shared.get(loop)
            if shared is None or shared.session.closed:
                shared = _shared[loop] = _Shared()
            shared.users += 1
            session = self._held[loop] = shared.session
        return session

    @asynccontextmanager
    async def using(self) -> AsyncIterator[ClientSession]:
        """The session for as long as one request lasts: whoever closes meanwhile does not take it away."""
        session = self.get()
        shared = _shared[asyncio.get_running_loop()]
        shared.users += 1
        try:
            yield session
        finally:
            shared.users -= 1
            if shared.users == 0:
                _shared.pop(asyncio.get_running_loop(), None)
                await session.close()

    async def close(self) -> None:
        """Give up all holds; a session without users and requests is closed. Safe to call at any time, and again."""
        here = asyncio.get_running_loop()
        for loop, session in list(self._held.items()):
            del self._held[loop]
            shared = _shared.get(loop)
            if shared is None or shared.session is not session:
                continue
            shared.users -= 1
            if shared.users > 0:
                continue
            del _shared[loop]
            if loop is here or not loop.is_running():
                await session.close()
            else:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(session.close(), loop))


def _forget_closed_loops() -> None:
    """A session keeps its loop alive, so loops that ended without closing their models are let go here."""
    for loop in [loop for loop in _shared if loop.is_closed()]:
        session = _shared.pop(loop).session
        if session.connector is not None and not session.closed:
            session.connector._close()  # the sockets went with their loop
            session.detach()


def open_sessions() -> int:
    """How many sessions are open now, over all loops."""
    return sum(not shared.session.closed for shared in _shared.values())
