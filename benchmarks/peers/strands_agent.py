"""Strands Agents: an Agent over a scripted Model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from strands import Agent, tool
from strands.models import Model

DISTRIBUTION = "strands-agents"
REQUIREMENTS = ("strands-agents",)


class Scripted(Model):  # type: ignore[misc]
    """Streams what it was given."""

    def __init__(self, script: Iterator[Any]) -> None:
        self.script = script

    def update_config(self, **config: Any) -> None:
        """Nothing to configure."""

    def get_config(self) -> Any:
        """Nothing to configure."""
        return {}

    def structured_output(self, *args: Any, **options: Any) -> Any:
        """Not used here."""
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """The next turn."""
        turn = next(self.script)
        yield {"messageStart": {"role": "assistant"}}
        if not turn:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        for number, (name, arguments) in enumerate(turn):
            use = {"name": name, "toolUseId": f"{len(messages)}-{number}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if turn else "end_turn"}}


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing."""
    tools = [tool(function) for function in functions]

    async def run() -> list[str]:
        agent = Agent(model=Scripted(iter([*turns, []])), tools=tools, callback_handler=None)
        await agent.invoke_async("go")
        results = [block["toolResult"] for m in agent.messages for block in m["content"] if "toolResult" in block]
        return [part.get("text", "") for result in results for part in result["content"]]

    return run
