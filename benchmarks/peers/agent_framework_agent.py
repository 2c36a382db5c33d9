"""Microsoft Agent Framework: an Agent over a scripted chat client with its own function invocation layer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message, tool

DISTRIBUTION = "agent-framework-core"
REQUIREMENTS = ("agent-framework-core",)


class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[misc]
    """Says what it was given."""

    def __init__(self, script: Iterator[Message], rounds: int) -> None:
        super().__init__(function_invocation_configuration={"max_iterations": rounds, "enabled": True})
        self.script = script

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        async def answer() -> ChatResponse:
            return ChatResponse(messages=[next(self.script)])

        return answer()


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing."""
    tools = [tool(function) for function in functions]
    replies = [
        Message(
            role="assistant",
            contents=[
                Content.from_function_call(call_id=f"{r}-{i}", name=name, arguments=json.dumps(arguments))
                for i, (name, arguments) in enumerate(turn)
            ],
        )
        for r, turn in enumerate(turns)
    ]
    end = Message(role="assistant", contents=[Content.from_text("done")])

    async def run() -> list[str]:
        agent = Agent(client=Scripted(iter([*replies, end]), len(turns) + 2), tools=tools)
        done = await agent.run("go")
        found = [content for message in done.messages for content in message.contents]
        return [str(content.result) for content in found if content.type == "function_result"]

    return run
