"""The life of a server on the background loop: connected at first use, started again after a death, closed when idle.

    resting ──first use──> starting ──> connected ──no call for idle_timeout──> resting
                              │             └──lost──> resting, and the next call starts it again
                              └──failed──> waits 0.5 s, 1 s, 2 s, 4 s before the next start

Invariants: at most one start is under way, and all who wait share it. A call that was under way when the server was
lost is repeated only if that does no harm. After `STARTS` failures in a row without a call that succeeded, a start is
tried only once in `REST` seconds; meanwhile calls fail at once with the reason.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from concertino.core.logs import logger_of

from concertino_mcp.errors import ServerFailed
from concertino_mcp.transport.http_errors import http_failure, session_is_over

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.shared.dispatcher import ProgressFnT

    from concertino_mcp.settings import McpServerSettings

    from .connection import Connection

logger = logger_of("mcp")

ATTEMPTS = 3
"""Attempts of one call, in all."""
STARTS = 6
REST = 60.0
FIRST_WAIT = 0.5
"""Seconds before the third start, and before a call is repeated at a server that asked to wait; doubled each time."""
LONGEST_WAIT = 30.0
"""A server that asks a call to wait for more seconds ends it."""
PATIENCE = 2.5
"""Seconds that a call waits for the next start; where it is further away, the call fails at once."""


class ServerLifecycle:
    """What is known of one server, over all its connections."""

    def __init__(self, declaration: McpServerSettings) -> None:
        self.declaration = declaration
        self.connection: Connection | None = None
        self.starts = 0
        self.stale = True
        """Whether its list of tools has not been read since it last changed."""
        self._listed: tuple[list[types.Tool], list[tuple[str, str]]] = ([], [])
        self._starting: asyncio.Task[Connection] | None = None
        self._handshake = False
        self._failures = 0
        self._next_start = 0.0
        self._why = ""
        self._under_way = 0
        self._rest: asyncio.TimerHandle | None = None
        self._places = asyncio.Semaphore(declaration.concurrency) if declaration.concurrency else None
        self._leaving: set[asyncio.Task[None]] = set()
        self._closed = False

    # -- connecting ------------------------------------------------------------------------------------------------

    async def connected(self) -> Connection:
        """The connection, opened where there is none.

        Raises:
            ServerFailed: it cannot be started, or may not be started yet.
        """
        if self._closed:
            raise ServerFailed("the MCP sessions of this process were closed")
        if self.connection is not None and not self.connection.lost.is_set():
            return self.connection
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name=f"mcp start {self.declaration.name}")
            self._starting.add_done_callback(self._started)
        # The start is shared: a caller that is cancelled must not cancel it for the others.
        return await asyncio.shield(self._starting)

    def _started(self, task: asyncio.Task[Connection]) -> None:
        self._starting = None
        if not task.cancelled():
            task.exception()  # seen, even if nobody waits any more

    async def _start(self) -> Connection:
        self._drop()
        wait = self._next_start - time.monotonic()
        if wait > PATIENCE:
            raise ServerFailed(f"{self._why}; the next start is tried in {wait:.0f} s")
        if wait > 0:
            await asyncio.sleep(wait)
        self.starts += 1
        try:
            self.connection = await self._open()
        except ServerFailed as failed:
            self._failed(str(failed))
            raise
        logger.debug("%s: connected", self.declaration.name)
        return self.connection

    async def _open(self) -> Connection:
        from .connection import Connection

        if self.declaration.url:
            from concertino_mcp.transport import http  # noqa: F401 - takes half a second the first time; not the server's fault

        connection = Connection(self.declaration, self._changed)
        try:
            await connection.open(handshake=self._handshake)
        except ServerFailed:
            self._retire(connection)
            ended = connection.process is not None and connection.process.child.poll() is not None
            if self._handshake or not ended or self._failures:
                raise
        except BaseException:
            self._retire(connection)
            raise
        else:
            return connection
        # It ended: perhaps because it was greeted with something newer than it knows.
        connection = Connection(self.declaration, self._changed)
        try:
            await connection.open(handshake=True)
        except BaseException:
            self._retire(connection)
            raise
        self._handshake = True
        return connection

    def _failed(self, why: str) -> None:
        """Count a death or a failed start, and put off the next start."""
        self._failures += 1
        self._why = why
        wait = 0.0
        if self._failures >= STARTS:
            wait = REST
        elif self._failures > 1:
            wait = FIRST_WAIT * 2 ** (self._failures - 2)
        self._next_start = time.monotonic() + wait

    def _changed(self) -> None:
        self.stale = True

    def _drop(self) -> None:
        """Have what is left of a lost connection closed."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self.stale = True
            self._retire(connection)

    def _retire(self, connection: Connection) -> None:
        """Have a connection closed, without waiting for it."""
        task = asyncio.create_task(connection.close(), name=f"mcp close {self.declaration.name}")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    # -- using -----------------------------------------------------------------------------------------------------

    async def tools(self) -> tuple[list[types.Tool], list[tuple[str, str]]]:
        """The server's tools, and what of its list cannot be read; asked for once, and again after it changed.

        Raises:
            ServerFailed: it cannot be used.
        """
        if self.stale:
            self._begins()
            try:
                connection = await self.connected()
                # Before the question, so that a change which is announced meanwhile makes the list stale again.
                self.stale = False
                self._listed = await connection.list_tools()
            except BaseException:
                self.stale = True
                raise
            finally:
                self._ends()
        return self._listed

    async def call(
        self, tool: str, arguments: dict[str, Any], heard: ProgressFnT | None = None, *, repeatable: bool
    ) -> types.CallToolResult:
        """Call a tool, with a place at the server.

        Args:
            heard: receives the call's progress.
            repeatable: repeating a call that may have been executed does no harm.

        Raises:
            MCPError: the server answered with an error.
            ServerFailed: it cannot be used, or was lost meanwhile.
        """
        self._begins()
        try:
            if self._places is None:
                return await self._attempts(tool, arguments, heard, repeatable)
            async with self._places:
                return await self._attempts(tool, arguments, heard, repeatable)
        finally:
            self._ends()

    async def _attempts(
        self, tool: str, arguments: dict[str, Any], heard: ProgressFnT | None, repeatable: bool
    ) -> types.CallToolResult:
        from mcp.shared.exceptions import MCPError

        attempt = 1
        while True:
            connection = await self.connected()
            try:
                result = await connection.call(tool, arguments, heard)
            except MCPError as error:
                failed = http_failure(error)
                if failed is None:
                    # An error of the server's own is an answer: the server lives.
                    self._failures = 0
                    raise
                if session_is_over(error):
                    connection.lost.set()  # the next attempt has another one
            except ServerFailed as error:
                failed = error
                if error.executed or connection.lost.is_set():
                    self._died(connection, str(error))
            else:
                self._failures = 0
                return result
            pause = failed.pause if failed.pause is None else max(failed.pause, FIRST_WAIT * 2 ** (attempt - 1))
            again = attempt < ATTEMPTS and not failed.refused and (repeatable or not failed.executed)
            if not again or (pause or 0) > LONGEST_WAIT:
                raise failed
            attempt += 1
            await asyncio.sleep(pause or 0)

    def _died(self, connection: Connection, why: str) -> None:
        """The first call that notices counts the death."""
        if self.connection is connection and not connection.counted:
            connection.counted = True
            connection.lost.set()
            self._failed(why)

    # -- resting ---------------------------------------------------------------------------------------------------

    def _begins(self) -> None:
        self._under_way += 1
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _ends(self) -> None:
        self._under_way -= 1
        idle = self.declaration.idle_timeout
        if not self._under_way and idle is not None and not self._closed:
            self._rest = asyncio.get_running_loop().call_later(idle, self._fall_asleep)

    def _fall_asleep(self) -> None:
        self._rest = None
        if self.connection is not None and not self._under_way:
            logger.debug("%s: closed after %g s without a call", self.declaration.name, self.declaration.idle_timeout)
            connection, self.connection = self.connection, None
            self._retire(connection)

    async def close(self) -> None:
        """End the connection, for good."""
        self._closed = True
        if self._rest is not None:
            self._rest.cancel()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting}, timeout=3.0)
        self._drop()
        if self._leaving:
            # `Connection.close` takes 8 s at most.
            await asyncio.wait(self._leaving, timeout=9.0)
