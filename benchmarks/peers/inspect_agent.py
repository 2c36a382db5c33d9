"""Inspect AI: `Model.generate_loop` over its mockllm; tools are declared `parallel=True`, which is not the default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageTool,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolDef

DISTRIBUTION = "inspect-ai"
REQUIREMENTS = ("inspect-ai",)


def _output(calls: list[ToolCall]) -> ModelOutput:
    message = ChatMessageAssistant(content="" if calls else "done", tool_calls=calls or None)
    choice = ChatCompletionChoice(message=message, stop_reason="tool_calls" if calls else "stop")
    usage = ModelUsage(input_tokens=10, output_tokens=10, total_tokens=20)
    return ModelOutput(model="mockllm/model", choices=[choice], usage=usage)


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """A loop that runs until the model calls nothing."""
    tools = [
        ToolDef(
            function, name=function.__name__, description=function.__doc__ or "", parallel=True,
            parameters={name: name for name in function.__annotations__ if name != "return"},
        )
        for function in functions
    ]  # fmt: skip

    async def run() -> list[str]:
        outputs = [
            _output([ToolCall(id=f"{r}-{i}", function=name, arguments=args) for i, (name, args) in enumerate(turn)])
            for r, turn in enumerate([*turns, []])
        ]
        model = get_model("mockllm/model", custom_outputs=outputs, memoize=False)
        messages, _ = await model.generate_loop("go", tools=tools)
        return [str(m.error.message if m.error else m.content) for m in messages if isinstance(m, ChatMessageTool)]

    return run
