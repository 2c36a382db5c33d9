"""A member as a function tool of openai-agents."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from typing import Any

from concertino.core.approval import Approver
from concertino.core.attachment import Attachment, attachments_in
from concertino.core.budget import Budget
from concertino.core.events import Event
from concertino.executor.executor import Executor
from concertino.members.specs import ToolSpec
from concertino.pool.live import LivePool
from concertino.pool.pool import Pool

from .outlet import Outcome, Outlet, content_text, failure_text, imported
from .strict_schema import strict_form


def as_openai_agents_tool(
    pool: Pool | LivePool,
    name: str,
    *,
    budget: Budget | None = None,
    deps: Any = None,
    approve: Approver | None = None,
    executor: Executor | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Any:
    """A tool or agent of a pool as a `FunctionTool` of openai-agents. Options as for `as_function`.

    A failed call gives the model status, code and message. Attachments become images and files of the output. Without
    `deps`, `ctx.deps` is the context of the framework's run. A member that needs approval interrupts that run, as the
    framework's own tools do (`needs_approval`), unless `approve` decides. The schema is strict where that is possible:
    an optional argument may then be null.

    Raises:
        UsageError: as `as_function`, or openai-agents is not installed.
    """
    options = {"budget": budget, "deps": deps, "approve": approve, "executor": executor, "on_event": on_event}
    outlet, spec, visible = Outlet.of(pool, name, options)
    tools = imported("agents.tool", "openai-agents")
    schema, optional = strict_form(spec.input_schema)
    elsewhere = bool(spec.approval) and approve is None

    async def call(ctx: Any, text: str) -> Any:
        # By what the framework saw: an argument that is repaired later may be one that nobody was asked about.
        decided = elsewhere and _needs_approval(spec, _read(text))
        through = outlet.approved_elsewhere() if decided else outlet
        outcome = await through.call(_without_nulls(text, optional), ctx.context if deps is None else deps)
        if not outcome.observation.ok:
            return failure_text(outcome.observation)
        return _openai_agents_output(outcome, tools)

    return tools.FunctionTool(
        name=visible,
        description=outlet.current.card(spec),
        params_json_schema=deepcopy(spec.input_schema) if schema is None else schema,
        on_invoke_tool=call,
        strict_json_schema=schema is not None,
        needs_approval=_approval_rule(spec) if elsewhere else False,
    )


def _approval_rule(spec: ToolSpec) -> bool | Callable[[Any, dict[str, Any], str], Awaitable[bool]]:
    if not callable(spec.approval):
        return spec.approval

    async def needed(ctx: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return _needs_approval(spec, arguments)

    return needed


def _needs_approval(spec: ToolSpec, arguments: dict[str, Any] | None) -> bool:
    """Whether the framework asks about a call. Not of arguments that it cannot read, which it shows nobody."""
    if not callable(spec.approval):
        return bool(spec.approval)
    if arguments is None:
        return False
    try:
        return bool(spec.approval(dict(arguments)))
    except Exception:
        return True  # as in a run: a rule that fails counts as yes


def _read(text: str) -> dict[str, Any] | None:
    """Arguments as the framework reads them; None where they are none."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _without_nulls(text: str, optional: frozenset[str]) -> Mapping[str, Any] | str:
    """Arguments without those that are null because they were left out; a text that cannot be read stays as it is."""
    arguments = _read(text) if optional else None
    if arguments is None:
        return text
    return {name: value for name, value in arguments.items() if value is not None or name not in optional}


def _openai_agents_output(outcome: Outcome, tools: Any) -> Any:
    seen, known = outcome.observation, outcome.known
    text = content_text(seen.content)
    parts = [part for each in attachments_in(seen.content, known) if (part := _openai_agents_part(each, tools))]
    return [tools.ToolOutputText(text=text), *parts] if parts else text


def _openai_agents_part(attachment: Attachment, tools: Any) -> Any:
    """None for a sound, which its outputs cannot hold; the text names it."""
    if attachment.kind == "image":
        return tools.ToolOutputImage(image_url=attachment.data_url)
    if attachment.kind == "file":
        place = {"file_url": attachment.url} if attachment.url else {"file_data": attachment.data_url}
        return tools.ToolOutputFileContent(filename=attachment.name, **place)
    return None
