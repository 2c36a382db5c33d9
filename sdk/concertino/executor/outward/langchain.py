"""A member as a tool of LangChain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import deepcopy
from typing import Any

from concertino.core.approval import Approver
from concertino.core.attachment import Attachment, attachments_in
from concertino.core.budget import Budget
from concertino.core.errors import UsageError
from concertino.core.events import Event
from concertino.core.observation import CallFailed, Observation
from concertino.executor.executor import Executor
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool

from .outlet import Outcome, Outlet, content_text, failure_text, imported, need_handler


def as_langchain_tool(
    pool: Pool | LivePool,
    name: str,
    *,
    budget: Budget | None = None,
    deps: Any = None,
    approve: Approver | None = None,
    executor: Executor | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Any:
    """A tool or agent of a pool as a `StructuredTool` of LangChain. Options as for `as_function`.

    A failed call is a `ToolException` that the tool handles: the model reads status, code and message, and the message
    has `status="error"`. Attachments become content blocks. The artifact of a `ToolMessage` is the `Observation`.

    Raises:
        UsageError: as `as_function`, or langchain-core is not installed.
    """
    options = {"budget": budget, "deps": deps, "approve": approve, "executor": executor, "on_event": on_event}
    outlet, spec, visible = Outlet.of(pool, name, options)
    need_handler(spec, approve)
    tools = imported("langchain_core.tools", "langchain-core")

    async def call(**arguments: Any) -> tuple[Any, Observation]:
        outcome = await outlet.call(arguments)
        if not outcome.observation.ok:
            raise tools.ToolException(failure_text(outcome.observation)) from CallFailed(outcome.observation)
        return _langchain_content(outcome), outcome.observation

    def blocking(**arguments: Any) -> tuple[Any, Observation]:
        if executor is not None:
            raise UsageError(f"{visible}.invoke cannot use a shared executor, which has a loop of its own; use ainvoke")
        found: tuple[Any, Observation] = _in_any_thread(call(**arguments))
        return found

    return tools.StructuredTool(
        name=visible,
        description=outlet.current.card(spec),
        args_schema=deepcopy(spec.input_schema),
        func=blocking,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _langchain_content(outcome: Outcome) -> Any:
    seen, known = outcome.observation, outcome.known
    blocks = [_langchain_block(each) for each in attachments_in(seen.content, known)]
    if blocks:
        return [{"type": "text", "text": content_text(seen.content)}, *blocks]
    # A list would be taken for content blocks.
    return content_text(seen.content) if isinstance(seen.content, list) else seen.content


def _langchain_block(attachment: Attachment) -> dict[str, Any]:
    place = {"url": attachment.url} if attachment.url else {"base64": attachment.base64}
    return {"type": attachment.kind, "mime_type": attachment.media_type, **place}


def _in_any_thread(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, in a thread of its own where this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "concertino-outward") as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()
