"""OpenAI Agents SDK: Runner, function tools, a scripted Model; tracing is off, since it would go to a server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, function_tool, set_tracing_disabled
from agents.items import ToolCallOutputItem
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

DISTRIBUTION = "openai-agents"
REQUIREMENTS = ("openai-agents",)
set_tracing_disabled(True)


class Scripted(Model):
    """Says what it was given."""

    def __init__(self, outputs: list[list[Any]]) -> None:
        self.script = iter(outputs)

    async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
        """The next output."""
        return ModelResponse(output=next(self.script), usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        """Not used here."""
        raise NotImplementedError


def build(
    functions: list[Callable[..., Any]], turns: list[Any], *, seconds: float | None = None
) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing. `seconds` is a time limit of `hang`."""
    limits = {"timeout": seconds} if seconds is not None else {}
    tools = [function_tool(**(limits if f.__name__ == "hang" else {}))(f) for f in functions]
    outputs: list[list[Any]] = [
        [
            ResponseFunctionToolCall(type="function_call", call_id=f"{r}-{i}", name=name, arguments=json.dumps(args))
            for i, (name, args) in enumerate(turn)
        ]
        for r, turn in enumerate(turns)
    ]
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    end = ResponseOutputMessage(id="end", type="message", role="assistant", status="completed", content=[text])

    async def run() -> list[str]:
        agent = Agent("scripted", tools=list(tools), model=Scripted([*outputs, [end]]))
        done = await Runner.run(agent, "go", max_turns=len(turns) + 2)
        return [str(item.output) for item in done.new_items if isinstance(item, ToolCallOutputItem)]

    return run


build_limited = partial(build, seconds=0.5)
"""With a time limit for the tool that hangs."""
