"""llm: an AsyncModel whose script makes tool calls, run by `chain`. Arguments are not validated."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Any

import llm

DISTRIBUTION = "llm"
REQUIREMENTS = ("llm",)


class Scripted(llm.AsyncModel):
    """Says what it was given, and notes the answers it is shown."""

    model_id = "scripted"
    supports_tools = True
    can_stream = False

    def __init__(self, script: Iterator[Any]) -> None:
        self.script = script
        self.answers: list[str] = []

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncGenerator[str, None]:
        """The next turn."""
        self.answers += [str(result.output) for result in prompt.tool_results]
        turn = next(self.script, None)
        for number, (name, arguments) in enumerate(turn or ()):
            response.add_tool_call(llm.ToolCall(name=name, arguments=arguments, tool_call_id=str(number)))
        yield "" if turn else "done"


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """A chain that runs until the model calls nothing."""
    tools = [llm.Tool.function(function) for function in functions]

    async def run() -> list[str]:
        model = Scripted(iter(turns))
        chain = model.conversation().chain("go", tools=tools, chain_limit=len(turns) + 2)
        await chain.text()
        return model.answers

    return run
