"""One live session with a server: opened, negotiated, asked, closed. It lives on the background loop.

The newest protocol is tried first: `server/discover` of the stateless revision, then the `initialize` handshake. A
server that knows only the handshake answers the first with an error; one that says nothing gets a third of the start
time, and one that ends because of it is started again and greeted with the handshake at once.

Invariants: the transport and the session are opened and closed by one task. When the session is lost, every request
under way ends at once with `ServerFailed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import mcp_types as types
from concertino.core.logs import logger_of
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from concertino_mcp.errors import ServerFailed
from concertino_mcp.settings import McpServerSettings
from concertino_mcp.transport.http_errors import REFUSED
from concertino_mcp.transport.stdio import StdioServer, environment, open_process

from .dispatcher import Dispatcher, first_fault

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logger_of("mcp")

PAGES = 200
LISTED = 20_000
"""Tools and pages of a list that are read at most."""

_RESULT: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


class Connection:
    """A session with one server.

    Attributes:
        process: the server's process, None for one over HTTP.
        lost: set when nothing can be asked any more.
        reason: why it was lost.
        counted: whether the loss has been counted by the server's life.
    """

    def __init__(self, declaration: McpServerSettings, on_change: Callable[[], None]) -> None:
        self.declaration = declaration
        self.process: StdioServer | None = None
        self.lost = asyncio.Event()
        self.reason = ""
        self.counted = False
        self._on_change = on_change
        self._leave = asyncio.Event()
        self._session: ClientSession | None = None
        self._dispatcher: Dispatcher | None = None
        self._owner: asyncio.Task[None] | None = None

    # -- opening and closing ---------------------------------------------------------------------------------------

    async def open(self, *, handshake: bool = False) -> None:
        """Start or reach the server, and agree on a version. To be closed, even where this fails.

        Raises:
            ServerFailed: says why not.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready, handshake), name=f"mcp {self.declaration.name}")
        try:
            async with asyncio.timeout(self.declaration.start_timeout):
                # The task that opens the session still sets it after a timeout.
                await asyncio.shield(ready)
        except TimeoutError:
            seconds = self.declaration.start_timeout
            tail = self.process.child.stderr_tail() if self.process is not None else ""
            said = f"; the end of its stderr: {tail}" if tail else ""
            raise ServerFailed(f"no answer to `initialize` within {seconds:g} s (start_timeout){said}") from None

    async def close(self) -> None:
        """End the session, and the server's process. Bounded in time."""
        self._leave.set()
        if self._owner is not None:
            patience = 3.0 if self._session is not None else 0.0  # what has not begun is not ended in good order
            await asyncio.wait({self._owner}, timeout=patience)
            if not self._owner.done():
                self._owner.cancel()
                # Ending a process takes 4 s at most: the graces of `StdioServer.stop`.
                await asyncio.wait({self._owner}, timeout=5.0)
        self.lost.set()

    async def _own(self, ready: asyncio.Future[None], handshake: bool) -> None:
        """Open everything, wait for the end, close everything: in one task."""
        try:
            # anyio's cancel scopes have to be left by the task that entered them.
            async with AsyncExitStack() as stack:
                streams = await self._streams(stack)
                dispatcher = self._dispatcher = Dispatcher(*streams)
                session = ClientSession(
                    dispatcher=dispatcher,
                    logging_callback=self._log,
                    message_handler=self._hear,
                    client_info=types.Implementation(name="concertino-mcp", version=version("concertino-mcp")),
                    log_level="info" if logger.isEnabledFor(logging.INFO) else "warning",
                )
                await stack.enter_async_context(session)
                await self._negotiate(session, handshake)
                dispatcher.version = session.protocol_version or ""
                self._session = session
                ready.set_result(None)
                await self._stay(session)
        except BaseException as error:
            failed = await self._as_failure(error)
            if not ready.done():
                ready.set_exception(failed)
            else:
                self.reason = self.reason or str(failed)
        finally:
            self.lost.set()
            if not ready.done():
                ready.set_exception(ServerFailed("it was closed while it started"))
            ready.exception()  # seen, even if nobody waits any more

    async def _streams(self, stack: AsyncExitStack) -> tuple[Any, Any]:
        declaration = self.declaration
        if declaration.url:
            from concertino_mcp.transport.http import open_http

            return await stack.enter_async_context(open_http(declaration))
        env = environment(dict(declaration.env), declaration.env_from)
        self.process = StdioServer(declaration.name, declaration.command, env, declaration.cwd)
        return await stack.enter_async_context(open_process(self.process))

    async def _negotiate(self, session: ClientSession, handshake: bool) -> None:
        if not handshake:
            try:
                async with asyncio.timeout(self.declaration.start_timeout / 3):
                    await session.discover()
                return
            except (TimeoutError, ValidationError, RuntimeError):
                pass
            except MCPError as error:
                if self.is_lost(error):
                    raise
        await session.initialize()

    async def _stay(self, session: ClientSession) -> None:
        """Until the session is to be closed, or is lost."""
        waiting = [asyncio.create_task(self._leave.wait()), asyncio.create_task(self._watch(session))]
        listening = asyncio.create_task(self._listen(session))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*waiting, listening):
                task.cancel()
            await asyncio.gather(*waiting, listening, return_exceptions=True)
            self.lost.set()

    async def _watch(self, session: ClientSession) -> None:
        """Ends when the server's process has closed its output."""
        if self.process is None:
            await asyncio.Event().wait()
            return
        await self.process.reader.end_event.wait()
        self.reason = await self.process.explain()

    async def _listen(self, session: ClientSession) -> None:
        """Subscribe to changes in the list of tools, where the protocol requires it."""
        from mcp.client.subscriptions import listen
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        capabilities = session.server_capabilities
        announces = capabilities is not None and capabilities.tools is not None and capabilities.tools.list_changed
        if not announces or session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        # A server that cannot be listened to can still be called.
        with contextlib.suppress(Exception):
            async with listen(session, tools_list_changed=True) as changes:
                async for _ in changes:
                    self._on_change()

    async def _as_failure(self, error: BaseException) -> ServerFailed:
        """Any exception as a reason that a person understands."""
        error = _innermost(error)
        if isinstance(error, ServerFailed):
            return error
        process = self.process
        if process is not None and (process.reader.ended or process.child.poll() is not None):
            return ServerFailed(await process.explain())
        if isinstance(error, MCPError):
            data = error.data if isinstance(error.data, dict) else {}
            return ServerFailed(error.message, refused=data.get("http") in REFUSED)
        text = " ".join(str(error).split())[:300]
        return ServerFailed(f"{type(error).__name__}: {text}" if text else type(error).__name__)

    # -- hearing ---------------------------------------------------------------------------------------------------

    async def _hear(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_change()

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        level = _LEVELS.get(params.level, logging.INFO)
        source = f"{self.declaration.name}/{params.logger}" if params.logger else self.declaration.name
        logger.log(level, "%s: %s", source, str(params.data)[:2000])

    # -- asking ----------------------------------------------------------------------------------------------------

    @property
    def session(self) -> ClientSession:
        """The SDK's session; opened."""
        assert self._session is not None
        return self._session

    async def list_tools(self) -> tuple[list[types.Tool], list[tuple[str, str]]]:
        """All tools, page by page; and the names of those that cannot be read, with what is wrong with them.

        Raises:
            ServerFailed: the server was lost, or does not list them.
        """
        assert self._dispatcher is not None
        tools: list[types.Tool] = []
        dropped = self._dispatcher.dropped = []
        cursor: str | None = None
        # A server may return the same cursor for ever.
        for _ in range(PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            try:
                page = await self.session.list_tools(params=params)
            except (MCPError, ValueError) as error:
                if isinstance(error, MCPError) and error.code == types.METHOD_NOT_FOUND and not tools:
                    return [], []  # a server without tools
                raise await self._list_failed(error) from None
            tools += page.tools
            cursor = page.next_cursor
            if not cursor or len(tools) >= LISTED:
                break
        return tools[:LISTED], dropped[:LISTED]

    async def _list_failed(self, error: Exception) -> ServerFailed:
        if self.is_lost(error):
            return ServerFailed(await self.why_lost())
        text = error.message if isinstance(error, MCPError) else first_fault(error)
        return ServerFailed(f"it does not list its tools: {text}")

    async def call(self, tool: str, arguments: dict[str, Any], progress: Any = None) -> types.CallToolResult:
        """Call a tool.

        Raises:
            MCPError: the server answered with an error.
            ServerFailed: the session was lost meanwhile, or the answer breaks the protocol.
        """
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        try:
            return await self.session.send_request(request, _RESULT, progress_callback=progress)
        except MCPError as error:
            if self.is_lost(error):
                raise ServerFailed(await self.why_lost(), executed=True) from None
            raise
        except RuntimeError:
            raise ServerFailed(await self.why_lost()) from None

    def is_lost(self, error: Exception) -> bool:
        """Whether an error means that the session is over."""
        if not isinstance(error, MCPError) or error.code != types.CONNECTION_CLOSED:
            return False
        over = self.lost.is_set() or self._leave.is_set() or error.message == "Connection closed"
        return over or (self.process is not None and self.process.reader.ended)

    async def why_lost(self) -> str:
        """The reason, when the session is over."""
        if self._leave.is_set() and not self.reason:
            return "the session was closed"
        if self.process is not None:
            return await self.process.explain()
        if self._owner is not None:
            await asyncio.wait({self._owner}, timeout=0.5)
        return self.reason or "the connection was closed"


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
