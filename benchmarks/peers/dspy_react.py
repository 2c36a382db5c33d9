"""DSPy: ReActV2 with its DummyLM; tools run one after another."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import dspy
from dspy.utils import DummyLM

DISTRIBUTION = "dspy"
REQUIREMENTS = ("dspy",)


def build(functions: list[Callable[..., Any]], turns: list[Any]) -> Callable[[], Awaitable[list[str]]]:
    """A module that runs until the model submits."""

    def answer(calls: list[dict[str, Any]]) -> dict[str, str]:
        return {"next_thought": "go on", "tool_calls": json.dumps({"tool_calls": calls})}

    answers = [answer([{"name": name, "args": args} for name, args in turn]) for turn in turns]
    answers.append(answer([{"name": "submit", "args": {"answer": "done"}}]))

    async def run() -> list[str]:
        module = dspy.ReActV2("question -> answer", tools=[dspy.Tool(f) for f in functions], max_iters=len(turns) + 2)
        with dspy.context(lm=DummyLM(answers)):
            done = await module.acall(question="go")
        called = [message["tool_calls"] for message in done.history.messages if message.get("tool_calls")]
        results = [calls.tool_call_results.tool_call_results for calls in called if calls.tool_call_results]
        return [str(result.value) for turn in results for result in turn if result.name != "submit"]

    return run
