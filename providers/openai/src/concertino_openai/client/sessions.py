"""Pooled connections: one aiohttp session per event loop, shared by every client, closed with its last user.

The session has no connection limit. The executor decides how many requests run at once, and it sees the time that a
call waits for its turn; a limit here would add a second queue that looks like a slow server.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from aiohttp import ClientSession, DummyCookieJar, TCPConnector

KEEPALIVE_SECONDS = 15.0


class SharedSession:
    """The session of one event loop, with the number of its users: clients that hold it and requests in progress."""

    def __init__(self) -> None:
        # With aiohttp's limit of 100, 256 callers waited up to 5.6 s for answers that took 0.5 s.
        connector = TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=KEEPALIVE_SECONDS)
        # Clients with different keys share this session, so it must not keep cookies.
        self.session = ClientSession(connector=connector, cookie_jar=DummyCookieJar())
        self.users = 0


_shared: WeakKeyDictionary[AbstractEventLoop, SharedSession] = WeakKeyDictionary()


class Sessions:
    """The sessions that one client uses, one per event loop."""

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[AbstractEventLoop, SharedSession] = WeakKeyDictionary()

    def get(self) -> ClientSession:
        """The session of the running loop, opened at first use."""
        return self._hold(asyncio.get_running_loop()).session

    def _hold(self, loop: AbstractEventLoop) -> SharedSession:
        held = self._held.get(loop)
        if held is None or held.session.closed:
            _forget_closed_loops()
            held = _shared.get(loop)
            if held is None or held.session.closed:
                held = _shared[loop] = SharedSession()
            held.users += 1
            self._held[loop] = held
        return held

    @asynccontextmanager
    async def using(self) -> AsyncIterator[ClientSession]:
        """The session for one request. Closing the client meanwhile does not interrupt the request."""
        loop = asyncio.get_running_loop()
        shared = self._hold(loop)
        shared.users += 1
        try:
            yield shared.session
        finally:
            await _release(shared, loop)

    async def close(self) -> None:
        """Release every session. May be called at any time, from any loop, and repeatedly."""
        for loop, shared in list(self._held.items()):
            del self._held[loop]
            if _shared.get(loop) is not shared:
                continue  # its loop was closed, and the session with it
            if loop is asyncio.get_running_loop() or not loop.is_running():
                await _release(shared, loop)
            else:
                # A session has to be closed on its own loop.
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_release(shared, loop), loop))


async def _release(shared: SharedSession, loop: AbstractEventLoop) -> None:
    shared.users -= 1
    if shared.users == 0:
        _shared.pop(loop, None)
        await shared.session.close()


def _forget_closed_loops() -> None:
    """Drop the sessions of loops that were closed without closing their clients: a session keeps its loop alive."""
    for loop in [loop for loop in _shared if loop.is_closed()]:
        session = _shared.pop(loop).session
        if session.connector is not None and not session.closed:
            session.connector._close()  # `close()` would need the loop; its sockets are gone already
            session.detach()
