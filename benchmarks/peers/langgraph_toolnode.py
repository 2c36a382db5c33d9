"""LangGraph: a StateGraph of a scripted model node and the prebuilt ToolNode."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

DISTRIBUTION = "langgraph"
REQUIREMENTS = ("langgraph", "langchain")


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """A loop of model and tools until the model calls nothing."""
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
        script = iter([*replies, AIMessage("done")])

        async def model(state: MessagesState) -> dict[str, Any]:
            return {"messages": [next(script)]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", model)
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        config = {"recursion_limit": 2 * len(turns) + 10}
        done = await graph.compile().ainvoke({"messages": [("user", "go")]}, config)
        return [str(m.content) for m in done["messages"] if isinstance(m, ToolMessage)]

    return run


def graph(nodes: list[tuple[float, tuple[int, ...]]]) -> Callable[[], Awaitable[Any]]:
    """A StateGraph with a node per call; several predecessors are a list edge (wait for all)."""
    plan = StateGraph(MessagesState)

    def work(seconds: float) -> Any:
        async def node(state: MessagesState) -> dict[str, Any]:
            await asyncio.sleep(seconds)
            return {}

        return node

    followed = {other for _, before in nodes for other in before}
    for number, (seconds, before) in enumerate(nodes):
        plan.add_node(f"n{number}", work(seconds))
        plan.add_edge([f"n{other}" for other in before] if before else START, f"n{number}")
        if number not in followed:
            plan.add_edge(f"n{number}", END)
    compiled = plan.compile()
    return lambda: compiled.ainvoke({"messages": []}, {"recursion_limit": 200})
