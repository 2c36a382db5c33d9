"""A tool of a server as a function of the pool: arguments in, plain JSON data out, failures by name.

Progress that the server reports goes to the observers of the run, and to the log.

| what happens | the observation |
|---|---|
| the server answers with `isError` | EXEC_ERR `tool_error`, with the server's text |
| the server answers with a protocol error | EXEC_ERR `mcp_error`, with its code and text |
| it is lost, the tool may be repeated | repeated on a new session, at most three times in all |
| it is lost, and the call may have run | EXEC_ERR `unknown_outcome` |
| it cannot be started or reached | EXEC_ERR `unavailable`; `rejected` for HTTP 401, 402 and 403 |
| the answer is too large or no answer | EXEC_ERR `bad_result` |
| our deadline, or the run is cancelled | TIMEOUT, or `cancelled`; the server is told `notifications/cancelled` |
"""

from __future__ import annotations

import contextlib
from math import isfinite
from typing import TYPE_CHECKING, Any, NoReturn

from concertino import ToolSpec
from concertino.core.logs import logger_of

from concertino_mcp.errors import ServerFailed, fail
from concertino_mcp.settings import McpServerSettings

from .content import ERROR_CHARS, to_content, to_text

if TYPE_CHECKING:
    from concertino import Context
    from mcp.shared.dispatcher import ProgressFnT

logger = logger_of("mcp")

PROGRESS_CHARS = 200
"""Characters of a message of progress that are passed on."""


def own_name(spec: ToolSpec) -> str:
    """What a server calls the tool of a spec."""
    function = spec.function
    return function.tool if isinstance(function, McpTool) else spec.short_name


class McpTool:
    """The function of a tool's spec.

    Attributes:
        server: its server's declaration.
        tool: its own name, as the server lists it.
    """

    __slots__ = ("binary", "member", "repeatable", "server", "structured", "tool")

    def __init__(
        self, server: McpServerSettings, tool: str, member: str, *, structured: bool, repeatable: bool
    ) -> None:
        self.server = server
        self.tool = tool
        self.member = member
        self.structured = structured
        self.repeatable = repeatable
        self.binary = server.binary

    async def __call__(self, arguments: dict[str, Any], *, ctx: Context | None = None) -> Any:
        """Call the tool, from any event loop."""
        from concertino_mcp.sessions.background import Closed, background

        thread = background()
        try:
            return await thread.run(lambda: self._ask(arguments, self._listener(ctx)))
        except ServerFailed as failed:
            self._failed(failed)
        except Closed as closed:
            fail(self.member, "unknown_outcome", str(closed))

    def _listener(self, ctx: Context | None) -> ProgressFnT:
        """Receives the progress that the server reports, on the background loop."""

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            text = (message or "")[:PROGRESS_CHARS]
            logger.debug("%s: progress %g of %s %s", self.member, progress, total, text)
            # JSON, which the trace is written in, has no infinity.
            if ctx is not None and isfinite(progress) and (total is None or isfinite(total)):
                with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody watches any more
                    ctx.progress(progress, total, text)

        return heard

    async def _ask(self, arguments: dict[str, Any], heard: ProgressFnT) -> Any:
        """On the background loop."""
        from mcp.shared.exceptions import MCPError

        from concertino_mcp.sessions.background import background

        life = background().life(self.server)
        try:
            result = await life.call(self.tool, arguments, heard, repeatable=self.repeatable)
        except MCPError as error:
            self._refused(error.code, error.message, error.data)
        except ValueError as error:
            from concertino_mcp.sessions.dispatcher import first_fault

            fail(self.member, "bad_result", first_fault(error))
        # The protocol's other result, which asks for input, has none.
        if not hasattr(result, "content"):
            fail(self.member, "mcp_error", "the server asks for further input (elicitation), which is not offered")
        if result.is_error:
            text = to_text(result.content) or "the server says that the call failed, and not why"
            fail(self.member, "tool_error", text, text[:ERROR_CHARS])
        return to_content(result, structured=self.structured, binary=self.binary)

    def _refused(self, code: int, message: str, data: Any) -> NoReturn:
        """The server, or the way to it, answered with an error."""
        if isinstance(data, dict) and data.get("bad_result"):
            fail(self.member, "bad_result", message)
        fail(self.member, "mcp_error", f"MCP error {code}: {message}", {"code": code, "message": message[:ERROR_CHARS]})

    def _failed(self, failed: ServerFailed) -> NoReturn:
        text = f"the MCP server {self.server.name!r}: {failed}"
        if failed.refused:
            self._fail("rejected", text)
        if failed.executed and not self.repeatable:
            self._fail("unknown_outcome", f"{text}; it may have been executed, so it was not repeated")
        self._fail("unavailable", text, retryable=True)

    def _fail(self, code: str, text: str, *, retryable: bool = False) -> NoReturn:
        """With the whole text as content where the cause, which is cut at 200 characters, does not hold it."""
        fail(
            self.member,
            code,
            text,
            text[:ERROR_CHARS] if len(text) > 190 - len(self.member) else None,
            retryable=retryable,
        )
