"""smolagents: a ToolCallingAgent over a scripted Model. It is synchronous: it runs its tools in threads of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from smolagents import LogLevel, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

DISTRIBUTION = "smolagents"
REQUIREMENTS = ("smolagents",)
_SLEEPING = ("nap", "hang")
_TYPES = {"str": "string", "int": "integer"}


class Scripted(Model):  # type: ignore[misc]
    """Says what it was given."""

    def __init__(self, script: Iterator[ChatMessage]) -> None:
        super().__init__()
        self.script = script

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        """The next turn."""
        return next(self.script)


def _tool(function: Callable[..., Any]) -> Tool:
    parameters = inspect.signature(function).parameters

    class Made(Tool):  # type: ignore[misc]
        name = function.__name__
        description = function.__doc__ or ""
        inputs = {  # noqa: RUF012
            n: {"type": _TYPES[str(p.annotation).removeprefix("<class '").removesuffix("'>")], "description": n}
            for n, p in parameters.items()
        }
        output_type = "string"
        skip_forward_signature_validation = True

        def forward(self, **arguments: Any) -> Any:
            if inspect.iscoroutinefunction(function):
                return _finish(function(**arguments), function.__name__ in _SLEEPING)
            return function(**arguments)

    return Made()


def _finish(coroutine: Any, sleeps: bool) -> Any:
    """The result of a coroutine; one that never waits needs no event loop of its own."""
    if sleeps:
        return asyncio.run(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it waits")


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls `final_answer`."""
    tools = [_tool(function) for function in functions]

    def message(number: int, turn: Any) -> ChatMessage:
        calls = [
            ChatMessageToolCall(ChatMessageToolCallFunction(name=name, arguments=args), f"{number}-{i}", "function")
            for i, (name, args) in enumerate(turn)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    replies = [message(number, turn) for number, turn in enumerate([*turns, [("final_answer", {"answer": "done"})]])]

    async def run() -> list[str]:
        model = Scripted(iter(replies))
        agent = ToolCallingAgent(tools, model, max_steps=len(turns) + 2, verbosity_level=LogLevel.OFF)
        await asyncio.to_thread(agent.run, "go")
        steps = [step for step in agent.memory.steps if getattr(step, "tool_calls", None)]
        return [line for step in steps[:-1] for line in str(step.observations or "").splitlines()]

    return run
