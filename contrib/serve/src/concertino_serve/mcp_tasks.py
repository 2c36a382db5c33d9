"""Long calls as tasks: the extension `io.modelcontextprotocol/tasks` of MCP 2026-07-28.

A task is a run, and its id that of the run: it outlives its connection and a kill of the server, which resumes it.

Invariant: a client is told of a task only after it is on the disk that the run continues without a client.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .api_error import ApiError
from .mcp_results import result_of
from .served_run import ServedRun
from .serving import Serving

TASKS = "io.modelcontextprotocol/tasks"
_POLL_MS = 1000
Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    """What names a task."""

    task_id: str


class UpdateParams(TaskParams):
    """What answers a task that asks something."""

    input_responses: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic, copied for each


class McpTasks:
    """Tells of the tasks of a server.

    Args:
        owner_of: says whose a request is.
    """

    def __init__(self, serving: Serving, owner_of: Callable[[Context], str]) -> None:
        self._hub = serving.hub
        self._owner_of = owner_of

    def add_to(self, server: Server[Any]) -> None:
        """Serve the methods of tasks."""
        server.extensions[TASKS] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        run = self._found(ctx, params)
        moments = run.so_far()
        last = moments[-1] if moments else ""
        stop = last["stop"] if isinstance(last, dict) and last["t"] == "end" else "unfinished"
        if not run.over:
            return _task(run, "working")
        if run.request.closed and stop in ("cancelled", "unfinished"):
            return _task(run, "cancelled")
        told = result_of(run, moments, modern=True).model_dump(by_alias=True, mode="json", exclude_none=True)
        return {**_task(run, "completed"), "result": told}

    async def _update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        self._found(ctx, params)  # no task of ours asks for anything, so there is nothing to take
        return {}

    async def _cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        run = self._found(ctx, params)
        if not run.over:
            await self._hub.cancel(run)
        return {}

    def _found(self, ctx: Context, params: TaskParams) -> ServedRun:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        if not can_read_tasks(ctx):
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"the client does not declare {TASKS}", needed)
        named = ctx.request.headers.get(MCP_NAME_HEADER) if ctx.request is not None else None
        if named is not None and decode_header_value(named) != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} names another task than the body")
        try:
            run = self._hub.get(params.task_id, self._owner_of(ctx))
        except ApiError:
            run = None
        if run is None or run.request.protocol != "mcp" or not run.request.background:
            raise MCPError(types.INVALID_PARAMS, f"there is no task {params.task_id[:80]!r}")
        return run


def can_read_tasks(ctx: Context) -> bool:
    """Whether the client of a request has said that it reads tasks."""
    able = ctx.session.client_capabilities
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and able is not None and TASKS in (able.extensions or {})


def created_task(run: ServedRun) -> dict[str, Any]:
    """Have a run go on without its client, and tell of it as a task."""
    run.request = dataclasses.replace(run.request, background=True)
    run.request.write(run.trace)
    return {**_task(run, "working"), "resultType": "task"}


def _task(run: ServedRun, status: str) -> dict[str, Any]:
    return {
        "taskId": run.id,
        "status": status,
        "createdAt": _iso(run.request.created),
        "lastUpdatedAt": _iso(run.trace.stat().st_mtime),
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
