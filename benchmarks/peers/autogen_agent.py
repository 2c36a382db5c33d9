"""AutoGen: an AssistantAgent over a scripted ChatCompletionClient."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, FunctionExecutionResultMessage, RequestUsage
from autogen_core.tools import FunctionTool

DISTRIBUTION = "autogen-agentchat"
REQUIREMENTS = ("autogen-agentchat",)


class Scripted(ChatCompletionClient):  # type: ignore[misc]
    """Says what it was given."""

    def __init__(self, script: Iterator[Any]) -> None:
        self.script = script

    async def create(self, messages: Any, **options: Any) -> CreateResult:
        """The next turn."""
        content = next(self.script)
        reason = "stop" if isinstance(content, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=content, usage=RequestUsage(10, 10), cached=False)

    def create_stream(self, *args: Any, **options: Any) -> Any:
        """Not used here."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""

    def actual_usage(self) -> RequestUsage:
        """Not counted."""
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, *args: Any, **options: Any) -> int:
        """Not counted."""
        return 0

    def remaining_tokens(self, *args: Any, **options: Any) -> int:
        """Enough."""
        return 10**6

    @property
    def capabilities(self) -> Any:
        """As `model_info`."""
        return self.model_info

    @property
    def model_info(self) -> Any:
        """It calls functions."""
        return {"vision": False, "function_calling": True, "json_output": False, "family": "unknown",
                "structured_output": False, "multiple_system_messages": True}  # fmt: skip


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing."""
    tools = [FunctionTool(f, description=f.__doc__ or "", name=f.__name__) for f in functions]
    replies = [
        [FunctionCall(id=f"{r}-{i}", name=name, arguments=json.dumps(args)) for i, (name, args) in enumerate(turn)]
        for r, turn in enumerate(turns)
    ]

    async def run() -> list[str]:
        agent = AssistantAgent(
            "scripted", Scripted(iter([*replies, "done"])), tools=tools, max_tool_iterations=len(turns) + 2
        )
        await agent.run(task="go")
        seen = [m for m in await agent.model_context.get_messages() if isinstance(m, FunctionExecutionResultMessage)]
        return [result.content for message in seen for result in message.content]

    return run
