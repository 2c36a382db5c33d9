"""The pool as an MCP server: what it answers, over whatever transport.

Every call is a run of the hub: on record, within the budget of its preset, counted for its key. A client that goes, or
cancels, stops it.

Invariant: this module keeps no truth of its own. What a client reads is a fold over the trace; a task is a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
from concertino.core.errors import ConcertinoError
from concertino.core.logs import logger_of
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .api_error import ApiError
from .mcp_progress import ProgressWatch
from .mcp_results import refusal, result_of
from .mcp_tasks import McpTasks, can_read_tasks, created_task
from .mcp_tools import ASK, McpTools
from .one_call import call_as_question
from .request_digests import digest_of
from .request_reader import Conversation
from .request_record import RequestRecord
from .serve_settings import McpOffer, Preset
from .served_run import ServedRun
from .serving import Serving

logger = logger_of("serve")

Context = ServerRequestContext[Any, Any]
OWNER = "concertino.owner"
"""Where a transport says in the scope of a request whose it is."""
LEAVING = "concertino.leaving"
"""Where a handler puts what is cancelled when the client of the request goes."""
_LIST_MS = 60_000


class McpService:
    """Answers MCP clients.

    Attributes:
        server: of the official package, for its transports.

    Raises:
        UsageError: as `McpTools`.
        PoolError: as `McpTools`.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._read, self._known = serving.settings, McpTools(serving.settings)
        self._task_seconds = (serving.settings.mcp or McpOffer()).task_seconds
        self.server: Server[Any] = Server(
            "concertino",
            version=version("concertino-serve"),
            title="A pool of concertino",
            instructions="`ask` answers a question with the whole pool. Each other tool is one member of it.",
            cache_hints={"tools/list": CacheHint(_LIST_MS, "private")},
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        McpTasks(serving, owner_of).add_to(self.server)

    @property
    def _tools(self) -> McpTools:
        """Those of the settings as they are now."""
        settings = self._serving.settings
        if settings is not self._read:
            self._read = settings
            try:
                self._known = McpTools(settings)
            except ConcertinoError as error:
                logger.warning("the tools for MCP clients stay as they were: %s", error)
        return self._known

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return self._tools.input_schema(name)

    async def _list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return self._tools.page(params.cursor if params is not None else None, modern=is_modern(ctx))

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        try:
            request, asked, by_steps = self._asked(ctx, params.name, params.arguments or {})
            # A member is called in the pool in which it was found.
            preset = self._tools.preset if request.member else None
            run = await self._serving.hub.begin(request, asked, preset)
        except ApiError as error:
            return refusal(error)
        leaving = leaving_of(ctx)
        with anyio.CancelScope() as scope:
            leaving.append(scope)
            try:
                return await self._answer(ctx, run, ProgressWatch(by_steps=by_steps))
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._let_go(ctx, run, gone=scope.cancel_called)
                raise
            finally:
                leaving.remove(scope)
        raise MCPError(types.INTERNAL_ERROR, "the client has gone")

    async def _let_go(self, ctx: Context, run: ServedRun, *, gone: bool) -> None:
        """Stop a run that nobody waits for any more."""
        hub = self._serving.hub
        # Closing the connection is how a modern client cancels over HTTP, and how every client is lost.
        if gone or hub.stopping or (is_modern(ctx) and ctx.request is not None):
            await hub.left(run)
        else:
            await hub.cancel(run)

    def _asked(self, ctx: Context, name: str, arguments: Mapping[str, Any]) -> tuple[RequestRecord, Conversation, bool]:
        """What a call asks for: the request, the question, and whether its progress is told by steps."""
        owner = owner_of(ctx)
        if name == ASK:
            question, preset = self._question(arguments)
            return _request(owner, preset, question), Conversation([question], [], ""), True
        tool = self._tools.members.get(name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:80]!r}; list the tools")
        question = call_as_question(tool.spec.name, arguments)
        request = _request(owner, self._tools.preset, question, tool.spec.name)
        return request, Conversation([question], [], ""), tool.is_agent

    def _question(self, arguments: Mapping[str, Any]) -> tuple[str, Preset]:
        question, name = arguments.get("question"), arguments.get("model", next(iter(self._tools.presets)))
        if not isinstance(question, str) or not question.strip():
            raise ApiError(400, "question: expected a text", code="invalid_value", param="question")
        if unknown := set(arguments) - {"question", "model"}:
            raise ApiError(400, f"{sorted(unknown)[0][:80]!r}: expected question alone", code="invalid_value")
        return question, self._serving.preset(name)

    async def _answer(self, ctx: Context, run: ServedRun, watch: ProgressWatch) -> Any:
        """The result, or a task where it takes long and the client can read tasks; tells progress meanwhile."""
        assert run.live is not None
        run.live.watch = watch.hear
        wait = self._task_seconds if can_read_tasks(ctx) else None
        over = asyncio.ensure_future(run.live.until_over())
        telling = asyncio.ensure_future(_tell(ctx, watch))
        try:
            done, _ = await asyncio.wait({over}, timeout=wait)
            if not done:
                return created_task(run)
        finally:
            run.live.watch = None
            for task in (over, telling):
                task.cancel()
            await asyncio.gather(over, telling, return_exceptions=True)
        return result_of(run, run.live.moments, modern=is_modern(ctx))


def owner_of(ctx: Context) -> str:
    """The client of a request; empty where nobody needs a key."""
    return str(ctx.request.scope[OWNER]) if ctx.request is not None else ""


def leaving_of(ctx: Context) -> list[anyio.CancelScope]:
    """What the transport cancels when the client of a request goes."""
    found: list[anyio.CancelScope] = ctx.request.scope[LEAVING] if ctx.request is not None else []
    return found


def is_modern(ctx: Context) -> bool:
    """Whether a client speaks 2026-07-28 or later."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _tell(ctx: Context, watch: ProgressWatch) -> None:
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            news = await watch.next()
            await ctx.session.report_progress(news.done, news.total, news.message)


def _request(owner: str, preset: Preset, question: str, member: str = "") -> RequestRecord:
    # Clients of MCP do not say that they repeat a call, so none is ever the repetition of another.
    digest = digest_of(owner, "mcp", uuid4().hex)
    return RequestRecord(
        owner=owner,
        preset=preset.name,
        protocol="mcp",
        digest=digest,
        body_digest=digest,
        created=int(time.time()),
        background=preset.on_disconnect == "continue",
        input=[{"type": "message", "role": "user", "content": question}],
        member=member,
    )
