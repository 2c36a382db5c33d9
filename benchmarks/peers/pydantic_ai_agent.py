"""Pydantic AI: an Agent with plain tools and its FunctionModel; usage is set, so that nothing is estimated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

DISTRIBUTION = "pydantic-ai-slim"
REQUIREMENTS = ("pydantic-ai-slim", "pydantic-graph")


def build(
    functions: list[Callable[..., Any]], turns: list[Any], *, seconds: float | None = None
) -> Callable[[], Awaitable[list[str]]]:
    """An agent that runs until the model calls nothing. `seconds` is a time limit of `hang`."""
    usage = RequestUsage(input_tokens=10, output_tokens=10)
    tooled = Agent(tools=[Tool(f, timeout=seconds if f.__name__ == "hang" else None) for f in functions])

    async def run() -> list[str]:
        replies = [
            ModelResponse([ToolCallPart(name, args, f"{r}-{i}") for i, (name, args) in enumerate(turn)], usage=usage)
            for r, turn in enumerate(turns)
        ]
        script = iter([*replies, ModelResponse([TextPart("done")], usage=usage)])

        async def reply(messages: Any, info: Any) -> ModelResponse:
            return next(script)

        done = await tooled.run("go", model=FunctionModel(reply), usage_limits=UsageLimits(request_limit=None))
        parts = [part for message in done.all_messages() for part in message.parts]
        return [
            str(part.content) if isinstance(part, ToolReturnPart) else part.model_response()
            for part in parts
            if isinstance(part, (ToolReturnPart, RetryPromptPart))
        ]

    return run


build_limited = partial(build, seconds=0.5)
"""With a time limit for the tool that hangs."""


def graph(nodes: list[tuple[float, tuple[int, ...]]]) -> Callable[[], Awaitable[Any]]:
    """pydantic-graph's builder: a step per call, and a hand-made join where a call has several predecessors."""
    from pydantic_graph import GraphBuilder, StepContext
    from pydantic_graph.join import reduce_null

    builder = GraphBuilder(output_type=type(None))
    steps: list[Any] = []

    def step(number: int, seconds: float) -> Any:
        async def work(ctx: StepContext[None, None, Any]) -> None:
            await asyncio.sleep(seconds)

        return builder.step(work, node_id=f"n{number}")

    for number, (seconds, _) in enumerate(nodes):
        steps.append(step(number, seconds))
    followed = {other for _, before in nodes for other in before}
    end = builder.join(reduce_null, initial=None, node_id="end")
    edges = [builder.edge_from(builder.start_node).to(*[s for s, (_, b) in zip(steps, nodes, strict=True) if not b])]
    targets: dict[int, list[Any]] = {n: [] if n in followed else [end] for n in range(len(nodes))}
    for number, (_, before) in enumerate(nodes):
        target = steps[number]
        if len(before) > 1:
            target = builder.join(reduce_null, initial=None, node_id=f"join{number}")
            edges.append(builder.edge_from(target).to(steps[number]))
        for other in before:
            targets[other].append(target)
    for number, following in targets.items():
        edges.append(builder.edge_from(steps[number]).to(*following))
    builder.add(*edges, builder.edge_from(end).to(builder.end_node))
    built = builder.build()
    return built.run
