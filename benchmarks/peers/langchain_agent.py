"""LangChain: `create_agent` with a scripted chat model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

DISTRIBUTION = "langchain"
REQUIREMENTS = ("langgraph", "langchain")


class Scripted(BaseChatModel):
    """Says what it was given."""

    script: Iterator[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Scripted:
        """The script knows the tools."""
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=next(self.script))])

    async def _agenerate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        return self._generate(messages)


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing."""
    tools = [
        StructuredTool.from_function(coroutine=function, name=function.__name__)
        if inspect.iscoroutinefunction(function)
        else StructuredTool.from_function(function)
        for function in functions
    ]
    replies = [
        AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"{r}-{i}"} for i, (n, a) in enumerate(turn)])
        for r, turn in enumerate(turns)
    ]

    async def run() -> list[str]:
        agent = create_agent(Scripted(script=iter([*replies, AIMessage("done")])), tools)
        config = {"recursion_limit": 2 * len(turns) + 10}
        done = await agent.ainvoke({"messages": [("user", "go")]}, config)
        return [str(m.content) for m in done["messages"] if isinstance(m, ToolMessage)]

    return run
