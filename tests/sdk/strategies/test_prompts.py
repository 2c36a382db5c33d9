"""The system prompts of ParallelRounds, AgentGraph and DependencyPlan, kept in `prompts/`, and what they cost.

    CONCERTINO_WRITE_PROMPTS=1 python -m pytest tests/sdk/strategies/test_prompts.py

writes the files anew. Their first line is the count of tokens by the SDK's own estimate (a token per 3 bytes).
"""

from __future__ import annotations

import os
from pathlib import Path

import concertino as ct
import pytest
from concertino.strategies import AgentGraph, Ask, Brief, DependencyPlan, ParallelRounds, Strategy

from .graph_texts import COT, DEBATE, SEARCH, tool

FOLDER = Path(__file__).parent / "prompts"
FIND = tool("search", {"queries": {"type": "array", "items": {"type": "string"}}}, "queries")
PROMPTS: dict[str, Strategy] = {
    "parallel-rounds": ParallelRounds(),
    "parallel-rounds-native": ParallelRounds(native=True),
    "agent-graph-high": AgentGraph(),
    "agent-graph-low": AgentGraph(dom="low"),
    "agent-graph-alone": AgentGraph(prepend_task=False, max_agents=8),
    "dependency-plan-graph": DependencyPlan(),
    "dependency-plan-calls": DependencyPlan(graph=False, max_rounds=4, max_parallel=3),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_system_prompt_is_what_its_file_says_and_costs_what_it_says(name: str) -> None:
    tools = [COT, DEBATE, SEARCH] if name.startswith("agent") else [FIND, COT]
    step = PROMPTS[name].begin(Brief("Q?", tools)).step()
    assert isinstance(step, Ask)
    prompt = step.messages[0].text
    written = f"tokens: {ct.Model().count_tokens(prompt)}\n\n{prompt}\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("CONCERTINO_WRITE_PROMPTS"):
        file.write_text(written, "utf-8")
    assert written == file.read_text("utf-8")


@pytest.mark.parametrize("name", PROMPTS)
def test_a_system_prompt_without_members_is_short(name: str) -> None:
    counted = int((FOLDER / f"{name}.txt").read_text("utf-8").split()[1])
    assert counted < 1_200
